//! `micro`: a tile of pixels and slices per invocation, in registers, on a grid of pixels x slices x batch.
//!
//! Weights are packed as `[slice][input slice][lane][4]`: four vec4s over the output channels, one for
//! each input lane.

use super::{Pointwise, PointwiseOp};
use crate::emit::Value;
use crate::limits::Limits;
use crate::ops::effort::{self, Effort};
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::split;
use crate::ops::text_arguments::TextArguments;
use crate::ops::windowed::ConvolutionOptions;

#[derive(Debug)]
pub(super) struct Micro;

/// What the texts of the kernels that are matrix products are given.
pub(super) const OF_PRODUCTS: TextArguments =
    TextArguments { windows: false, params: |problem, _tile| Pointwise::params(problem) };

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

    fn constants(&self, _op: &PointwiseOp, choice: &Choice, _limits: &Limits) -> Constants {
        vec![("TILE_X", Value::U32(choice.tile[0])), ("TILE_Y", Value::U32(choice.tile[1]))]
    }
}
