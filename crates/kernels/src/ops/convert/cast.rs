//! `cast`: rows whose elements get another type, four per invocation where there are whole vec4s of them.

use super::ConvertOp;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{line_width, lines};
use crate::ops::spec::{Params, binding, extent, unsigned};

#[derive(Debug)]
pub(super) struct Cast;

/// Elements of an invocation.
fn width(op: &ConvertOp) -> usize {
    if op.shape.elements().is_multiple_of(4) { 4 } else { 1 }
}

impl Kernel<ConvertOp> for Cast {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("cast", crate::emit::text!("../../../shaders/convert/cast.wgsl"))
            .listed_as(Layout::Nhwc)
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    fn offers(&self, op: &ConvertOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, op.stays_in_rows().then_some([1, 1, 1]))
    }

    fn grid(&self, op: &ConvertOp, _tile: [u32; 3]) -> [u32; 3] {
        lines(op.shape.elements() / width(op))
    }

    fn bindings(&self, op: &ConvertOp, _choice: &Choice) -> Vec<Binding> {
        let [src, dst] =
            op.stored.map(|dtype| if width(op) == 4 { Element::Vec4(dtype) } else { Element::Scalar(dtype) });
        vec![binding(Operand::Src, src, Access::Read), binding(Operand::Dst, dst, Access::Write)]
    }

    fn params(&self, op: &ConvertOp, _choice: &Choice) -> Params {
        vec![("elements", unsigned(op.shape.elements() / width(op)))]
    }

    fn constants(&self, op: &ConvertOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let narrow = u32::from(op.stored[1] == DType::F16);
        vec![line_width(), ("LANES", Value::U32(extent(width(op)))), ("NARROW", Value::U32(narrow))]
    }
}
