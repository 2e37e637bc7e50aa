//! The join as a node of a network: `Src` alone. The lowering makes it; a graph has none.

use super::{AttentionJoinOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::attention::Strided;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

/// The operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttentionJoin {
    /// The attention to all keys.
    pub whole: Strided,
    pub parts: usize,
}

impl Options for AttentionJoin {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let dims = arguments.need(OP, Operand::Src)?;
        let wanted = self.whole.in_parts(self.parts)?.output;
        if dims != wanted {
            return Err(Error::shape(OP, format!("an input of {dims}"), format!("{wanted}")));
        }
        Ok(Lowered::Op(Arc::new(AttentionJoinOp::new(self.whole.clone(), self.parts, precision)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        vec![self.whole.output]
    }
}
