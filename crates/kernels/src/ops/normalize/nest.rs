//! A normalisation as a nest of loops.

use super::{NormalizeOp, Vector};
use crate::dims::Dims;
use crate::emit::Operand;
use crate::ops::elementwise::Function;
use crate::ops::loops::{Index, Nest, Nodes, OpNest, OperandSet, element};
use crate::ops::reduce::Reduction;

impl NormalizeOp {
    /// What it computes, as a nest; none with an epilogue or vectors that are computed at each run.
    pub(super) fn as_nest(&self) -> Option<OpNest> {
        if self.is_finished() {
            return None;
        }
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
        let channels = extents.len().checked_sub(1).map_or_else(Index::default, Index::axis);
        for (vector, operand, function) in
            [(self.scale, Operand::Weights, Function::Mul), (self.bias, Operand::Bias, Function::Add)]
        {
            if vector == Vector::Constant {
                let own = nodes.read(sources.len(), channels.clone());
                sources.push(Dims::new(&[self.channels()]).ok()?);
                operands.push(operand);
                value = nodes.apply(function, &[value, own]);
            }
        }
        let written = (0..extents.len()).collect();
        let nest = Nest::new(extents, written, sources, nodes, value, self.dims).ok()?;
        // Factors and summands are constants in f32.
        Some(OpNest::new(nest, operands).with_halves(OperandSet { sources: 0b001, results: 1 }))
    }
}
