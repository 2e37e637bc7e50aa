//! `y[i] = f(x0[i], x1[i], x2[i])`: a function of each element of values of one integer type
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x0` ... `x2` | any that fit each other by numpy's rule | rows |
//! | `y` | what they have together | rows |
//!
//! Types are integers of 32 bits and, on the CPU, of 64: those of fewer bits are whole numbers in f32, which
//! `elementwise` computes. What does not fit wraps, as in two's complement. All results are exact, but for integers of
//! more than 24 bits as floats.

mod cpu;
mod examples;
mod function;
mod nest;
mod operator;
mod rows;

pub(super) use examples::{NUMBERS, examples};
pub use function::IntegerFunction;
pub use operator::Integer;

use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::elementwise::{Broadcast, dims_of};
pub(super) use function::{Number, wrapped};

const OP: &str = "integer";

/// An argument of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Argument {
    /// An input, counted from 0.
    Input(u8),
    /// One integer for every element.
    Number(i64),
}

/// A function for inputs of concrete shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IntegerOp {
    function: IntegerFunction,
    arguments: Vec<Argument>,
    inputs: Vec<Dims>,
    /// The types of the inputs' words.
    words: Vec<DType>,
    /// The type that is computed in.
    word: DType,
    /// The type of the result's words.
    result: DType,
    output: Dims,
    broadcast: Broadcast,
}

impl IntegerOp {
    /// Checks that shapes and types fit each other. `to` is the type that [`IntegerFunction::Convert`] makes.
    ///
    /// # Errors
    /// If there are not as many arguments as the function takes, no input is read, or shapes or types do not fit.
    pub(crate) fn new(
        function: IntegerFunction,
        arguments: Vec<Argument>,
        inputs: &[(Dims, DType)],
        to: DType,
    ) -> Result<Self> {
        let read = |input: usize| arguments.contains(&Argument::Input(input as u8));
        let few = arguments.len() != function.arity() || inputs.is_empty() || !(0..inputs.len()).all(read);
        if few
            || arguments.iter().any(
                |argument| matches!(argument, Argument::Input(input) if usize::from(*input) >= inputs.len()),
            )
        {
            let found =
                format!("{} arguments and {} inputs of {}", arguments.len(), inputs.len(), function.name());
            return Err(Error::shape(OP, found, format!("{}, each input among them", function.arity())));
        }
        let dims: Vec<Dims> = inputs.iter().map(|(dims, _)| *dims).collect();
        dims.iter().try_for_each(|dims| dims.checked_or_empty(OP))?;
        let words: Vec<DType> = inputs.iter().map(|(_, dtype)| dtype.word()).collect();
        // A condition may be of floats.
        let of = |place: usize| match arguments.get(place) {
            Some(Argument::Input(input)) => words.get(usize::from(*input)).copied(),
            _ => None,
        };
        let first = usize::from(function == IntegerFunction::Select);
        let mut own = (first..arguments.len()).filter_map(of);
        let word = own.next().ok_or_else(|| Error::shape(OP, "numbers alone", "a value"))?;
        let other = own.find(|other| *other != word);
        let integer = word != DType::F32 || (function == IntegerFunction::Convert && to.word() != DType::F32);
        if other.is_some() || !integer {
            let found = other.map_or(word.to_string(), |other| format!("{word} and {other}"));
            let wanted = "one integer type (Graph::cast changes types)";
            return Err(Error::shape(OP, format!("{} of {found}", function.name()), wanted));
        }
        let result = match function {
            IntegerFunction::Convert => to.word(),
            function if function.compares() => DType::F32,
            _ => word,
        };
        let output = dims_of(OP, &dims)?;
        let broadcast = Broadcast::new(&output, &dims);
        Ok(IntegerOp { function, arguments, inputs: dims, words, word, result, output, broadcast })
    }

    /// The result for one element, of the inputs' numbers: an integer, and the same as a float.
    fn value(&self, inputs: &[Number]) -> Number {
        let mut given = [Number::default(); 3];
        for (given, argument) in given.iter_mut().zip(&self.arguments) {
            *given = match argument {
                Argument::Input(input) => inputs.get(usize::from(*input)).copied().unwrap_or_default(),
                Argument::Number(integer) => Number { integer: *integer, float: *integer as f32 },
            };
        }
        let integer = match (self.function, self.word) {
            (IntegerFunction::Convert, DType::F32) => IntegerFunction::cut_off(self.result, given[0].float),
            (IntegerFunction::Convert, _) => function::wrapped(self.result, given[0].integer),
            _ => self.function.value(self.word, given),
        };
        Number { integer, float: integer as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_counts_that_do_not_fit_are_refused() {
        let dims = Dims::new(&[3]).expect("small");
        let x = [Argument::Input(0), Argument::Input(1), Argument::Input(2)];
        let of = |function, arguments: &[Argument], types: &[DType]| {
            let inputs: Vec<(Dims, DType)> = types.iter().map(|&dtype| (dims, dtype)).collect();
            IntegerOp::new(function, arguments.to_vec(), &inputs, DType::F32)
        };
        let text = |function, arguments: &[Argument], types: &[DType]| {
            of(function, arguments, types).expect_err("refused").to_string()
        };
        use IntegerFunction::{Add, Convert, Equal, Select};
        assert!(text(Add, &x[..2], &[DType::I32, DType::U32]).contains("add of i32 and u32"));
        assert!(text(Add, &x[..2], &[DType::F32, DType::F32]).contains("add of f32"));
        assert!(text(Add, &x[..1], &[DType::I32]).contains("1 arguments"));
        assert!(text(Convert, &x[..1], &[DType::F32]).contains("convert of f32"));
        assert_eq!(of(Equal, &x[..2], &[DType::I64, DType::I64]).expect("fits").result, DType::F32);
        assert_eq!(of(Select, &x, &[DType::Bool, DType::I32, DType::I32]).expect("fits").word, DType::I32);
    }
}
