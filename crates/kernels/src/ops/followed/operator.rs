//! An operator with a function of each element of its result behind it.

use super::FollowedOp;
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::{Error, Result};
use crate::ops::elementwise::Program;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Operator};
use std::any::Any;
use std::sync::Arc;

/// An operator followed by a function of each element of its result.
#[derive(Debug, Clone)]
pub struct Followed {
    operator: Arc<dyn Operator>,
    program: Program,
    channels: usize,
}

impl Followed {
    /// `operator` followed by `program`, whose first input is its result; the others are `Arg(1)`, `Arg(2)`, ...: so many of them
    /// are numbers of `channels`, the others have an element for each one of the result.
    #[doc(hidden)]
    pub fn new(operator: Arc<dyn Operator>, program: Program, channels: usize) -> Self {
        Followed { operator, program, channels }
    }
}

impl Operator for Followed {
    fn name(&self) -> &'static str {
        self.operator.name()
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        match self.operator.lower(arguments, precision)? {
            Lowered::Op(op) => {
                let op = FollowedOp::new(op, self.program.clone(), self.channels)?;
                for info in op.others()? {
                    let found = arguments.need(self.name(), info.operand)?;
                    if found.elements() != info.elements() {
                        let wanted = format!("{} elements", info.elements());
                        return Err(Error::shape(self.name(), found.to_string(), wanted));
                    }
                }
                Ok(Lowered::Op(Arc::new(op)))
            }
            Lowered::View(_) => Err(Error::unsupported(
                self.operator.name(),
                "a function behind a view, wanted one behind an op",
            )),
        }
    }

    fn outputs(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        match op.as_any().downcast_ref::<FollowedOp>() {
            Some(own) => self.operator.outputs(arguments, &*own.op),
            None => self.operator.outputs(arguments, op),
        }
    }

    fn types(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<DType> {
        match op.as_any().downcast_ref::<FollowedOp>() {
            Some(own) => self.operator.types(arguments, &*own.op),
            None => self.operator.types(arguments, op),
        }
    }

    fn same(&self, other: &dyn Operator) -> bool {
        let other = (other as &dyn Any).downcast_ref::<Followed>();
        other.is_some_and(|other| {
            self.operator.same(&*other.operator)
                && self.program == other.program
                && self.channels == other.channels
        })
    }
}
