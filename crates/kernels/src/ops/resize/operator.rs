//! A resize as a node of a graph: `Src` alone.

use super::{OP, Resize, ResizeOp};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for Resize {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let dims = arguments.need(OP, Operand::Src)?;
        if dims.rank() != 4 {
            return Err(Error::shape(OP, format!("src of rank {} ({dims})", dims.rank()), "src of rank 4"));
        }
        Ok(Lowered::Op(Arc::new(ResizeOp::new(dims.shape(), self, precision)?)))
    }
}
