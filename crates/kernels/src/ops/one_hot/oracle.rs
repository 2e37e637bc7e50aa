//! The encoding, each element by itself.

use super::OneHotOp;
use crate::ops::reference::Reference;

/// The encoding of `indices`, which is exact.
pub(super) fn oracle(op: &OneHotOp, indices: &[f32]) -> Reference {
    let (depth, inner) = (op.depth(), op.inner());
    Reference::exact((0..op.target.elements()).map(|element| {
        let (n, row) = (element % inner, element / inner);
        let index = indices.get(row / depth * inner + n).copied().unwrap_or(f32::NAN);
        let on = f64::from(index) == (row % depth) as f64;
        f64::from(if on { op.on.0 } else { op.off.0 })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::emit::Bits;
    use crate::ops::one_hot::OneHot;

    fn of(axis: isize) -> crate::error::Result<OneHotOp> {
        let options = OneHot { depth: 3, on: Bits(5.0), off: Bits(-1.0), axis };
        OneHotOp::new(Dims::new(&[2]).expect("small"), options)
    }

    #[test]
    fn an_index_is_where_the_value_is() {
        let value = |axis, indices: &[f32]| oracle(&of(axis).expect("an axis"), indices).value().to_vec();
        assert_eq!(value(-1, &[2.0, 0.0]), [-1.0, -1.0, 5.0, 5.0, -1.0, -1.0]);
        assert_eq!(value(0, &[2.0, 0.0]), [-1.0, 5.0, -1.0, -1.0, 5.0, -1.0]);
        assert_eq!(value(0, &[3.0, f32::NAN]), [-1.0; 6]);
        assert!(of(2).expect_err("rank 2").to_string().contains("-2 to 1"));
        assert!(of(-3).is_err());
    }
}
