//! `maps`: one vec4 of channels per invocation, on a grid of width x height x slices.

use super::{ResizeMode, ResizeOp};
use crate::emit::{Scalar, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, extent, unsigned};

#[derive(Debug)]
pub(super) struct Maps;

impl Kernel<ResizeOp> for Maps {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps", crate::emit::text!("../../../shaders/resize/maps.wgsl"))
    }

    fn offers(&self, _op: &ResizeOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[1, 1, 1]])
    }

    fn grid(&self, op: &ResizeOp, _tile: [u32; 3]) -> [u32; 3] {
        let output = op.output;
        [extent(output.w), extent(output.h), extent(output.slices() * output.n)]
    }

    fn params(&self, op: &ResizeOp, _choice: &Choice) -> Params {
        vec![
            ("src_w", unsigned(op.input.w)),
            ("src_h", unsigned(op.input.h)),
            ("dst_w", unsigned(op.output.w)),
            ("dst_h", unsigned(op.output.h)),
            ("dst_c4", unsigned(op.output.slices())),
            ("planes", unsigned(op.output.slices() * op.output.n)),
            ("scale_h", Scalar::F32(op.scale(0))),
            ("scale_w", Scalar::F32(op.scale(1))),
        ]
    }

    fn constants(&self, op: &ResizeOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let bilinear = op.options.mode == ResizeMode::Bilinear;
        [
            ("BILINEAR", bilinear),
            ("HALF_PIXEL_CENTERS", op.options.half_pixel_centers),
            // Of a mean, only the scale depends on it.
            ("ROUNDS", op.options.align_corners && !bilinear),
        ]
        .map(|(name, value)| (name, Value::U32(u32::from(value))))
        .to_vec()
    }
}
