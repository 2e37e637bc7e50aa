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
        sorted::sort_by_key(&mut places, |&place| std::cmp::Reverse(keys[place]));
        let largest = places.iter().take(k);
        value.extend(largest.map(|&place| if op.indices { place as f64 } else { row[place] }));
    }
    Reference::Bounded { bound: vec![0.0; value.len()], value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::ops::top_k::TopK;

    #[test]
    fn the_first_of_equal_elements_comes_first_and_nan_before_all() {
        let of = |k, indices| {
            let op = TopKOp::new(Dims::new(&[2, 4]).expect("small"), TopK { k, indices }).expect("enough");
            oracle(&op, &[1.0, 3.0, 3.0, -2.0, -0.0, f32::NAN, 0.0, f32::INFINITY]).value().to_vec()
        };
        assert_eq!(of(3, true), [1.0, 2.0, 0.0, 1.0, 3.0, 0.0]);
        assert_eq!(of(2, false)[..2], [3.0, 3.0]);
        assert!(of(1, false)[1].is_nan());
        let refused = |extents: &[usize], k| {
            let dims = Dims::new(extents).expect("small");
            TopKOp::new(dims, TopK { k, indices: false }).expect_err("refused").to_string()
        };
        assert!(refused(&[2, 4], 5).contains("the 5 largest of 2x4"));
        assert!(refused(&[2, 4], 0).contains("at least 1"));
        assert!(refused(&[], 1).contains("scalar"));
    }
}
