//! Conversions of bytes as nodes of a graph: `Src`.

use super::{Dequantize, DequantizeOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::bytes;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for Dequantize {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        Ok(Lowered::Op(Arc::new(DequantizeOp::new(bytes::need(OP, arguments, Operand::Src)?, *self)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<DequantizeOp>().map(|op| op.target).into_iter().collect()
    }
}
