//! An update as a node of a graph: `Src`, `Arg(0)` the rows, and `Arg(1)` their places.

use super::{OP, UpdateSlice, UpdateSliceOp};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options, WithoutElements};
use std::sync::Arc;

impl Options for UpdateSlice {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let [whole, part, places] = [Operand::Src, Operand::Arg(0), Operand::Arg(1)];
        let [own, other] = [whole, part].map(|operand| arguments.dtype(operand));
        if own != other {
            return Err(Error::shape(OP, format!("rows of {other}"), own.to_string()));
        }
        let op = UpdateSliceOp::new(
            arguments.need(OP, whole)?,
            arguments.need(OP, part)?,
            arguments.need(OP, places)?,
            *self,
        )?;
        Ok(Lowered::Op(Arc::new(op.of(own.word()).in_precision(precision))))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<UpdateSliceOp>().map(|op| op.whole).into_iter().collect()
    }

    fn without_elements(&self, _arguments: Arguments<'_>) -> Option<WithoutElements> {
        Some(WithoutElements::Shown(Operand::Src))
    }

    fn types(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<DType> {
        vec![arguments.dtype(Operand::Src)]
    }
}
