//! The sums of integers one by one, and the numbers that they stand for in f64.

use super::DynamicConv2dOp;
use crate::emit::Operand;
use crate::ops::bytes::{LANES, bytes};
use crate::ops::dynamic_range::NUMBERS_OF_RANGE;
use crate::ops::operands::{OperandInfo, Operands, Role, get};
use crate::ops::reference::{Reference, Sum};

/// What is rounded on the way to a number: the sum to f32, two products, and the sum with the bias.
const ROUNDINGS: usize = 4;

/// The result of `operands`, which were checked.
pub(super) fn oracle(op: &DynamicConv2dOp, operands: &Operands<'_>) -> Reference {
    let of = |operand| get(operands, operand).unwrap_or_default();
    let (scale, bias, slope, residual) = (
        of(Operand::Scale),
        get(operands, Operand::Bias),
        get(operands, Operand::Slope),
        get(operands, Operand::Residual),
    );
    let sums = sums(op, bytes(of(Operand::Src)), bytes(of(Operand::Weights)), of(Operand::Arg(0)));
    if op.sums {
        return Reference::exact(sums.into_iter().map(|[sum, _]| sum));
    }
    let dst = OperandInfo::new(Operand::Dst, op.output(), Role::Output);
    let mut reference = Sum::begin(ROUNDINGS, &op.epilogue, operands, &dst);
    for (index, [sum, factor]) in sums.into_iter().enumerate() {
        let at = |values: Option<&[f32]>, index: usize| {
            values.and_then(|values| values.get(index)).copied().map_or(0.0, f64::from)
        };
        let channel = index % op.channels;
        let number = sum * factor * at(Some(scale), channel);
        let (bias, slope) = (at(bias, channel), at(slope, channel));
        let value = op.epilogue.activation.reference(number + bias, slope) + at(residual, index);
        reference.value.push(value);
        reference.magnitude.push(number.abs() + bias.abs());
    }
    Reference::Sum(reference)
}

