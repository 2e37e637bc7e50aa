//! Conversions to bytes as nodes of a graph: `Src`.

use super::{OP, Quantize, QuantizeOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for Quantize {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        Ok(Lowered::Op(Arc::new(QuantizeOp::new(arguments.need(OP, Operand::Src)?, *self)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<QuantizeOp>().map(|op| op.target).into_iter().collect()
    }
}
