//! An operator with a nest in the place of an input.

use super::PrologueOp;
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::loops::Loops;
use crate::ops::op::Op;
use crate::ops::operator::{Argument, Arguments, Lowered, Operator};
use std::any::Any;
use std::sync::Arc;

/// An operator whose input `operand` a nest gives, of inputs [`Operand::Read`].
#[derive(Debug, Clone)]
pub struct Prologue {
    operator: Arc<dyn Operator>,
    operand: Operand,
    /// The dimensions of that input.
    dims: Dims,
    nest: Loops,
}

impl Prologue {
    /// `operator` with what `nest` gives as its input `operand` of `dims`; the nest's sources are inputs [`Operand::Read`].
    #[doc(hidden)]
    pub fn new(operator: Arc<dyn Operator>, operand: Operand, dims: Dims, nest: Loops) -> Self {
        Prologue { operator, operand, dims, nest }
    }

    /// What `of` gives of the operator's own inputs.
    fn with_own<T>(&self, arguments: Arguments<'_>, of: impl FnOnce(Arguments<'_>) -> T) -> T {
        let others = arguments.inputs.iter().filter(|own| !matches!(own.operand, Operand::Read(_))).copied();
        let given = Argument { operand: self.operand, dims: self.dims, dtype: DType::F32 };
        let inputs: Vec<Argument> = [given].into_iter().chain(others).collect();
        of(Arguments { inputs: &inputs, ..arguments })
    }
}

impl Operator for Prologue {
    fn name(&self) -> &'static str {
        self.operator.name()
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        for (place, dims) in self.nest.nest().sources().iter().enumerate() {
            let found = arguments.need(self.name(), Operand::Read(place as u8))?;
            if found.elements() != dims.elements() {
                return Err(Error::shape(self.name(), found.to_string(), format!("the elements of {dims}")));
            }
        }
        match self.with_own(arguments, |own| self.operator.lower(own, precision))? {
            Lowered::Op(op) => {
                let nest = self.nest.op(precision)?;
                Ok(Lowered::Op(Arc::new(PrologueOp::new(op, self.operand, nest)?)))
            }
            Lowered::View(_) => {
                Err(Error::unsupported(self.operator.name(), "a nest before a view, wanted one before an op"))
            }
        }
    }

    fn outputs(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        let op = op.as_any().downcast_ref::<PrologueOp>().map_or(op, |own| &*own.op);
        self.with_own(arguments, |own| self.operator.outputs(own, op))
    }

    fn types(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<DType> {
        let op = op.as_any().downcast_ref::<PrologueOp>().map_or(op, |own| &*own.op);
        self.with_own(arguments, |own| self.operator.types(own, op))
    }

    fn same(&self, other: &dyn Operator) -> bool {
        let other = (other as &dyn Any).downcast_ref::<Prologue>();
        other.is_some_and(|other| {
            self.operator.same(&*other.operator)
                && (self.operand, self.dims) == (other.operand, other.dims)
                && self.nest == other.nest
        })
    }
}
