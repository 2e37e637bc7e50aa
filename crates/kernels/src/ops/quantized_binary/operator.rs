//! Functions of two values as nodes of a graph: `Arg(0)` and `Arg(1)`.

use super::{OP, QuantizedBinary, QuantizedBinaryOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::bytes;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for QuantizedBinary {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let [a, b] = [Operand::Arg(0), Operand::Arg(1)].map(|operand| bytes::need(OP, arguments, operand));
        Ok(Lowered::Op(Arc::new(QuantizedBinaryOp::new(a?, b?, *self)?)))
    }

    fn outputs(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        arguments.get(Operand::Arg(0)).into_iter().collect()
    }
}
