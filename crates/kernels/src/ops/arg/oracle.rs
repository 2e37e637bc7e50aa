//! The indices themselves.

use super::ArgOp;
use crate::ops::reference::Reference;
use crate::word::numbers;

/// The result, which is exact.
pub(super) fn oracle(op: &ArgOp, src: &[f32]) -> Reference {
    let [outer, count, inner] = op.extents();
    let src = numbers(op.dtype, src);
    let index = |line: usize| {
        let at = |k: usize| src.get((line / inner * count + k) * inner + line % inner).copied();
        let better = |best: usize, k: usize| match (at(k), at(best)) {
            (Some(x), Some(other)) if op.reduction.takes(x, other) => k,
            _ => best,
        };
        (1..count).fold(0, better) as f64
    };
    Reference::exact((0..outer * inner).map(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::ops::arg::ArgReduce;

    fn of(largest: bool, axis: isize, src: &[f32]) -> Vec<f64> {
        let options = ArgReduce { largest, axis, keep_dims: false };
        let op = ArgOp::new(Dims::new(&[2, 3]).expect("small"), &options).expect("indices");
        oracle(&op, src).value().to_vec()
    }

    #[test]
    fn the_first_of_equals_is_found() {
        let src = [3.0, 5.0, 5.0, 7.0, -1.0, -1.0];
        assert_eq!(of(true, 1, &src), [1.0, 0.0]);
        assert_eq!(of(false, -1, &src), [0.0, 1.0]);
        assert_eq!(of(true, 0, &src), [1.0, 0.0, 0.0]);
        let nan = f32::NAN;
        for largest in [true, false] {
            assert_eq!(of(largest, 1, &[nan, 5.0, 6.0, 1.0, nan, nan]), [0.0, 1.0]);
        }
        let long = Dims::new(&[1 << 25]).expect("small");
        assert!(ArgOp::new(long, &ArgReduce { largest: true, axis: 0, keep_dims: true }).is_err());
    }
}
