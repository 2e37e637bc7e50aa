//! `tiled`: a matrix product of pixels and output channels from local memory (`ops/tiled.rs`), on a grid of
//! slices x pixels of all images x layers.
//!
//! Weights are packed as the rows of a matrix, `[input slice][lane][slice][4]`.

use super::PointwiseOp;
use super::micro::{params, slices};
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

impl Kernel<PointwiseOp> for Tiled {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("tiled", crate::emit::text!("../../../shaders/pointwise/tiled.wgsl"))
            .with_ordinary(Ordinary::Convolution)
    }

    fn offers(&self, op: &PointwiseOp, limits: &Limits) -> Vec<Offer> {
        offers(if split::first(limits) { 1 } else { 2 }, tiled::tiles(Extents::of(&op.0)))
    }

    fn grid(&self, op: &PointwiseOp, tile: [u32; 3]) -> [u32; 3] {
        tiled::grid(tile, Extents::of(&op.0))
    }

    fn choice_obstacle(&self, op: &PointwiseOp, choice: &Choice, limits: &Limits) -> Option<String> {
        tiled::obstacle(choice, Extents::of(&op.0), op.0.precision, limits)
    }

    fn work_groups(&self, op: &PointwiseOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        tiled::work_groups(tile, Extents::of(&op.0))
    }

    fn untuned(&self, _op: &PointwiseOp, limits: &Limits) -> bool {
        !limits.has_lanes()
    }

    fn params(&self, op: &PointwiseOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &PointwiseOp, choice: &Choice, limits: &Limits) -> Constants {
        tiled::constants(choice, Extents::of(&op.0), op.0.precision, false, limits)
    }

    fn pack(&self, op: &PointwiseOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        if operand != Operand::Weights {
            return spec::pack_channels(data, slices(&op.0, choice.tile[0]));
        }
        spec::pack_rows(data, op.0.input.c, op.0.output.slices(), op.0.input.slices())
    }

    fn effort(&self, op: &PointwiseOp, choice: &Choice, limits: &Limits) -> Option<Effort> {
        tiled::effort(choice, &op.0, limits)
    }
}
