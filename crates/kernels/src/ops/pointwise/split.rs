//! `split`: a sum that the layers of a work-group share (`ops/split.rs`), on a grid of pixels x slices x
//! (layers * batch).

use super::micro::OF_PRODUCTS;
use crate::ops::kernel::{Ordinary, VariantEntry};
use crate::ops::map_product::Split;

pub(super) const SPLIT: Split = Split {
    entry: VariantEntry::wgsl("split", crate::emit::text!("../../../shaders/pointwise/split.wgsl"))
        .with_ordinary(Ordinary::Convolution),
    preference: [0, 1],
    // Odd extents leave neighbours in different banks and a map of few pixels less ragged: measured on an H200, maps of
    // 9 to 129 pixels a side.
    tiles: &[[6, 1], [3, 1], [6, 2], [5, 1], [4, 1]],
    small_tiles: &[[1, 1]],
    given: OF_PRODUCTS,
    padded: 1,
};
