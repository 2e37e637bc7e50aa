//! Nodes some of whose inputs have no elements.

use super::Graph;
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operator::{Argument, Lowered, Operator, WithoutElements};

impl Graph {
    /// How results of dimensions `results` are computed of inputs that lack elements; none where all that is read has elements,
    /// or where no result has any.
    ///
    /// # Errors
    /// If the operator takes elements.
    #[doc(hidden)]
    pub fn without_elements(
        &self,
        operator: &dyn Operator,
        arguments: &[Argument],
        results: &[Dims],
    ) -> Result<Option<WithoutElements>> {
        let reads = |argument: &&Argument| operator.like() != Some(argument.operand);
        let lacks = |argument: &&Argument| argument.dims.elements() == 0;
        let Some(empty) = arguments.iter().filter(reads).find(lacks) else { return Ok(None) };
        if results.iter().all(|dims| dims.elements() == 0) {
            return Ok(None);
        }
        let found = format!("{} {}", empty.operand.name(), empty.dims);
        let refused = || Error::shape(operator.name(), found, "at least one element");
        let Some(way) = operator.without_elements(self.given(arguments)) else { return Err(refused()) };
        if let WithoutElements::Filled(_) = way {
            let filled = Self::filled(arguments)?;
            let written = match self.lower(operator, &filled, Precision::F32)? {
                Lowered::Op(op) => operator.outputs(self.given(&filled), &*op),
                Lowered::View(view) => vec![view.dims],
            };
            if written != results {
                return Err(refused());
            }
        }
        Ok(Some(way))
    }

    /// Inputs with an extent of 1 for each extent of 0.
    #[doc(hidden)]
    pub fn filled(arguments: &[Argument]) -> Result<Vec<Argument>> {
        let filled = |argument: &Argument| {
            let extents: Vec<usize> = argument.dims.extents().iter().map(|&extent| extent.max(1)).collect();
            let dims = if argument.dims.elements() == 0 { Dims::new(&extents)? } else { argument.dims };
            Ok(Argument { dims, ..*argument })
        };
        arguments.iter().map(filled).collect()
    }

    /// The inputs that have elements, numbered anew, each with the operand that it was.
    #[doc(hidden)]
    pub fn left(arguments: &[Argument]) -> Vec<(Operand, Argument)> {
        let left = arguments.iter().filter(|argument| argument.dims.elements() > 0);
        let numbered = |(index, argument): (usize, &Argument)| {
            let operand = Operand::Arg(u8::try_from(index).unwrap_or(u8::MAX));
            (argument.operand, Argument { operand, ..*argument })
        };
        left.enumerate().map(numbered).collect()
    }
}
