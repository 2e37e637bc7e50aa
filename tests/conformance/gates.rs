//! Rows of the table, and planted mistakes, of weighted maps and of gated linear units.

use crate::cases::Breadth;
use crate::planted::Mistake;
use crate::problem::Problem;
use diptych::{Activation, Bits, Dims, Function, Layout, Pointwise, Precision, Shape};
use diptych_kernels::ops::elementwise::{Program, Source, Step};
use diptych_kernels::ops::gate::GateOp;
use diptych_kernels::ops::glu::GluOp;
use diptych_kernels::ops::pointwise::PointwiseOp;
use std::sync::Arc;

const F32: Precision = Precision::F32;
const RELU: Activation = Activation::Relu;
const SIGMOID: Activation = Activation::Sigmoid;

/// A map of `c` channels, weighted by what is made of `k` channels by way of `r`.
fn gate(
    [n, h, w, c]: [usize; 4],
    [k, r]: [usize; 2],
    [first, second]: [Activation; 2],
    [biases, residual]: [bool; 2],
    precision: Precision,
) -> Problem {
    let [first, second] = [first, second].map(|activation| Pointwise { activation });
    let pixel = Shape::nhwc(n, 1, 1, k);
    let first = PointwiseOp::new(pixel, Shape::nhwc(r, 1, 1, k), &first, biases, false, precision);
    let first = first.expect("a valid row");
    let (between, weights) = (first.convolution().output, Shape::nhwc(c, 1, 1, r));
    let second = PointwiseOp::new(between, weights, &second, biases, false, precision).expect("a valid row");
    Arc::new(GateOp::new(Some(first), second, Shape::nhwc(n, h, w, c), residual).expect("a valid row"))
}

/// A map of `c` channels, weighted by what one convolution makes of `r` channels.
fn second(
    [n, h, w, c]: [usize; 4],
    r: usize,
    activation: Activation,
    [bias, residual]: [bool; 2],
    precision: Precision,
) -> Problem {
    let (hidden, weights) = (Shape::nhwc(n, 1, 1, r), Shape::nhwc(c, 1, 1, r));
    let second = PointwiseOp::new(hidden, weights, &Pointwise { activation }, bias, false, precision);
    let map = Shape::nhwc(n, h, w, c);
    Arc::new(GateOp::new(None, second.expect("a valid row"), map, residual).expect("a valid row"))
}

/// A function of the halves of rows.
fn glu(extents: &[usize], function: Function, precision: Precision) -> Problem {
    let step = |function, arguments: &[Source]| Step { function, arguments: arguments.to_vec() };
    let (a, b) = (Source::Input(0), Source::Input(1));
    let program = Program::new(vec![
        step(function, &[b]),
        step(Function::Mul, &[a, Source::Step(0)]),
        step(Function::Mul, &[Source::Step(1), Source::Number(Bits(0.75))]),
    ]);
    let dims = Dims::new(extents).expect("small");
    Arc::new(GluOp::new(program.expect("a program"), dims, precision).expect("a valid row"))
}

pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    use Breadth::{Groups, Tiles, Variants};
    let mut rows = Vec::new();
    let mut row = |map, inner, activations, extras, precision, breadth| {
        let name = format!("{map:?} by {inner:?} {activations:?} {extras:?} {precision}");
        rows.push((name, gate(map, inner, activations, extras, precision), breadth));
    };
    let usual = [RELU, SIGMOID];
    for map in [[1, 1, 1, 1], [1, 1, 2, 3], [2, 7, 9, 6], [3, 16, 17, 9], [1, 67, 61, 5], [1, 131, 43, 4]] {
        row(map, [map[3], 3], usual, [true, false], F32, Tiles);
    }
    // More slices between the convolutions than parts of a sum, than invocations, and one.
    for inner in [[1, 1], [33, 5], [70, 66], [5, 263], [131, 17]] {
        row([2, 5, 7, 10], inner, usual, [true, true], F32, Tiles);
    }
    for extras in [[false, false], [false, true], [true, false], [true, true]] {
        row([2, 5, 7, 10], [9, 6], usual, extras, F32, Tiles);
    }
    for activation in crate::cases::ACTIVATIONS {
        if activation != Activation::PRelu {
            row([1, 5, 5, 7], [6, 5], [activation; 2], [true, true], F32, Variants);
        }
    }
    let leaky = Activation::LeakyRelu(Bits(0.25));
    row([2, 11, 13, 14], [30, 21], [leaky, SIGMOID], [true, true], F32, Groups);
    for precision in [Precision::F16Storage, Precision::F16] {
        row([2, 7, 6, 9], [13, 5], usual, [true, true], precision, Tiles);
    }
    for extents in [
        &[2][..],
        &[3, 8],
        &[1, 2, 10],
        &[5, 1, 24],
        &[2, 3, 5, 62],
        &[7, 1032],
        &[65537, 2],
        &[1, 4],
        &[1, 8],
        &[2, 1, 1, 6],
        &[9, 14],
        &[3, 7, 40],
        &[1, 22016],
    ] {
        rows.push((format!("halves of {extents:?}"), glu(extents, Function::Sigmoid, F32), Breadth::Groups));
    }
    for function in [Function::Gelu, Function::GeluTanh, Function::Tanh, Function::HardSigmoid] {
        rows.push((format!("{function:?} of halves"), glu(&[5, 24], function, F32), Variants));
    }
    for precision in [Precision::F16Storage, Precision::F16] {
        rows.push((format!("halves in {precision}"), glu(&[5, 24], Function::Sigmoid, precision), Tiles));
        rows.push((format!("odd halves in {precision}"), glu(&[5, 10], Function::Tanh, precision), Tiles));
    }
    let mut row = |map: [usize; 4], r: usize, activation, extras: [bool; 2], precision, breadth| {
        let name = format!("{map:?} by {r} {activation:?} {extras:?} {precision}");
        rows.push((name, second(map, r, activation, extras, precision), breadth));
    };
    // Few slices of what is given, as many as all invocations add up, one more, and more than invocations.
    for r in [1, 5, 128, 129, 263, 1030] {
        row([2, 5, 7, 10], r, SIGMOID, [true, false], F32, Tiles);
    }
    for map in [[1, 1, 2, 3], [3, 16, 17, 9], [1, 131, 43, 4]] {
        row(map, 6, Activation::HardSigmoid, [true, true], F32, Tiles);
    }
    for precision in [Precision::F16Storage, Precision::F16] {
        row([2, 7, 6, 9], 13, SIGMOID, [true, true], precision, Tiles);
        row([2, 7, 6, 9], 150, SIGMOID, [false, false], precision, Tiles);
    }
    rows
}

pub(crate) fn mistakes() -> Vec<Mistake> {
    let problem = |extras| gate([2, 9, 7, 10], [21, 27], [RELU, SIGMOID], extras, F32);
    let rows = [
        ("the first image's pixel for all", [true, false], "n * params.pooled_slices + k", "k"),
        (
            "a part of a sum is left out",
            [true, false],
            "var q: u32 = 1u; q < SPLITS",
            "var q: u32 = 2u; q < SPLITS",
        ),
        (
            "a sum between the two is left out",
            [true, false],
            "var row: u32 = 1u; row",
            "var row: u32 = 2u; row",
        ),
        (
            "the first slice's factors for all",
            [true, false],
            "4u * (slice * params.hidden_slices",
            "4u * (0u * params.hidden_slices",
        ),
        ("the pixel before", [true, true], "residual[at0]", "residual[max(at0, 1u) - 1u]"),
    ];
    let mistake = |(what, extras, from, to)| Mistake {
        what,
        problem: problem(extras),
        variant: "maps",
        tile: [256, 1, 1],
        layout: Layout::C4,
        from,
        to,
    };
    let given = [
        (6, "the first image's sums for all", "n * params.hidden_slices + row", "row"),
        (6, "a sum is left out", "var row: u32 = 1u; row", "var row: u32 = 2u; row"),
        (300, "sums are left out", "row += SIZE", "row += 2u * SIZE"),
        (150, "one sum for another", "+ row];", "+ max(row, 1u) - 1u];"),
    ];
    let of_given = given.into_iter().map(|(r, what, from, to)| Mistake {
        what,
        problem: second([2, 9, 7, 10], r, SIGMOID, [true, false], F32),
        variant: "maps",
        tile: [if r > 128 { 64 } else { 256 }, 1, 1],
        layout: Layout::C4,
        from,
        to,
    });
    let of_halves = [
        ("the other half", [5, 24], " + i1 + @n2", " + i1"),
        ("the row before", [5, 10], "u32 = i / @", "u32 = (max(i, @n0) - @n0) / @"),
    ];
    let of_halves = of_halves.into_iter().map(|(what, extents, from, to)| Mistake {
        what,
        problem: glu(&extents, Function::Sigmoid, F32),
        variant: "rows",
        tile: [1, 1, 1],
        layout: Layout::Nhwc,
        from,
        to,
    });
    rows.into_iter().map(mistake).chain(of_given).chain(of_halves).collect()
}
