//! Operands to measure an op with, and the result that a correct kernel gives.
//!
//! **Operands** are seeded noise in [-1, 1), multiples of 1/512: exact in f16, never subnormal. Words of unsigned integers have any
//! bits, and signed integers are some thousands; what their sums are multiplied by brings most results within a byte.
//!
//! **The expected result** is a quick one ([`Answer::Quick`]), of every element.

use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::layout::Form;
use crate::ops::{Answer, BoundKernel, Op, OperandInfo, Operands, Role, expected_tolerance};
use crate::sorted;
use crate::tune::bench::Check;
use crate::word;

fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut random = crate::random::Random::new(seed);
    (0..len).map(|_| (random.word() >> 54) as f32 / 512.0 - 1.0).collect()
}

/// What `op` reads, the same at every call. Sets differ in the op's inputs.
pub(super) fn operands(op: &dyn Op, set: u64) -> Operands<'static> {
    let infos = op.operands().into_iter().filter(|info| info.role != Role::Output);
    sorted::map(infos.map(|info| {
        let set = if info.role == Role::Input { set } else { 0 };
        let (seed, len) = (info.operand.number() + 1 + (set << 32), info.elements());
        let values = match (info.dtype, info.operand) {
            (DType::U32, _) => bits(seed, len),
            (DType::I32, _) => {
                let numbers = noise(seed, len).into_iter().map(|value| (value * 5000.0) as i64);
                word::of_integers(DType::I32, numbers)
            }
            (_, Operand::Scale) => noise(seed, len).into_iter().map(|value| (value + 1.5) / 4096.0).collect(),
            _ => op.usual(info.operand, noise(seed, len)),
        };
        (info.operand, values.into())
    }))
}

/// Words of any bits.
fn bits(seed: u64, len: usize) -> Vec<f32> {
    let mut random = crate::random::Random::new(seed);
    (0..len).map(|_| f32::from_bits((random.word() >> 32) as u32)).collect()
}

/// The operand that `op` writes.
pub(super) fn output(op: &dyn Op) -> Result<OperandInfo> {
    let output = op.operands().into_iter().next_back();
    output.ok_or_else(|| Error::Internal(format!("{} writes nothing", op.name())))
}

/// What a correct kernel stores, with how far it may be off.
#[derive(Debug)]
pub(super) struct Expectation {
    output: OperandInfo,
    /// Value and tolerance.
    elements: Vec<(f64, f64)>,
}

impl Expectation {
    /// What is expected of a kernel that sums the op's own terms.
    pub(super) fn new(op: &dyn Op, operands: &Operands<'_>) -> Result<Self> {
        Self::of(op, operands, None)
    }

    /// What is expected of a kernel that sums other terms, as a Winograd convolution does; `None` if `kernel` does not.
    pub(super) fn of_kernel(op: &dyn Op, operands: &Operands<'_>, kernel: &str) -> Result<Option<Self>> {
        let kernel = op.kernel(kernel)?;
        kernel.entry().sums_otherwise.then(|| Self::of(op, operands, Some(&*kernel))).transpose()
    }

    fn of(op: &dyn Op, operands: &Operands<'_>, kernel: Option<&dyn BoundKernel>) -> Result<Self> {
        let (output, expected) = (output(op)?, op.reference(operands, Answer::Quick)?);
        let own = kernel.map(|kernel| kernel.reference(operands, expected.clone())).transpose()?;
        let element = |(index, value): (usize, &f64)| {
            (*value, expected_tolerance(&expected, own.as_ref(), index, op.precision()))
        };
        let elements: Vec<(f64, f64)> = expected.value().iter().enumerate().map(element).collect();
        if elements.len() != output.shape.elements() {
            let wanted = output.shape.elements();
            return Err(Error::Internal(format!("{} of {wanted} expected elements", elements.len())));
        }
        Ok(Expectation { output, elements })
    }

    /// The largest error of what a kernel stored in `form` over the bound of its element; infinite where one is no number.
    pub(super) fn ratio(&self, form: Form, stored: &[f32]) -> f64 {
        let stored = word::numbers(self.output.dtype.device_word(), stored);
        let of_bound = |(index, &(wanted, tolerance)): (usize, &(f64, f64))| {
            let place = self.output.stored_place(form, index);
            of_bound(stored.get(place).copied().unwrap_or(f64::NAN), wanted, tolerance)
        };
        self.elements.iter().enumerate().map(of_bound).fold(0.0, f64::max)
    }

    /// Compares what a kernel stored in `form`.
    pub(super) fn compare(&self, form: Form, stored: &[f32]) -> Check {
        let mut wrong = 0usize;
        let mut first = String::new();
        let stored = word::numbers(self.output.dtype.device_word(), stored);
        for (index, &(wanted, tolerance)) in self.elements.iter().enumerate() {
            let place = self.output.stored_place(form, index);
            let found = stored.get(place).copied().unwrap_or(f64::NAN);
            if of_bound(found, wanted, tolerance) <= 1.0 {
                continue;
            }
            if wrong == 0 {
                first = format!("stored element {place} is {found}, wanted {wanted} +- {tolerance:.2e}");
            }
            wrong += 1;
        }
        if wrong == 0 {
            return Check::Correct;
        }
        Check::Wrong { detail: format!("{first}; {wrong} of {} elements are off", self.elements.len()) }
    }
}

/// An element's error over its bound. NaN, which one that is not written holds, is right only where it is wanted, as where a
/// function has no value.
fn of_bound(found: f64, wanted: f64, tolerance: f64) -> f64 {
    let error = (found - wanted).abs();
    match error / tolerance {
        _ if found == wanted || (found.is_nan() && wanted.is_nan()) => 0.0,
        ratio if ratio.is_nan() => f64::INFINITY,
        ratio => ratio,
    }
}

#[cfg(test)]
mod tests;
