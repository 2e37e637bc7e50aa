//! `direct`: pixels of a row and slices per invocation, on a grid of width x height x slices.
//!
//! Weights are packed as `[slice][kh][kw][input slice][lane][4]`: for each output slice and tap, and each of
//! the input slices of its group, four vec4s over the output channels, one for each input lane.

use super::Conv2dOp;
use super::arguments::{params, shares, slices, whole_slices};
use crate::emit::{Operand, Value};
use crate::limits::Limits;
use crate::ops::effort::{self, Effort};
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{self, Params, extent};
use crate::ops::split;

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<Conv2dOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/conv2d/direct.wgsl"))
            .in_maps()
            .with_ordinary(Ordinary::Convolution)
    }

    fn offers(&self, op: &Conv2dOp, limits: &Limits) -> Vec<Offer> {
        let problem = &op.0;
        if problem.groups > 1 && !whole_slices(problem) {
            return Vec::new();
        }
        let mut tiles = vec![[4, 1, 1], [2, 1, 1], [1, 1, 1]];
        if problem.groups == 1 {
            // Several output slices share an input slice only without groups.
            tiles.extend([[4, 1, 2], [2, 1, 2], [1, 1, 2], [2, 1, 4]]);
        } else if shares(problem, 2) {
            tiles.extend([[4, 1, 2], [2, 1, 2], [1, 1, 2]]);
        }
        offers(if split::first(limits) { 4 } else { 2 }, tiles)
    }

    fn grid(&self, op: &Conv2dOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.0.output;
        let tiles = extent(output.slices()).div_ceil(tile[2]);
        [extent(output.w).div_ceil(tile[0]), extent(output.h), tiles * extent(output.n)]
    }

    fn obstacle(&self, op: &Conv2dOp, _limits: &Limits) -> Option<String> {
        let (inputs, outputs) = (op.0.group_inputs(), op.0.group_outputs());
        (op.0.groups > 1 && !whole_slices(&op.0)).then(|| {
            format!("groups of {inputs} input and {outputs} output channels, direct needs multiples of 4")
        })
    }

    /// Not known well enough to refuse a choice, but where registers are fewest: compilers keep more or fewer loads under way.
    fn registers(&self, _op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        let of_tile = || Registers::alone(registers::of_pixels(choice.tile[0], choice.tile[2]));
        limits.family.has_few_registers().then(of_tile)
    }

    fn effort(&self, op: &Conv2dOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        let ([pixels, _, slices], [x, y, z]) = (choice.tile, choice.work_group);
        Some(effort::of_map(&op.0, choice, [pixels, slices], [x * y, z], self.grid(op, choice.tile)))
    }

    fn params(&self, op: &Conv2dOp, choice: &Choice) -> Params {
        params(&op.0, choice.tile, &["group_inputs"])
    }

    fn constants(&self, op: &Conv2dOp, choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = spec::window_constants(&op.0);
        constants.push(("GROUPED", Value::U32(u32::from(op.0.groups > 1))));
        constants.push(("TILE_X", Value::U32(choice.tile[0])));
        constants.push(("TILE_Z", Value::U32(choice.tile[2])));
        constants
    }

    fn pack(&self, op: &Conv2dOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let (problem, slices) = (&op.0, slices(&op.0, choice.tile));
        if operand != Operand::Weights {
            return spec::pack_channels(data, slices);
        }
        let (taps, inputs) = (problem.kernel[0] * problem.kernel[1], problem.group_inputs());
        let sources = inputs.div_ceil(4);
        let mut out = vec![0.0; slices * taps * sources * 16];
        for o in 0..problem.output.c {
            for tap in 0..taps {
                for k in 0..inputs {
                    let vec4 = ((o / 4 * taps + tap) * sources + k / 4) * 4 + k % 4;
                    out[4 * vec4 + o % 4] = data[(o * taps + tap) * inputs + k];
                }
            }
        }
        out
    }
}
