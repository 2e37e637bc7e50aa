//! A convolution of bytes as a node of a graph: `Src`, `Weights`, `Bias` and `Scale`.

use super::{OP, QuantizedConv2d, QuantizedConv2dOp};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::bytes;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for QuantizedConv2d {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let [input, weights] = bytes::maps(OP, arguments)?;
        let op = QuantizedConv2dOp::new(input, weights, self)?;
        bytes::check_channels(OP, arguments, weights.n)?;
        Ok(Lowered::Op(Arc::new(op)))
    }
}
