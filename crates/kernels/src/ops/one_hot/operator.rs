//! An encoding as a node of a graph: `Src` alone.

use super::{OP, OneHot, OneHotOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for OneHot {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let indices = arguments.need(OP, Operand::Src)?;
        Ok(Lowered::Op(Arc::new(OneHotOp::new(indices, *self)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<OneHotOp>().map(|op| op.target).into_iter().collect()
    }
}
