//! `direct`: one vec4 of channels per invocation, on a grid of width x height x slices.

use super::{PoolOp, Pooling};
use crate::emit::Value;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, extent};

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<PoolOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/pool/direct.wgsl")).in_maps()
    }

    fn offers(&self, _op: &PoolOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[1, 1, 1]])
    }

    fn grid(&self, op: &PoolOp, _tile: [u32; 3]) -> [u32; 3] {
        let output = op.windows.output;
        [extent(output.w), extent(output.h), extent(output.slices()) * extent(output.n)]
    }

    fn params(&self, op: &PoolOp, _choice: &Choice) -> Params {
        spec::window_params(&op.windows)
    }

    fn constants(&self, op: &PoolOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let [kernel_h, kernel_w] = op.windows.kernel.map(extent);
        let [stride_h, stride_w] = op.windows.stride.map(extent);
        [
            ("KERNEL_H", kernel_h),
            ("KERNEL_W", kernel_w),
            ("STRIDE_H", stride_h),
            ("STRIDE_W", stride_w),
            ("AVERAGE", u32::from(op.pooling == Pooling::Average)),
        ]
        .map(|(name, value)| (name, Value::U32(value)))
        .to_vec()
    }
}
