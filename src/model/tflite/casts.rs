//! Types of elements: `CAST`, and functions of integers that wrap.
//!
//! Values are f32. What integers of 8 and 16 bits do not hold wraps; those of 32 and 64 bits are exact to 2^24, and do
//! not wrap.

use super::constant::{Constant, Integers};
use super::elementwise::{number, of};
use super::import::{Import, Input, Op};
use super::names::{self, element};
use super::spectra;
use super::tensors::is_quantised;
use crate::graph::Term;
use crate::model::narrow::{Narrow, quotient};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// The integers of an element type of at most 16 bits.
fn of_type(kind: i8) -> Option<Narrow> {
    let (bits, signed) = match kind {
        element::INT4 => (4, true),
        element::INT8 => (8, true),
        element::UINT8 => (8, false),
        element::INT16 => (16, true),
        element::UINT16 => (16, false),
        _ => return None,
    };
    Some(Narrow { bits, signed })
}

/// The integers that output 0 of an operator is of, if they wrap: those that stand for themselves.
pub(super) fn narrow(import: &Import<'_>, op: &Op<'_>) -> Option<Narrow> {
    let position = import.tensors.position(op.output(0).ok()?).ok()?;
    let tensor = import.tensors.tensor(position).ok()?;
    of_type(tensor.element_type()).filter(|_| !is_quantised(&tensor))
}

/// Whether integers hold every element of a type.
fn holds(narrow: Narrow, kind: i8) -> bool {
    kind == element::BOOL
        || of_type(kind).is_some_and(|own| match (own.signed, narrow.signed) {
            (false, true) => own.bits < narrow.bits,
            (true, false) => false,
            _ => own.bits <= narrow.bits,
        })
}

/// A function of integers, wrapped, as output 0.
pub(super) fn wrapping<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    narrow: Narrow,
    function: Function,
    terms: &[Term],
) -> Result<(), Reason> {
    let mut parts = import.compose(op, 0)?;
    let mut each =
        |part: &str, function: Function, terms: &[Term]| parts.each(part, function, terms).map(Term::Value);
    let wrapped = match (function, terms) {
        (Function::Mul, &[a, b]) => narrow.product([a, b], &mut each)?,
        _ => {
            let whole = match (function, terms) {
                (Function::Div, &[a, b]) => quotient("whole", [a, b], &mut each)?,
                _ => each("whole", function, terms)?,
            };
            narrow.wrapped(whole, &mut each)?
        }
    };
    match wrapped {
        Term::Value(value) => import.write(op, 0, value),
        Term::Number(number) => refused!("found the number {number}, wanted a value"),
    }
}

/// `CAST`: to an integer towards zero, to a boolean whether it is not 0; a float is a float.
pub(super) fn cast<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let kind = |import: &Import<'a>, tensor: Option<&i32>| {
        let position = import.tensors.position(tensor.copied().unwrap_or(-1))?;
        Ok::<i8, Reason>(import.tensors.tensor(position)?.element_type())
    };
    let (from, to) = (kind(import, op.inputs.first())?, kind(import, op.outputs.first())?);
    let floats = [element::FLOAT32, element::FLOAT16, element::FLOAT64, element::BFLOAT16];
    let narrow = narrow(import, op);
    match import.input(op, 0)? {
        // Of a complex value the real part is taken.
        Input::Value(value) if import.imaginary.contains_key(&value) => match to {
            element::COMPLEX64 => import.write(op, 0, value),
            to if floats.contains(&to) => spectra::part(import, op, false),
            other => refused!(
                "found a complex value to be {}, wanted a float or COMPLEX64",
                names::element_type(other)
            ),
        },
        Input::Constant(constant) if floats.contains(&to) => {
            let constant = Constant::Floats(constant.floats(&mut import.budget)?);
            import.write_constant(op, 0, constant)
        }
        Input::Constant(constant) => {
            let values: Vec<i64> = match &constant {
                Constant::Integers(integers) => integers.values.to_vec(),
                Constant::Floats(tensor) if to == element::BOOL => {
                    tensor.to_f32().iter().map(|&value| i64::from(value != 0.0)).collect()
                }
                Constant::Floats(tensor) => tensor.to_f32().iter().map(|&value| value as i64).collect(),
            };
            import.budget.spend(values.len().saturating_mul(8))?;
            let whole = |value: i64| match (to, narrow) {
                (element::BOOL, _) => i64::from(value != 0),
                (element::INT32, _) => i64::from(value as i32),
                (element::UINT32, _) => i64::from(value as u32),
                (_, Some(narrow)) => narrow.of(value),
                (_, None) => value,
            };
            let values: Vec<i64> = values.into_iter().map(whole).collect();
            let integers = Integers::new(constant.extents(), values);
            import.write_constant(op, 0, Constant::Integers(integers))
        }
        Input::Value(_) if to == element::BOOL && from != element::BOOL => {
            number(import, op, Function::NotEqual, 0.0)
        }
        Input::Value(value) => {
            let truncates = floats.contains(&from) && !floats.contains(&to);
            match narrow.filter(|narrow| !holds(*narrow, from)) {
                Some(narrow) if truncates => {
                    wrapping(import, op, narrow, Function::Truncate, &[value.into()])
                }
                Some(narrow) => wrapping(import, op, narrow, Function::Floor, &[value.into()]),
                None if truncates => of(import, op, Function::Truncate),
                None => import.write(op, 0, value),
            }
        }
    }
}
