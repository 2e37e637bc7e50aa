//! `rows`: one element per invocation, in lines of `LINE` invocations.

use super::CopyOp;
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

#[derive(Debug)]
pub(super) struct Rows;

impl Kernel<CopyOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/copy/rows.wgsl"))
    }

    fn offers(&self, _op: &CopyOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[1, 1, 1]])
    }

    fn grid(&self, op: &CopyOp, _tile: [u32; 3]) -> [u32; 3] {
        let elements = op.target.elements();
        [extent(elements.min(LINE)), extent(elements.div_ceil(LINE)), 1]
    }

    fn ordinary(&self) -> Ordinary {
        Ordinary::Size([64, 1, 1])
    }

    fn place(&self) -> Layout {
        Layout::Nhwc
    }

    fn bindings(&self, _op: &CopyOp, _choice: &Choice) -> Vec<Binding> {
        let element = Element::Scalar(DType::F32);
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    fn params(&self, op: &CopyOp, _choice: &Choice) -> Params {
        vec![("first", unsigned(op.first)), ("elements", unsigned(op.target.elements()))]
    }

    fn constants(&self, _op: &CopyOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![("WIDTH", Value::U32(extent(LINE)))]
    }

    /// It has no constants.
    fn pack(&self, _op: &CopyOp, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        data.to_vec()
    }
}
