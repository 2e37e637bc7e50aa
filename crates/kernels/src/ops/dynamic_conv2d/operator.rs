//! A convolution of bytes of ranges of a run as a node of a graph: `Src`, `Weights`, `Arg(0)`, and where given `Scale`, `Bias`,
//! `Slope` and `Residual`.

use super::{DynamicConv2d, DynamicConv2dOp, EpilogueOperands, OP};
use crate::dtype::{DType, Precision};
use crate::emit::{Activation, Operand};
use crate::error::{Error, Result};
use crate::ops::bytes;
use crate::ops::operator::{self, Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for DynamicConv2d {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let [input, weights] = bytes::maps(OP, arguments)?;
        let [bias, residual] = operator::extras(arguments);
        let ranges = arguments.need(OP, Operand::Arg(0))?;
        let op = DynamicConv2dOp::with(input, weights, ranges, self, EpilogueOperands { bias, residual })?;
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

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None && !self.sums).then_some(DynamicConv2d { activation, ..*self })
    }

    fn adds(&self) -> [bool; 2] {
        [!self.sums; 2]
    }
}
