//! The change of layout, element by element.

use super::ConvertOp;
use crate::layout::Layout;
use crate::shape::Shape;

/// The elements of `src` in the order of the op's target. A map that lies in C4 or an image is NHWC on
/// the host; the others are as they lie. Exact: nothing is rounded.
pub(super) fn moved(op: &ConvertOp, src: &[f32]) -> Vec<f32> {
    let Shape { n, h, w, c } = op.shape;
    let mut dst = vec![0.0; op.shape.elements()];
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
                    if let (Some(slot), Some(&value)) = (dst.get_mut(to), src.get(from)) {
                        *slot = value;
                    }
                }
            }
        }
    }
    dst
}

/// Where element `(b, i, j, k)` of a map in `layout` lies on the host.
fn place(layout: Layout, shape: Shape, [b, i, j, k]: [usize; 4]) -> usize {
    match layout {
        Layout::Nchw => ((b * shape.c + k) * shape.h + i) * shape.w + j,
        // Maps have the order of rows on the host, whatever their layout on a device.
        _ => ((b * shape.h + i) * shape.w + j) * shape.c + k,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Operand;
    use crate::layout::Form;
    use crate::ops::Op as _;

    const SHAPE: Shape = Shape::nhwc(1, 1, 2, 5);

    #[test]
    fn five_channels_take_two_slices() {
        let op = ConvertOp::new(SHAPE, Layout::Nhwc, Layout::C4, Precision::F32).expect("a conversion");
        let src: Vec<f32> = (1..=10).map(|value| value as f32).collect();
        assert_eq!(moved(&op, &src), src);
        let expected = [1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 5.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 0.0];
        let dst = op.operands()[1];
        assert_eq!(dst.operand, Operand::Dst);
        assert_eq!(dst.stored(Form::C4, &src, 0.0).expect("ten values"), expected);
    }

    #[test]
    fn planes_come_before_rows() {
        let op = ConvertOp::new(SHAPE, Layout::Nchw, Layout::C4, Precision::F32).expect("a conversion");
        let planes = [1.0, 6.0, 2.0, 7.0, 3.0, 8.0, 4.0, 9.0, 5.0, 10.0];
        let rows: Vec<f32> = (1..=10).map(|value| value as f32).collect();
        assert_eq!(moved(&op, &planes), rows);
        let back = ConvertOp::new(SHAPE, Layout::C4, Layout::Nchw, Precision::F32).expect("a conversion");
        assert_eq!(moved(&back, &rows), planes);
    }

    #[test]
    fn parts_lie_one_behind_the_other() {
        let op = ConvertOp::parts(SHAPE, &[2, 3], Precision::F32).expect("two parts");
        let nhwc: Vec<f32> = (1..=10).map(|value| value as f32).collect();
        assert_eq!(moved(&op, &nhwc), [1.0, 2.0, 6.0, 7.0, 3.0, 4.0, 5.0, 8.0, 9.0, 10.0]);
        for wrong in [&[5][..], &[2, 2], &[0, 5], &[2, 3, 0], &[1; 9]] {
            assert!(ConvertOp::parts(SHAPE, wrong, Precision::F32).is_err(), "{wrong:?}");
        }
    }
}
