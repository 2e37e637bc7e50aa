//! A normalisation as a node of a graph: `Src`, and where given `Weights`, the scale, and `Bias`.

use super::{Normalize, NormalizeOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operator::{Arguments, Lowered, Operator, same};
use crate::ops::plan::Op;
use std::sync::Arc;

impl Operator for Normalize {
    fn name(&self) -> &'static str {
        OP
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let dims = arguments.need(OP, Operand::Src)?;
        let channels = dims.shape().c;
        for (operand, what) in [(Operand::Weights, "scale"), (Operand::Bias, "bias")] {
            if let Some(found) = arguments.get(operand).filter(|found| found.elements() != channels) {
                return Err(Error::shape(OP, format!("a {what} of {found}"), format!("{channels} values")));
            }
        }
        let [scale, bias] = [Operand::Weights, Operand::Bias].map(|operand| arguments.has(operand));
        Ok(Lowered::Op(Arc::new(NormalizeOp::new(dims, self, scale, bias, precision)?)))
    }

    fn outputs(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        arguments.get(Operand::Src).into_iter().collect()
    }

    fn same(&self, other: &dyn Operator) -> bool {
        same(self, other)
    }
}
