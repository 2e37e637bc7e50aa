//! `rows`: one element per invocation, or four where all of them lie behind each other on both sides.

use super::RemapOp;
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{line_width, lines, wide_obstacle};
use crate::ops::spec::{Params, binding, extent, unsigned};

#[derive(Debug)]
pub(super) struct Rows;

impl Kernel<RemapOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/remap/rows.wgsl"))
    }

    fn offers(&self, _op: &RemapOp, _limits: &Limits) -> Vec<Offer> {
        offers(3, [[1, 1, 1]])
    }

    fn grid(&self, op: &RemapOp, _tile: [u32; 3]) -> [u32; 3] {
        lines(op.target.elements() / op.width())
    }

    fn ordinary(&self) -> Ordinary {
        Ordinary::Size([64, 1, 1])
    }

    fn layouts(&self) -> &'static [Layout] {
        &[Layout::Nhwc]
    }

    fn obstacle(&self, op: &RemapOp, _limits: &Limits) -> Option<String> {
        wide_obstacle(op.dtype)
    }

    /// Rows are of whole words in every precision.
    fn precision(&self, _op: &RemapOp) -> Option<Precision> {
        Some(Precision::F32)
    }

    fn bindings(&self, op: &RemapOp, _choice: &Choice) -> Vec<Binding> {
        let element = if op.width() == 4 { Element::Vec4(op.dtype) } else { Element::Scalar(op.dtype) };
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    /// Counted in vec4s where they are moved.
    fn params(&self, op: &RemapOp, _choice: &Choice) -> Params {
        let width = op.width();
        let mut params = op.part_params(width, DType::F32);
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
