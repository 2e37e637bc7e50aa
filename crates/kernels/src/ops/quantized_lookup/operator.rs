//! Look-ups as nodes of a graph: `Src`, and `Arg(0)` the table.

use super::{OP, QuantizedLookup, QuantizedLookupOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::bytes;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for QuantizedLookup {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let [x, table] = [Operand::Src, Operand::Arg(0)].map(|operand| bytes::need(OP, arguments, operand));
        Ok(Lowered::Op(Arc::new(QuantizedLookupOp::new(x?, table?)?)))
    }

    fn outputs(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        arguments.get(Operand::Src).into_iter().collect()
    }
}
