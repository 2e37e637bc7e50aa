//! Running sums along each line, in f64.

use super::CumSumOp;
use crate::dtype::DType;
use crate::ops::reference::{Reference, Sum};
use crate::word;

/// The sums of integers, each of them exact.
fn of_integers(op: &CumSumOp, src: &[f32]) -> Reference {
    let terms = word::integers(op.dtype, src);
    let sums = word::integers(op.dtype, &word::of_integers(op.dtype, op.sums(&terms).into_iter()));
    Reference::exact(sums.into_iter().map(|sum| sum as f64))
}

/// The sums of `src`.
pub(super) fn oracle(op: &CumSumOp, src: &[f32]) -> Reference {
    if op.dtype != DType::F32 {
        return of_integers(op, src);
    }
    let (extent, inner, elements) = (op.extent(), op.inner(), op.dims.elements());
    let mut sum =
        Sum { terms: extent, value: vec![0.0; elements], magnitude: vec![0.0; elements], ..Sum::default() };
    for first in (0..elements).filter(|element| element / inner % extent == 0) {
        let (mut value, mut magnitude) = (0.0, 0.0);
        for step in 0..extent {
            let place = first + inner * if op.reverse { extent - 1 - step } else { step };
            let term = src.get(place).copied().map_or(0.0, f64::from);
            let before = (value, magnitude);
            value += term;
            magnitude += term.abs();
            let stored = if op.exclusive { before } else { (value, magnitude) };
            (sum.value[place], sum.magnitude[place]) = stored;
        }
    }
    Reference::Sum(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::ops::cumsum::CumSum;

    #[test]
    fn sums_are_with_or_without_the_element_from_either_end() {
        let of = |extents: &[usize], axis, exclusive, reverse| {
            let options = CumSum { axis, exclusive, reverse };
            let op = CumSumOp::new(Dims::new(extents).expect("small"), options).expect("an axis");
            oracle(&op, &[1.0, 2.0, 3.0, 4.0]).value().to_vec()
        };
        assert_eq!(of(&[4], 0, false, false), [1.0, 3.0, 6.0, 10.0]);
        assert_eq!(of(&[4], 0, true, false), [0.0, 1.0, 3.0, 6.0]);
        assert_eq!(of(&[4], 0, false, true), [10.0, 9.0, 7.0, 4.0]);
        assert_eq!(of(&[4], -1, true, true), [9.0, 7.0, 4.0, 0.0]);
        assert_eq!(of(&[2, 2], 0, false, false), [1.0, 2.0, 4.0, 6.0]);
    }
}
