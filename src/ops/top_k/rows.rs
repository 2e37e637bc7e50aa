//! `rows`: the place of one element in its row per invocation, in lines of `LINE` invocations.

use super::TopKOp;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{line_width, lines};
use crate::ops::spec::{Params, binding, unsigned};

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
        lines(op.source.elements())
    }

    fn ordinary(&self) -> Ordinary {
        Ordinary::Size([64, 1, 1])
    }

    fn layouts(&self) -> &'static [Layout] {
        &[Layout::Nhwc]
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
        vec![line_width(), ("INDICES", Value::U32(u32::from(op.indices)))]
    }
}
