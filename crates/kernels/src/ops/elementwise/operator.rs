//! A program as a node of a graph: `Arg(0)`, `Arg(1)`, ...

use super::{ElementwiseOp, OP, Program};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use crate::ops::quantization::Linear;
use std::sync::Arc;

/// A program for inputs of any shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Elementwise {
    program: Program,
    linear: Option<Linear>,
}

impl Elementwise {
    /// The operator that computes `program`.
    #[doc(hidden)]
    pub fn new(program: Program) -> Self {
        Elementwise { program, linear: None }
    }

    /// The operator that rounds to integers of a quantization, or gives the numbers of such integers.
    ///
    /// # Errors
    /// If the quantization has no positive scale or no integers.
    #[doc(hidden)]
    pub fn of_linear(linear: Linear) -> Result<Self> {
        Ok(Elementwise { program: linear.program()?, linear: Some(linear) })
    }

    /// What it computes.
    #[doc(hidden)]
    pub fn program(&self) -> &Program {
        &self.program
    }

    fn inputs(&self, arguments: Arguments<'_>) -> Result<Vec<Dims>> {
        (0..self.program.inputs()).map(|input| arguments.need(OP, Operand::Arg(input as u8))).collect()
    }
}

impl Options for Elementwise {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let inputs = self.inputs(arguments)?;
        Ok(Lowered::Op(Arc::new(ElementwiseOp::new(self.program.clone(), &inputs, precision)?)))
    }

    fn outputs(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        let dims = self.inputs(arguments).and_then(|inputs| super::broadcast::dims_of(OP, &inputs));
        match dims {
            Ok(dims) => vec![dims],
            Err(_) => crate::ops::outputs(op).map(|info| Dims::from(info.shape)).collect(),
        }
    }

    fn types(&self, _arguments: Arguments<'_>, _op: &dyn Op) -> Vec<DType> {
        let last = self.program.steps().last();
        vec![if last.is_some_and(|step| step.function.decides()) { DType::Bool } else { DType::F32 }]
    }

    fn program(&self) -> Option<&Program> {
        Some(&self.program)
    }

    fn linear(&self) -> Option<Linear> {
        self.linear
    }
}
