//! `multiplier`: channel multipliers above 1, one vec4 of output channels per invocation.

use super::DepthwiseOp;
use super::arguments::grid;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, unsigned};

#[derive(Debug)]
pub(super) struct Multiplier;

impl Kernel<DepthwiseOp> for Multiplier {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("multiplier", crate::emit::text!("../../../shaders/depthwise/multiplier.wgsl"))
    }

    fn offers(&self, op: &DepthwiseOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, (op.multiplier() > 1).then_some([1, 1, 1]))
    }

    fn grid(&self, op: &DepthwiseOp, tile: [u32; 3]) -> [u32; 3] {
        grid(op, tile)
    }

    fn params(&self, op: &DepthwiseOp, _choice: &Choice) -> Params {
        let own = [
            ("src_c", unsigned(op.0.input.c)),
            ("src_c4", unsigned(op.0.input.slices())),
            ("multiplier", unsigned(op.multiplier())),
        ];
        [spec::window_params(&op.0), own.to_vec()].concat()
    }

    fn constants(&self, op: &DepthwiseOp, _choice: &Choice, _limits: &Limits) -> Constants {
        spec::window_constants(&op.0)
    }
}
