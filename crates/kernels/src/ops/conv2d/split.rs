//! `split`: a sum that the layers of a work-group share (`ops/split.rs`), on a grid of pixels x slices x
//! (layers * batch).

use super::arguments::params;
use crate::ops::kernel::{Ordinary, VariantEntry};
use crate::ops::map_product::Split;
use crate::ops::spec::unsigned;
use crate::ops::split;
use crate::ops::text_arguments::TextArguments;

pub(super) const SPLIT: Split = Split {
    entry: VariantEntry::wgsl("split", crate::emit::text!("../../../shaders/conv2d/split.wgsl"))
        .with_ordinary(Ordinary::Convolution),
    preference: [2, 3],
    tiles: &[[4, 1], [4, 2], [2, 2]],
    small_tiles: &[],
    given: TextArguments {
        windows: true,
        params: |problem, tile| {
            let mut params = params(problem, tile, &["dst_tiles", "src_slices"]);
            params.push(("src_slices", unsigned(split::padded(problem.input.slices(), tile))));
            params
        },
    },
    padded: 2,
};
