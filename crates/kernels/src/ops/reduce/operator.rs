//! A reduction as a node of a graph: `Src` alone. Where nothing is reduced it is a view.

use super::{OP, Reduce, ReduceOp, Reduction};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options, View, WithoutElements};
use std::sync::Arc;

impl Options for Reduce {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let op = ReduceOp::new(arguments.need(OP, Operand::Src)?, self, precision)?;
        let op = op.of(arguments.dtype(Operand::Src).word());
        if op.merged().count() == 1 && !self.reduction.is_logical() {
            return Ok(Lowered::View(View { dims: op.output, offset: 0 }));
        }
        Ok(Lowered::Op(Arc::new(op)))
    }

    fn without_elements(&self, _arguments: Arguments<'_>) -> Option<WithoutElements> {
        match self.reduction {
            Reduction::Sum | Reduction::Any => Some(WithoutElements::Filled(0.0)),
            Reduction::Product | Reduction::All => Some(WithoutElements::Filled(1.0)),
            Reduction::Mean => Some(WithoutElements::Filled(f32::NAN)),
            Reduction::Max | Reduction::Min => None,
        }
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<ReduceOp>().map(|op| op.output).into_iter().collect()
    }
}
