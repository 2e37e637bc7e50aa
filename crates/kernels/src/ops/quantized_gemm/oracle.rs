//! The product's sums in f64, of the weights that the integers stand for.

use super::packing::unpacked;
use super::{QuantizedGemmOp, Zeros};
use crate::cpu::bytes::rounded::RoundedRow;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::operands::{OperandInfo, Operands, Role, get};
use crate::ops::reference::Sum;
use crate::ops::tolerance::smallest_normal;

/// The weights of an op.
pub(super) struct Weights<'a> {
    op: &'a QuantizedGemmOp,
    words: &'a [f32],
    scales: &'a [f32],
    zeros: &'a [f32],
}

impl<'a> Weights<'a> {
    pub(super) fn of(op: &'a QuantizedGemmOp, operands: &'a Operands<'_>) -> Self {
        let of = |operand| get(operands, operand).unwrap_or_default();
        let [words, scales, zeros] = [Operand::Weights, Operand::Scales, Operand::Zeros].map(of);
        Weights { op, words, scales, zeros }
    }

    fn scale(&self, n: usize, block: usize) -> f64 {
        self.scales.get(n * self.op.blocks() + block).copied().map_or(f64::NAN, f64::from)
    }

    /// `(q[n, k] - zero[n, block]) scale[n, block]`.
    pub(super) fn at(&self, n: usize, k: usize) -> f64 {
        let op = self.op;
        let block = k / op.block;
        let row = self.words.get(n * op.words()..).unwrap_or_default();
        let zero = match op.zeros {
            Zeros::Same(zero) => f64::from(zero.0),
            Zeros::Floats => self.zeros.get(n * op.blocks() + block).copied().map_or(f64::NAN, f64::from),
            Zeros::Packed => {
                let row = self.zeros.get(n * op.zero_words()..).unwrap_or_default();
                f64::from(unpacked(op.bits, row, block))
            }
        };
        (f64::from(unpacked(op.bits, row, k)) - zero) * self.scale(n, block)
    }
}

