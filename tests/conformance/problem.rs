//! A problem, its operands, and how a result is compared with the oracle's.

use diptych::{DType, Precision};
use diptych_base::word::{numbers, of_integers};
use diptych_emit::emit::Operand;
use diptych_kernels::ops::{Answer, Op, OperandInfo, Operands, Reference, Role};
use std::sync::Arc;

/// An op of concrete shapes.
pub(crate) type Problem = Arc<dyn Op>;

/// Multiples of 1/512 in [-1, 1): exact in f16, never subnormal.
fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 54) as f32 / 512.0 - 1.0
        })
        .collect()
}

/// Values in [-1, 1) of full f32 precision, or exact in f16 where the problem stores halves.
fn values(precision: Precision, seed: u64, len: usize) -> Vec<f32> {
    let mut values = noise(seed, len);
    if precision.storage() == DType::F32 {
        let fine = noise(seed + 77, len);
        values.iter_mut().zip(fine).for_each(|(value, fine)| *value += fine / 1024.0);
    }
    values
}

/// What is taken as true and false: few are true of what is asked whether any is, and few false where all must be.
fn few_truths(op: &dyn Op, values: &mut [f32]) {
    let key = op.problem_key();
    let [any, all] = ["any", "all"].map(|word| op.name() == "reduce" && key.ends_with(word));
    for (index, value) in values.iter_mut().enumerate().filter(|_| any || all) {
        let few = (index * 7919).is_multiple_of(61);
        if few == all {
            *value = 0.0;
        }
    }
}

/// What `op` reads, the same at every call. What lies between the rows of an operand is NaN.
pub(crate) fn operands(op: &dyn Op) -> Operands<'static> {
    let one = |info: OperandInfo| {
        let seed = info.operand.number() + 1;
        let scaled = |factor: f32| noise(seed, info.elements()).iter().map(|value| value * factor).collect();
        if let Some(words) = of_bytes(op, &info, seed) {
            return (info.operand, words.into());
        }
        if !info.dtype.is_float() {
            return (info.operand, integers(op, &info, seed).into());
        }
        let mut values: Vec<f32> = match info.operand {
            Operand::Bias => scaled(4.0),
            Operand::Slope => scaled(2.0),
            Operand::Mask => {
                noise(seed, info.elements()).iter().map(|value| f32::from(*value > 0.0)).collect()
            }
            // Some within the axes, some outside.
            Operand::Arg(0) | Operand::Src | Operand::Begins | Operand::Ends if indexes(op, info.operand) => {
                noise(seed, info.elements()).iter().map(|value| (4.0 * value + 3.0).floor()).collect()
            }
            _ => op.usual(info.operand, values(op.precision(), seed, info.elements())),
        };
        few_truths(op, &mut values);
        if op.name() == "arg" {
            // With equals among them, and in some lines a NaN or several.
            values.iter_mut().for_each(|value| *value = (8.0 * *value).round());
            values.iter_mut().enumerate().filter(|(index, _)| (index * 7919).is_multiple_of(41)).for_each(
                |(_, value)| {
                    *value = f32::NAN;
                },
            );
        }
        for row in values.chunks_mut(info.pitch) {
            row.iter_mut().skip(info.shape.c).for_each(|value| *value = f32::NAN);
        }
        (info.operand, values.into())
    };
    op.operands().into_iter().filter(|info| info.role != Role::Output).map(one).collect()
}

/// Words of integers of few bits, each of which may be any.
fn packed(seed: u64, len: usize) -> Vec<f32> {
    let [high, middle, low] = [0, 31, 62].map(|more| noise(seed + more, len));
    let part = |value: f32| (512.0 * value + 512.0) as u32;
    let each = high.into_iter().zip(middle).zip(low);
    each.map(|((high, middle), low)| f32::from_bits(part(high) << 22 ^ part(middle) << 11 ^ part(low)))
        .collect()
}

/// Integers as the words of their type: small ones of both signs, and those at the ends of the type. Indices are within
/// their axes and outside.
fn integers(op: &dyn Op, info: &OperandInfo, seed: u64) -> Vec<f32> {
    if op.name() == "quantized_gemm" {
        return packed(seed, info.elements());
    }
    let [least, most] = info.dtype.range().expect("an integer");
    let small = noise(seed, info.elements()).into_iter().map(|value| match indexes(op, info.operand) {
        true => (4.0 * value + 3.0).floor() as i64,
        false => (50.0 * value).floor() as i64,
    });
    let large = [least, most, 0, 1, -1, 1 << 24, (1 << 24) + 1, 65_537, most / 3];
    let value = |(index, small): (usize, i64)| match index % 4 {
        3 => large[(index / 4 + seed as usize) % large.len()],
        _ => small,
    };
    of_integers(info.dtype, small.enumerate().map(value))
}

