//! Formulas of values and numbers, written with Rust's operators.

use super::{Graph, Term, Value};
use crate::error::{Error, Result};
use crate::ops::elementwise::Function;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A formula of values and numbers, of which [`Graph::expression`] makes nodes: `a * 2.0 + b`.
///
/// Values are its operands, and so are numbers beside a value. It belongs to no graph: values of another graph are an error
/// when it is added.
///
/// ```
/// use diptych::{Dims, Function, Graph};
///
/// let mut graph = Graph::new();
/// let x = graph.input("x", Dims::new(&[3])?)?;
/// let y = graph.input("y", Dims::new(&[3])?)?;
/// let length = graph.expression("length", (x * x + y * y).apply(Function::Sqrt))?;
/// let share = graph.expression("share", 1.0 - x / length)?;
/// assert_eq!(graph.dims(share)?.extents(), [3]);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Expression {
    /// Operands before the function that takes them.
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Term(Term),
    /// A function of so many of the results before it.
    Function(Function, usize),
}

impl Expression {
    /// A function of one argument of each element.
    ///
    /// ```
    /// use diptych::{Dims, Function, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[3])?)?;
    /// let y = graph.expression("y", (-x * x).apply(Function::Exp))?;
    /// assert_eq!(graph.dims(y)?.extents(), [3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn apply(mut self, function: Function) -> Self {
        self.steps.push(Step::Function(function, 1));
        self
    }

    fn with(mut self, function: Function, right: Expression) -> Self {
        self.steps.extend(right.steps);
        self.steps.push(Step::Function(function, 2));
        self
    }
}

macro_rules! terms {
    ($($ty:ty)*) => {$(
        impl From<$ty> for Expression {
            fn from(term: $ty) -> Self {
                Expression { steps: vec![Step::Term(term.into())] }
            }
        }
    )*};
}
terms!(Term Value f32 i64);

macro_rules! operators {
    ($($operator:ident $method:ident)*) => {$(
        impl<R: Into<Expression>> $operator<R> for Expression {
            type Output = Expression;

            fn $method(self, right: R) -> Expression {
                self.with(Function::$operator, right.into())
            }
        }
        impl<R: Into<Expression>> $operator<R> for Value {
            type Output = Expression;

            fn $method(self, right: R) -> Expression {
                Expression::from(self).with(Function::$operator, right.into())
            }
        }
        operators!(@number $operator $method: f32 Value, f32 Expression, i64 Value, i64 Expression);
    )*};
    (@number $operator:ident $method:ident: $($number:ident $right:ident),*) => {$(
        impl $operator<$right> for $number {
            type Output = Expression;

            fn $method(self, right: $right) -> Expression {
                Expression::from(self).with(Function::$operator, right.into())
            }
        }
    )*};
}
operators!(Add add Sub sub Mul mul Div div);

impl Neg for Expression {
    type Output = Expression;

    fn neg(self) -> Expression {
        self.apply(Function::Neg)
    }
}

impl Neg for Value {
    type Output = Expression;

    fn neg(self) -> Expression {
        Expression::from(self).apply(Function::Neg)
    }
}

impl Graph {
    /// Adds a formula, one node of [`Graph::elementwise`] for each of its functions, and returns its result. The last node is
    /// named `name`, those before it `{name}.0`, `{name}.1` and so on.
    ///
    /// ```
    /// use diptych::{Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let a = graph.input("a", Dims::new(&[2])?)?;
    /// let b = graph.input("b", Dims::new(&[2])?)?;
    /// let y = graph.expression("y", a * 2.0 + b)?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::new())?;
    /// let of = |values: [f32; 2]| HostTensor::new(Dims::new(&[2])?, values.to_vec());
    /// let outputs = session.run(&[("a", &of([1.0, 2.0])?), ("b", &of([10.0, 20.0])?)])?;
    /// assert_eq!(*outputs[0].to_f32(), [12.0, 24.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the formula has no function, a function has only numbers as operands, or shapes or types do not fit. The graph is
    /// then as it was.
    pub fn expression(&mut self, name: &str, expression: Expression) -> Result<Value> {
        let (values, nodes) = (self.values.len(), self.nodes.len());
        let added = self.add_steps(name, &expression.steps);
        if added.is_err() {
            self.values.truncate(values);
            self.nodes.truncate(nodes);
            if let Some(casts) = &mut self.casts {
                casts.retain(|_, cast| cast.index < values);
            }
        }
        added
    }

    fn add_steps(&mut self, name: &str, steps: &[Step]) -> Result<Value> {
        let mut open: Vec<Term> = Vec::new();
        let mut functions = 0;
        for (place, step) in steps.iter().enumerate() {
            let term = match *step {
                Step::Term(term) => term,
                Step::Function(function, taken) => {
                    let first = open.len().checked_sub(taken);
                    let first = first.ok_or_else(|| Error::Internal(format!("{name:?} lacks operands")))?;
                    let operands = open.split_off(first);
                    let own = match place + 1 == steps.len() {
                        true => name.to_owned(),
                        false => format!("{name}.{functions}"),
                    };
                    functions += 1;
                    Term::Value(self.elementwise(&own, function, &operands)?)
                }
            };
            open.push(term);
        }
        match open[..] {
            [Term::Value(value)] if functions > 0 => Ok(value),
            _ => Err(Error::input(
                format!("expression {name:?}"),
                "no function",
                "at least one, such as a sum of a value and a number",
            )),
        }
    }
}
