//! What `quantized_binary` is as an op of rows: a word of four bytes per invocation.

use super::{Multipliers, OP, QuantizedBinaryOp, Way};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::emit::{Operand, Scalar, Value};
use crate::ops::bytes::{LANES, bytes, bytes_mut, numbers};
use crate::ops::kernel::Constants;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;

impl QuantizedBinaryOp {
    /// The byte of two.
    #[inline(always)]
    pub(super) fn byte(&self, a: u8, b: u8) -> u8 {
        let [a, b] = [i32::from(a) - i32::from(self.zeros[0]), i32::from(b) - i32::from(self.zeros[1])];
        match self.way {
            Way::Sum(Multipliers { of: [of_a, of_b], shift }) => {
                // At most 255 times 2^21 each, and 2^29.
                let sum = a * of_a + b * of_b + (1 << (shift - 1));
                let [low, high] = self.range.steps();
                ((sum >> shift).clamp(low, high) + i32::from(self.range.zero)) as u8
            }
            Way::Product(ratio) => self.range.of((a * b) as f32 * ratio.0),
        }
    }

    /// The bytes of runs of words of equal length.
    #[inline(always)]
    fn run(&self, a: &[f32], b: &[f32], dst: &mut [f32]) {
        let all = || bytes(a).iter().zip(bytes(b));
        let [zero_a, zero_b] = self.zeros.map(i32::from);
        match self.way {
            Way::Sum(Multipliers { of: [of_a, of_b], shift }) => {
                let ([low, high], zero) = (self.range.steps(), i32::from(self.range.zero));
                let half = 1 << (shift - 1);
                for (dst, (a, b)) in bytes_mut(dst).iter_mut().zip(all()) {
                    let sum = (i32::from(*a) - zero_a) * of_a + (i32::from(*b) - zero_b) * of_b + half;
                    *dst = ((sum >> shift).max(low).min(high) + zero) as u8;
                }
            }
            Way::Product(ratio) => {
                for (dst, (a, b)) in bytes_mut(dst).iter_mut().zip(all()) {
                    let product = (i32::from(*a) - zero_a) * (i32::from(*b) - zero_b);
                    *dst = self.range.of(product as f32 * ratio.0);
                }
            }
        }
    }
}

impl RowsOp for QuantizedBinaryOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/quantized_binary/rows.wgsl");

    fn problem_key(&self) -> String {
        let [a, b] = self.zeros;
        let way = match self.way {
            Way::Sum(Multipliers { of: [a, b], shift }) => format!("sum{a},{b}>>{shift}"),
            Way::Product(ratio) => format!("product{}", ratio.0),
        };
        format!("of{} and{} {way} zeros{a},{b} {}", self.dims, self.other, self.range.key())
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Arg(0), self.dims.shape()), (Operand::Arg(1), self.other.shape())]
    }

    fn output(&self) -> Shape {
        self.dims.shape()
    }

    fn dtype(&self, _operand: Operand) -> DType {
        DType::U32
    }

    fn params(&self) -> Params {
        let mut params = vec![
            ("elements", unsigned(self.dims.elements())),
            ("row", unsigned(self.row)),
            ("span", unsigned(self.span)),
            ("zero_a", Scalar::I32(self.zeros[0].into())),
            ("zero_b", Scalar::I32(self.zeros[1].into())),
        ];
        match self.way {
            Way::Sum(Multipliers { of: [a, b], shift }) => params.extend([
                ("multiplier_a", Scalar::I32(a)),
                ("multiplier_b", Scalar::I32(b)),
                ("shift", Scalar::U32(shift)),
            ]),
            Way::Product(ratio) => params.push(("ratio", Scalar::F32(ratio.0))),
        }
        params.extend(self.range.params());
        params
    }

    fn constants(&self) -> Constants {
        vec![("PRODUCT", Value::U32(u32::from(matches!(self.way, Way::Product(_)))))]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let of = |operand| bytes(get(operands, operand).unwrap_or_default());
        let (a, b) = (of(Operand::Arg(0)), of(Operand::Arg(1)));
        let other = |at: usize| {
            let (word, lane) = (at / LANES, at % LANES);
            b.get(LANES * (word / self.span * self.row + word % self.row) + lane).copied().unwrap_or(0)
        };
        let found: Vec<u8> = a.iter().enumerate().map(|(at, &a)| self.byte(a, other(at))).collect();
        Reference::exact(numbers(&found).into_iter())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[a, b] = inputs else { return };
        let arch = Arch::new();
        if self.row == self.span {
            let block = independent_rows(dst.len(), MOVED * LANES);
            let parts = dst.chunks_mut(block).zip(a.chunks(block).zip(b.chunks(block)));
            return each(parts, |(dst, (a, b))| arch.dispatch(|| self.run(a, b, dst)));
        }
        let rows = independent_rows(dst.len() / self.row, MOVED * LANES * self.row);
        each(
            dst.chunks_mut(rows * self.row).zip(a.chunks(rows * self.row)).enumerate(),
            |(part, (dst, a))| {
                for (row, (dst, a)) in dst.chunks_mut(self.row).zip(a.chunks(self.row)).enumerate() {
                    let batch = (part * rows + row) * self.row / self.span;
                    let b = b.get(batch * self.row..(batch + 1) * self.row).unwrap_or_default();
                    self.run(a, b, dst);
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::emit::Bits;
    use crate::ops::bytes::ByteRange;
    use crate::ops::quantized_binary::{QuantizedBinary, QuantizedFunction, multipliers};

    #[test]
    fn a_sum_has_multipliers_of_21_bits_and_rounds_halves_up() {
        assert_eq!(
            multipliers([Bits(1.0), Bits(0.5)]),
            Some(Multipliers { of: [1 << 20, 1 << 19], shift: 20 })
        );
        assert_eq!(multipliers([Bits(0.3), Bits(-3.0)]).map(|found| found.shift), Some(19));
        assert_eq!(multipliers([Bits(256.0), Bits(1.0)]), None);
        let dims = Dims::new(&[1, 1]).expect("small");
        let of = |function| {
            let options = QuantizedBinary { function, zeros: [128, 128], range: ByteRange::all(128) };
            QuantizedBinaryOp::new(dims, dims, options).expect("fits")
        };
        let sum = of(QuantizedFunction::Add([Bits(0.5), Bits(0.5)]));
        // 0.5 and -0.5 steps, and beyond the range.
        assert_eq!(
            [sum.byte(129, 128), sum.byte(127, 128), sum.byte(255, 255), sum.byte(0, 1)],
            [129, 128, 255, 1]
        );
        let product = of(QuantizedFunction::Mul(Bits(0.5)));
        // 0.5, 1.5 and -2 steps.
        assert_eq!([product.byte(129, 129), product.byte(131, 129), product.byte(126, 130)], [128, 130, 126]);
    }

    #[test]
    fn a_row_serves_all_batches_or_its_own() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let function = QuantizedFunction::Add([Bits(1.0); 2]);
        let options = QuantizedBinary { function, zeros: [0, 0], range: ByteRange::all(0) };
        let of = |other: &[usize]| QuantizedBinaryOp::new(dims(&[2, 3, 2]), dims(other), options);
        assert_eq!(of(&[2]).map(|op| [op.row, op.span]).expect("fits"), [2, 12]);
        assert_eq!(of(&[2, 1, 2]).map(|op| [op.row, op.span]).expect("fits"), [2, 6]);
        assert_eq!(of(&[2, 3, 2]).map(|op| [op.row, op.span]).expect("fits"), [12, 12]);
        assert!(of(&[3, 2]).is_err() && of(&[1]).is_err());
    }
}
