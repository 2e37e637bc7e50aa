//! `direct`: one vec4 of channels per invocation, on a grid of width x height x slices.

use super::{PoolOp, Pooling};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, binding, extent};

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

    fn bindings(&self, op: &PoolOp, choice: &Choice) -> Vec<Binding> {
        let storage: DType = op.windows.precision.storage();
        let map = match choice.layout {
            Layout::Image2d => Element::Image2d(storage),
            _ => Element::Vec4(storage),
        };
        vec![binding(Operand::Src, map, Access::Read), binding(Operand::Dst, map, Access::Write)]
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
