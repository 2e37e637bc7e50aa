//! `rows`: the place of one element in its row per invocation, in lines of `LINE` invocations.

use super::TopKOp;
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

impl Kernel<TopKOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/top_k/rows.wgsl"))
    }

    fn offers(&self, op: &TopKOp, limits: &Limits) -> Vec<Offer> {
        if op.is_long(limits) { Vec::new() } else { offers(0, [[1, 1, 1]]) }
    }

    fn grid(&self, op: &TopKOp, _tile: [u32; 3]) -> [u32; 3] {
        let elements = op.source.elements();
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

    fn bindings(&self, _op: &TopKOp, _choice: &Choice) -> Vec<Binding> {
        let element = Element::Scalar(DType::F32);
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    fn params(&self, op: &TopKOp, _choice: &Choice) -> Params {
        let [terms, chosen] = op.extents();
        vec![
            ("elements", unsigned(op.source.elements())),
            ("terms", unsigned(terms)),
            ("chosen", unsigned(chosen)),
        ]
    }

    fn constants(&self, op: &TopKOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![("WIDTH", Value::U32(extent(LINE))), ("INDICES", Value::U32(u32::from(op.indices)))]
    }

    /// It has no constants.
    fn pack(&self, _op: &TopKOp, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        data.to_vec()
    }
}
