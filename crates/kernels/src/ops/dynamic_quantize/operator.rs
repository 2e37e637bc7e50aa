//! Conversions to bytes by ranges of a run as nodes of a graph: `Src` and `Arg(0)`.

use super::{DynamicQuantize, DynamicQuantizeOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for DynamicQuantize {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let [x, ranges] = [Operand::Src, Operand::Arg(0)].map(|operand| arguments.need(OP, operand));
        Ok(Lowered::Op(Arc::new(DynamicQuantizeOp::new(x?, ranges?, *self)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<DynamicQuantizeOp>().map(|op| op.target).into_iter().collect()
    }
}
