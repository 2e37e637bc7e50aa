//! Dense layers as a node of a network: `Src`, of two layers `Window` (`r 1 1 k`) and where given `WindowBias`, then
//! `Weights` and where given `Bias`. The lowering makes it; a graph has none.

use super::{MlpOp, OP, RowNorm};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::shape::Shape;
use std::sync::Arc;

/// The operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mlp {
    pub norm: Option<RowNorm>,
    /// The first of two layers.
    pub first: Option<Pointwise>,
    pub last: Pointwise,
}

impl Options for Mlp {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let of_rank = |operand: Operand, rank: usize| {
            let dims = arguments.need(OP, operand)?;
            let wrong = || Error::shape(OP, format!("{} of {dims}", operand.name()), format!("rank {rank}"));
            (dims.rank() == rank).then(|| dims.shape()).ok_or_else(wrong)
        };
        let matrix = of_rank(Operand::Src, 2)?;
        let rows = Shape::nhwc(matrix.elements() / matrix.c.max(1), 1, 1, matrix.c);
        let [first_bias, bias] = [Operand::WindowBias, Operand::Bias].map(|operand| arguments.has(operand));
        let first = match &self.first {
            Some(options) => {
                let weights = of_rank(Operand::Window, 4)?;
                Some(PointwiseOp::new(rows, weights, options, first_bias, false, precision)?)
            }
            None => None,
        };
        let hidden = first.map_or(rows, |first| first.0.output);
        let weights = of_rank(Operand::Weights, 4)?;
        let last = PointwiseOp::new(hidden, weights, &self.last, bias, false, precision)?;
        Ok(Lowered::Op(Arc::new(MlpOp::new(self.norm, first, last)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        let matrix = |shape: Shape| Dims::new(&[shape.n, shape.c]).unwrap_or(Dims::from(shape));
        crate::ops::outputs(op).map(|info| matrix(info.shape)).collect()
    }
}
