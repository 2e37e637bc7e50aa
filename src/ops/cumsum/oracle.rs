//! Each sum by itself, in f64.

use super::CumSumOp;
use crate::ops::reference::{Reference, Sum};

/// The sums of `src`.
pub(super) fn oracle(op: &CumSumOp, src: &[f32]) -> Reference {
    let (extent, inner) = (op.extent(), op.inner());
    let mut sum = Sum { terms: extent, ..Sum::default() };
    for element in 0..op.dims.elements() {
        let (n, at, outer) = (element % inner, element / inner % extent, element / inner / extent);
        let skipped = usize::from(op.exclusive);
        let terms = if op.reverse { at + skipped..extent } else { 0..at + 1 - skipped };
        let values = terms.filter_map(|at| src.get((outer * extent + at) * inner + n).copied());
        let (mut value, mut magnitude) = (0.0, 0.0);
        for term in values.map(f64::from) {
            value += term;
            magnitude += term.abs();
        }
        sum.value.push(value);
        sum.magnitude.push(magnitude);
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
