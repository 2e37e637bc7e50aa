//! `grouped`: groups that are no whole slices of channels. Pixels of a row and slices per invocation, on a
//! grid of width x height x slices.
//!
//! A lane of a slice that is of another group must not be read, even times a zero weight: an infinity
//! there would make the product NaN. So each output lane reads channels of its own group alone.
//!
//! Weights are packed as `[slice][kh][kw][k][4]`, over the inputs `k` of a group.

use super::Conv2dOp;
use super::arguments::{pack_terms, params, shares, whole_slices};
use super::direct::Direct;
use crate::emit::{Operand, Value};
use crate::limits::Limits;
use crate::ops::convolution::Convolution;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, unsigned};

/// The groups that the four channels of an output slice are of, at most; 4 is a multiple of it, and
/// channels of as many runs of equal length are of one group.
fn distinct(problem: &Convolution) -> u32 {
    match problem.group_outputs() {
        outputs if outputs.is_multiple_of(4) => 1,
        outputs if outputs.is_multiple_of(2) => 2,
        _ => 4,
    }
}

#[derive(Debug)]
pub(super) struct Grouped;

impl Kernel<Conv2dOp> for Grouped {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("grouped", crate::emit::text!("../../../shaders/conv2d/grouped.wgsl"))
            .with_ordinary(Ordinary::Convolution)
    }

    /// Pixels of a row by slices, the most reuse first.
    fn offers(&self, op: &Conv2dOp, _limits: &Limits) -> Vec<Offer> {
        let problem = &op.0;
        if problem.groups == 1 || whole_slices(problem) {
            return Vec::new();
        }
        let mut tiles = vec![[4, 1, 1], [2, 1, 1], [1, 1, 1]];
        if shares(problem, 2) {
            tiles.extend([[4, 1, 2], [2, 1, 2], [1, 1, 2]]);
        }
        offers(2, tiles)
    }

    fn grid(&self, op: &Conv2dOp, tile: [u32; 3]) -> [u32; 3] {
        Direct.grid(op, tile)
    }

    fn params(&self, op: &Conv2dOp, choice: &Choice) -> Params {
        let mut params = params(&op.0, choice.tile, &["src_slices"]);
        params.push(("dst_c", unsigned(op.0.output.c)));
        params
    }

    fn constants(&self, op: &Conv2dOp, choice: &Choice, _limits: &Limits) -> Constants {
        // Whole vec4s of inputs, where a group's begin at one.
        let step = if op.0.group_inputs().is_multiple_of(4) { 4 } else { 1 };
        let [x, _, z] = choice.tile;
        let own = [("TILE_X", x), ("TILE_Z", z), ("DISTINCT", distinct(&op.0)), ("STEP", step)];
        [spec::window_constants(&op.0), own.map(|(name, value)| (name, Value::U32(value))).to_vec()].concat()
    }

    fn pack(&self, op: &Conv2dOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        pack_terms(&op.0, choice.tile, operand, data)
    }
}
