//! Pixel by pixel, mixed in f64 at coordinates that are computed as the op says, in f32.
//!
//! Let `M` be the largest magnitude among the pixels that may be mixed, and `v = 2u` (see `ops/tolerance.rs`). A
//! coordinate passes at most three roundings, of values up to the input's extent `h`, and a compiler may leave some of
//! them out: it is off by at most `4 v h` of a pixel, which moves a result by at most `2 M` times that. Where it is as
//! near to a pixel, the next one beyond may be mixed instead; if that is no finite number, any result is right. A mean of two passes five roundings (the weight's, two products', the sum's, and the
//! other weight's), that of four twice as many. Stored halves were rounded once before, and the result is once
//! more. The nearest pixel is exact, but for the store.

use super::{ResizeMode, ResizeOp};
use crate::dtype::DType;
use crate::ops::reference::Reference;
use crate::ops::tolerance::smallest_normal;

/// The result, in NHWC order.
pub(super) fn oracle(op: &ResizeOp, src: &[f32]) -> Reference {
    let (x, y) = (op.input, op.output);
    let at = |n: usize, i: usize, j: usize, c: usize| {
        f64::from(src.get(((n * x.h + i) * x.w + j) * x.c + c).copied().unwrap_or_default())
    };
    let unit = 2.0 * DType::F32.unit_roundoff();
    let halves = op.precision.storage() == DType::F16;
    let (store, tiny) = if halves {
        (2.0 * DType::F16.unit_roundoff(), smallest_normal(DType::F16))
    } else {
        (0.0, smallest_normal(DType::F32))
    };
    let bilinear = op.options.mode == ResizeMode::Bilinear;
    let moved = 2.0 * 4.0 * unit * (x.h + x.w) as f64;
    let (mut value, mut bound) = (Vec::new(), Vec::new());
    for pixel in 0..y.n * y.h * y.w {
        let (n, i, j) = (pixel / (y.h * y.w), pixel / y.w % y.h, pixel % y.w);
        let (v, u) = (op.source(0, i), op.source(1, j));
        for c in 0..y.c {
            if !bilinear {
                let nearest = at(n, v.first, u.first, c);
                value.push(nearest);
                bound.push(if halves { store * nearest.abs() + tiny } else { 0.0 });
                continue;
            }
            let mix = |a: f64, b: f64, part: f32| a * (1.0 - f64::from(part)) + b * f64::from(part);
            let row = |i: usize| mix(at(n, i, u.first, c), at(n, i, u.second, c), u.part);
            let mixed = mix(row(v.first), row(v.second), v.part);
            // What may be mixed, and whether that is more than is mixed without rounding.
            let around = |source: super::Neighbours, extent: usize| {
                let off = 4.0 * unit * extent as f64;
                let (down, up) = (f64::from(source.part) <= off, f64::from(source.part) >= 1.0 - off);
                let first = if down { source.first.saturating_sub(1) } else { source.first };
                let second = if down { source.first + 1 } else { source.second + usize::from(up) };
                let reached = first..=second.min(extent - 1);
                let more = reached != (source.first..=source.second);
                (reached, more)
            };
            let ((rows, more_rows), (columns, more_columns)) = (around(v, x.h), around(u, x.w));
            let pixels = rows.flat_map(|i| columns.clone().map(move |j| (i, j)));
            let mut finite = true;
            let largest = pixels.fold(0.0, |largest, (i, j)| {
                finite &= at(n, i, j, c).is_finite();
                f64::max(largest, at(n, i, j, c).abs())
            });
            value.push(mixed);
            if !finite && (more_rows || more_columns) {
                bound.push(f64::INFINITY);
                continue;
            }
            let error = largest * (moved + 12.0 * unit + store) + 12.0 * tiny;
            bound.push(error + store * (mixed.abs() + error));
        }
    }
    Reference::Bounded { value, bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::resize::Resize;
    use crate::shape::Shape;

    /// Of the row `1 2 4`.
    fn resized(options: Resize) -> Vec<f64> {
        let op = ResizeOp::new(Shape::nhwc(1, 1, 3, 1), &options, Precision::F32).expect("a resize");
        oracle(&op, &[1.0, 2.0, 4.0]).value().to_vec()
    }

    #[test]
    fn centers_and_corners_lie_where_tensorflow_lite_has_them() {
        let plain = Resize::new(ResizeMode::Bilinear, [1, 6]);
        assert_eq!(resized(plain), [1.0, 1.5, 2.0, 3.0, 4.0, 4.0]);
        let half_pixel_centers = true;
        assert_eq!(resized(Resize { half_pixel_centers, ..plain }), [1.0, 1.25, 1.75, 2.5, 3.5, 4.0]);
        let align_corners = true;
        assert_eq!(resized(Resize { size: [1, 5], align_corners, ..plain }), [1.0, 1.5, 2.0, 3.0, 4.0]);
        let nearest = Resize::new(ResizeMode::Nearest, [1, 2]);
        assert_eq!(resized(nearest), [1.0, 2.0]);
        assert_eq!(resized(Resize { half_pixel_centers, ..nearest }), [1.0, 4.0]);
        assert_eq!(resized(Resize { align_corners, ..nearest }), [1.0, 4.0]);
        // Halves are rounded up: the second of five lies at 1/2, the fourth at 3/2.
        let four = Resize { size: [1, 5], align_corners, ..nearest };
        assert_eq!(resized(four), [1.0, 2.0, 2.0, 4.0, 4.0]);
    }

    #[test]
    fn what_is_no_number_bounds_nothing_where_rounding_may_reach_it() {
        let options = Resize { half_pixel_centers: true, ..Resize::new(ResizeMode::Bilinear, [1, 6]) };
        let op = ResizeOp::new(Shape::nhwc(1, 1, 2, 1), &options, Precision::F32).expect("a resize");
        let reference = oracle(&op, &[1.0, f32::NAN]);
        let Reference::Bounded { value, bound } = reference else { panic!("bounds") };
        // At 0, where -1/3 is moved to, 0, 1/3, 2/3, 1 and 1.
        let unbounded: Vec<bool> = bound.iter().map(|bound| bound.is_infinite()).collect();
        assert_eq!(unbounded, [true, true, false, false, true, true], "{bound:?}");
        assert!(value[2].is_nan() && value[3].is_nan(), "{value:?}");
        let Reference::Bounded { bound, .. } = oracle(&op, &[1.0, 2.0]) else { panic!("bounds") };
        assert!(bound.iter().all(|bound| *bound < 1e-5), "{bound:?}");
    }

    #[test]
    fn aligned_corners_between_half_pixel_centers_are_refused() {
        let both = Resize {
            align_corners: true,
            half_pixel_centers: true,
            ..Resize::new(ResizeMode::Bilinear, [2, 2])
        };
        let of = |options: &Resize| ResizeOp::new(Shape::nhwc(1, 3, 3, 1), options, Precision::F32);
        assert!(of(&both).expect_err("refused").to_string().contains("half-pixel centers"));
        assert!(of(&Resize { mode: ResizeMode::Nearest, ..both }).is_ok());
        assert!(of(&Resize::new(ResizeMode::Nearest, [0, 2])).is_err());
        assert!(of(&Resize::new(ResizeMode::Nearest, [1 << 21, 1])).is_err());
    }
}
