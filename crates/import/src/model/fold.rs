//! Functions of each element of constants.

use super::budget::Budget;
use super::constant::{Constant, Indices, Integers, broadcast, broadcast_position, dims_of, elements_of};
use super::reason::Reason;
use crate::alloc;
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
    if let Some(result) = arithmetic(function, inputs, &extents, budget)? {
        return Ok(result);
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
    let mut values = alloc::reserved(count, "a constant")?;
    values.extend((0..count).map(value));
    HostTensor::new(dims_of(&extents)?, values).map(Constant::Floats).map_err(Reason::from)
}

/// Where an element of a result of `whole` is in an input of `own`, as `[a, b]`: at `element / a % b`. None if that is
/// not all there is to it.
fn period(own: &[usize], whole: &[usize]) -> Option<[usize; 2]> {
    let outer = whole.len().checked_sub(own.len())?;
    let Some(first) = own.iter().position(|&extent| extent != 1) else { return Some([1, 1]) };
    let end = own.iter().rposition(|&extent| extent != 1)? + 1;
    let varied = &own[first..end];
    (*varied == whole[outer + first..outer + end])
        .then(|| [whole[outer + end..].iter().product(), varied.iter().product()])
}

/// Sums, differences, products and quotients of floats, the second one repeated: weights of integers less their zero
/// points and times their scales, of which there may be as many as a file has bytes.
fn arithmetic(
    function: Function,
    inputs: &[&Constant],
    extents: &[usize],
    budget: &mut Budget,
) -> Result<Option<Constant>, Reason> {
    let of: fn(f32, f32) -> f32 = match function {
        Function::Add => |a, b| a + b,
        Function::Sub => |a, b| a - b,
        Function::Mul => |a, b| a * b,
        Function::Div => |a, b| a / b,
        _ => return Ok(None),
    };
    let &[a, b] = inputs else { return Ok(None) };
    let integers = inputs.iter().all(|input| matches!(input, Constant::Integers(_)));
    let Some([inner, count]) = period(&b.extents(), extents) else { return Ok(None) };
    if integers || a.extents() != extents || extents.contains(&0) {
        return Ok(None);
    }
    budget.spend(elements_of(extents)?.saturating_mul(4))?;
    let [a, b] = [a.floats(budget)?, b.floats(budget)?];
    let (a, b) = (a.to_nhwc(), b.to_nhwc());
    let mut values = alloc::reserved(a.len(), "a constant")?;
    for (run, &b) in a.chunks(inner).zip(b.iter().take(count).cycle()) {
        values.extend(run.iter().map(|&a| of(a, b)));
    }
    HostTensor::new(dims_of(extents)?, values)
        .map(|tensor| Some(Constant::Floats(tensor)))
        .map_err(Reason::from)
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
        other => return refused!("found {} of integers, wanted floats", other.name()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(extents: &[usize], first: usize) -> Constant {
        let count = extents.iter().product();
        let values: Vec<f32> = (0..count).map(|at| ((at * 7 + first) % 23) as f32 * 0.3 - 2.9).collect();
        Constant::Floats(HostTensor::new(dims_of(extents).expect("extents"), values).expect("as many"))
    }

    #[test]
    fn a_repeated_second_input_gives_what_each_element_gives() {
        let whole = [2, 3, 4, 5];
        let others: [&[usize]; 9] = [
            &[],
            &[1],
            &[5],
            &[4, 1],
            &[3, 4, 1],
            &[1, 3, 1, 1],
            &[2, 1, 1, 1],
            &[2, 3, 4, 5],
            &[2, 1, 4, 1],
        ];
        for own in others {
            let (a, b) = (floats(&whole, 1), floats(own, 4));
            let [x, y] = [&a, &b].map(|constant| constant.floats(&mut Budget::new(0)).expect("floats"));
            let (x, y) = (x.to_nhwc(), y.to_nhwc());
            let mut every = Indices::new(&whole);
            let at: Vec<usize> =
                std::iter::from_fn(|| Some(broadcast_position(own, every.following()?))).collect();
            for function in [Function::Add, Function::Sub, Function::Mul, Function::Div] {
                let found = of(function, &[&a, &b], &mut Budget::new(1 << 16)).expect("a result");
                let Constant::Floats(found) = found else { panic!("{own:?}: integers") };
                let wanted = |(x, at): (&f32, &usize)| {
                    function.reference([f64::from(*x), f64::from(y[*at]), 0.0]) as f32
                };
                let wanted: Vec<f32> = x.iter().zip(&at).map(wanted).collect();
                assert_eq!(*found.to_nhwc(), wanted, "{function:?} {own:?}");
            }
            // All but those with a gap between the axes that vary.
            assert_eq!(period(own, &whole).is_some(), own != [2, 1, 4, 1], "{own:?}");
        }
    }

    #[test]
    fn weights_of_8_bits_become_floats_within_the_work_that_their_bytes_allow() {
        let (rows, columns) = (512, 1024);
        let mut budget = Budget::new(rows * columns);
        let weights = Integers::new(vec![rows, columns], vec![100; rows * columns]);
        let zeros = Constant::Integers(Integers::new(vec![columns], vec![128; columns]));
        budget.spend(8 * rows * columns).expect("they are read");
        let weights = Constant::Floats(Constant::Integers(weights).floats(&mut budget).expect("floats"));
        let zeros = Constant::Floats(zeros.floats(&mut budget).expect("floats"));
        let centred = of(Function::Sub, &[&weights, &zeros], &mut budget).expect("centred");
        let scaled = of(Function::Mul, &[&centred, &floats(&[columns], 0)], &mut budget).expect("scaled");
        assert_eq!(scaled.extents(), [rows, columns]);
    }
}
