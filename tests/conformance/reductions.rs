//! Rows of the table, and planted mistakes, of the ops that resize, reduce and normalise.

use crate::cases::{Breadth, Table};
use crate::planted::Mistake;
use crate::problem::Problem;
use diptych::{
    Activation, Bits, Dims, Layout, Padding, Precision, Reduce, Reduction, Resize, ResizeMode, Shape,
    Softmax,
    nn::{ArgReduce, Normalize, TransposedConv2d},
};
use diptych_emit::emit::Residual;
use diptych_kernels::ops::arg::ArgOp;
use diptych_kernels::ops::normalize::NormalizeOp;
use diptych_kernels::ops::reduce::ReduceOp;
use diptych_kernels::ops::resize::ResizeOp;
use diptych_kernels::ops::softmax::SoftmaxOp;
use diptych_kernels::ops::transposed_conv2d::TransposedConv2dOp;
use std::sync::Arc;

const F32: Precision = Precision::F32;
const HALVES: [Precision; 2] = [Precision::F16Storage, Precision::F16];

fn resize([n, h, w, c]: [usize; 4], options: Resize, precision: Precision) -> ResizeOp {
    ResizeOp::new(Shape::nhwc(n, h, w, c), &options, precision).expect("a valid row")
}

fn reduce(extents: &[usize], axes: &[isize], reduction: Reduction, precision: Precision) -> ReduceOp {
    let options = Reduce { reduction, axes: axes.to_vec(), keep_dims: true };
    ReduceOp::new(Dims::new(extents).expect("small"), &options, precision).expect("a valid row")
}

fn softmax(extents: &[usize], options: Softmax, precision: Precision) -> SoftmaxOp {
    SoftmaxOp::new(Dims::new(extents).expect("small"), &options, precision).expect("a valid row")
}

fn arg(extents: &[usize], axis: isize, largest: bool) -> ArgOp {
    let options = ArgReduce { largest, axis, keep_dims: largest };
    ArgOp::new(Dims::new(extents).expect("small"), &options).expect("a valid row")
}

fn transposed(
    [n, h, w, c]: [usize; 4],
    [oc, kh, kw]: [usize; 3],
    options: TransposedConv2d,
    residual: impl Into<Residual>,
    precision: Precision,
) -> TransposedConv2dOp {
    let (input, weights) = (Shape::nhwc(n, h, w, c), Shape::nhwc(oc, kh, kw, c));
    TransposedConv2dOp::new(input, weights, &options, true, residual, precision).expect("a valid row")
}

fn normalize(extents: &[usize], axes: &[isize], extras: [bool; 2], precision: Precision) -> NormalizeOp {
    let options = Normalize { axes: axes.to_vec(), epsilon: Bits(1e-3), ..Normalize::default() };
    let dims = Dims::new(extents).expect("small");
    NormalizeOp::new(dims, &options, extras[0], extras[1], precision).expect("a valid row")
}

fn uncentred(extents: &[usize], axes: &[isize], extras: [bool; 2], precision: Precision) -> NormalizeOp {
    let options = Normalize { axes: axes.to_vec(), epsilon: Bits(1e-3), centred: false };
    let dims = Dims::new(extents).expect("small");
    NormalizeOp::new(dims, &options, extras[0], extras[1], precision).expect("a valid row")
}

fn finished(
    extents: [usize; 4],
    given: bool,
    (activation, residual): (Activation, Residual),
    precision: Precision,
) -> NormalizeOp {
    normalize(&extents, &[1, 2], [!given; 2], precision)
        .finished([given; 2], activation, residual)
        .expect("a valid row")
}

impl Table {
    fn resize_row(&mut self, input: [usize; 4], options: Resize, precision: Precision, breadth: Breadth) {
        let op = resize(input, options, precision);
        self.push(format!("{input:?} to {options:?} {precision}"), Arc::new(op), breadth);
    }

