//! `rows`: one element per invocation, or four where what an index selects is of whole vec4s.

use super::GatherOp;
use crate::dims::MAX_RANK;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, offers};
use crate::ops::plan::Choice;
use crate::ops::registry::VariantEntry;
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Invocations of a line: 65535 work-groups, the most along an axis in WebGPU, reach 2^31 elements.
const LINE: usize = 65536;

const EXTENTS: [&str; MAX_RANK] = ["extent0", "extent1", "extent2", "extent3", "extent4", "extent5"];

#[derive(Debug)]
pub(super) struct Rows;

impl GatherOp {
    /// Elements that every invocation moves at once.
    fn width(&self) -> usize {
        if self.sizes().inner.is_multiple_of(4) { 4 } else { 1 }
    }
}

impl Kernel<GatherOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/gather/rows.wgsl"))
    }

    fn offers(&self, _op: &GatherOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[1, 1, 1]])
    }

    fn grid(&self, op: &GatherOp, _tile: [u32; 3]) -> [u32; 3] {
        let elements = op.target.elements() / op.width();
        [extent(elements.min(LINE)), extent(elements.div_ceil(LINE)), 1]
    }

    fn ordinary(&self) -> Ordinary {
        Ordinary::Size([64, 1, 1])
    }

    fn layouts(&self) -> &'static [Layout] {
        &[Layout::Nhwc]
    }

    fn place(&self) -> Layout {
        Layout::Nhwc
    }

    fn bindings(&self, op: &GatherOp, _choice: &Choice) -> Vec<Binding> {
        let scalar = Element::Scalar(DType::F32);
        let element = if op.width() == 4 { Element::Vec4(DType::F32) } else { scalar };
        vec![
            binding(Operand::Src, element, Access::Read),
            binding(Operand::Arg(0), scalar, Access::Read),
            binding(Operand::Dst, element, Access::Write),
        ]
    }

    /// Elements are counted in vec4s where they are moved.
    fn params(&self, op: &GatherOp, _choice: &Choice) -> Params {
        let (width, sizes) = (op.width(), op.sizes());
        let mut params = vec![
            ("elements", unsigned(op.target.elements() / width)),
            ("outer", unsigned(sizes.outer)),
            ("count", unsigned(sizes.count)),
            ("inner", unsigned(sizes.inner / width)),
        ];
        let extents = EXTENTS.into_iter().zip(sizes.extents).take(op.axes);
        params.extend(extents.map(|(name, extent)| (name, unsigned(extent))));
        params
    }

    fn constants(&self, op: &GatherOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("WIDTH", Value::U32(extent(LINE))),
            ("AXES", Value::U32(extent(op.axes))),
            ("LANES", Value::U32(extent(op.width()))),
        ]
    }

    /// It has no constants.
    fn pack(&self, _op: &GatherOp, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        data.to_vec()
    }
}
