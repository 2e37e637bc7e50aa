//! Each row, sorted.

use super::TopKOp;
use crate::ops::reference::Reference;
use crate::sorted;
use crate::word::numbers;

/// The result, which is exact.
pub(super) fn oracle(op: &TopKOp, src: &[f32]) -> Reference {
    let [extent, k] = op.extents();
    let (keys, src) = (op.keys(src), numbers(op.dtype, src));
    let mut value = Vec::with_capacity(op.target.elements());
    for (row, keys) in src.chunks(extent).zip(keys.chunks(extent)) {
        let mut places: Vec<usize> = (0..row.len()).collect();
        sorted::sort_by_key(&mut places, |&place| keys[place]);
        let chosen = places.iter().take(k);
        value.extend(chosen.map(|&place| if op.indices { place as f64 } else { row[place] }));
    }
    Reference::Bounded { bound: vec![0.0; value.len()], value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::ops::top_k::TopK;

    #[test]
    fn the_first_of_equal_elements_comes_first_and_nan_is_larger_than_all() {
        let of = |k, largest, indices| {
            let options = TopK { k, largest, indices };
            let op = TopKOp::new(Dims::new(&[2, 4]).expect("small"), options).expect("enough");
            oracle(&op, &[1.0, 3.0, 3.0, -2.0, -0.0, f32::NAN, 0.0, f32::INFINITY]).value().to_vec()
        };
        assert_eq!(of(3, true, true), [1.0, 2.0, 0.0, 1.0, 3.0, 0.0]);
        assert_eq!(of(2, true, false)[..2], [3.0, 3.0]);
        assert!(of(1, true, false)[1].is_nan());
        assert_eq!(of(4, false, true), [3.0, 0.0, 1.0, 2.0, 0.0, 2.0, 3.0, 1.0]);
        assert_eq!(of(3, false, false), [-2.0, 1.0, 3.0, 0.0, 0.0, f64::INFINITY]);
        let refused = |extents: &[usize], k| {
            let dims = Dims::new(extents).expect("small");
            TopKOp::new(dims, TopK { k, largest: true, indices: false }).expect_err("refused").to_string()
        };
        assert!(refused(&[2, 4], 5).contains("the 5 largest of 2x4"));
        assert!(refused(&[], 1).contains("scalar"));
    }
}
