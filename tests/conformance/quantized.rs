//! Problems of the ops of bytes: channels that fill their words and do not, windows within the input and beyond it.

use crate::cases::Breadth;
use crate::problem::Problem;
use diptych::nn::{
    ByteRange, QuantizedBinary, QuantizedConv2d, QuantizedDepthwise, QuantizedFunction, QuantizedPool,
    QuantizedPooling,
};
use diptych::{Bits, Dims, Padding, Shape};
use diptych_kernels::ops::dequantize::{Dequantize, DequantizeOp};
use diptych_kernels::ops::quantize::{Quantize, QuantizeOp};
use diptych_kernels::ops::quantized_binary::QuantizedBinaryOp;
use diptych_kernels::ops::quantized_conv2d::QuantizedConv2dOp;
use diptych_kernels::ops::quantized_depthwise::QuantizedDepthwiseOp;
use diptych_kernels::ops::quantized_lookup::QuantizedLookupOp;
use diptych_kernels::ops::quantized_pool::QuantizedPoolOp;
use std::sync::Arc;

/// A range with ends of its own.
pub(crate) const RANGE: ByteRange = ByteRange { zero: 100, least: 20, most: 240 };

fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("a valid row")
}

pub(crate) fn convolution(input: Shape, weights: [usize; 3], options: QuantizedConv2d) -> Problem {
    let weights = Shape::nhwc(weights[0], weights[1], weights[2], input.c);
    Arc::new(QuantizedConv2dOp::new(input, weights, &options).expect("a valid row"))
}

/// A convolution whose windows reach beyond a map, and whose words fill no step of a matrix unit.
pub(crate) fn padded() -> Problem {
    let options = QuantizedConv2d { padding: Padding::Same, ..QuantizedConv2d::new(131, RANGE) };
    convolution(Shape::nhwc(1, 7, 6, 12), [37, 3, 3], options)
}

pub(crate) fn depthwise(input: Shape, weights: [usize; 2], options: QuantizedDepthwise) -> Problem {
    let weights = Shape::nhwc(1, weights[0], weights[1], input.c);
    Arc::new(QuantizedDepthwiseOp::new(input, weights, &options).expect("a valid row"))
}

pub(crate) fn binary(function: QuantizedFunction, other: &[usize]) -> Problem {
    let options = QuantizedBinary { function, zeros: [100, 130], range: RANGE };
    Arc::new(QuantizedBinaryOp::new(dims(&[2, 3, 5, 4]), dims(other), options).expect("a valid row"))
}

pub(crate) fn pool(pooling: QuantizedPooling, padding: Padding, window: [usize; 2]) -> Problem {
    let options = QuantizedPool { pooling, window, stride: [2, 1], padding, range: RANGE };
    Arc::new(QuantizedPoolOp::new(Shape::nhwc(2, 7, 9, 3), &options).expect("a valid row"))
}

pub(crate) fn quantize(extents: &[usize], range: ByteRange) -> Problem {
    let options = Quantize { scale: Bits(0.007), range };
    Arc::new(QuantizeOp::new(dims(extents), options).expect("a valid row"))
}

pub(crate) fn dequantize(extents: &[usize], channels: usize) -> Problem {
    let options = Dequantize { scale: Bits(0.03), zero: 100, channels };
    Arc::new(DequantizeOp::new(dims(extents), options).expect("a valid row"))
}

