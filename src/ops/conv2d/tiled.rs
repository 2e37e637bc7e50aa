//! `tiled`: a matrix product of pixels and output channels from local memory (`ops/tiled.rs`), on a grid of
//! slices x pixels of all images x layers.
//!
//! Weights are packed as `[kh][kw][input slice][lane][slice][4]`.

use super::Conv2dOp;
use super::arguments::{pack_rows, params, slices};
use crate::emit::Operand;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params};
use crate::ops::split;
use crate::ops::tiled::{self, Extents};

#[derive(Debug)]
pub(super) struct Tiled;

impl Kernel<Conv2dOp> for Tiled {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("tiled", crate::emit::text!("../../../shaders/conv2d/tiled.wgsl"))
            .with_ordinary(Ordinary::Convolution)
    }

    fn offers(&self, op: &Conv2dOp, limits: &Limits) -> Vec<Offer> {
        if op.0.groups > 1 || op.0.input.slices() == 1 {
            return Vec::new();
        }
        offers(if split::first(limits) { 3 } else { 4 }, tiled::tiles(Extents::of(&op.0)))
    }

    fn grid(&self, op: &Conv2dOp, tile: [u32; 3]) -> [u32; 3] {
        tiled::grid(tile, Extents::of(&op.0))
    }

    fn choice_obstacle(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Option<String> {
        tiled::obstacle(choice, Extents::of(&op.0), op.0.precision, limits)
    }

    fn work_groups(&self, op: &Conv2dOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        tiled::work_groups(tile, Extents::of(&op.0))
    }

    fn untuned(&self, _op: &Conv2dOp, limits: &Limits) -> bool {
        !limits.has_lanes()
    }

    fn params(&self, op: &Conv2dOp, choice: &Choice) -> Params {
        params(&op.0, choice.tile, &["dst_tiles", "src_slices", "src_c4"])
    }

    fn constants(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Constants {
        let own = tiled::constants(choice, Extents::of(&op.0), op.0.precision, true, limits);
        [spec::window_constants(&op.0), own].concat()
    }

    fn pack(&self, op: &Conv2dOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        match operand {
            Operand::Weights => pack_rows(&op.0, op.0.input.slices(), data),
            _ => spec::pack_channels(data, slices(&op.0, choice.tile)),
        }
    }

    fn effort(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Option<Effort> {
        tiled::effort(choice, &op.0, limits)
    }
}