/// The sum of each element of the result, and the scale of its range.
fn sums(op: &DynamicConv2dOp, src: &[u8], weights: &[u8], ranges: &[f32]) -> Vec<[f64; 2]> {
    let windows = &op.windows;
    let (x, y, [kernel_h, kernel_w]) = (windows.input, windows.output, windows.kernel);
    let depth = LANES * x.c;
    let mut found = Vec::with_capacity(op.pixels() * op.channels);
    for pixel in 0..op.pixels() {
        let (image, row, column) = (pixel / (y.h * y.w), pixel / y.w % y.h, pixel % y.w);
        let range = ranges.as_chunks::<NUMBERS_OF_RANGE>().0.get(pixel / op.span());
        let [scale, zero, _] = range.copied().unwrap_or_default();
        for channel in 0..op.channels {
            let mut sum = 0i32;
            for tap in 0..kernel_h * kernel_w {
                let place = windows
                    .source(0, row, tap / kernel_w)
                    .zip(windows.source(1, column, tap % kernel_w))
                    .map(|(at, across)| ((image * x.h + at) * x.w + across) * depth);
                // What lies outside adds nothing.
                let Some(place) = place else { continue };
                for k in 0..depth {
                    let value = src.get(place + k).copied().map_or(0, i32::from);
                    let weight = weights.get((channel * kernel_h * kernel_w + tap) * depth + k);
                    let weight = weight.map_or(0, |weight| i32::from(weight.cast_signed()));
                    sum = sum.wrapping_add((value - zero as i32) * weight);
                }
            }
            found.push([sum.into(), scale.into()]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::dtype::DType;
    use crate::emit::Activation;
    use crate::ops::dynamic_conv2d::{DynamicConv2d, EpilogueOperands};
    use crate::ops::expected::on_cpu;
    use crate::ops::operands::of;
    use crate::shape::{Padding, Shape};
    use crate::word;

    fn words(bytes: &[[u8; 4]]) -> Vec<f32> {
        word::of_integers(DType::U32, bytes.iter().map(|&bytes| i64::from(u32::from_le_bytes(bytes))))
    }

    #[test]
    fn sums_are_those_worked_out_by_hand() {
        let padding = Padding::Explicit { top: 0, bottom: 0, left: 1, right: 0 };
        let options = DynamicConv2d { padding, ..DynamicConv2d::new() };
        let ranges = Dims::new(&[2, 3]).expect("small");
        let [input, weights_of] = [Shape::nhwc(2, 1, 2, 1), Shape::nhwc(2, 1, 2, 1)];
        let src = words(&[[129, 127, 128, 7], [130, 255, 0, 9], [10, 20, 30, 0], [0, 1, 5, 0]]);
        // Channel 0: the first tap takes lane 0 twice, the second one lane 1 less lane 2. Channel 1: lane 1 of the second.
        let weights = words(&[[2, 0, 0, 0], [0, 1, 255, 0], [0; 4], [0, 1, 0, 0]]);
        let ranges_of = [0.5, 100.0, 2.0, 2.0, 5.0, 0.5];
        let operands =
            [(Operand::Src, &src[..]), (Operand::Weights, &weights), (Operand::Arg(0), &ranges_of)];
        let sums = DynamicConv2d { sums: true, ..options };
        let op = DynamicConv2dOp::new(input, weights_of, ranges, &sums).expect("fits");
        let found = oracle(&op, &of(&operands));
        // Image 0, zero 100: 27 - 28 and 27, then 2*29 + 155 + 100 and 155. Image 1, zero 5: 15 - 25 and 15, 2*5 - 4 - 0 and -4.
        let wanted = [-1.0, 27.0, 313.0, 155.0, -10.0, 15.0, 6.0, -4.0];
        assert_eq!(found.value(), wanted);
        let on_host = on_cpu(&op, &of(&operands)).expect("runs");
        assert_eq!(word::numbers(DType::I32, &on_host), wanted);

        let options = DynamicConv2d { activation: Activation::Relu, ..options };
        let given = EpilogueOperands { bias: true, residual: true };
        let op = DynamicConv2dOp::with(input, weights_of, ranges, &options, given).expect("fits");
        let residual = [1000.0; 8];
        let all = [
            &operands[..],
            &[(Operand::Scale, &[1.0, 0.5]), (Operand::Bias, &[0.25, -8.0]), (Operand::Residual, &residual)],
        ]
        .concat();
        let found = oracle(&op, &of(&all));
        // Scales of 0.5 and 0.25, then of 2 and 1.
        let wanted = [0.0, 0.0, 156.75, 30.75, 0.0, 7.0, 12.25, 0.0].map(|number| number + 1000.0);
        assert_eq!(found.value(), wanted);
        let on_host = on_cpu(&op, &of(&all)).expect("runs");
        assert_eq!(on_host, wanted.map(|number| number as f32));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let of = |ranges: &[usize], options: DynamicConv2d, taps: usize| {
            let [input, weights] = [Shape::nhwc(2, 3, 4, 1), Shape::nhwc(5, taps, taps, 1)];
            DynamicConv2dOp::new(input, weights, dims(ranges), &options)
        };
        let plain = DynamicConv2d::new();
        assert!(
            of(&[24, 3], plain, 1).is_ok() && of(&[2, 3], plain, 2).is_ok() && of(&[3], plain, 2).is_ok()
        );
        for (ranges, taps, wanted) in [
            (&[24, 2][..], 1, "rows of three numbers"),
            (&[5, 3], 1, "for 24 rows"),
            (&[4, 3], 2, "a range for each image"),
        ] {
            let error = of(ranges, plain, taps).expect_err("refused").to_string();
            assert!(error.contains(wanted), "{error}");
        }
        let sums = DynamicConv2d { sums: true, activation: Activation::Relu, ..plain };
        assert!(of(&[2, 3], sums, 1).is_err());
    }
}
