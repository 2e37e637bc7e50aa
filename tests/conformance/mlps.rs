//! Rows of the table, and planted mistakes, of dense layers of few rows.

use crate::cases::Breadth;
use crate::planted::Mistake;
use crate::problem::Problem;
use diptych::{Activation, Bits, Layout, Pointwise, Precision, Shape};
use diptych_kernels::ops::mlp::{MlpOp, RowNorm};
use diptych_kernels::ops::pointwise::PointwiseOp;
use std::sync::Arc;

const F32: Precision = Precision::F32;
const LAYER: RowNorm = RowNorm { epsilon: Bits(1e-5), centred: true };
const SQUARES: RowNorm = RowNorm { epsilon: Bits(1e-6), centred: false };

/// Rows of `k` values, by way of `hidden` where that is not 0, to `o`.
fn mlp(
    norm: Option<RowNorm>,
    [n, k, hidden, o]: [usize; 4],
    [between, activation]: [Activation; 2],
    bias: bool,
    precision: Precision,
) -> Problem {
    let layer = |inputs: usize, outputs: usize, activation: Activation| {
        let (rows, weights) = (Shape::nhwc(n, 1, 1, inputs), Shape::nhwc(outputs, 1, 1, inputs));
        let layer = PointwiseOp::new(rows, weights, &Pointwise { activation }, bias, false, precision);
        layer.expect("a valid row")
    };
    let first = (hidden > 0).then(|| layer(k, hidden, between));
    let last = layer(if hidden == 0 { k } else { hidden }, o, activation);
    Arc::new(MlpOp::new(norm, first, last).expect("a valid row"))
}

pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    use Breadth::{Tiles, Variants};
    let (none, relu, tanh) = (Activation::None, Activation::Relu, Activation::Tanh);
    let mut rows = Vec::new();
    let mut row = |norm: Option<RowNorm>, extents, activations: [Activation; 2], bias, precision, breadth| {
        let word = norm.map_or("plain", |norm| if norm.centred { "normalized" } else { "uncentred" });
        let name = format!("{word} {extents:?} {activations:?} {bias} {precision}");
        rows.push((name, mlp(norm, extents, activations, bias, precision), breadth));
    };
    // One layer: fewer rows than a work-group has, more, more terms than invocations, and few of all.
    for extents in [[1, 1, 0, 1], [2, 70, 0, 37], [3, 263, 0, 66], [7, 40, 0, 300]] {
        row(Some(LAYER), extents, [none, relu], true, F32, Tiles);
        row(Some(SQUARES), extents, [none, none], false, F32, Variants);
    }
    row(Some(LAYER), [1, 2048, 0, 130], [none, none], true, F32, Variants);
    // Two, by one work-group and by several.
    for extents in [[1, 1, 1, 1], [3, 70, 130, 10], [1, 263, 66, 257], [2, 1030, 41, 3]] {
        row(None, extents, [relu, none], true, F32, Tiles);
        row(Some(LAYER), extents, [tanh, none], false, F32, Variants);
    }
    row(Some(SQUARES), [2, 130, 1040, 9], [relu, none], true, F32, Variants);
    for activation in crate::cases::ACTIVATIONS {
        if activation != Activation::PRelu {
            row(None, [2, 37, 13, 6], [activation, activation], true, F32, Variants);
        }
    }
    for precision in [Precision::F16Storage, Precision::F16] {
        row(Some(LAYER), [3, 75, 0, 21], [none, relu], true, precision, Tiles);
        row(Some(SQUARES), [2, 75, 33, 21], [relu, none], true, precision, Variants);
    }
    rows
}

pub(crate) fn mistakes() -> Vec<Mistake> {
    let rows = [
        ("rows", "the first line for all", "n * params.inputs + i", "i"),
        ("rows", "the variance of half of the line", "let squares: f32 = ", "let squares: f32 = 0.5f * "),
        ("rows", "no mean", "SIZE] - mean", "SIZE]"),
        (
            "rows",
            "the weights of the row before",
            "row * params.inputs + k",
            "max(row, 1u) * params.inputs - params.inputs + k",
        ),
        ("group", "the last input is left out", "k < params.inputs; k +=", "k + 1u < params.inputs; k +="),
        (
            "group",
            "the last of what is hidden is left out",
            "k < params.hidden; k +=",
            "k + 1u < params.hidden; k +=",
        ),
        ("group", "the first line for all", "n * params.inputs + i", "i"),
        (
            "last",
            "the last of what is hidden is left out",
            "k < params.hidden; k +=",
            "k + 1u < params.hidden; k +=",
        ),
        (
            "last",
            "the counter stays",
            "atomicStore(&scratch[counter], 0u)",
            "atomicStore(&scratch[counter], 1u)",
        ),
    ];
    let mistake = |(variant, what, from, to)| Mistake {
        what,
        problem: if variant == "rows" {
            mlp(Some(LAYER), [3, 70, 0, 21], [Activation::None; 2], true, F32)
        } else {
            mlp(None, [3, 66, 33, 21], [Activation::Relu, Activation::None], true, F32)
        },
        variant,
        tile: if variant == "rows" { [64, 4, 16] } else { [64, 1, 1] },
        layout: Layout::Nhwc,
        from,
        to,
    };
    rows.into_iter().map(mistake).collect()
}
