//! A softmax as a node of a graph: `Src` alone.

use super::{OP, Softmax, SoftmaxOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for Softmax {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let dims = arguments.need(OP, Operand::Src)?;
        Ok(Lowered::Op(Arc::new(SoftmaxOp::new(dims, self, precision)?)))
    }

    fn outputs(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        arguments.get(Operand::Src).into_iter().collect()
    }
}
