//! The change of layout, element by element.

use super::ConvertOp;
use crate::layout::Layout;
use crate::shape::Shape;

/// The elements of `src` in the order of the op's target layout, the lanes beyond the channels
/// zero. Exact: nothing is rounded.
///
/// # Panics
/// If `src` is shorter than the op's shape in its source layout. This is a test's yardstick, not a
/// backend.
pub fn oracle(op: &ConvertOp, src: &[f32]) -> Vec<f32> {
    let Shape { n, h, w, c } = op.shape;
    let padded = c.div_ceil(4) * 4;
    let lanes = match op.to {
        Layout::Nhwc | Layout::Nchw => c,
        Layout::C4 | Layout::Image2d => padded,
    };
    let mut dst = vec![0.0; n * h * w * lanes];
    for b in 0..n {
        for i in 0..h {
            for j in 0..w {
                for k in 0..c {
                    let from = place(op.from, op.shape, [b, i, j, k]);
                    let part = op.ranges().find(|&(first, channels)| (first..first + channels).contains(&k));
                    let to = match part {
                        None => place(op.to, op.shape, [b, i, j, k]),
                        Some((first, channels)) => {
                            let own = Shape { c: channels, ..op.shape };
                            n * h * w * first + place(op.to, own, [b, i, j, k - first])
                        }
                    };
                    dst[to] = src[from];
                }
            }
        }
    }
    dst
}

/// Where the table of [`Layout`] puts element `(b, i, j, k)`.
fn place(layout: Layout, shape: Shape, [b, i, j, k]: [usize; 4]) -> usize {
    let slices = shape.c.div_ceil(4);
    match layout {
        Layout::Nhwc => ((b * shape.h + i) * shape.w + j) * shape.c + k,
        Layout::Nchw => ((b * shape.c + k) * shape.h + i) * shape.w + j,
        Layout::C4 => 4 * (((b * slices + k / 4) * shape.h + i) * shape.w + j) + k % 4,
        Layout::Image2d => 4 * (((b * shape.h + i) * slices + k / 4) * shape.w + j) + k % 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;

    const LAYOUTS: [Layout; 4] = [Layout::Nhwc, Layout::Nchw, Layout::C4, Layout::Image2d];

    #[test]
    fn five_channels_take_two_slices() {
        let shape = Shape::nhwc(1, 1, 2, 5);
        let op = ConvertOp::new(shape, Layout::Nhwc, Layout::C4, Precision::F32).expect("a conversion");
        let src: Vec<f32> = (1..=10).map(|value| value as f32).collect();
        let expected = [1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 5.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 0.0];
        assert_eq!(oracle(&op, &src), expected);
    }

    #[test]
    fn parts_lie_one_behind_the_other() {
        let shape = Shape::nhwc(1, 1, 2, 5);
        let op = ConvertOp::parts(shape, &[2, 3], Precision::F32).expect("two parts");
        let nhwc: Vec<f32> = (1..=10).map(|value| value as f32).collect();
        let through = ConvertOp::new(shape, Layout::Nhwc, Layout::C4, Precision::F32).expect("to C4");
        let expected = [1.0, 2.0, 6.0, 7.0, 3.0, 4.0, 5.0, 8.0, 9.0, 10.0];
        assert_eq!(oracle(&op, &oracle(&through, &nhwc)), expected);
        for wrong in [&[5][..], &[2, 2], &[0, 5], &[2, 3, 0], &[1; 9]] {
            assert!(ConvertOp::parts(shape, wrong, Precision::F32).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_oracle_agrees_with_the_layouts_own_index() {
        for shape in [Shape::nhwc(2, 3, 5, 7), Shape::nhwc(1, 1, 1, 1), Shape::nhwc(3, 2, 4, 8)] {
            for from in LAYOUTS {
                for to in LAYOUTS {
                    let Ok(op) = ConvertOp::new(shape, from, to, Precision::F32) else { continue };
                    let src: Vec<f32> = (0..from.elements(&shape)).map(|value| value as f32).collect();
                    let dst = oracle(&op, &src);
                    assert_eq!(dst.len(), to.elements(&shape));
                    for k in 0..shape.c {
                        for j in 0..shape.w {
                            let (n, h) = (shape.n - 1, shape.h - 1);
                            assert_eq!(
                                dst[to.index(&shape, n, h, j, k)],
                                src[from.index(&shape, n, h, j, k)],
                                "{shape} {from} to {to}"
                            );
                        }
                    }
                }
            }
        }
    }
}