    pub(crate) fn resize(&mut self) {
        use Breadth::{Groups, Tiles, Variants};
        for mode in [ResizeMode::Bilinear, ResizeMode::Nearest] {
            for (align_corners, half_pixel_centers) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                if mode == ResizeMode::Bilinear && align_corners && half_pixel_centers {
                    continue;
                }
                for (input, size) in [
                    ([1, 1, 1, 1], [1, 1]),
                    ([1, 1, 1, 3], [5, 7]),
                    ([1, 5, 7, 4], [1, 1]),
                    ([2, 5, 7, 6], [10, 14]),
                    ([1, 13, 11, 5], [7, 3]),
                    ([1, 3, 2, 1030], [2, 3]),
                    ([1, 17, 9, 9], [33, 65]),
                    ([1, 33, 31, 2], [11, 31]),
                ] {
                    let options = Resize { align_corners, half_pixel_centers, ..Resize::new(mode, size) };
                    let breadth = if input[0] == 2 { Groups } else { Variants };
                    self.resize_row(input, options, F32, breadth);
                }
            }
            for precision in HALVES {
                let options = Resize { half_pixel_centers: true, ..Resize::new(mode, [9, 5]) };
                self.resize_row([2, 4, 7, 5], options, precision, Tiles);
            }
        }
    }

    fn reduce_row(
        &mut self,
        extents: &[usize],
        axes: &[isize],
        reduction: Reduction,
        precision: Precision,
        breadth: Breadth,
    ) {
        let op = reduce(extents, axes, reduction, precision);
        self.push(format!("{reduction:?} of {extents:?} over {axes:?} {precision}"), Arc::new(op), breadth);
    }

    pub(crate) fn reduce(&mut self) {
        use Breadth::{Groups, Tiles, Variants};
        for reduction in Reduction::ALL {
            let rows: [(&[usize], &[isize]); 8] = [
                (&[1, 1, 1, 1], &[1, 2]),
                (&[1], &[0]),
                (&[2, 7, 9, 6], &[1, 2]),
                (&[3, 5, 2, 4, 3, 2], &[0, 2, 4]),
                (&[2, 3, 4, 5, 3, 2], &[1, 3, -1]),
                (&[1, 13, 11, 5], &[-2, 1, 1]),
                (&[67, 131], &[1]),
                (&[5, 97, 3], &[0, 1]),
            ];
            for (extents, axes) in rows {
                self.reduce_row(extents, axes, reduction, F32, Tiles);
            }
        }
        for (extents, axes) in [
            // Each part of batch, height and width, and channels beyond a slice.
            (&[3, 5, 7, 6][..], &[0][..]),
            (&[3, 5, 7, 6], &[1]),
            (&[3, 5, 7, 6], &[2]),
            (&[3, 5, 7, 6], &[0, 2]),
            (&[3, 5, 7, 6], &[0, 1]),
            (&[3, 5, 7, 33], &[0, 1, 2]),
            (&[3, 5, 7, 6], &[3]),
            (&[3, 5, 7, 6], &[0, 1, 2, 3]),
            (&[3, 5, 7, 6], &[0, 3]),
            (&[1, 37, 31, 4], &[1, 2]),
            (&[1, 7, 7, 1030], &[1, 2]),
            (&[17, 64, 4], &[1]),
            (&[1030, 3], &[0]),
            (&[3, 1030], &[1]),
            (&[5, 3], &[]),
            (&[1, 66001, 1, 2], &[2]),
            (&[66001, 33], &[1]),
        ] {
            self.reduce_row(extents, axes, Reduction::Mean, F32, Tiles);
            self.reduce_row(extents, axes, Reduction::Min, F32, Variants);
        }
        // Shared by work-groups of which the last to arrive joins what all have found.
        for (extents, reduction) in [
            ([1, 1, 2049, 4], Reduction::Mean),
            ([2, 64, 64, 5], Reduction::Sum),
            ([3, 73, 61, 9], Reduction::Max),
            ([1, 128, 131, 3], Reduction::Min),
            ([1, 97, 89, 7], Reduction::Any),
            ([2, 97, 89, 3], Reduction::All),
            ([1, 53, 41, 6], Reduction::Product),
        ] {
            self.reduce_row(&extents, &[1, 2], reduction, F32, Tiles);
        }
        self.reduce_row(&[2, 73, 61, 9], &[1, 2], Reduction::Mean, Precision::F16Storage, Tiles);
        self.reduce_row(&[2, 19, 9, 10], &[1], Reduction::Sum, F32, Groups);
        self.reduce_row(&[2, 5, 9, 10], &[2, 3], Reduction::Sum, F32, Groups);
        for precision in HALVES {
            for reduction in Reduction::ALL {
                self.reduce_row(&[2, 7, 9, 6], &[1, 2], reduction, precision, Tiles);
            }
        }
    }

    fn softmax_row(&mut self, extents: &[usize], options: Softmax, precision: Precision, breadth: Breadth) {
        let op = softmax(extents, options, precision);
        self.push(format!("of {extents:?} {options:?} {precision}"), Arc::new(op), breadth);
    }

    pub(crate) fn arg(&mut self) {
        for largest in [true, false] {
            for (extents, axis) in [
                (&[1][..], 0),
                (&[7], 0),
                (&[3, 5], 1),
                (&[3, 67], -1),
                (&[67, 3], 0),
                (&[2, 5, 7, 6], 3),
                (&[2, 5, 7, 6], 1),
                (&[1, 3, 2, 1030], 3),
                (&[2, 1, 13, 33], 2),
                (&[2, 3, 2, 131, 2, 3], 3),
                (&[66003, 2], 1),
                (&[30, 72], 1),
                (&[3, 7, 40], 1),
                (&[2, 300, 8], 1),
            ] {
                let name = format!("{} of {extents:?} along {axis}", if largest { "max" } else { "min" });
                let breadth = if extents == [2, 5, 7, 6] { Breadth::Groups } else { Breadth::Tiles };
                self.push(name, Arc::new(arg(extents, axis, largest)), breadth);
            }
        }
    }

    fn transposed_row(
        &mut self,
        input: [usize; 4],
        weights: [usize; 3],
        options: TransposedConv2d,
        residual: impl Into<Residual>,
        precision: Precision,
        breadth: Breadth,
    ) {
        let residual = residual.into();
        let op = transposed(input, weights, options, residual, precision);
        let name = format!("{input:?} to {weights:?} {options:?} add={residual:?} {precision}");
        self.push(name, Arc::new(op), breadth);
    }

    pub(crate) fn transposed_conv2d(&mut self) {
        use Breadth::{Groups, Tiles, Variants};
        let same = TransposedConv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
        let valid = TransposedConv2d { padding: Padding::Valid, ..same };
        for [n, h, w] in crate::cases::EXTENTS {
            self.transposed_row([n, h, w, 5], [7, 3, 3], same, false, F32, Tiles);
        }
        for [c, oc] in crate::cases::CHANNELS {
            self.transposed_row([1, 2, 3, c], [oc, 3, 3], same, false, F32, Variants);
        }
        let explicit = Padding::Explicit { top: 2, bottom: 0, left: 1, right: 3 };
        let plain = TransposedConv2d::default();
        for (kernel, options) in [
            ([2, 2], valid),
            ([4, 4], same),
            ([4, 4], TransposedConv2d { output: Some([15, 20]), ..same }),
            ([3, 3], TransposedConv2d { output: Some([18, 24]), ..valid }),
            ([3, 3], TransposedConv2d { padding: explicit, ..plain }),
            ([5, 2], TransposedConv2d { stride: [3, 1], padding: explicit, ..plain }),
            ([1, 2], TransposedConv2d { stride: [2, 3], ..same }),
            ([2, 1], TransposedConv2d { stride: [4, 5], ..valid }),
            ([7, 5], TransposedConv2d { stride: [1, 3], ..same }),
        ] {
            for input in [[1, 7, 9, 3], [2, 8, 10, 6]] {
                let options = TransposedConv2d { ..options };
                self.transposed_row(input, [10, kernel[0], kernel[1]], options, false, F32, Tiles);
            }
        }
        for activation in crate::cases::ACTIVATIONS {
            let options = TransposedConv2d { activation, ..same };
            self.transposed_row([1, 5, 5, 3], [6, 3, 3], options, true, F32, Variants);
        }
        self.transposed_row([2, 7, 9, 5], [13, 3, 3], same, true, F32, Groups);
        let relu = TransposedConv2d { activation: Activation::Relu, ..same };
        self.transposed_row([1, 5, 6, 6], [7, 3, 3], relu, Residual::BeforeActivation, F32, Variants);
        for precision in HALVES {
            let options = TransposedConv2d { activation: Activation::Relu6, ..same };
            self.transposed_row([1, 7, 6, 5], [9, 3, 3], options, true, precision, Tiles);
        }
    }

    fn normalize_row(
        &mut self,
        extents: &[usize],
        axes: &[isize],
        extras: [bool; 2],
        precision: Precision,
        breadth: Breadth,
    ) {
        let op = normalize(extents, axes, extras, precision);
        self.push(format!("{extents:?} over {axes:?} {extras:?} {precision}"), Arc::new(op), breadth);
    }

    pub(crate) fn normalize(&mut self) {
        use Breadth::{Groups, Tiles};
        for extras in [[false, false], [true, false], [false, true], [true, true]] {
            self.normalize_row(&[2, 7, 9, 6], &[1, 2], extras, F32, Tiles);
            self.normalize_row(&[2, 7, 9, 6], &[-1], extras, F32, Tiles);
        }
        for (extents, axes) in [
            (&[1][..], &[0][..]),
            (&[1, 1, 1, 5], &[1, 2]),
            (&[67, 131], &[1]),
            (&[67, 131], &[0]),
            (&[3, 197, 12], &[2]),
            (&[3, 97, 12], &[1]),
            (&[2, 5, 7, 9], &[1, 2, 3]),
            (&[2, 5, 7, 9], &[0]),
            (&[2, 5, 7, 9], &[2]),
            (&[2, 5, 7, 9], &[0, 2]),
            (&[2, 5, 7, 9], &[0, 3]),
            (&[1, 37, 31, 33], &[1, 2]),
            (&[1, 2, 3, 1030], &[3]),
            (&[2, 3, 4, 3, 2, 5], &[0, 2, 4]),
            (&[2, 3, 4, 3, 2, 5], &[1, 3, 5]),
            (&[33001, 3], &[1]),
        ] {
            self.normalize_row(extents, axes, [true, true], F32, Tiles);
        }
        self.normalize_row(&[3, 11, 5, 10], &[1, 2], [true, true], F32, Groups);
        self.normalize_row(&[3, 11, 5, 10], &[3], [true, true], F32, Groups);
        self.normalize_row(&[3, 11, 5, 10], &[1, 2], [false, true], F32, Tiles);
        for precision in HALVES {
            self.normalize_row(&[2, 7, 6, 5], &[1, 2], [true, true], precision, Tiles);
        }
        self.uncentred();
        let (none, relu, sigmoid) = (Activation::None, Activation::Relu, Activation::Sigmoid);
        let tails = [
            (none, Residual::AfterActivation),
            (relu, Residual::None),
            (relu, Residual::BeforeActivation),
            (sigmoid, Residual::AfterActivation),
        ];
        for precision in [F32, Precision::F16Storage] {
            for (index, tail) in tails.into_iter().enumerate() {
                let given = index % 2 == 0;
                // One pixel, a work-group's pixels and one off, several for each invocation.
                for extents in [[3, 1, 1, 5], [2, 8, 8, 9], [2, 5, 13, 6], [1, 33, 31, 8]] {
                    self.finished_row(extents, given, tail, precision, Tiles);
                }
            }
        }
        self.finished_row([1, 93, 97, 3], true, tails[0], F32, Tiles);
    }

    /// Normalisations by the root of the mean square.
    fn uncentred(&mut self) {
        use Breadth::{Groups, Tiles};
        for (extents, axes, extras, precision, breadth) in [
            (&[1][..], &[0][..], [false; 2], F32, Tiles),
            (&[67, 131], &[1], [true, false], F32, Tiles),
            (&[67, 131], &[0], [true; 2], F32, Tiles),
            (&[3, 197, 12], &[2], [true, false], F32, Groups),
            (&[3, 97, 12], &[1], [false; 2], F32, Tiles),
            (&[2, 5, 7, 9], &[0, 3], [true; 2], F32, Tiles),
            (&[2, 5, 7, 9], &[1, 2], [true; 2], F32, Groups),
            (&[1, 37, 31, 33], &[1, 2], [true, false], F32, Tiles),
            (&[1, 2, 3, 1030], &[3], [true, false], F32, Tiles),
            (&[2, 3, 4, 3, 2, 5], &[1, 3, 5], [false, true], F32, Tiles),
        ] {
            let op = uncentred(extents, axes, extras, precision);
            self.push(
                format!("{extents:?} uncentred over {axes:?} {extras:?} {precision}"),
                Arc::new(op),
                breadth,
            );
        }
        for precision in HALVES {
            for (extents, axes) in [(&[2, 7, 6, 5][..], &[1, 2][..]), (&[3, 5, 197], &[2])] {
                let op = uncentred(extents, axes, [true, false], precision);
                self.push(format!("{extents:?} uncentred over {axes:?} {precision}"), Arc::new(op), Tiles);
            }
        }
        let extents = [2, 5, 13, 6];
        let op = uncentred(&extents, &[1, 2], [false; 2], F32);
        let op = op.finished([true; 2], Activation::Relu, Residual::AfterActivation);
        self.push(format!("{extents:?} uncentred"), Arc::new(op.expect("a valid row")), Tiles);
    }

    fn finished_row(
        &mut self,
        extents: [usize; 4],
        given: bool,
        tail: (Activation, Residual),
        precision: Precision,
        breadth: Breadth,
    ) {
        let op = finished(extents, given, tail, precision);
        let name = format!("{extents:?} given={given} {tail:?} {precision}");
        self.push(name, Arc::new(op), breadth);
    }

    pub(crate) fn softmax(&mut self) {
        use Breadth::{Groups, Tiles};
        for log in [false, true] {
            for (extents, axis, beta) in [
                (&[1, 1, 1, 1][..], -1, 1.0),
                (&[1], 0, 1.0),
                (&[7], 0, 2.0),
                (&[3, 5], 1, 1.0),
                (&[3, 67], -1, 20.0),
                (&[67, 3], 0, 1.0),
                (&[2, 5, 7, 6], 3, 1.0),
                (&[2, 5, 7, 6], 1, 0.5),
                (&[1, 3, 2, 1030], 3, 3.0),
                (&[2, 1, 13, 33], 2, 1.0),
                (&[2, 3, 2, 131, 2, 3], 3, 1.0),
                (&[66003, 2], 1, 1.0),
            ] {
                let breadth = if extents == [2, 5, 7, 6] { Groups } else { Tiles };
                self.softmax_row(extents, Softmax { axis, beta: Bits(beta), log }, F32, breadth);
            }
            for precision in HALVES {
                self.softmax_row(&[2, 5, 7, 9], Softmax { log, ..Softmax::default() }, precision, Tiles);
            }
        }
    }
}