/// Each problem with its name.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    use Breadth::{Groups, Tiles, Variants};
    let mut table: Vec<(String, Problem, Breadth)> = Vec::new();
    let mut push = |problem: Problem, breadth: Breadth| {
        let name = format!("{} {} {}", table.len(), problem.name(), problem.problem_key());
        table.push((name, problem, breadth));
    };
    let (plain, same) = (QuantizedConv2d::new(131, RANGE), Padding::Same);
    for (input, weights, options, breadth) in [
        (Shape::nhwc(2, 5, 9, 3), [17, 1, 1], plain, Tiles),
        (Shape::nhwc(1, 7, 9, 2), [33, 3, 3], QuantizedConv2d { padding: same, ..plain }, Tiles),
        // Words that lanes of matrix units read four at once, and one by one; more of them than steps of all layers.
        (Shape::nhwc(2, 7, 9, 24), [67, 3, 3], QuantizedConv2d { padding: same, ..plain }, Tiles),
        (Shape::nhwc(1, 9, 7, 13), [40, 3, 3], plain, Tiles),
        (
            Shape::nhwc(2, 8, 7, 1),
            [8, 3, 3],
            QuantizedConv2d { stride: [2, 2], padding: same, ..plain },
            Groups,
        ),
        (
            Shape::nhwc(1, 7, 11, 1),
            [6, 3, 2],
            QuantizedConv2d { dilation: [1, 3], padding: same, ..plain },
            Tiles,
        ),
        (Shape::nhwc(1, 9, 7, 5), [4, 2, 2], QuantizedConv2d { dilation: [3, 1], ..plain }, Variants),
        (Shape::nhwc(2, 5, 9, 19), [17, 1, 1], plain, Tiles),
        (Shape::nhwc(1, 5, 6, 9), [9, 3, 3], QuantizedConv2d { padding: same, ..plain }, Tiles),
        (Shape::nhwc(3, 1, 1, 67), [70, 1, 1], plain, Tiles),
        (Shape::nhwc(1, 1, 1, 9), [131, 1, 1], plain, Variants),
    ] {
        push(convolution(input, weights, options), breadth);
    }
    let plain = QuantizedDepthwise::new(131, RANGE);
    for (input, weights, options, breadth) in [
        (Shape::nhwc(2, 5, 9, 3), [3, 3], QuantizedDepthwise { padding: same, ..plain }, Tiles),
        (
            Shape::nhwc(1, 7, 6, 17),
            [5, 5],
            QuantizedDepthwise { stride: [2, 1], padding: same, ..plain },
            Tiles,
        ),
        (
            Shape::nhwc(1, 7, 9, 9),
            [3, 2],
            QuantizedDepthwise { dilation: [1, 3], padding: same, ..plain },
            Groups,
        ),
        (Shape::nhwc(1, 3, 4, 1), [2, 2], plain, Variants),
    ] {
        push(depthwise(input, weights, options), breadth);
    }
    for function in [
        QuantizedFunction::Add([Bits(0.7), Bits(0.4)]),
        QuantizedFunction::Add([Bits(0.01), Bits(-1.9)]),
        QuantizedFunction::Add([Bits(100.0), Bits(0.3)]),
        QuantizedFunction::Mul(Bits(0.013)),
    ] {
        for other in [&[2, 3, 5, 4][..], &[2, 1, 1, 4], &[4]] {
            push(binary(function, other), Variants);
        }
    }
    let scaled = QuantizedPooling::Scaled { zero: 90, factor: Bits(0.043) };
    for (pooling, padding, window) in [
        (QuantizedPooling::Max, same, [3, 2]),
        (QuantizedPooling::Mean(128), same, [3, 3]),
        (QuantizedPooling::Mean(0), Padding::Valid, [2, 2]),
        (scaled, Padding::Valid, [7, 9]),
        (scaled, Padding::Valid, [1, 4]),
    ] {
        push(pool(pooling, padding, window), Variants);
    }
    for extents in [&[2, 3, 5, 8][..], &[7, 5], &[3, 9, 31], &[1]] {
        push(quantize(extents, RANGE), Groups);
    }
    for (extents, channels) in [(&[2, 3, 5, 2][..], 8), (&[7, 2], 5), (&[3, 9, 8], 31), (&[1], 1)] {
        push(dequantize(extents, channels), Groups);
    }
    for extents in [&[2, 3, 5, 8][..], &[71], &[1]] {
        let op = QuantizedLookupOp::new(dims(extents), dims(&[64]));
        push(Arc::new(op.expect("a valid row")), Groups);
    }
    // Extents around those of a work-group and of a word, with few texts.
    for extent in 1..=18 {
        let (wide, channels) = (1 + extent * 5 % 13, 1 + extent * 7 % 19);
        let (map, plain) =
            (Shape::nhwc(1 + extent % 2, extent, wide, channels), QuantizedConv2d::new(7, RANGE));
        push(convolution(map, [3 * extent, 1, 1], plain), Variants);
        let same = QuantizedConv2d { padding: Padding::Same, ..plain };
        push(convolution(map, [extent, 3, 3], same), Variants);
        let plain = QuantizedDepthwise { padding: Padding::Same, ..QuantizedDepthwise::new(7, RANGE) };
        push(depthwise(map, [3, 3], plain), Variants);
        let options = QuantizedPool {
            pooling: if extent % 2 == 0 { QuantizedPooling::Max } else { QuantizedPooling::Mean(128) },
            window: [3, 3],
            stride: [1, 1],
            padding: Padding::Same,
            range: RANGE,
        };
        push(Arc::new(QuantizedPoolOp::new(map, &options).expect("a valid row")), Variants);
        push(quantize(&[extent, wide, channels], RANGE), Variants);
        push(dequantize(&[extent, wide, channels.div_ceil(4)], channels), Variants);
        let op = QuantizedLookupOp::new(dims(&[extent, wide, channels]), dims(&[64]));
        push(Arc::new(op.expect("a valid row")), Variants);
        let function = match extent % 2 {
            0 => QuantizedFunction::Add([Bits(0.9), Bits(1.0 / extent as f32)]),
            _ => QuantizedFunction::Mul(Bits(0.01 * extent as f32)),
        };
        let options = QuantizedBinary { function, zeros: [127, 3], range: RANGE };
        let (own, other) = (dims(&[extent, wide, channels]), dims(&[channels]));
        let op = QuantizedBinaryOp::new(own, if extent % 3 == 0 { other } else { own }, options);
        push(Arc::new(op.expect("a valid row")), Variants);
    }
    table
}
