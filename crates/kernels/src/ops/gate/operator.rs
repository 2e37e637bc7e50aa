//! A weighted map as a node of a graph: `Src`, the pixel, with `Window` and `WindowBias`, then `Weights` and `Bias`,
//! `Arg(0)`, the map, and where given `Residual`.

use super::{GateOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::shape::Shape;
use std::sync::Arc;

/// Options of the two convolutions; without the first one, `Src` is what it would give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gate {
    pub first: Option<Pointwise>,
    pub second: Pointwise,
}

impl Options for Gate {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let map = |operand: Operand| -> Result<Shape> {
            let dims = arguments.need(OP, operand)?;
            let wanted = || format!("{} of rank 4", operand.name());
            if dims.rank() == 4 {
                return Ok(dims.shape());
            }
            Err(Error::shape(OP, format!("{} of {dims}", operand.name()), wanted()))
        };
        let [pixel, weights, x] = [Operand::Src, Operand::Weights, Operand::Arg(0)].map(map);
        let (pixel, x) = (pixel?, x?);
        let [first_bias, bias, residual] =
            [Operand::WindowBias, Operand::Bias, Operand::Residual].map(|operand| arguments.has(operand));
        if residual && map(Operand::Residual)? != x {
            let found = format!("a residual of {}", map(Operand::Residual)?);
            return Err(Error::shape(OP, found, format!("one of {x}")));
        }
        let first = match &self.first {
            Some(options) => {
                let window = map(Operand::Window)?;
                Some(PointwiseOp::new(pixel, window, options, first_bias, false, precision)?)
            }
            None => None,
        };
        let hidden = first.map_or(pixel, |first| first.0.output);
        let second = PointwiseOp::new(hidden, weights?, &self.second, bias, false, precision)?;
        Ok(Lowered::Op(Arc::new(GateOp::new(first, second, x, residual)?)))
    }

    fn outputs(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        arguments.get(Operand::Arg(0)).into_iter().collect()
    }
}
