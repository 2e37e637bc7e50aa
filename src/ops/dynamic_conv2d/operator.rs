//! A convolution of bytes of ranges of a run as a node of a graph: `Src`, `Weights`, `Arg(0)`, and where given `Scale`, `Bias`,
//! `Slope` and `Residual`.

use super::{DynamicConv2d, DynamicConv2dOp, Given, OP};
use crate::dtype::{DType, Precision};
use crate::emit::{Activation, Operand};
use crate::error::{Error, Result};
use crate::ops::bytes;
use crate::ops::operator::{self, Arguments, Lowered, Operator, same};
use std::sync::Arc;

impl Operator for DynamicConv2d {
    fn name(&self) -> &'static str {
        OP
    }

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let [input, weights] = bytes::maps(OP, arguments)?;
        let [bias, residual] = operator::extras(arguments);
        let ranges = arguments.need(OP, Operand::Arg(0))?;
        let op = DynamicConv2dOp::with(input, weights, ranges, self, Given { bias, residual })?;
        let scale =
            arguments.get(Operand::Scale).map(|dims| (dims.elements(), arguments.dtype(Operand::Scale)));
        let wanted = (!self.sums).then_some((weights.n, DType::F32));
        if scale != wanted {
            let of = |scale: Option<(usize, DType)>| match scale {
                Some((count, dtype)) => format!("{count} scales of {dtype}"),
                None => "no scales".to_owned(),
            };
            return Err(Error::shape(OP, of(scale), of(wanted)));
        }
        Ok(Lowered::Op(Arc::new(op)))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None && !self.sums;
        free.then(|| Arc::new(DynamicConv2d { activation, ..*self }) as Arc<dyn Operator>)
    }

    fn adds_bias(&self) -> bool {
        !self.sums
    }

    fn adds_residual(&self) -> bool {
        !self.sums
    }

    fn same(&self, other: &dyn Operator) -> bool {
        same(self, other)
    }
}
