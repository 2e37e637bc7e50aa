//! Functions of each element.

use super::{Graph, Value};
use crate::emit::{Bits, Operand};
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::ops::elementwise::{Elementwise, Function, Program, Source};
use std::sync::Arc;

/// An argument of a function of each element.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Term {
    /// A value of the graph.
    Value(Value),
    /// One number that is the argument for every element.
    Number(f32),
    /// One integer that is the argument for every element.
    Integer(i64),
}

impl From<Value> for Term {
    fn from(value: Value) -> Self {
        Term::Value(value)
    }
}

impl From<i64> for Term {
    fn from(integer: i64) -> Self {
        Term::Integer(integer)
    }
}

impl From<f32> for Term {
    fn from(number: f32) -> Self {
        Term::Number(number)
    }
}

impl Graph {
    /// Adds a function of each element of `terms`, of which at least one is a value. Values fit each other by
    /// numpy's rule: their shapes are aligned at the last axis, and an extent of 1 goes with any other.
    ///
    /// ```
    /// use diptych::{Function, Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 16))?;
    /// let scale = graph.input("scale", Shape::nhwc(1, 1, 1, 16))?;
    /// let scaled = graph.elementwise("scaled", Function::Mul, &[x.into(), scale.into()])?;
    /// let y = graph.elementwise("y", Function::LeakyRelu, &[scaled.into(), 0.1.into()])?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 8, 8, 16));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// Values of integers of 32 or 64 bits are computed as such where the function is one of [`Graph::integer`]'s; all
    /// are of one type then. Comparisons and logic of any type give booleans.
    ///
    /// # Errors
    /// If the shapes or types do not fit, there are not as many terms as the function takes, or all are numbers.
    pub fn elementwise(&mut self, name: &str, function: Function, terms: &[Term]) -> Result<Value> {
        if let Some(value) = self.of_integers(name, function, terms)? {
            return Ok(value);
        }
        let mut values: Vec<Value> = Vec::new();
        let mut sources = Vec::with_capacity(terms.len());
        for (place, term) in terms.iter().enumerate() {
            let number = match *term {
                Term::Number(number) => Some(number),
                Term::Integer(integer) => Some(integer as f32),
                Term::Value(value) => self.number(value, terms, place)?,
            };
            sources.push(match (number, *term) {
                (Some(number), _) => Source::Number(Bits(number)),
                (None, Term::Value(value)) => {
                    let known = values.iter().position(|known| *known == value);
                    let input = known.unwrap_or(values.len());
                    if known.is_none() {
                        values.push(value);
                    }
                    Source::Input(input as u8)
                }
                (None, Term::Number(number)) => Source::Number(Bits(number)),
                (None, Term::Integer(integer)) => Source::Number(Bits(integer as f32)),
            });
        }
        let (function, sources) = self.simpler(function, sources, &values);
        let program = Program::of(function, sources).map_err(|error| error.at_node(name))?;
        let inputs: Vec<(Operand, Value)> =
            values.iter().enumerate().map(|(input, &value)| (Operand::Arg(input as u8), value)).collect();
        match self.add(name, Arc::new(Elementwise::new(program)), &inputs)?[..] {
            [output] => Ok(output),
            _ => Err(Error::Internal(format!("node {name:?} has not one output"))),
        }
    }

    /// What `value` is, if it is a constant of one element beside another value that has as many axes.
    fn number(&self, value: Value, terms: &[Term], place: usize) -> Result<Option<f32>> {
        // A number of a quantized network keeps its scale.
        let is_number = |tensor: &&HostTensor| tensor.dims().elements() == 1 && tensor.scales().is_none();
        let Some(tensor) = self.tensor(value)?.filter(is_number) else {
            return Ok(None);
        };
        let rank = tensor.dims().rank();
        for (other, term) in terms.iter().enumerate() {
            if let Term::Value(beside) = *term
                && other != place
                && self.tensor(beside)?.is_none_or(|tensor| tensor.dims().elements() > 1)
                && self.dims(beside)?.rank() >= rank
            {
                return Ok(tensor.to_nhwc().first().copied());
            }
        }
        Ok(None)
    }

    /// What a power is that is computed faster and more precisely as another function. Roots differ from powers of `-0`
    /// and of minus infinity.
    fn simpler(&self, function: Function, sources: Vec<Source>, values: &[Value]) -> (Function, Vec<Source>) {
        match (function, &sources[..]) {
            (Function::Pow, &[x, Source::Number(Bits(power))]) => {
                let has_no_sign = || match x {
                    Source::Input(input) => {
                        values.get(usize::from(input)).is_some_and(|&value| self.has_no_sign(value))
                    }
                    _ => false,
                };
                let simple = match power {
                    2.0 => Function::Square,
                    -1.0 => Function::Reciprocal,
                    0.5 if has_no_sign() => Function::Sqrt,
                    -0.5 if has_no_sign() => Function::Rsqrt,
                    _ => return (function, sources),
                };
                (simple, vec![x])
            }
            _ => (function, sources),
        }
    }
}
