//! `rows`: all sums of one row per invocation, in lines of `LINE` invocations.

use super::CumSumOp;
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

impl Kernel<CumSumOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/cumsum/rows.wgsl"))
    }

    fn offers(&self, _op: &CumSumOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[1, 1, 1]])
    }

    fn grid(&self, op: &CumSumOp, _tile: [u32; 3]) -> [u32; 3] {
        let rows = op.dims.elements() / op.extent();
        [extent(rows.min(LINE)), extent(rows.div_ceil(LINE)), 1]
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

    fn bindings(&self, _op: &CumSumOp, _choice: &Choice) -> Vec<Binding> {
        let element = Element::Scalar(DType::F32);
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    fn params(&self, op: &CumSumOp, _choice: &Choice) -> Params {
        vec![
            ("rows", unsigned(op.dims.elements() / op.extent())),
            ("terms", unsigned(op.extent())),
            ("inner", unsigned(op.inner())),
        ]
    }

    fn constants(&self, op: &CumSumOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("WIDTH", Value::U32(extent(LINE))),
            ("EXCLUSIVE", Value::U32(u32::from(op.exclusive))),
            ("REVERSE", Value::U32(u32::from(op.reverse))),
        ]
    }

    /// It has no constants.
    fn pack(&self, _op: &CumSumOp, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        data.to_vec()
    }
}
