//! The moments of a map's parts as a node of a network: `Src` alone. The lowering makes it; a graph has none.

use super::{MomentsOp, OP};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

/// The operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MomentsOfParts {
    /// Whether values are taken from the map's first pixel.
    pub centred: bool,
}

impl Options for MomentsOfParts {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let dims = arguments.need(OP, Operand::Src)?;
        if dims.rank() != 4 {
            return Err(Error::shape(OP, format!("an input of {dims}"), "one of rank 4"));
        }
        Ok(Lowered::Op(Arc::new(MomentsOp::new(dims.shape(), self.centred, precision)?)))
    }
}