pub(crate) fn mistakes() -> Vec<Mistake> {
    let bilinear = || -> Problem {
        let options = Resize { half_pixel_centers: true, ..Resize::new(ResizeMode::Bilinear, [9, 14]) };
        Arc::new(resize([2, 5, 7, 6], options, F32))
    };
    let nearest = || -> Problem {
        let options = Resize { align_corners: true, ..Resize::new(ResizeMode::Nearest, [9, 14]) };
        Arc::new(resize([2, 5, 7, 6], options, F32))
    };
    let of = |reduction, extents: &[usize], axes: &[isize]| -> Problem {
        Arc::new(reduce(extents, axes, reduction, F32))
    };
    let pixels = |reduction| of(reduction, &[2, 7, 9, 6], &[1, 2]);
    let rows = |reduction| of(reduction, &[3, 5, 2, 13, 3], &[0, 1, 3]);
    let powers = |axis| -> Problem {
        Arc::new(softmax(&[2, 5, 3, 70], Softmax { axis, beta: Bits(9.0), log: false }, F32))
    };
    let index = |axis| -> Problem { Arc::new(arg(&[2, 5, 3, 70], axis, true)) };
    let up = || -> Problem {
        let options =
            TransposedConv2d { stride: [2, 3], padding: Padding::Same, ..TransposedConv2d::default() };
        Arc::new(transposed([2, 5, 6, 5], [9, 3, 6], options, false, F32))
    };
    let normal = |axes: &[isize]| -> Problem { Arc::new(normalize(&[2, 7, 11, 6], axes, [true, true], F32)) };
    let (c4, nhwc) = (Layout::C4, Layout::Nhwc);
    #[expect(clippy::type_complexity, reason = "a table row, named by the struct it becomes")]
    let rows: Vec<(&str, Problem, &str, [u32; 3], Layout, &str, &str)> = vec![
        ("a corner for a center", bilinear(), "maps", [1, 1, 1], c4, "(f32(at) + 0.5f)", "f32(at)"),
        ("the same row twice", bilinear(), "maps", [1, 1, 1], c4, "u32(ceil(v))", "u32(floor(v))"),
        ("the nearest cut off", nearest(), "maps", [1, 1, 1], c4, "v >= below", "v < below"),
        (
            "the first image for all",
            nearest(),
            "maps",
            [1, 1, 1],
            c4,
            "@src_h * gid.z;",
            "@src_h * (gid.z % 2u);",
        ),
        (
            "every second turn left out",
            pixels(Reduction::Sum),
            "maps_group",
            [8, 4, 1],
            c4,
            "j += LANES",
            "j += 2u * LANES",
        ),
        (
            "an image's neighbour",
            pixels(Reduction::Max),
            "maps_group",
            [8, 4, 1],
            c4,
            "min(first, ",
            "min(first + 1u, ",
        ),
        ("a part not joined", pixels(Reduction::Mean), "maps_group", [8, 4, 1], c4, "lane < 2u", "lane < 1u"),
        (
            "a part of the image before",
            of(Reduction::Mean, &[2, 73, 61, 9], &[1, 2]),
            "maps_last",
            [64, 1, 1],
            c4,
            "group.y * @plane + begin",
            "(max(group.y, 1u) - 1u) * @plane + begin",
        ),
        (
            "one part for another",
            of(Reduction::Max, &[2, 73, 61, 9], &[1, 2]),
            "maps_last",
            [64, 1, 1],
            c4,
            "found[at + 1u]",
            "found[at]",
        ),
        ("the smaller for the larger", rows(Reduction::Max), "group", [1, 8, 1], nhwc, "r1 > v0", "r1 < v0"),
        ("a step of another axis", rows(Reduction::Sum), "group", [1, 8, 1], nhwc, "j % @", "0u * j % @"),
        ("not divided", rows(Reduction::Mean), "group", [1, 8, 1], nhwc, "r1 / f32(", "r1 / f32(1u + 0u * "),
        ("an output for all", rows(Reduction::Min), "group", [8, 8, 1], nhwc, "row % @", "0u * row % @"),
        ("a factor forgotten", powers(2), "group", [1, 128, 1], nhwc, "* f32(@f1)", "* f32(1.0f)"),
        ("neighbours for a line", powers(2), "group", [1, 128, 1], nhwc, "u32 = j;", "u32 = 0u * j;"),
        ("the last of the sum", powers(3), "group", [8, 16, 1], nhwc, "= r6 + ", "= 0.0f * r6 + "),
        ("a result too small", powers(1), "group", [1, 128, 1], nhwc, "= r6;", "= r6 + 0.5f;"),
        (
            "lanes beyond the channels",
            powers(3),
            "maps_group",
            [4, 32, 1],
            c4,
            "vec4<bool>(",
            "vec4<bool>(true) | vec4<bool>(",
        ),
        ("the first slice for all", powers(3), "maps_group", [4, 32, 1], c4, "@n4 * i1", "0u * i1"),
        ("the last of equals", index(2), "group", [1, 128, 1], nhwc, "(at < other_at)", "(at > other_at)"),
        ("the last of a line left out", index(1), "group", [1, 128, 1], nhwc, "j < @n2", "j + 1u < @n2"),
        ("a NaN passed over", index(3), "group", [64, 2, 1], nhwc, "(is_nan(x) & is_number(other)) | ", ""),
        ("any NaN", index(3), "group", [64, 2, 1], nhwc, "(is_nan(x) & is_nan(other)) | ", ""),
        ("any of equals", index(3), "group", [64, 2, 1], nhwc, "is_alike & (at < other_at)", "is_alike"),
        ("half of a work-group", index(3), "group", [64, 2, 1], nhwc, "+ 32u * APART", "+ 0u * APART"),
        (
            "the taps of another phase",
            up(),
            "direct",
            [2, 1, 1],
            c4,
            "(column + @before_w) % STRIDE_W",
            "column % STRIDE_W",
        ),
        ("the last tap left out", up(), "direct", [4, 1, 1], c4, "kx < KERNEL_W", "kx + 1u < KERNEL_W"),
        ("a pixel beyond the row", up(), "direct", [4, 1, 1], c4, "column + 3u * STRIDE_W < @dst_w", "true"),
        ("the row's end read around", up(), "direct", [2, 1, 2], c4, "x1 < @src_w", "x1 != 4294967295u"),
        ("pixels side by side", up(), "direct", [2, 1, 1], c4, "dst0 + 1u * STRIDE_W", "dst0 + 1u"),
        ("a mean of twice as many", normal(&[1, 2]), "maps_group", [16, 4, 1], c4, "/ f32(@", "/ f32(2u * @"),
        ("an origin that stays", normal(&[1, 2]), "kept", [64, 2, 1], c4, "near1 - origin", "near1"),
        (
            "the root of a sum of squares",
            Arc::new(uncentred(&[3, 5, 197], &[2], [true, false], F32)),
            "group",
            [8, 16, 1],
            nhwc,
            "r2 / f32(",
            "r2 / f32(1u + 0u * ",
        ),
        (
            "the first channels' factors",
            normal(&[1, 2]),
            "kept",
            [64, 2, 1],
            c4,
            "weights[slice]",
            "weights[0]",
        ),
        ("a forgotten summand", normal(&[1, 2]), "kept", [64, 2, 1], c4, "@epsilon", "0.1f"),
        ("a pixel in two invocations", normal(&[1, 2]), "kept", [64, 2, 1], c4, "lid.x + 1u * SIZE", "lid.x"),
        ("a deviation forgotten", normal(&[1, 2]), "kept", [64, 2, 1], c4, "x1 - mean", "x1"),
        ("half of a work-group", normal(&[1, 2]), "kept", [64, 2, 1], c4, "lid.x + 32u", "lid.x"),
        ("a forgotten bias", normal(&[0, 2]), "group", [1, 64, 1], nhwc, "= bias[", "= 0.0f * bias["),
        ("a step of another axis", normal(&[0, 2]), "group", [1, 64, 1], nhwc, "j % @", "0u * j % @"),
        (
            "a variance of the sum",
            normal(&[3]),
            "group",
            [1, 128, 1],
            nhwc,
            "r6 / f32(",
            "r6 / f32(1u + 0u * ",
        ),
        (
            "the last invocation's part",
            rows(Reduction::Sum),
            "group",
            [8, 8, 1],
            nhwc,
            "lane < 1u",
            "lane < 0u",
        ),
    ];
    rows.into_iter()
        .map(|(what, problem, variant, tile, layout, from, to)| Mistake {
            what,
            problem,
            variant,
            tile,
            layout,
            from,
            to,
        })
        .collect()
}
