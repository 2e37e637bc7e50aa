//! Problems of the ops of bytes whose ranges are found at each run.

use crate::cases::Breadth;
use crate::problem::Problem;
use diptych::nn::{DynamicConv2d, RangeRule};
use diptych::{Activation, Dims, Padding, Shape};
use diptych_kernels::ops::dynamic_conv2d::DynamicConv2dOp;
use diptych_kernels::ops::dynamic_quantize::{DynamicQuantize, DynamicQuantizeOp};
use diptych_kernels::ops::dynamic_range::{DynamicRange, DynamicRangeOp};
use std::sync::Arc;

fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("a valid row")
}

pub(crate) fn convolution(
    input: Shape,
    weights: [usize; 3],
    ranges: usize,
    options: DynamicConv2d,
) -> Problem {
    let weights = Shape::nhwc(weights[0], weights[1], weights[2], input.c);
    Arc::new(DynamicConv2dOp::new(input, weights, dims(&[ranges, 3]), &options).expect("a valid row"))
}

pub(crate) fn quantize(extents: &[usize], ranges: usize, divides: bool) -> Problem {
    let op = DynamicQuantizeOp::new(dims(extents), dims(&[ranges, 3]), DynamicQuantize { divides });
    Arc::new(op.expect("a valid row"))
}

pub(crate) fn range(extents: &[usize], rule: RangeRule) -> Problem {
    Arc::new(DynamicRangeOp::new(dims(extents), DynamicRange { rule }).expect("a valid row"))
}

/// Each problem with its name.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    use Breadth::{Groups, Tiles, Variants};
    let mut table: Vec<(String, Problem, Breadth)> = Vec::new();
    let mut push = |problem: Problem, breadth: Breadth| {
        let name = format!("{} {} {}", table.len(), problem.name(), problem.problem_key());
        table.push((name, problem, breadth));
    };
    let plain = DynamicConv2d::new();
    let same = DynamicConv2d { padding: Padding::Same, ..plain };
    let sums = DynamicConv2d { sums: true, ..same };
    for (input, weights, ranges, options, breadth) in [
        (Shape::nhwc(2, 5, 9, 3), [17, 1, 1], 2, plain, Tiles),
        (
            Shape::nhwc(2, 7, 9, 2),
            [36, 3, 3],
            2,
            DynamicConv2d { activation: Activation::Relu, ..same },
            Tiles,
        ),
        (Shape::nhwc(1, 1, 13, 19), [40, 1, 1], 13, plain, Tiles),
        (Shape::nhwc(3, 1, 1, 67), [70, 1, 1], 3, plain, Tiles),
        (Shape::nhwc(4, 8, 7, 1), [8, 3, 3], 2, DynamicConv2d { stride: [2, 2], ..same }, Groups),
        (Shape::nhwc(1, 7, 11, 1), [6, 3, 2], 1, DynamicConv2d { dilation: [1, 3], ..sums }, Tiles),
        (Shape::nhwc(2, 9, 7, 5), [4, 2, 2], 1, DynamicConv2d { dilation: [3, 1], ..sums }, Variants),
        (Shape::nhwc(1, 1, 1, 9), [131, 1, 1], 1, sums, Variants),
    ] {
        push(convolution(input, weights, ranges, options), breadth);
    }
    for (extents, ranges, divides) in [
        (&[2, 3, 5, 8][..], 2, false),
        (&[7, 5], 7, false),
        (&[3, 9, 31], 1, true),
        (&[4, 12], 4, true),
        (&[1], 1, false),
    ] {
        push(quantize(extents, ranges, divides), Groups);
    }
    for rule in [RangeRule::Nearer, RangeRule::Low] {
        for extents in [&[2, 3, 5][..], &[7, 1500], &[2, 9, 64], &[1]] {
            push(range(extents, rule), Tiles);
        }
    }
    // Extents around those of a work-group and of a word, with few texts.
    for extent in 1..=18 {
        let (wide, words) = (1 + extent * 5 % 13, 1 + extent * 7 % 19);
        let map = Shape::nhwc(1 + extent % 2, extent, wide, words);
        let ranges = if extent % 3 == 0 { 1 } else { map.n };
        push(convolution(map, [3 * extent, 1, 1], map.n * extent * wide, plain), Variants);
        push(convolution(map, [extent, 3, 3], ranges, if extent % 4 == 0 { sums } else { same }), Variants);
        push(quantize(&[extent, wide, words], extent, extent % 2 == 0), Variants);
        push(range(&[wide, extent * words], RangeRule::Nearer), Variants);
    }
    table
}
