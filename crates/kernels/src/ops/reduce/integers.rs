//! Reductions of integers: exact, and wrapping as their type does.

use super::{OP, ReduceOp, Reduction, place};
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::reference::Reference;
use crate::word;

impl Reduction {
    /// What a reduction of no integers of type `word` is.
    pub(in crate::ops) fn first_of_integers(self, word: DType) -> i64 {
        match (self, word) {
            (Reduction::Product, _) => 1,
            (Reduction::Max, DType::U32) => 0,
            (Reduction::Max, _) => i64::from(i32::MIN),
            (Reduction::Min, DType::U32) => i64::from(u32::MAX),
            (Reduction::Min, _) => i64::from(i32::MAX),
            _ => 0,
        }
    }

    /// Whether a search for the largest or the smallest takes `x` rather than another one: a NaN comes before numbers.
    pub(in crate::ops) fn takes<T: PartialOrd>(self, x: T, other: T) -> bool {
        let is_nan = |value: &T| value.partial_cmp(value).is_none();
        (if self == Reduction::Max { x > other } else { x < other }) || (is_nan(&x) && !is_nan(&other))
    }

    /// Whether integers have it.
    pub(in crate::ops) const fn is_of_integers(self) -> bool {
        matches!(self, Reduction::Sum | Reduction::Product | Reduction::Max | Reduction::Min)
    }

    /// What two integers become.
    pub(in crate::ops) fn joined_integers(self, a: i64, b: i64) -> i64 {
        match self {
            Reduction::Product => a.wrapping_mul(b),
            Reduction::Max => a.max(b),
            Reduction::Min => a.min(b),
            _ => a.wrapping_add(b),
        }
    }
}

/// The results of `terms`, in 64 bits.
fn reduced(op: &ReduceOp, terms: &[i64]) -> Vec<i64> {
    let merged = op.merged();
    let one = |out: usize| {
        let first = place(&merged.kept, out);
        let term = |index: usize| terms.get(first + place(&merged.reduced, index)).copied().unwrap_or(0);
        let first = term(0);
        (1..merged.count()).fold(first, |result, index| op.reduction.joined_integers(result, term(index)))
    };
    (0..merged.outputs()).map(one).collect()
}

/// The results of words.
fn of_words(op: &ReduceOp, src: &[f32]) -> Vec<f32> {
    word::of_integers(op.dtype, reduced(op, &word::integers(op.dtype, src)).into_iter())
}

/// The exact results.
pub(super) fn oracle(op: &ReduceOp, src: &[f32]) -> Reference {
    Reference::exact(word::numbers(op.dtype, &of_words(op, src)).into_iter())
}

/// A reduction of integers on the CPU.
#[derive(Debug)]
pub(super) struct IntegerKernel(pub(super) ReduceOp);

impl CpuKernel for IntegerKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        let words = DType::words(self.0.dtype);
        check_len(OP, "src", src.len(), self.0.input.elements() * words)?;
        check_len(OP, "dst", dst.len(), self.0.output.elements() * words)?;
        dst.copy_from_slice(&of_words(&self.0, src));
        Ok(())
    }
}
