//! A product and a nest of its rows as a node: `A`, `B`, where given `Bias`, `Slope` and `Residual`, and `Read(0)`, ...

use super::{GemmRowsOp, OP};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::gemm::{Gemm, GemmOp};
use crate::ops::loops::Loops;
use crate::ops::op::Op;
use crate::ops::operator::{Argument, Arguments, Lowered, Operator, Options};
use std::sync::Arc;

/// A matrix product, and the nest that reads its result as source `source`.
#[derive(Debug, Clone, PartialEq)]
pub struct GemmRows {
    gemm: Gemm,
    nest: Loops,
    source: usize,
}

impl GemmRows {
    /// The product of `gemm`, and `nest` with its result as source `source`; its other sources are inputs [`Operand::Read`], in their
    /// order.
    #[doc(hidden)]
    pub fn new(gemm: Gemm, nest: Loops, source: usize) -> Self {
        GemmRows { gemm, nest, source }
    }

    /// The arguments of the product and of the nest.
    fn apart(arguments: Arguments<'_>) -> [Vec<Argument>; 2] {
        let is_read = |own: &Argument| matches!(own.operand, Operand::Read(_));
        let (reads, product) = arguments.inputs.iter().copied().partition(is_read);
        [product, reads]
    }
}

impl Options for GemmRows {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let [product, reads] = GemmRows::apart(arguments);
        let others = self.nest.nest().sources().iter().enumerate().filter(|(place, _)| *place != self.source);
        for (place, (_, dims)) in others.enumerate() {
            let found =
                reads.iter().find(|own| own.operand == Operand::Read(place as u8)).map(|own| own.dims);
            if found.map(|own| own.elements()) != Some(dims.elements()) {
                let found = found.map_or_else(|| "nothing".to_owned(), |own| own.to_string());
                return Err(Error::shape(OP, found, format!("the elements of {dims}")));
            }
        }
        let own = Arguments { inputs: &product, ..arguments };
        let Lowered::Op(op) = Operator::lower(&self.gemm, own, precision)? else {
            return Err(Error::Internal("a product that is a view".to_owned()));
        };
        let Some(product) = (&*op as &dyn Op).as_any().downcast_ref::<GemmOp>() else {
            return Err(Error::Internal("a product of another op".to_owned()));
        };
        Ok(Lowered::Op(Arc::new(GemmRowsOp::new(*product, &self.nest.op(precision)?, self.source)?)))
    }

    fn types(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<DType> {
        Options::types(&self.nest, arguments, op)
    }

    fn outputs(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        Options::outputs(&self.nest, arguments, op)
    }
}
