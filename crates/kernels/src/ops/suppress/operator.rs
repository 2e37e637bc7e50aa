//! A suppression as a node of a graph: boxes and scores.

use super::{OP, Suppress, SuppressOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for Suppress {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let (boxes, scores) = (arguments.need(OP, Operand::Arg(0))?, arguments.need(OP, Operand::Arg(1))?);
        Ok(Lowered::Op(Arc::new(SuppressOp::new(boxes, scores, *self)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<SuppressOp>().map(|op| op.target).into_iter().collect()
    }
}
