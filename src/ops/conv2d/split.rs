//! `split`: a sum that the layers of a work-group share (`ops/split.rs`), on a grid of pixels x slices x
//! (layers * batch).
//!
//! Weights are packed as `[kh][kw][input slice][lane][slice][4]`, with input slices of zeros up to a whole
//! number of steps.

use super::Conv2dOp;
use super::arguments::{pack_rows, params, slices};
use crate::emit::Operand;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::Registers;
use crate::ops::spec::{self, Params, extent, unsigned};
use crate::ops::split;

/// Pixels and slices per invocation, the most useful first.
const TILES: [[u32; 2]; 3] = [[4, 1], [4, 2], [2, 2]];

#[derive(Debug)]
pub(super) struct Split;

impl Kernel<Conv2dOp> for Split {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("split", crate::emit::text!("../../../shaders/conv2d/split.wgsl"))
            .with_ordinary(Ordinary::Convolution)
    }

    fn offers(&self, op: &Conv2dOp, limits: &Limits) -> Vec<Offer> {
        let sources = op.0.input.slices();
        if op.0.groups > 1 || sources == 1 {
            return Vec::new();
        }
        offers(if split::first(limits) { 2 } else { 3 }, split::tiles(&TILES, sources))
    }

    fn grid(&self, op: &Conv2dOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.0.output;
        [
            extent(output.w * output.h).div_ceil(tile[0]),
            extent(output.slices()).div_ceil(tile[1]),
            tile[2] * extent(output.n),
        ]
    }

    fn choice_obstacle(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Option<String> {
        split::obstacle(choice, op.0.precision, limits)
    }

    fn work_groups(&self, _op: &Conv2dOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        split::work_groups(tile[2])
    }

    fn untuned(&self, _op: &Conv2dOp, limits: &Limits) -> bool {
        !limits.has_lanes()
    }

    fn params(&self, op: &Conv2dOp, choice: &Choice) -> Params {
        let mut params = params(&op.0, choice.tile, &["dst_tiles", "src_slices"]);
        params.push(("src_slices", unsigned(split::padded(op.0.input.slices(), choice.tile))));
        params
    }

    fn constants(&self, op: &Conv2dOp, choice: &Choice, _limits: &Limits) -> Constants {
        [spec::window_constants(&op.0), split::constants(op.0.input.slices(), choice)].concat()
    }

    fn pack(&self, op: &Conv2dOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        match operand {
            Operand::Weights => pack_rows(&op.0, split::padded(op.0.input.slices(), choice.tile), data),
            _ => spec::pack_channels(data, slices(&op.0, choice.tile)),
        }
    }

    fn registers(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        self.effort(op, choice, limits).map(|effort| split::registers(choice, &effort, limits))
    }

    fn effort(&self, op: &Conv2dOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        Some(split::effort(choice, &op.0, self.grid(op, choice.tile)))
    }
}
