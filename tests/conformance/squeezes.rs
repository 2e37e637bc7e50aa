//! Rows of the table, and planted mistakes, of global means with the product behind them.

use crate::cases::Breadth;
use crate::planted::Mistake;
use crate::problem::Problem;
use diptych::{Activation, Layout, Pointwise, Precision, Shape};
use diptych_kernels::ops::pointwise::PointwiseOp;
use diptych_kernels::ops::squeeze::SqueezeOp;
use std::sync::Arc;

const F32: Precision = Precision::F32;
const SIGMOID: Activation = Activation::Sigmoid;

/// `oc` sums of the means of a map.
fn squeeze(
    [n, h, w, c]: [usize; 4],
    oc: usize,
    activation: Activation,
    [bias, rows]: [bool; 2],
    precision: Precision,
) -> Problem {
    let (mean, weights) = (Shape::nhwc(n, 1, 1, c), Shape::nhwc(oc, 1, 1, c));
    let dense = PointwiseOp::new(mean, weights, &Pointwise { activation }, bias, false, precision);
    let op = SqueezeOp::new(Shape::nhwc(n, h, w, c), dense.expect("a valid row"), rows);
    Arc::new(op.expect("a valid row"))
}

pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    use Breadth::{Tiles, Variants};
    let mut rows = Vec::new();
    let mut row = |map: [usize; 4], oc, activation, extras: [bool; 2], precision, breadth| {
        let name = format!("{map:?} to {oc} {activation:?} {extras:?} {precision}");
        rows.push((name, squeeze(map, oc, activation, extras, precision), breadth));
    };
    // One pixel, one part, a part and one pixel, several parts, several images.
    for map in [[1, 1, 1, 1], [1, 1, 2, 3], [2, 7, 9, 6], [1, 32, 32, 5], [1, 25, 41, 9], [3, 61, 67, 13]] {
        row(map, 7, Activation::Relu, [true, false], F32, Tiles);
        row(map, 5, Activation::None, [false, true], F32, Tiles);
    }
    // More sums than invocations, more inputs than invocations, and few of each.
    for (c, oc) in [(1, 1), (3, 1030), (1040, 3), (70, 66), (263, 257), (2048, 9), (2052, 4)] {
        row([2, 3, 5, c], oc, SIGMOID, [true, false], F32, Tiles);
    }
    for activation in crate::cases::ACTIVATIONS {
        if activation != Activation::PRelu {
            row([1, 37, 33, 7], 6, activation, [true, false], F32, Variants);
        }
    }
    for precision in [Precision::F16Storage, Precision::F16] {
        row([2, 37, 31, 9], 13, SIGMOID, [true, false], precision, Tiles);
        row([2, 37, 31, 9], 13, Activation::None, [true, true], precision, Tiles);
    }
    rows
}

pub(crate) fn mistakes() -> Vec<Mistake> {
    let rows = [
        ("last", "the first image for all", "n * params.slices + slice", "slice"),
        ("last", "half of the pixels", "i < count", "2u * i < count"),
        (
            "last",
            "the counter stays",
            "atomicStore(&scratch[counter], 0u)",
            "atomicStore(&scratch[counter], 1u)",
        ),
        (
            "last",
            "a part is left out",
            "var i: u32 = 1u; i < params.parts",
            "var i: u32 = 2u; i < params.parts",
        ),
        (
            "last",
            "the parts of the channel before",
            "means[i * channels + c]",
            "means[i * channels + max(c, 1u) - 1u]",
        ),
        (
            "last",
            "a value is read, and left",
            "atomicExchange(&scratch[counter + 1u + t + 0u * SIZE], 0u)",
            "atomicLoad(&scratch[counter + 1u + t + 0u * SIZE])",
        ),
        ("last", "the last input is left out", "k < params.inputs; k +=", "k + 1u < params.inputs; k +="),
        ("group", "the first image for all", "n * params.slices + slice", "slice"),
        ("group", "the mean of one pixel more", "f32(params.plane)", "f32(params.plane + 1u)"),
        (
            "group",
            "the weights of the row before",
            "row * params.inputs + k",
            "max(row, 1u) * params.inputs - params.inputs + k",
        ),
    ];
    let mistake = |(variant, what, from, to)| Mistake {
        what,
        problem: squeeze(
            if variant == "last" { [2, 49, 47, 10] } else { [2, 5, 7, 10] },
            21,
            SIGMOID,
            [true, false],
            F32,
        ),
        variant,
        tile: [64, 1, 1],
        layout: Layout::C4,
        from,
        to,
    };
    rows.into_iter().map(mistake).collect()
}