/// Operands of an op of bytes: any bytes, and a bias and factors with which few results are the range's ends.
fn of_bytes(op: &dyn Op, info: &OperandInfo, seed: u64) -> Option<Vec<f32>> {
    // The rows of `quantized_gemm` are floats, and so is what follows the sums of `dynamic_conv2d`.
    let of_floats = op.name() == "quantized_gemm"
        || op.name().starts_with("dynamic") && info.dtype == DType::F32 && info.operand != Operand::Scale;
    let named = ["quantized", "dequantize", "dynamic"].iter().any(|name| op.name().starts_with(name));
    if !named || of_floats {
        return None;
    }
    let noise = |seed: u64| noise(seed, info.elements()).into_iter();
    let terms = op.operands().first().map_or(1, |src| src.shape.c).max(4);
    Some(match info.dtype {
        DType::U32 => {
            let halves = noise(seed).zip(noise(seed + 31)).zip(noise(seed + 57));
            let bits = |number: f32| ((number + 1.0) * 512.0) as i64;
            of_integers(DType::U32, halves.map(|((a, b), c)| bits(a) << 22 | bits(b) << 11 | bits(c)))
        }
        DType::I32 => of_integers(DType::I32, noise(seed).map(|value| (value * 5000.0) as i64)),
        _ => noise(seed).map(|value| (value + 1.0) / 20.0 / (terms as f32).sqrt()).collect(),
    })
}

/// Whether `operand` holds indices.
fn indexes(op: &dyn Op, operand: Operand) -> bool {
    matches!(
        (op.name(), operand),
        ("gather", Operand::Arg(0))
            | ("one_hot", Operand::Src)
            | ("update_slice", Operand::Arg(1))
            | ("attention", Operand::Begins | Operand::Ends)
    )
}

/// The oracle's answer.
pub(crate) fn expected(op: &dyn Op, operands: &Operands<'_>) -> Reference {
    op.reference(operands, Answer::Exact).expect("operands of the op")
}

/// The operand that `op` writes.
pub(crate) fn output(op: &dyn Op) -> OperandInfo {
    op.operands().pop().expect("an output")
}

/// Compares `result` with the oracle's answer where each element is computed by itself: a NaN is wanted where that has
/// one, and the same infinity. What may overflow on the way may be infinite.
///
/// # Errors
/// Each element that is off.
pub(crate) fn compare_ends(op: &dyn Op, expected: &Reference, result: &[f32]) -> Result<(), String> {
    if expected.value().len() != result.len() {
        return Err(format!("{} values instead of {}", result.len(), expected.value().len()));
    }
    let (precision, result) = (op.precision(), numbers(output(op).dtype, result));
    let mut wrong = Vec::new();
    for (index, (&found, &wanted)) in result.iter().zip(expected.value()).enumerate() {
        // From an infinite sum nothing follows for what a bounded activation makes of it: `tanh` is off by this much.
        let tolerance = Some(expected.tolerance(index, precision)).filter(|tolerance| !tolerance.is_nan());
        let tolerance = tolerance.unwrap_or(1e-5);
        let right = match wanted {
            wanted if wanted.is_nan() => found.is_nan(),
            wanted if wanted.is_infinite() => found == wanted,
            _ if found == wanted => true,
            _ if tolerance == f64::INFINITY || wanted.abs() > f64::from(f32::MAX) => !found.is_nan(),
            _ => (found - wanted).abs() <= tolerance,
        };
        if !right {
            wrong.push(format!("element {index} is {found:e}, wanted {wanted:e} +- {tolerance:.3e}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join(", ")) }
}

/// [`compare`] with what is known of a result beside the last one: of what a sum beyond all numbers makes nothing is known.
///
/// # Errors
/// Those of [`compare`] and [`compare_ends`].
pub(crate) fn compare_other(op: &dyn Op, expected: &Reference, result: &[f32]) -> Result<(), String> {
    let is_known = (0..expected.value().len()).all(|at| expected.tolerance(at, op.precision()).is_finite());
    if is_known { compare(op, expected, result) } else { compare_ends(op, expected, result) }
}

/// Compares `result`, in the order of the oracle's answer, with it.
///
/// # Errors
/// The first element that is off, and how many are.
pub(crate) fn compare(op: &dyn Op, expected: &Reference, result: &[f32]) -> Result<(), String> {
    if expected.value().len() != result.len() {
        return Err(format!("{} values instead of {}", result.len(), expected.value().len()));
    }
    let (precision, result) = (op.precision(), numbers(output(op).dtype, result));
    let mut wrong = 0;
    let mut first = String::new();
    for (index, (&found, &wanted)) in result.iter().zip(expected.value()).enumerate() {
        // What an infinite operand reaches is infinite or NaN.
        if !wanted.is_finite() && !found.is_finite() {
            continue;
        }
        let tolerance = expected.tolerance(index, precision);
        let error = (found - wanted).abs();
        // A NaN fails as well.
        if error <= tolerance && tolerance.is_finite() {
            continue;
        }
        wrong += 1;
        if first.is_empty() {
            first = format!("element {index} is {found}, wanted {wanted} +- {tolerance:.3e}");
        }
    }
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} of {} elements, first {first}", result.len())) }
}
