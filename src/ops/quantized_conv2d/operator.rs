//! A convolution of bytes as a node of a graph: `Src`, `Weights`, `Bias` and `Scale`.

use super::{OP, QuantizedConv2d, QuantizedConv2dOp};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::bytes;
use crate::ops::operator::{Arguments, Lowered, Operator, same};
use std::sync::Arc;

impl Operator for QuantizedConv2d {
    fn name(&self) -> &'static str {
        OP
    }

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let [input, weights] = bytes::maps(OP, arguments)?;
        let op = QuantizedConv2dOp::new(input, weights, self)?;
        bytes::check_channels(OP, arguments, weights.n)?;
        Ok(Lowered::Op(Arc::new(op)))
    }

    fn same(&self, other: &dyn Operator) -> bool {
        same(self, other)
    }
}
