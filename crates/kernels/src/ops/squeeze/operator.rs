//! A global mean and the product behind it as a node of a network: `Src`, `Weights` (`oc 1 1 c`), and where given `Bias`.
//! The lowering makes it; a graph has none.

use super::{OP, SqueezeOp};
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
pub struct Squeeze {
    /// What is made of the mean.
    pub dense: Pointwise,
    /// Whether the result is a matrix `n oc`, and not a map of a pixel.
    pub rows: bool,
}

impl Options for Squeeze {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let map = |operand: Operand| {
            let dims = arguments.need(OP, operand)?;
            let wrong = || Error::shape(OP, format!("{} of {dims}", operand.name()), "rank 4");
            (dims.rank() == 4).then(|| dims.shape()).ok_or_else(wrong)
        };
        let (x, weights) = (map(Operand::Src)?, map(Operand::Weights)?);
        let mean = Shape::nhwc(x.n, 1, 1, x.c);
        let bias = arguments.has(Operand::Bias);
        let dense = PointwiseOp::new(mean, weights, &self.dense, bias, false, precision)?;
        Ok(Lowered::Op(Arc::new(SqueezeOp::new(x, dense, self.rows)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        let dims = |shape: Shape| match self.rows {
            true => Dims::new(&[shape.n, shape.c]).unwrap_or(Dims::from(shape)),
            false => Dims::from(shape),
        };
        crate::ops::outputs(op).map(|info| dims(info.shape)).collect()
    }
}
