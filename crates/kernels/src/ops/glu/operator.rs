//! A gated linear unit as a node of a network: `Src` alone. The lowering makes it; a graph has none.

use super::{GluOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::elementwise::Program;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

/// The operator: a function of the first half of a row and the second.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glu(pub Program);

impl Options for Glu {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let src = arguments.need(OP, Operand::Src)?;
        Ok(Lowered::Op(Arc::new(GluOp::new(self.0.clone(), src, precision)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<GluOp>().map(|op| op.dst).into_iter().collect()
    }
}
