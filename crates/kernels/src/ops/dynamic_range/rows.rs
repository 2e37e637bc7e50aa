//! What `dynamic_range` is as an op of rows.

use super::group::Group;
use super::{DynamicRangeOp, NUMBERS_OF_RANGE, OP, RangeRule};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::emit::Operand;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;

/// Numbers that are compared at a time.
const AT_ONCE: usize = 64;

/// Multiply-adds that take as long as one number does to be compared.
const COMPARED: usize = MOVED / 4;

/// How far a quotient of a device may be off, of its value: four units in the last place.
const QUOTIENT: f64 = 4.0 / (1 << 23) as f64;

/// Elements of a row that is compared in few lanes: of more the lanes themselves take less time than the numbers.
const SHORT: usize = 256;

/// The least and the largest of 0 and some numbers.
#[inline(always)]
fn ends(row: &[f32]) -> [f32; 2] {
    if row.len() < SHORT { ends_in::<8>(row) } else { ends_in::<AT_ONCE>(row) }
}

/// The least and the largest of 0 and some numbers, `LANES` of which are compared at a time.
#[inline(always)]
fn ends_in<const LANES: usize>(row: &[f32]) -> [f32; 2] {
    let (mut lows, mut highs) = ([0.0f32; LANES], [0.0f32; LANES]);
    let (whole, rest) = row.as_chunks::<LANES>();
    let mut join = |chunk: &[f32]| {
        for ((low, high), &x) in lows.iter_mut().zip(&mut highs).zip(chunk) {
            *low = if x < *low { x } else { *low };
            *high = if x > *high { x } else { *high };
        }
    };
    whole.iter().for_each(|chunk| join(chunk));
    join(rest);
    let low = lows.iter().fold(0.0f32, |low, &x| if x < low { x } else { low });
    [low, highs.iter().fold(0.0f32, |high, &x| if x > high { x } else { high })]
}

impl RowsOp for DynamicRangeOp {
    const NAME: &'static str = OP;
    const KERNEL: &'static str = "group";
    const TEXT: &'static str = crate::emit::text!("../../../shaders/dynamic_range/group.wgsl");

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&Group]
    }

    fn problem_key(&self) -> String {
        let rule = match self.rule {
            RangeRule::Nearer => "nearer",
            RangeRule::Low => "low",
        };
        format!("rows{} of{} {rule}", self.rows(), self.count())
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.source.shape())]
    }

    fn output(&self) -> Shape {
        self.target.shape()
    }

    fn params(&self) -> Params {
        vec![("rows", unsigned(self.rows())), ("count", unsigned(self.count()))]
    }

    /// A device's quotients are not rounded as the host's: where the byte of 0 is nearly halfway, it may be either.
    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let src = get(operands, Operand::Src).unwrap_or_default();
        let (mut value, mut bound) = (Vec::new(), Vec::new());
        for row in src.chunks(self.count()).take(self.rows()) {
            let [low, high] = ends(row);
            let [scale, zero, factor] = self.of_ends([low, high]);
            let halfway = (self.unrounded([low / scale, high / scale]).fract().abs() - 0.5).abs();
            value.extend([scale, zero, factor].map(f64::from));
            let of_zero = if f64::from(halfway) < 1024.0 * QUOTIENT { 1.0 } else { 0.0 };
            bound.extend([
                QUOTIENT * f64::from(scale.abs()),
                of_zero,
                2.0 * QUOTIENT * f64::from(factor.abs()),
            ]);
        }
        Reference::Bounded { value, bound }
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let (rows, count, arch) = (self.rows(), self.count(), Arch::new());
        let block = independent_rows(rows, COMPARED * count);
        if rows > 1 {
            let parts = dst.chunks_mut(block * NUMBERS_OF_RANGE).zip(src.chunks(block * count));
            return each(parts, |(dst, src)| {
                arch.dispatch(|| {
                    for (dst, row) in dst.as_chunks_mut().0.iter_mut().zip(src.chunks(count)) {
                        *dst = self.of_ends(ends(row));
                    }
                });
            });
        }
        // One row is shared.
        let part = independent_rows(count.div_ceil(AT_ONCE), COMPARED * AT_ONCE) * AT_ONCE;
        let mut found = vec![[0.0f32; 2]; count.div_ceil(part.max(1))];
        each(found.iter_mut().zip(src.chunks(part.max(1))), |(found, row)| {
            *found = arch.dispatch(|| ends(row));
        });
        let of_all = found.iter().fold([0.0f32; 2], |[low, high], own| [low.min(own[0]), high.max(own[1])]);
        if let Some(dst) = dst.first_chunk_mut() {
            *dst = self.of_ends(of_all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::ops::dynamic_range::DynamicRange;
    use crate::ops::operands::of;

    fn found(rule: RangeRule, row: &[f32]) -> [f32; 3] {
        let dims = Dims::new(&[1, row.len()]).expect("small");
        let op = DynamicRangeOp::new(dims, DynamicRange { rule }).expect("fits");
        let mut dst = [f32::NAN; 3];
        op.compute(&[row], &mut dst);
        let oracle = op.oracle(&of(&[(Operand::Src, row)]));
        assert_eq!(oracle.value(), dst.map(f64::from));
        dst
    }

    #[test]
    fn ranges_hold_zero_and_all_numbers() {
        for rule in [RangeRule::Nearer, RangeRule::Low] {
            assert_eq!(found(rule, &[0.0, 127.5, 3.0]), [0.5, 0.0, 2.0], "{rule:?}");
            assert_eq!(found(rule, &[-127.5, -1.0]), [0.5, 255.0, 2.0], "{rule:?}");
            assert_eq!(found(rule, &[-32.0, 95.5, 7.0]), [0.5, 64.0, 2.0], "{rule:?}");
            assert_eq!(found(rule, &[-2.25, 252.75]), [1.0, 2.0, 1.0], "{rule:?}");
            assert_eq!(found(rule, &[-1.5, 253.5]), [1.0, 2.0, 1.0], "{rule:?}");
        }
        // Nothing but 0: any byte may stand for it.
        assert_eq!(found(RangeRule::Nearer, &[0.0, -0.0]), [1.0, 255.0, 1.0]);
        assert_eq!(found(RangeRule::Low, &[0.0, -0.0]), [1.0, 0.0, 1.0]);
    }

    #[test]
    fn a_row_that_workers_share_is_one() {
        let mut row: Vec<f32> = (0..400_000).map(|at| (at % 97) as f32 / 97.0).collect();
        row[399_999] = 100.0;
        row[200_001] = -155.0;
        assert_eq!(found(RangeRule::Nearer, &row), [1.0, 155.0, 1.0]);
    }
}
