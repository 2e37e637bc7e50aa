//! `micro`: a tile of pixels and slices per invocation, in registers, on a grid of pixels x slices x batch.
//!
//! Weights are packed as `[slice][input slice][lane][4]`: four vec4s over the output channels, one for
//! each input lane.

use super::PointwiseOp;
use crate::emit::{Operand, Value};
use crate::limits::Limits;
use crate::ops::convolution::Convolution;
use crate::ops::effort::{self, Effort};
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::map_product::Given;
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{self, Params, unsigned};
use crate::ops::split;

#[derive(Debug)]
pub(super) struct Micro;

/// A constant as `direct` and `micro` read it, in whole tiles of slices.
pub(super) fn pack(op: &PointwiseOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
    let slices = op.0.output.slices().next_multiple_of(choice.tile[1].max(1) as usize);
    if operand != Operand::Weights {
        return spec::pack_channels(data, slices);
    }
    let sources = op.0.input.slices();
    let mut out = vec![0.0; slices * sources * 16];
    for (o, row) in data.chunks_exact(op.0.input.c).enumerate() {
        let first = 16 * sources * (o / 4) + o % 4;
        for (k, &weight) in row.iter().enumerate() {
            out[first + 4 * k] = weight;
        }
    }
    out
}

/// The scalars of the kernels whose grid is a row of pixels.
fn params(problem: &Convolution) -> Params {
    vec![
        ("plane", unsigned(problem.output.w * problem.output.h)),
        ("src_c4", unsigned(problem.input.slices())),
        ("dst_c4", unsigned(problem.output.slices())),
        ("batch", unsigned(problem.output.n)),
    ]
}

/// What the texts of the kernels that are matrix products are given.
pub(super) const OF_PRODUCTS: Given = Given { windows: false, params: |problem, _tile| params(problem) };

impl Kernel<PointwiseOp> for Micro {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("micro", crate::emit::text!("../../../shaders/pointwise/micro.wgsl"))
            .with_ordinary(Ordinary::Folded)
    }

    fn offers(&self, _op: &PointwiseOp, limits: &Limits) -> Vec<Offer> {
        // A driver that runs WGSL on a CPU keeps an invocation's lane in each element of a vector, so
        // that every load is a gather: eight pixels share those of the weights. Measured on llvmpipe in
        // CPU time, four maps of 9 to 129 pixels a side: 5 to 20 % less.
        let large = if limits.compiles_slowly() {
            [[4, 1], [4, 2], [2, 2], [8, 1], [8, 2], [4, 4]]
        } else if limits.has_lanes() {
            [[8, 2], [4, 2], [4, 4], [4, 1], [2, 2], [8, 1]]
        } else {
            [[4, 2], [4, 1], [2, 2], [8, 1], [8, 2], [4, 4]]
        };
        let preference = if split::first(limits) { 2 } else { 0 };
        let tile = |[x, y]: [u32; 2]| [x, y, 1];
        [offers(preference, large.map(tile)), offers(4, [[2, 1], [1, 1]].map(tile))].concat()
    }

    fn registers(&self, _op: &PointwiseOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        Some(Registers::alone(registers::of_loads(choice.tile[1], choice.tile[0], limits)))
    }

    fn effort(&self, op: &PointwiseOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        let ([pixels, slices, _], [x, y, _]) = (choice.tile, choice.work_group);
        Some(effort::of_map(&op.0, choice, [pixels, slices], [x, y], self.grid(op, choice.tile)))
    }

    fn grid(&self, op: &PointwiseOp, tile: [u32; 3]) -> [u32; 3] {
        split::grid(&op.0, tile)
    }

    fn params(&self, op: &PointwiseOp, _choice: &Choice) -> Params {
        params(&op.0)
    }

    fn constants(&self, _op: &PointwiseOp, choice: &Choice, _limits: &Limits) -> Constants {
        vec![("TILE_X", Value::U32(choice.tile[0])), ("TILE_Y", Value::U32(choice.tile[1]))]
    }

    fn pack(&self, op: &PointwiseOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        pack(op, choice, operand, data)
    }
}
