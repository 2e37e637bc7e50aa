//! Ranges that are found at each run as nodes of a graph: `Src`.

use super::{DynamicRange, DynamicRangeOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for DynamicRange {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        Ok(Lowered::Op(Arc::new(DynamicRangeOp::new(arguments.need(OP, Operand::Src)?, *self)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<DynamicRangeOp>().map(|op| op.target).into_iter().collect()
    }
}
