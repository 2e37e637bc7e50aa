//! A nest as a node of a network: `Arg(0)`, `Arg(1)`, ...

use super::{Halves, LoopsOp, Nest, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

/// A nest, of inputs with as many elements as its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loops {
    nest: Arc<Nest>,
    halves: Halves,
}

impl Loops {
    /// The operator that computes `nest`.
    ///
    /// # Errors
    /// If its texts have more scalars than a kernel takes.
    #[doc(hidden)]
    pub fn new(nest: Nest, halves: Halves) -> Result<Self> {
        let operator = Loops { nest: Arc::new(nest), halves };
        match LoopsOp::new(Arc::clone(&operator.nest), halves, Precision::F32).has_scalars_for_all() {
            true => Ok(operator),
            false => Err(Error::unsupported(OP, "more scalars than a kernel takes")),
        }
    }

    /// What it computes.
    #[doc(hidden)]
    pub fn nest(&self) -> &Nest {
        &self.nest
    }
}

impl Options for Loops {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        for (place, dims) in self.nest.sources.iter().enumerate() {
            let found = arguments.need(OP, Operand::Arg(place as u8))?;
            if found.elements() != dims.elements() {
                return Err(Error::shape(OP, found.to_string(), format!("the elements of {dims}")));
            }
        }
        Ok(Lowered::Op(Arc::new(LoopsOp::new(Arc::clone(&self.nest), self.halves, precision))))
    }

    fn outputs(&self, _arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        vec![self.nest.target]
    }
}
