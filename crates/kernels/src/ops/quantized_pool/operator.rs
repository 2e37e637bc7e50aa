//! A pooling of bytes as a node of a graph: `Src`.

use super::{OP, QuantizedPool, QuantizedPoolOp};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::bytes;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for QuantizedPool {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let dims = bytes::need(OP, arguments, Operand::Src)?;
        if dims.rank() != 4 {
            return Err(Error::shape(OP, format!("an input of rank {} ({dims})", dims.rank()), "rank 4"));
        }
        Ok(Lowered::Op(Arc::new(QuantizedPoolOp::new(dims.shape(), self)?)))
    }
}
