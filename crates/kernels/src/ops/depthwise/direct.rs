//! `direct`: one vec4 of channels per invocation, on a grid of width x height x slices.

use super::DepthwiseOp;
use super::arguments::grid;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec;

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<DepthwiseOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/depthwise/direct.wgsl")).in_maps()
    }

    fn offers(&self, op: &DepthwiseOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, (op.multiplier() == 1 && op.0.rows.is_none()).then_some([1, 1, 1]))
    }

    fn grid(&self, op: &DepthwiseOp, tile: [u32; 3]) -> [u32; 3] {
        grid(op, tile)
    }

    fn constants(&self, op: &DepthwiseOp, _choice: &Choice, _limits: &Limits) -> Constants {
        spec::window_constants(&op.0)
    }
}
