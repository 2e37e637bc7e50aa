//! What `quantize` is as an op of rows, whose kernel is its nest's.

use super::{OP, QuantizeOp};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::bytes::{LANES, bytes_mut, numbers};
use crate::ops::kernel::Kernel;
use crate::ops::loops::{AsNest, OpNest};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::shape::Shape;

impl QuantizeOp {
    /// The bytes of rows.
    #[inline(always)]
    fn bytes(&self, src: &[f32], dst: &mut [u8]) {
        let channels = self.channels();
        if channels.is_multiple_of(LANES) || channels > AT_ONCE {
            // Rows that fill their words are one.
            let channels = if channels.is_multiple_of(LANES) { src.len() } else { channels };
            let rows = src.chunks(channels).zip(dst.chunks_mut(channels.next_multiple_of(LANES)));
            return rows.for_each(|(src, dst)| {
                self.run(src, dst);
                dst.iter_mut().skip(channels).for_each(|byte| *byte = self.range.zero);
            });
        }
        // Bytes of several rows at once, and then each to its words.
        let (rows, wide) = (AT_ONCE / channels, channels.next_multiple_of(LANES));
        for (src, dst) in src.chunks(rows * channels).zip(dst.chunks_mut(rows * wide)) {
            let mut found = [0; AT_ONCE];
            self.run(src, &mut found);
            for (found, dst) in found.chunks_exact(channels).zip(dst.chunks_exact_mut(wide)) {
                let (own, rest) = dst.split_at_mut(channels);
                own.copy_from_slice(found);
                rest.fill(self.range.zero);
            }
        }
    }

    /// The bytes of numbers side by side.
    #[inline(always)]
    fn run(&self, src: &[f32], dst: &mut [u8]) {
        for (byte, value) in dst.iter_mut().zip(src) {
            *byte = self.range.of(value * self.factor.0);
        }
    }
}

/// The most bytes that are found before they are put in their places.
const AT_ONCE: usize = 768;

impl RowsOp for QuantizeOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::ELEMENTS]
    }

    fn problem_key(&self) -> String {
        format!("from{} by{} {}", self.source, self.factor.0, self.range.key())
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.source.shape())]
    }

    fn output(&self) -> Shape {
        self.target.shape()
    }

    fn dtype(&self, operand: Operand) -> DType {
        if operand == Operand::Dst { DType::U32 } else { DType::F32 }
    }

    fn nest(&self) -> Option<OpNest> {
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src]))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let src = get(operands, Operand::Src).unwrap_or_default();
        let mut dst = vec![0; LANES * self.target.elements()];
        self.bytes(src, &mut dst);
        Reference::exact(numbers(&dst).into_iter())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let (channels, words) = (self.channels(), self.channels().div_ceil(LANES));
        let block = independent_rows(dst.len() / words, MOVED * channels);
        let parts = dst.chunks_mut(block * words).zip(src.chunks(block * channels));
        let arch = Arch::new();
        each(parts, |(dst, src)| arch.dispatch(|| self.bytes(src, bytes_mut(dst))));
    }
}

#[cfg(test)]
mod tests {
    use crate::dims::Dims;
    use crate::emit::{Bits, Operand};
    use crate::ops::bytes::ByteRange;
    use crate::ops::operands::of;
    use crate::ops::quantize::{Quantize, QuantizeOp};
    use crate::ops::rows::RowsOp;

    #[test]
    fn numbers_become_the_bytes_of_their_grid() {
        let options = Quantize { scale: Bits(0.5), range: ByteRange::all(128) };
        let op = QuantizeOp::new(Dims::new(&[2, 3]).expect("small"), options).expect("fits");
        let values = [0.0, 0.25, 0.75, -1.0, 100.0, -100.0];
        let found = op.oracle(&of(&[(Operand::Src, &values)]));
        let word = |bytes: [u8; 4]| f64::from(u32::from_le_bytes(bytes));
        assert_eq!(found.value(), [word([128, 128, 130, 128]), word([126, 255, 0, 128])]);
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let options = Quantize { scale: Bits(scale), ..options };
            assert!(QuantizeOp::new(Dims::new(&[3]).expect("small"), options).is_err(), "{scale}");
        }
    }
}