/// The rows `rows` of the result. A sum of a block that is flushed to zero is scaled after that: each term may bring the
/// smallest normal number times its scale along.
pub(super) fn oracle(op: &QuantizedGemmOp, operands: &Operands<'_>, rows: &[usize]) -> Sum {
    let of = |operand| get(operands, operand);
    let x = of(Operand::Src).unwrap_or_default();
    let (bias, slope, residual) = (of(Operand::Bias), of(Operand::Slope), of(Operand::Residual));
    let weights = Weights::of(op, operands);
    let dst = OperandInfo::new(Operand::Dst, op.dst.shape(), Role::Output);
    let mut reference = Sum::begin(op.terms(), &op.epilogue, operands, &dst);
    reference.residual.clear();
    let tiny = smallest_normal(DType::F32);
    let columns: Vec<Vec<f64>> = (0..op.n).map(|n| (0..op.k).map(|k| weights.at(n, k)).collect()).collect();
    for &row in rows {
        let x = x.get(row * op.k..(row + 1) * op.k).unwrap_or_default();
        for (n, column) in columns.iter().enumerate() {
            let (mut sum, mut magnitude, mut rounding) = (0.0, 0.0, 0.0);
            if op.rounded {
                let each = column.iter().zip(RoundedRow::errors(x));
                rounding = each.map(|(weight, error)| weight.abs() * error).sum();
            }
            for (&x, weight) in x.iter().zip(column) {
                sum += f64::from(x) * weight;
                magnitude += (f64::from(x) * weight).abs();
            }
            let scales = (0..op.blocks()).map(|block| weights.scale(n, block).abs());
            let at = |values: Option<&[f32]>, index: usize| {
                values.map_or(0.0, |values| values.get(index).copied().map_or(f64::NAN, f64::from))
            };
            let place = row * op.n + n;
            let (bias, slope) = (at(bias, n), at(slope, n));
            reference.residual.extend(residual.and_then(|residual| residual.get(place)));
            reference.value.push(op.epilogue.activation.reference(sum + bias, slope) + at(residual, place));
            reference.magnitude.push(magnitude + bias.abs());
            reference.carried.push(2.0 * tiny * op.block as f64 * scales.sum::<f64>() + rounding);
        }
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::{Activation, Bits};
    use crate::ops::expected::on_cpu;
    use crate::ops::operands::of;
    use crate::ops::quantized_gemm::examples::of_node;
    use crate::ops::quantized_gemm::{QuantizedGemm, pack};

    /// The results of the oracle, which the CPU's are close to, of `n` rows of integers.
    fn product(
        options: QuantizedGemm,
        x: &[f32],
        [n, k]: [usize; 2],
        integers: &[u8],
        packed: bool,
        more: &[(Operand, &[f32])],
    ) -> Vec<f64> {
        let words: Vec<f32> = pack(options.bits, k, integers).into_iter().map(f32::from_bits).collect();
        let given: Vec<Operand> = more.iter().map(|(operand, _)| *operand).collect();
        let op = of_node(&options, [x.len() / k, n, k], &given, packed, Precision::F32).expect("a product");
        let values = of(&[&[(Operand::Src, x), (Operand::Weights, &words)], more].concat());
        let wanted = oracle(&op, &values, &(0..x.len() / k).collect::<Vec<_>>());
        let found = on_cpu(&op, &values).expect("runs");
        assert_eq!(found.len(), wanted.value.len());
        for (index, found) in found.into_iter().enumerate() {
            let off = (f64::from(found) - wanted.value[index]).abs();
            assert!(off <= wanted.tolerance(index, Precision::F32), "{index}: {found} {:?}", wanted.value);
        }
        wanted.value
    }

    #[test]
    fn results_are_those_worked_out_by_hand() {
        let four = QuantizedGemm::new(4);
        let scales = (Operand::Scales, &[0.5, 2.0][..]);
        // (1 - 8) / 2 and (15 - 8) / 2, twice (0 - 8) and (9 - 8).
        let x = [1.0, 2.0, -1.0, 0.0];
        let integers = [1, 15, 0, 9];
        let found = product(four, &x, [2, 2], &integers, false, &[scales]);
        assert_eq!(found, [3.5, -12.0, 3.5, 16.0]);
        // With zero points of 1 and 3, packed and not; with a bias, a residual and a function.
        for (packed, zeros) in [(false, [1.0, 3.0]), (true, [f32::from_bits(1), f32::from_bits(3)])] {
            let found = product(four, &x, [2, 2], &integers, packed, &[scales, (Operand::Zeros, &zeros)]);
            assert_eq!(found, [14.0, 18.0, 0.0, 6.0]);
        }
        let more = [
            scales,
            (Operand::Bias, &[0.5, -1.0][..]),
            (Operand::Residual, &[100.0, 200.0, 300.0, 400.0][..]),
        ];
        let relu = QuantizedGemm { activation: Activation::Relu, ..four };
        assert_eq!(product(relu, &x, [2, 2], &integers, false, &more), [104.0, 200.0, 304.0, 415.0]);
    }

    #[test]
    fn each_block_has_its_own_scale_and_zero_point() {
        // Nine weights of 8 bits in blocks of four, the last one short.
        let options = QuantizedGemm { block: Some(4), zero: Bits(100.0), ..QuantizedGemm::new(8) };
        let x = [1.0, 1.0, 1.0, 1.0, 10.0, 10.0, 10.0, 10.0, 100.0];
        let integers = [101, 101, 101, 101, 102, 102, 102, 102, 255];
        let scales = (Operand::Scales, &[1.0, 0.5, 0.25][..]);
        let found = product(options, &x, [1, 9], &integers, false, &[scales]);
        assert_eq!(found, [4.0 + 40.0 + 3875.0]);
        let zeros = [100.5, 102.0, 255.0];
        let found = product(options, &x, [1, 9], &integers, false, &[scales, (Operand::Zeros, &zeros)]);
        assert_eq!(found, [2.0]);
        let zeros: Vec<f32> = pack(8, 3, &[101, 100, 255]).into_iter().map(f32::from_bits).collect();
        let found = product(options, &x, [1, 9], &integers, true, &[scales, (Operand::Zeros, &zeros)]);
        assert_eq!(found, [40.0]);
        // Two bits, sixteen of which are a word.
        let two = QuantizedGemm { block: Some(16), ..QuantizedGemm::new(2) };
        let integers: Vec<u8> = (0..20).map(|index| if index < 16 { 3 } else { 1 }).collect();
        let found = product(two, &[1.0; 20], [1, 20], &integers, false, &[(Operand::Scales, &[1.0, 8.0])]);
        assert_eq!(found, [16.0 - 32.0]);
    }
}
