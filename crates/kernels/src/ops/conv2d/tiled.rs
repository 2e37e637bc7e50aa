//! `tiled`: a matrix product of pixels and output channels from local memory (`ops/tiled.rs`), on a grid of
//! slices x pixels of all images x layers.

use super::arguments::OF_PRODUCTS;
use crate::ops::kernel::{Ordinary, VariantEntry};
use crate::ops::map_product::Tiled;

pub(super) const TILED: Tiled = Tiled {
    entry: VariantEntry::wgsl("tiled", crate::emit::text!("../../../shaders/conv2d/tiled.wgsl"))
        .with_ordinary(Ordinary::Convolution),
    preference: [3, 4],
    given: OF_PRODUCTS,
    padded: 2,
};
