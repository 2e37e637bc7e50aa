//! Functions of each element of constants.

use super::budget::{Budget, Reason};
use super::constant::{Constant, Indices, Integers, broadcast, broadcast_position, dims_of, elements_of};
use crate::host::HostTensor;
use crate::ops::elementwise::Function;

/// A function of constants: of integers if all are, and exactly.
pub(in crate::model) fn of(
    function: Function,
    inputs: &[&Constant],
    budget: &mut Budget,
) -> Result<Constant, Reason> {
    let mut extents = Vec::new();
    for input in inputs {
        extents = broadcast(&extents, &input.extents())?;
    }
    budget.spend(elements_of(&extents)?.saturating_mul(32))?;
    if extents.contains(&0) {
        return Ok(Constant::Integers(Integers::new(extents, Vec::new())));
    }
    let own: Vec<Vec<usize>> = inputs.iter().map(|input| input.extents()).collect();
    let alike = own.iter().all(|own| *own == extents || own.iter().all(|&extent| extent == 1));
    // The positions of an element in each input, in the order of the result.
    let (count, mut every) = (elements_of(&extents)?, Indices::new(&extents));
    let mut positions = |element: usize| {
        let mut positions = [0; 3];
        let index = if alike { None } else { every.following() };
        for (position, own) in positions.iter_mut().zip(&own) {
            *position = match index {
                Some(index) => broadcast_position(own, index),
                None if *own == extents => element,
                None => 0,
            };
        }
        positions
    };
    let integers: Option<Vec<&Integers>> = inputs
        .iter()
        .map(|input| match input {
            Constant::Integers(integers) => Some(integers),
            Constant::Floats(_) => None,
        })
        .collect();
    if let Some(integers) = integers {
        let value = |element: usize| {
            let mut arguments = [0; 3];
            for ((argument, integers), at) in arguments.iter_mut().zip(&integers).zip(positions(element)) {
                *argument = integers.values.get(at).copied().unwrap_or(0);
            }
            integer(function, arguments)
        };
        let values = (0..count).map(value).collect::<Result<Vec<i64>, Reason>>()?;
        return Ok(Constant::Integers(Integers::new(extents.clone(), values)));
    }
    let floats = inputs.iter().map(|input| input.floats(budget)).collect::<Result<Vec<_>, _>>()?;
    let floats: Vec<_> = floats.iter().map(HostTensor::to_nhwc).collect();
    let value = |element: usize| {
        let mut arguments = [0.0; 3];
        for ((argument, values), at) in arguments.iter_mut().zip(&floats).zip(positions(element)) {
            *argument = f64::from(values.get(at).copied().unwrap_or(0.0));
        }
        function.reference(arguments) as f32
    };
    let values: Vec<f32> = (0..count).map(value).collect();
    HostTensor::new(dims_of(&extents)?, values).map(Constant::Floats).map_err(|error| error.to_string())
}

/// A function of integers; what is beyond 64 bits wraps, as it does in C.
fn integer(function: Function, [a, b, c]: [i64; 3]) -> Result<i64, Reason> {
    let defined =
        |result: Option<i64>| result.ok_or_else(|| format!("found {a} divided by {b}, wanted another"));
    Ok(match function {
        Function::Add => a.wrapping_add(b),
        Function::Sub => a.wrapping_sub(b),
        Function::Mul => a.wrapping_mul(b),
        Function::Div => defined(a.checked_div(b))?,
        Function::FloorDiv => {
            let (quotient, rest) = (defined(a.checked_div(b))?, defined(a.checked_rem(b))?);
            if rest != 0 && (rest < 0) != (b < 0) { quotient - 1 } else { quotient }
        }
        Function::FloorMod => {
            let rest = defined(a.checked_rem(b))?;
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
        Function::Maximum => a.max(b),
        Function::Minimum => a.min(b),
        Function::Neg => a.wrapping_neg(),
        Function::Abs => a.wrapping_abs(),
        Function::Square => a.wrapping_mul(a),
        Function::SquaredDifference => a.wrapping_sub(b).wrapping_mul(a.wrapping_sub(b)),
        Function::Sign => a.signum(),
        Function::Relu => a.max(0),
        Function::Floor | Function::Ceil | Function::Round | Function::Truncate => a,
        Function::LogicalNot => i64::from(a == 0),
        Function::LogicalAnd => i64::from(a != 0 && b != 0),
        Function::LogicalOr => i64::from(a != 0 || b != 0),
        Function::Equal => i64::from(a == b),
        Function::NotEqual => i64::from(a != b),
        Function::Less => i64::from(a < b),
        Function::LessEqual => i64::from(a <= b),
        Function::Greater => i64::from(a > b),
        Function::GreaterEqual => i64::from(a >= b),
        Function::Select => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        other => return Err(format!("found {} of integers, wanted floats", other.name())),
    })
}
