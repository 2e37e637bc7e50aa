//! The elements themselves.

use super::CopyOp;
use crate::ops::reference::Reference;

/// The result, which is exact.
pub(super) fn oracle(op: &CopyOp, src: &[f32]) -> Reference {
    let taken = src.iter().skip(op.first).take(op.target.elements());
    let value: Vec<f64> = taken.map(|&value| f64::from(value)).collect();
    Reference::Bounded { bound: vec![0.0; value.len()], value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    #[test]
    fn elements_are_counted_from_the_first_that_is_taken() {
        let op = CopyOp::new(Shape::nhwc(1, 1, 2, 4), 3, Shape::nhwc(1, 1, 1, 4)).expect("within");
        let reference = oracle(&op, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(reference.value(), [3.0, 4.0, 5.0, 6.0]);
        assert!(CopyOp::new(Shape::nhwc(1, 1, 2, 4), 5, Shape::nhwc(1, 1, 1, 4)).is_err());
        assert!(CopyOp::new(Shape::nhwc(1, 1, 2, 4), usize::MAX, Shape::nhwc(1, 1, 1, 4)).is_err());
    }
}
