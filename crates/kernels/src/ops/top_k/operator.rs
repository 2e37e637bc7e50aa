//! A choice as a node of a graph: `Src` alone.

use super::{OP, TopK, TopKOp};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for TopK {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let source = arguments.need(OP, Operand::Src)?;
        Ok(Lowered::Op(Arc::new(TopKOp::new(source, *self)?.of(arguments.dtype(Operand::Src).word()))))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<TopKOp>().map(|op| op.target).into_iter().collect()
    }

    fn types(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<DType> {
        let values = arguments.dtype(Operand::Src);
        crate::ops::outputs(op).map(|info| if self.indices { info.dtype } else { values }).collect()
    }
}
