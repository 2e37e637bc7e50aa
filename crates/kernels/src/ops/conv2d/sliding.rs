//! `sliding`: long windows over few output channels. `tile[0]` pixels of a row and a slice per invocation, on a grid of
//! width x height x slices; what the taps of a row of the window read is loaded once for all of them.
//!
//! Weights are packed as those of `direct`.

use super::Conv2dOp;
use super::arguments::{SHARE, columns, is_long, params};
use super::direct::Direct;
use super::shallow;
use crate::emit::{Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params};
use crate::ops::split;

/// The most input columns that are kept in registers.
const MAX_COLUMNS: usize = 20;

/// Taps of a row from which on it is offered: the loads of as many are spared.
const TAPS: usize = 4;

/// The most slices of output channels where it is preferred: with more, local memory shares the input among them.
const FEW_SLICES: usize = 2;

#[derive(Debug)]
pub(super) struct Sliding;

impl Kernel<Conv2dOp> for Sliding {
    fn entry(&self) -> VariantEntry {
        // A warp of one slice, whose invocations share its weights.
        VariantEntry::wgsl("sliding", crate::emit::text!("../../../shaders/conv2d/sliding.wgsl"))
            .with_ordinary(Ordinary::Size([32, 2, 1]))
    }

    fn offers(&self, op: &Conv2dOp, limits: &Limits) -> Vec<Offer> {
        let problem = &op.0;
        if problem.groups > 1 || problem.kernel[1] < TAPS {
            return Vec::new();
        }
        // A network's input has rows for `shallow`, without a conversion.
        let few = problem.output.slices() <= FEW_SLICES && !shallow::takes(problem, limits);
        let first = is_long(problem) && few && split::first(limits);
        let tiles = [8, 4, 2].into_iter().filter(|&pixels| columns(problem, pixels as usize) <= MAX_COLUMNS);
        offers(if first { 1 } else { 5 }, tiles.map(|pixels| [pixels, 1, 1]))
    }

    fn grid(&self, op: &Conv2dOp, tile: [u32; 3]) -> [u32; 3] {
        Direct.grid(op, tile)
    }

    fn counted(&self, op: &Conv2dOp, choice: &Choice) -> u64 {
        SHARE * self.grid(op, choice.tile).iter().map(|&extent| u64::from(extent)).product::<u64>()
    }

    /// See [`Family::spills_windows`](crate::limits::Family::spills_windows).
    fn untuned(&self, _op: &Conv2dOp, limits: &Limits) -> bool {
        !limits.family.spills_windows()
    }

    fn params(&self, op: &Conv2dOp, choice: &Choice) -> Params {
        params(&op.0, choice.tile, &["src_slices", "dst_tiles"])
    }

    fn constants(&self, op: &Conv2dOp, choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = spec::window_constants(&op.0);
        constants.push(("TILE_X", Value::U32(choice.tile[0])));
        constants
    }

    fn pack(&self, op: &Conv2dOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        Direct.pack(op, choice, operand, data)
    }
}
