//! Running sums as a node of a graph: `Src` alone.

use super::{CumSum, CumSumOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for CumSum {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let dims = arguments.need(OP, Operand::Src)?;
        let word = arguments.dtype(Operand::Src).word();
        Ok(Lowered::Op(Arc::new(CumSumOp::new(dims, *self)?.of(word))))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<CumSumOp>().map(|op| op.dims).into_iter().collect()
    }
}
