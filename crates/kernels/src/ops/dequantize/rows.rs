//! What `dequantize` is as an op of rows, whose kernel is its nest's.

use super::{DequantizeOp, OP};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::bytes::{LANES, bytes};
use crate::ops::kernel::Kernel;
use crate::ops::loops::{AsNest, OpNest};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::shape::Shape;

impl DequantizeOp {
    /// The numbers of rows.
    #[inline(always)]
    fn numbers(&self, src: &[u8], dst: &mut [f32]) {
        // Rows that fill their words are one.
        let channels = self.options.channels;
        let channels = if channels.is_multiple_of(LANES) { dst.len() } else { channels };
        let (zero, scale) = (i32::from(self.options.zero), self.options.scale.0);
        let rows = src.chunks(channels.next_multiple_of(LANES)).zip(dst.chunks_mut(channels));
        for (src, dst) in rows {
            for (number, byte) in dst.iter_mut().zip(src) {
                *number = (i32::from(*byte) - zero) as f32 * scale;
            }
        }
    }
}

impl RowsOp for DequantizeOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::ELEMENTS]
    }

    fn problem_key(&self) -> String {
        let options = self.options;
        format!("to{} by{} zero{}", self.target, options.scale.0, options.zero)
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.source.shape())]
    }

    fn output(&self) -> Shape {
        self.target.shape()
    }

    fn dtype(&self, operand: Operand) -> DType {
        if operand == Operand::Src { DType::U32 } else { DType::F32 }
    }

    fn nest(&self) -> Option<OpNest> {
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src]))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let src = get(operands, Operand::Src).unwrap_or_default();
        let mut dst = vec![0.0; self.target.elements()];
        self.numbers(bytes(src), &mut dst);
        // One product of two floats, which every device rounds alike.
        Reference::exact(dst.into_iter().map(f64::from))
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let (channels, words) = (self.options.channels, self.options.channels.div_ceil(LANES));
        let block = independent_rows(src.len() / words, MOVED * channels);
        let parts = dst.chunks_mut(block * channels).zip(src.chunks(block * words));
        let arch = Arch::new();
        each(parts, |(dst, src)| arch.dispatch(|| self.numbers(bytes(src), dst)));
    }
}

#[cfg(test)]
mod tests {
    use crate::dims::Dims;
    use crate::dtype::DType;
    use crate::emit::{Bits, Operand};
    use crate::ops::dequantize::{Dequantize, DequantizeOp};
    use crate::ops::operands::of;
    use crate::ops::rows::RowsOp;
    use crate::word;

    #[test]
    fn bytes_become_the_numbers_that_they_stand_for() {
        let options = Dequantize { scale: Bits(0.5), zero: 128, channels: 3 };
        let op = DequantizeOp::new(Dims::new(&[2, 1]).expect("small"), options).expect("fits");
        let words = [[128, 129, 255, 7], [0, 127, 130, 9]].map(|bytes| i64::from(u32::from_le_bytes(bytes)));
        let words = word::of_integers(DType::U32, words.into_iter());
        let found = op.oracle(&of(&[(Operand::Src, &words)]));
        assert_eq!(found.value(), [0.0, 0.5, 63.5, -64.0, -0.5, 1.0]);
        assert!(DequantizeOp::new(Dims::new(&[2, 2]).expect("small"), options).is_err());
    }
}
