//! `lanes`: one vec4 of channels per invocation, on a grid of width x height x slices, for moves of any kind.

use super::RemapOp;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, binding, extent, unsigned};

#[derive(Debug)]
pub(super) struct Lanes;

impl RemapOp {
    /// Whether slices of the result are slices of the source.
    fn moves_slices(&self) -> bool {
        let filled = [self.source, self.target].iter().all(|dims| dims.shape().c.is_multiple_of(4));
        filled && self.width() == 4
    }
}

impl Kernel<RemapOp> for Lanes {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("lanes", crate::emit::text!("../../../shaders/remap/lanes.wgsl"))
    }

    fn offers(&self, op: &RemapOp, _limits: &Limits) -> Vec<Offer> {
        if op.dtype == DType::F32 { offers(1, [[1, 1, 1]]) } else { Vec::new() }
    }

    fn grid(&self, op: &RemapOp, _tile: [u32; 3]) -> [u32; 3] {
        let shape = op.target.shape();
        [extent(shape.w), extent(shape.h), extent(shape.slices() * shape.n)]
    }

    fn bindings(&self, op: &RemapOp, _choice: &Choice) -> Vec<Binding> {
        let element = Element::Vec4(op.precision.storage());
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    /// Channels are counted in slices where they are moved as such.
    fn params(&self, op: &RemapOp, _choice: &Choice) -> Params {
        let width = if op.moves_slices() { 4 } else { 1 };
        let (src, dst) = (op.source.shape(), op.target.shape());
        let mut params = op.part_params(width, op.precision.storage());
        params.extend([
            ("src_h", unsigned(src.h)),
            ("src_w", unsigned(src.w)),
            ("src_c", unsigned(src.c / width)),
            ("dst_h", unsigned(dst.h)),
            ("dst_w", unsigned(dst.w)),
            ("dst_c", unsigned(dst.c / width)),
            ("dst_c4", unsigned(dst.slices())),
            ("batch", unsigned(dst.n)),
        ]);
        params
    }

    fn constants(&self, op: &RemapOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = op.part_constants();
        constants.push(("WHOLE", Value::U32(u32::from(op.moves_slices()))));
        constants
    }
}
