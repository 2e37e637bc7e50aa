//! Values of expressions.

use super::nodes::Macro;
use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

/// The most elements of a range.
const MOST: i64 = 100_000;

/// The value of an expression.
#[derive(Debug, Clone)]
pub(in crate::emit) enum Value {
    /// An integer; 0 and 1 of a comparison.
    Int(i64),
    /// A text.
    Text(Rc<str>),
    /// A list.
    List(Rc<[Value]>),
    /// A macro, and how many names it sees.
    Macro(Macro, usize),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Int(value.into())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value.into())
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
            Value::Text(value) => f.write_str(value),
            Value::List(values) => {
                f.write_str("[")?;
                for (place, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if place == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Macro(..) => f.write_str("a macro"),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::List(a), Value::List(b)) => a == b,
            _ => false,
        }
    }
}

impl Value {
    pub(super) fn is_true(&self) -> bool {
        match self {
            Value::Int(value) => *value != 0,
            Value::Text(value) => !value.is_empty(),
            Value::List(values) => !values.is_empty(),
            Value::Macro(..) => true,
        }
    }

    pub(in crate::emit) fn int(&self) -> Result<i64, String> {
        match self {
            Value::Int(value) => Ok(*value),
            other => Err(format!("found {other}, wanted an integer")),
        }
    }

    pub(super) fn list(&self) -> Result<&[Value], String> {
        match self {
            Value::List(values) => Ok(values),
            other => Err(format!("found {other}, wanted a list")),
        }
    }

    /// Element `index`.
    pub(super) fn at(&self, index: &Value) -> Result<Value, String> {
        let (values, index) = (self.list()?, index.int()?);
        let found = usize::try_from(index).ok().and_then(|index| values.get(index));
        found.cloned().ok_or_else(|| format!("found index {index} of {} elements", values.len()))
    }

    /// What an operator with two operands gives.
    pub(super) fn combine(operator: &str, a: &Value, b: &Value) -> Result<Value, String> {
        let order = |wanted: fn(Ordering) -> bool| Ok(wanted(a.int()?.cmp(&b.int()?)).into());
        match operator {
            "~" => return Ok(format!("{a}{b}").into()),
            "==" => return Ok((a == b).into()),
            "!=" => return Ok((a != b).into()),
            "in" => return Ok(b.list()?.contains(a).into()),
            "<" => return order(Ordering::is_lt),
            "<=" => return order(Ordering::is_le),
            ">" => return order(Ordering::is_gt),
            ">=" => return order(Ordering::is_ge),
            _ => {}
        }
        let (a, b) = (a.int()?, b.int()?);
        let result = match operator {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "//" => a.checked_div_euclid(b),
            "%" => a.checked_rem_euclid(b),
            _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        };
        result.map(Value::Int).ok_or_else(|| format!("{a} {operator} {b} is no integer of 64 bits"))
    }

    /// What a filter makes of it.
    pub(super) fn filtered(&self, filter: &str, arguments: &[Value]) -> Result<Value, String> {
        match (filter, arguments) {
            ("trim", []) => Ok(self.to_string().trim().into()),
            ("indent", [width]) => {
                let width = usize::try_from(width.int()?).unwrap_or(0);
                Ok(indented(&self.to_string(), &" ".repeat(width)).into())
            }
            ("reverse", []) => Ok(self.list()?.iter().rev().cloned().collect()),
            ("min", []) => {
                let mut least = None;
                for value in self.list()? {
                    let value = value.int()?;
                    least = Some(least.map_or(value, |least: i64| least.min(value)));
                }
                least.map(Value::Int).ok_or_else(|| "found an empty list, wanted integers".to_owned())
            }
            _ => Err(format!("found filter {filter} with {} arguments", arguments.len())),
        }
    }

    /// Integers of equal distance.
    pub(super) fn range(arguments: &[Value]) -> Result<Value, String> {
        let (start, end, step) = match arguments {
            [end] => (0, end.int()?, 1),
            [start, end] => (start.int()?, end.int()?, 1),
            [start, end, step] => (start.int()?, end.int()?, step.int()?),
            _ => return Err(format!("found range of {} arguments, wanted 1 to 3", arguments.len())),
        };
        let length = end.saturating_sub(start);
        if step < 1 || length / step > MOST {
            return Err(format!("found range({start}, {end}, {step}), wanted at most {MOST} elements"));
        }
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        Ok((start..end).step_by(step).collect())
    }
}

/// All lines but the first and empty ones behind `margin`, without a newline at the end.
fn indented(text: &str, margin: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (place, line) in text.strip_suffix('\n').unwrap_or(text).split('\n').enumerate() {
        if place > 0 {
            out.push('\n');
            if !line.is_empty() {
                out.push_str(margin);
            }
        }
        out.push_str(line);
    }
    out
}
