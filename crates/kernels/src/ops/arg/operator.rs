//! An index of the largest or smallest element as a node of a graph: `Src` alone.

use super::{ArgOp, ArgReduce, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for ArgReduce {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        Ok(Lowered::Op(Arc::new(
            ArgOp::new(arguments.need(OP, Operand::Src)?, self)?.of(arguments.dtype(Operand::Src).word()),
        )))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<ArgOp>().map(|op| op.output).into_iter().collect()
    }
}
