//! `rows`: one element per invocation, or four where all of them lie behind each other on both sides.

use super::RemapOp;
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{line_width, lines, wide_obstacle};
use crate::ops::spec::{Params, binding, extent, unsigned};

#[derive(Debug)]
pub(super) struct Rows;

impl RemapOp {
    /// What rows are moved in: integers as words of 32 bits in every precision.
    pub(super) fn precision_of_rows(&self) -> Precision {
        if self.dtype == DType::F32 { self.precision.with_f32_sums() } else { Precision::F32 }
    }

    /// The type of its rows.
    pub(super) fn stored(&self) -> DType {
        if self.dtype == DType::F32 { self.precision.storage() } else { self.dtype }
    }
}

impl Kernel<RemapOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/remap/rows.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    fn offers(&self, _op: &RemapOp, _limits: &Limits) -> Vec<Offer> {
        offers(3, [[1, 1, 1]])
    }

    fn grid(&self, op: &RemapOp, _tile: [u32; 3]) -> [u32; 3] {
        lines(op.target.elements() / op.width())
    }

    fn obstacle(&self, op: &RemapOp, _limits: &Limits) -> Option<String> {
        wide_obstacle(op.dtype)
    }

    fn precision(&self, op: &RemapOp) -> Option<Precision> {
        Some(op.precision_of_rows())
    }

    fn bindings(&self, op: &RemapOp, _choice: &Choice) -> Vec<Binding> {
        let stored = op.stored();
        let element = if op.width() == 4 { Element::Vec4(stored) } else { Element::Scalar(stored) };
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    /// Counted in vec4s where they are moved.
    fn params(&self, op: &RemapOp, _choice: &Choice) -> Params {
        let width = op.width();
        let mut params = op.part_params(width, op.precision_of_rows().storage());
        params.push(("elements", unsigned(op.target.elements() / width)));
        params
    }

    fn constants(&self, op: &RemapOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = op.part_constants();
        constants.push(line_width());
        constants.push(("LANES", Value::U32(extent(op.width()))));
        constants
    }
}
