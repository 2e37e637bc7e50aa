//! A depthwise convolution of bytes as a node of a graph: `Src`, `Weights`, `Bias` and `Scale`.

use super::{OP, QuantizedDepthwise, QuantizedDepthwiseOp};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::bytes;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for QuantizedDepthwise {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let [input, weights] = bytes::maps(OP, arguments)?;
        let op = QuantizedDepthwiseOp::new(input, weights, self)?;
        bytes::check_channels(OP, arguments, bytes::LANES * weights.c)?;
        Ok(Lowered::Op(Arc::new(op)))
    }
}
