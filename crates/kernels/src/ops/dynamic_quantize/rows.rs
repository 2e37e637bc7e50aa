//! What `dynamic_quantize` is as an op of rows: a word of four bytes per invocation.

use super::{DynamicQuantizeOp, OP};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::emit::{Operand, Value};
use crate::ops::bytes::{LANES, bytes_mut, nearest, numbers};
use crate::ops::dynamic_range::{NUMBERS_OF_RANGE, usual_ranges};
use crate::ops::kernel::Constants;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;

/// A range as it lies among others.
type Range = [f32; NUMBERS_OF_RANGE];

impl DynamicQuantizeOp {
    /// The bytes of numbers side by side.
    #[inline(always)]
    fn run(&self, src: &[f32], [scale, zero, factor]: Range, dst: &mut [u8]) {
        let byte = |steps: f32| (nearest(steps.max(-zero).min(255.0 - zero)) + zero as i32) as u8;
        if self.divides {
            dst.iter_mut().zip(src).for_each(|(dst, x)| *dst = byte(x / scale));
        } else {
            dst.iter_mut().zip(src).for_each(|(dst, x)| *dst = byte(x * factor));
        }
    }

    /// The bytes of rows from `first` on.
    #[inline(always)]
    fn rows(&self, first: usize, src: &[f32], ranges: &[Range], dst: &mut [u8]) {
        let (channels, span) = (self.channels(), self.span());
        let wide = channels.next_multiple_of(LANES);
        let mut row = first;
        let (mut src, mut dst) = (src, dst);
        // Rows of one range are one run where they fill their words, and as many of others as are found at once.
        let most = if channels == wide { usize::MAX } else { (AT_ONCE / channels).max(1) };
        while !dst.is_empty() {
            let count = (span - row % span).min(dst.len() / wide).min(most).max(1);
            let range = ranges.get(row / span).copied().unwrap_or([1.0, 0.0, 1.0]);
            let (own, behind) = src.split_at((count * channels).min(src.len()));
            let (to, rest) = dst.split_at_mut((count * wide).min(dst.len()));
            if count == 1 || channels == wide {
                self.run(own, range, to);
                to.iter_mut().skip(own.len()).for_each(|byte| *byte = range[1] as u8);
            } else {
                let mut found = [0; AT_ONCE];
                self.run(own, range, &mut found);
                for (found, to) in found.chunks_exact(channels).zip(to.chunks_exact_mut(wide)) {
                    let (own, rest) = to.split_at_mut(channels);
                    own.copy_from_slice(found);
                    rest.fill(range[1] as u8);
                }
            }
            (src, dst, row) = (behind, rest, row + count);
        }
    }
}

/// The most bytes that are found before they are put in their places.
const AT_ONCE: usize = 768;

impl RowsOp for DynamicQuantizeOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/dynamic_quantize/rows.wgsl");

    fn problem_key(&self) -> String {
        let divides = if self.divides { " divides" } else { "" };
        format!("from{} ranges{}{divides}", self.source, self.count())
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.source.shape()), (Operand::Arg(0), self.ranges.shape())]
    }

    fn output(&self) -> Shape {
        self.target.shape()
    }

    fn dtype(&self, operand: Operand) -> DType {
        if operand == Operand::Dst { DType::U32 } else { DType::F32 }
    }

    fn usual(&self, operand: Operand, noise: Vec<f32>) -> Vec<f32> {
        if operand == Operand::Arg(0) { usual_ranges(&noise, self.divides) } else { noise }
    }

    fn params(&self) -> Params {
        vec![
            ("elements", unsigned(self.target.elements())),
            ("channels", unsigned(self.channels())),
            ("span", unsigned(self.span())),
        ]
    }

    fn constants(&self) -> Constants {
        vec![("DIVIDES", Value::U32(self.divides.into()))]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let of = |operand| get(operands, operand).unwrap_or_default();
        let mut dst = vec![0; LANES * self.target.elements()];
        self.rows(0, of(Operand::Src), of(Operand::Arg(0)).as_chunks().0, &mut dst);
        Reference::exact(numbers(&dst).into_iter())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src, ranges] = inputs else { return };
        let (channels, words) = (self.channels(), self.channels().div_ceil(LANES));
        let block = independent_rows(dst.len() / words, MOVED * channels);
        let parts = dst.chunks_mut(block * words).zip(src.chunks(block * channels)).enumerate();
        let (arch, ranges) = (Arch::new(), ranges.as_chunks().0);
        each(parts, |(part, (dst, src))| {
            arch.dispatch(|| self.rows(part * block, src, ranges, bytes_mut(dst)));
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::dims::Dims;
    use crate::emit::Operand;
    use crate::ops::dynamic_quantize::{DynamicQuantize, DynamicQuantizeOp};
    use crate::ops::operands::of;
    use crate::ops::rows::RowsOp;

    #[test]
    fn each_row_has_the_bytes_of_its_range() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let ranges = [0.5, 128.0, 2.0, 2.0, 3.0, 0.5];
        let values = [0.25, -1.0, 100.0, 0.75, 0.0, -70.0, 1.0, 3.0, 600.0, -2.0, -9.0, 5.0];
        for divides in [false, true] {
            let options = DynamicQuantize { divides };
            let op = DynamicQuantizeOp::new(dims(&[4, 3]), dims(&[2, 3]), options).expect("fits");
            let found = op.oracle(&of(&[(Operand::Src, &values), (Operand::Arg(0), &ranges)]));
            let word = |bytes: [u8; 4]| f64::from(u32::from_le_bytes(bytes));
            let wanted = [[128, 126, 255, 128], [130, 128, 0, 128], [3, 5, 255, 3], [2, 0, 5, 3]].map(word);
            assert_eq!(found.value(), wanted);
            for (source, ranges) in [(&[4, 3][..], &[3, 3][..]), (&[4, 3], &[2, 2]), (&[], &[1, 3])] {
                assert!(DynamicQuantizeOp::new(dims(source), dims(ranges), options).is_err(), "{source:?}");
            }
        }
    }
}
