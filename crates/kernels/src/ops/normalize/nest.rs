//! A normalisation as a nest of loops.

use super::{NormalizeOp, Vector};
use crate::dims::Dims;
use crate::emit::{Epilogue, Operand, Residual};
use crate::ops::elementwise::Function;
use crate::ops::loops::{Index, Nest, Nodes, OpNest, OperandSet, element};
use crate::ops::reduce::Reduction;

impl NormalizeOp {
    /// What it computes, as a nest.
    pub fn as_nest(&self) -> Option<OpNest> {
        let extents = self.dims.extents().to_vec();
        let axes = 0..extents.len();
        let over = axes.clone().filter(|&axis| self.normalized[axis]).fold(0, |all, axis| all | 1 << axis);
        let (mut nodes, mut sources, mut operands) = (Nodes::default(), vec![self.dims], vec![Operand::Src]);
        let at = element(&extents);
        let mut x = nodes.read(0, at.clone());
        if self.centred {
            // Distances from the first of the values, so that a large mean takes no bits of them.
            let first =
                |axis: usize| if self.normalized[axis] { Index::default() } else { Index::axis(axis) };
            let first = at.with(&axes.map(first).collect::<Vec<_>>(), &extents);
            let origin = nodes.read(0, first);
            x = nodes.apply(Function::Sub, &[x, origin]);
            let mean = nodes.reduce(Reduction::Mean, x, over);
            x = nodes.apply(Function::Sub, &[x, mean]);
        }
        let square = nodes.apply(Function::Mul, &[x, x]);
        let variance = nodes.reduce(Reduction::Mean, square, over);
        let epsilon = nodes.number(self.epsilon.0);
        let sum = nodes.apply(Function::Add, &[variance, epsilon]);
        let factor = nodes.apply(Function::Rsqrt, &[sum]);
        let mut value = nodes.apply(Function::Mul, &[x, factor]);
        let channel = extents.len().checked_sub(1).map_or_else(Index::default, Index::axis);
        let (channels, images) = (self.channels(), self.dims.shape().n);
        for (vector, [constant, given], function) in [
            (self.scale, [Operand::Weights, Operand::Arg(0)], Function::Mul),
            (self.bias, [Operand::Bias, Operand::Arg(1)], Function::Add),
        ] {
            let (operand, at, dims) = match vector {
                Vector::None => continue,
                Vector::Constant => (constant, channel.clone(), Dims::new(&[channels]).ok()?),
                Vector::Given => {
                    let image = if images == 1 { Index::default() } else { Index::axis(0) };
                    let dims = Dims::new(&[images, 1, 1, channels]).ok()?;
                    (given, channel.plus(&image, channels as i64), dims)
                }
            };
            let own = nodes.read(sources.len(), at);
            sources.push(dims);
            operands.push(operand);
            value = nodes.apply(function, &[value, own]);
        }
        let Epilogue { activation, residual, .. } = self.epilogue;
        if residual == Residual::BeforeActivation {
            let own = nodes.read(sources.len(), element(&extents));
            value = nodes.apply(Function::Add, &[value, own]);
        }
        value = nodes.activate(activation, value)?;
        if residual == Residual::AfterActivation {
            let own = nodes.read(sources.len(), element(&extents));
            value = nodes.apply(Function::Add, &[value, own]);
        }
        if residual.is_some() {
            sources.push(self.dims);
            operands.push(Operand::Residual);
        }
        // Factors and summands that are constants are in f32.
        let constant = |operand: &Operand| matches!(operand, Operand::Weights | Operand::Bias);
        let stored = operands.iter().enumerate().filter(|(_, own)| !constant(own));
        let halves = OperandSet { sources: stored.fold(0, |set, (place, _)| set | 1 << place), results: 1 };
        let written = (0..extents.len()).collect();
        let nest = Nest::new(extents, written, sources, nodes, value, self.dims).ok()?;
        Some(OpNest::new(nest, operands).with_halves(halves))
    }
}
