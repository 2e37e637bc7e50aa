//! `split`: a sum that the layers of a work-group share (`ops/split.rs`), on a grid of pixels x slices x
//! (layers * batch).
//!
//! Weights are packed as the rows of a matrix, `[input slice][lane][slice][4]`, with rows of zeros up to a
//! whole number of steps.

use super::PointwiseOp;
use super::micro::{grid, params, slices};
use crate::emit::Operand;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::Registers;
use crate::ops::spec::{self, Params};
use crate::ops::split;

/// Pixels and slices per invocation, the most useful first. Odd extents leave neighbours in different
/// banks and a map of few pixels less ragged: measured on an H200, maps of 9 to 129 pixels a side.
const TILES: [[u32; 2]; 5] = [[6, 1], [3, 1], [6, 2], [5, 1], [4, 1]];

#[derive(Debug)]
pub(super) struct Split;

impl Kernel<PointwiseOp> for Split {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("split", crate::emit::text!("../../../shaders/pointwise/split.wgsl"))
            .with_ordinary(Ordinary::Convolution)
    }

    fn offers(&self, op: &PointwiseOp, limits: &Limits) -> Vec<Offer> {
        let sources = op.0.input.slices();
        let preference = if split::first(limits) { 0 } else { 1 };
        // The second for a few pixels and channels, as in a network's last layer.
        [offers(preference, split::tiles(&TILES, sources)), offers(3, split::tiles(&[[1, 1]], sources))]
            .concat()
    }

    fn grid(&self, op: &PointwiseOp, tile: [u32; 3]) -> [u32; 3] {
        grid(op, tile)
    }

    fn choice_obstacle(&self, op: &PointwiseOp, choice: &Choice, limits: &Limits) -> Option<String> {
        split::obstacle(choice, op.0.precision, limits)
    }

    fn work_groups(&self, _op: &PointwiseOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        split::work_groups(tile[2])
    }

    fn untuned(&self, _op: &PointwiseOp, limits: &Limits) -> bool {
        !limits.has_lanes()
    }

    fn params(&self, op: &PointwiseOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &PointwiseOp, choice: &Choice, _limits: &Limits) -> Constants {
        split::constants(op.0.input.slices(), choice)
    }

    fn pack(&self, op: &PointwiseOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        if operand != Operand::Weights {
            return spec::pack_channels(data, slices(&op.0, choice.tile[1]));
        }
        let rows = split::padded(op.0.input.slices(), choice.tile);
        spec::pack_rows(data, op.0.input.c, op.0.output.slices(), rows)
    }

    fn registers(&self, op: &PointwiseOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        self.effort(op, choice, limits).map(|effort| split::registers(choice, &effort, limits))
    }

    fn effort(&self, op: &PointwiseOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        Some(split::effort(choice, &op.0, grid(op, choice.tile)))
    }
}
