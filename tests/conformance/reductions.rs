//! Rows of the table, and planted mistakes, of the ops that resize, reduce and normalise.

use crate::cases::{Breadth, Table};
use crate::planted::Mistake;
use crate::problem::Problem;
use diptych::ops::reduce::ReduceOp;
use diptych::ops::resize::ResizeOp;
use diptych::{Dims, Layout, Precision, Reduce, Reduction, Resize, ResizeMode, Shape};
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
        self.reduce_row(&[2, 19, 9, 10], &[1], Reduction::Sum, F32, Groups);
        self.reduce_row(&[2, 5, 9, 10], &[2, 3], Reduction::Sum, F32, Groups);
        for precision in HALVES {
            for reduction in Reduction::ALL {
                self.reduce_row(&[2, 7, 9, 6], &[1, 2], reduction, precision, Tiles);
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
            "the last of a line left out",
            pixels(Reduction::Sum),
            "maps",
            [1, 1, 1],
            c4,
            "k < @reduced_w",
            "k + 1u < @reduced_w",
        ),
        (
            "an image's neighbour",
            pixels(Reduction::Max),
            "maps",
            [1, 1, 1],
            c4,
            "(n * @slices + slice)",
            "(n + slice)",
        ),
        (
            "a part not joined",
            pixels(Reduction::Mean),
            "maps_group",
            [64, 1, 1],
            c4,
            "lid.x < 32u",
            "lid.x < 16u",
        ),
        (
            "all but the last",
            pixels(Reduction::Product),
            "maps_group",
            [64, 1, 1],
            c4,
            "i < count",
            "i + 1u < count",
        ),
        (
            "a maximum above zero",
            of(Reduction::Max, &[9, 1], &[1]),
            "serial",
            [1, 1, 1],
            nhwc,
            "b > a",
            "b > abs(a)",
        ),
        (
            "a step of another axis",
            rows(Reduction::Sum),
            "serial",
            [1, 1, 1],
            nhwc,
            "i * @reduced_step0",
            "i * @reduced_step1",
        ),
        ("not divided", rows(Reduction::Mean), "serial", [1, 1, 1], nhwc, "result / f32(@count)", "result"),
        (
            "an output for all",
            rows(Reduction::Min),
            "group",
            [64, 1, 1],
            nhwc,
            "out % @kept2 * @kept_step2",
            "0u",
        ),
        ("the last invocation's part", rows(Reduction::Sum), "group", [64, 1, 1], nhwc, "+ 1u]", "]"),
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
