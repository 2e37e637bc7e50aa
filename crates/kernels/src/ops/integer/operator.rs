//! A function of integers as a node of a graph: `Arg(0)`, `Arg(1)`, ...

use super::{Argument, IntegerFunction, IntegerOp, OP};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

/// A function of integers of any shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Integer {
    function: IntegerFunction,
    arguments: Vec<Argument>,
    /// The type that a conversion makes.
    to: DType,
}

impl Integer {
    /// The operator that computes `function`.
    #[doc(hidden)]
    pub fn new(function: IntegerFunction, arguments: Vec<Argument>) -> Self {
        Integer { function, arguments, to: DType::F32 }
    }

    /// The operator that converts its input to `to`.
    #[doc(hidden)]
    pub fn convert(to: DType) -> Self {
        Integer { function: IntegerFunction::Convert, arguments: vec![Argument::Input(0)], to }
    }

    /// The inputs, which are counted by the arguments that name them.
    fn inputs(&self, arguments: Arguments<'_>) -> Result<Vec<(Dims, DType)>> {
        let named = self.arguments.iter().filter_map(|argument| match argument {
            Argument::Input(input) => Some(*input),
            Argument::Number(_) => None,
        });
        let count = named.max().map_or(0, |most| most + 1);
        let input = |input| {
            let operand = Operand::Arg(input);
            Ok((arguments.need(OP, operand)?, arguments.dtype(operand)))
        };
        (0..count).map(input).collect()
    }
}

impl Integer {
    /// The arguments on a device, which has integers of 32 bits. A bound beyond them bounds nothing; any other number that
    /// does not fit is refused.
    fn in_32_bits(&self, inputs: &[(Dims, DType)]) -> Result<Vec<Argument>> {
        let unsigned = inputs.iter().any(|(_, dtype)| *dtype == DType::U32);
        let (least, most) = (i64::from(i32::MIN), if unsigned { u32::MAX.into() } else { i32::MAX.into() });
        let number = |(place, argument): (usize, &Argument)| match *argument {
            Argument::Number(number) if number > most || number < least => {
                match (self.function, place, number < least) {
                    (IntegerFunction::Maximum, _, true) | (IntegerFunction::Clamp, 1, true) => {
                        Ok(Argument::Number(least))
                    }
                    (IntegerFunction::Minimum, _, false) | (IntegerFunction::Clamp, 2, false) => {
                        Ok(Argument::Number(most))
                    }
                    _ => {
                        let wanted = "an integer of 32 bits, which is what a GPU has; the CPU has 64";
                        Err(Error::input("a constant", number.to_string(), wanted))
                    }
                }
            }
            argument => Ok(argument),
        };
        self.arguments.iter().enumerate().map(number).collect()
    }
}

impl Options for Integer {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        let inputs = self.inputs(arguments)?;
        let (own, to) = match arguments.narrow {
            true => (self.in_32_bits(&inputs)?, self.to.device_word()),
            false => (self.arguments.clone(), self.to.word()),
        };
        Ok(Lowered::Op(Arc::new(IntegerOp::new(self.function, own, &inputs, to)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<IntegerOp>().map(|op| op.output).into_iter().collect()
    }

    fn types(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<DType> {
        let result = op.as_any().downcast_ref::<IntegerOp>().map(|op| op.result);
        let boolean = self.function.compares().then_some(DType::Bool);
        boolean.or(result).into_iter().collect()
    }
}
