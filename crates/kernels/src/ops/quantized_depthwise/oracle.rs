//! The bytes one by one.

use super::QuantizedDepthwiseOp;
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;

/// The result of `operands`, which were checked: it is exact.
pub(super) fn oracle(op: &QuantizedDepthwiseOp, operands: &Operands<'_>) -> Reference {
    op.exact(operands, |channel, tap| (channel..channel + 1, tap * op.channels + channel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::emit::Operand;
    use crate::ops::bytes::ByteRange;
    use crate::ops::operands::of;
    use crate::ops::quantized_depthwise::QuantizedDepthwise;
    use crate::shape::{Padding, Shape};
    use crate::word;

    #[test]
    fn each_channel_has_its_own_sum() {
        let words = |bytes: &[[u8; 4]]| {
            word::of_integers(DType::U32, bytes.iter().map(|&bytes| i64::from(u32::from_le_bytes(bytes))))
        };
        let padding = Padding::Explicit { top: 0, bottom: 0, left: 1, right: 0 };
        let options = QuantizedDepthwise { padding, ..QuantizedDepthwise::new(130, ByteRange::all(100)) };
        let op = QuantizedDepthwiseOp::new(Shape::nhwc(1, 1, 2, 1), Shape::nhwc(1, 1, 2, 1), &options);
        let (src, weights) =
            (words(&[[129, 127, 128, 7], [130, 255, 0, 9]]), words(&[[1, 2, 0, 0], [3, 255, 1, 0]]));
        let bias = word::of_integers(DType::I32, [10, 0, 0, 5].into_iter());
        let operands = [
            (Operand::Src, &src[..]),
            (Operand::Weights, &weights),
            (Operand::Bias, &bias),
            (Operand::Scale, &[1.0, 0.5, 1.0, 1.0]),
        ];
        // Pixel 0: 10 + 2*1 + 1*3 = 15, (2*2 + 1) / 2 = 2.5, 0, 5. Pixel 1: 10 + 1 + 2*3 = 17, (-2 - 127) / 2, -128, 5.
        let found = oracle(&op.expect("fits"), &of(&operands));
        let of_bytes = |bytes| f64::from(u32::from_le_bytes(bytes));
        assert_eq!(found.value(), [of_bytes([115, 102, 100, 105]), of_bytes([117, 36, 0, 105])]);
    }
}
