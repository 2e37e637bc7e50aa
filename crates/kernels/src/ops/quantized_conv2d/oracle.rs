//! The bytes one by one.

use super::QuantizedConv2dOp;
use crate::ops::bytes::LANES;
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;

/// The result of `operands`, which were checked: it is exact.
pub(super) fn oracle(op: &QuantizedConv2dOp, operands: &Operands<'_>) -> Reference {
    let (windows, depth) = (&op.windows, LANES * op.windows.input.c);
    let taps = windows.kernel[0] * windows.kernel[1];
    op.exact(operands, |channel, tap| (0..depth, (channel * taps + tap) * depth))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::emit::Operand;
    use crate::ops::bytes::ByteRange;
    use crate::ops::op::Op;
    use crate::ops::operands::of;
    use crate::ops::quantized_conv2d::QuantizedConv2d;
    use crate::shape::{Padding, Shape};
    use crate::word;

    fn words(bytes: &[[u8; 4]]) -> Vec<f32> {
        word::of_integers(DType::U32, bytes.iter().map(|&bytes| i64::from(u32::from_le_bytes(bytes))))
    }

    #[test]
    fn sums_are_scaled_rounded_and_bounded() {
        let range = ByteRange { zero: 100, least: 90, most: 110 };
        let padding = Padding::Explicit { top: 0, bottom: 0, left: 1, right: 0 };
        let options = QuantizedConv2d { padding, ..QuantizedConv2d::new(130, range) };
        let op = QuantizedConv2dOp::new(Shape::nhwc(1, 1, 2, 1), Shape::nhwc(2, 1, 2, 1), &options);
        let op = op.expect("fits");
        let src = words(&[[129, 127, 128, 7], [130, 255, 0, 9]]);
        // Channel 0: the first tap takes lane 0 twice, the second one lane 1 less lane 2. Channel 1: lane 1 of the second.
        let weights = words(&[[2, 0, 0, 0], [0, 1, 255, 0], [0; 4], [0, 1, 0, 0]]);
        let bias = word::of_integers(DType::I32, [-1, 40].into_iter());
        let operands = [
            (Operand::Src, &src[..]),
            (Operand::Weights, &weights),
            (Operand::Bias, &bias),
            (Operand::Scale, &[0.5, 0.25]),
        ];
        // Pixel 0: -1 + 2*2 + (-1 - 0) = 2, and 40 - 1 = 39; pixel 1: -1 + 2 + 127 + 128 = 256, and 40 + 127 = 167.
        let found = oracle(&op, &of(&operands));
        let of_bytes = |bytes| f64::from(u32::from_le_bytes(bytes));
        assert_eq!(found.value(), [of_bytes([101, 110, 100, 100]), of_bytes([110, 110, 100, 100])]);
        assert_eq!(Op::flops(&op), 2 * 2 * 2 * 8);
    }
}
