//! `rows`: one element per invocation, or four where all of them lie behind each other on both sides.

use super::axes::Part;
use super::{MAX_AXES, RemapOp, Rule};
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Element, Operand, Scalar, Value};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, offers};
use crate::ops::plan::Choice;
use crate::ops::registry::VariantEntry;
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Invocations of a line: 65535 work-groups, the most along an axis in WebGPU, reach 2^31 elements.
const LINE: usize = 65536;

const EXTENTS: [&str; MAX_AXES] =
    ["extent0", "extent1", "extent2", "extent3", "extent4", "extent5", "extent6", "extent7"];
const STRIDES: [&str; MAX_AXES] =
    ["stride0", "stride1", "stride2", "stride3", "stride4", "stride5", "stride6", "stride7"];
const STARTS: [&str; MAX_AXES] =
    ["start0", "start1", "start2", "start3", "start4", "start5", "start6", "start7"];
const STEPS: [&str; MAX_AXES] = ["step0", "step1", "step2", "step3", "step4", "step5", "step6", "step7"];
const SOURCES: [&str; MAX_AXES] =
    ["source0", "source1", "source2", "source3", "source4", "source5", "source6", "source7"];

#[derive(Debug)]
pub(super) struct Rows;

/// The number of `rule` in the kernels' texts.
pub(super) const fn number(rule: &Rule) -> u32 {
    match rule {
        Rule::Within => 0,
        Rule::Fill(_) => 1,
        Rule::Reflect => 2,
        Rule::Symmetric => 3,
        Rule::Edge => 4,
        Rule::Wrap => 5,
    }
}

impl RemapOp {
    /// The parts, one of one element if there are none.
    fn kernel_parts(&self) -> Vec<Part> {
        let one = Part { extent: 1, stride: 0, start: 0, step: 1, source: 1 };
        if self.parts.is_empty() { vec![one] } else { self.parts.clone() }
    }

    /// The rule, if a part needs one.
    fn kernel_rule(&self) -> u32 {
        if self.parts.iter().all(Part::is_linear) { 0 } else { number(&self.rule) }
    }

    /// Elements that every invocation moves at once: 4 where whole vec4s of the source become whole ones of
    /// the result.
    fn width(&self) -> usize {
        let four = |number: isize| number % 4 == 0;
        let Some((inner, outer)) = self.parts.split_last() else { return 1 };
        let splits = matches!(self.rule, Rule::Fill(_) | Rule::Wrap);
        let moved = splits && inner.step == 1 && four(inner.start) && inner.source.is_multiple_of(4);
        let whole = inner.stride == 1
            && (inner.is_linear() || moved)
            && [inner.extent, self.first, self.source.elements()].iter().all(|number| number % 4 == 0)
            && outer.iter().all(|part| four(part.stride));
        if whole { 4 } else { 1 }
    }
}

impl Kernel<RemapOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", include_str!("../../../shaders/remap/rows.wgsl"))
    }

    fn offers(&self, _op: &RemapOp, _limits: &Limits) -> Vec<Offer> {
        offers(1, [[1, 1, 1]])
    }

    fn grid(&self, op: &RemapOp, _tile: [u32; 3]) -> [u32; 3] {
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

    /// Rows are f32 in every precision.
    fn precision(&self, _op: &RemapOp) -> Precision {
        Precision::F32
    }

    fn bindings(&self, op: &RemapOp, _choice: &Choice) -> Vec<Binding> {
        let element = if op.width() == 4 { Element::Vec4(DType::F32) } else { Element::Scalar(DType::F32) };
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    /// Counted in vec4s where they are moved. A stride backwards is its two's complement.
    fn params(&self, op: &RemapOp, _choice: &Choice) -> Params {
        let width = op.width();
        let parts = op.kernel_parts();
        let (ruled, signed) = (op.kernel_rule() != 0, |number: isize| Scalar::I32(number as i32));
        let mut params =
            vec![("first", unsigned(op.first / width)), ("elements", unsigned(op.target.elements() / width))];
        for (axis, part) in parts.iter().enumerate() {
            let inner = axis + 1 == parts.len();
            let (own, others) = if inner { (width, 1) } else { (1, width) };
            params.push((EXTENTS[axis], unsigned(part.extent / own)));
            params.push((STRIDES[axis], Scalar::U32((part.stride / others as isize) as i32 as u32)));
            if ruled {
                params.push((STARTS[axis], signed(part.start / own as isize)));
                params.push((STEPS[axis], signed(part.step)));
                params.push((SOURCES[axis], signed((part.source / own) as isize)));
            }
        }
        if let (true, Rule::Fill(_)) = (ruled, op.rule) {
            params.push(("fill", Scalar::F32(op.fill())));
        }
        params
    }

    fn constants(&self, op: &RemapOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("WIDTH", Value::U32(extent(LINE))),
            ("AXES", Value::U32(extent(op.kernel_parts().len()))),
            ("RULE", Value::U32(op.kernel_rule())),
            ("LANES", Value::U32(extent(op.width()))),
        ]
    }

    /// It has no constants.
    fn pack(&self, _op: &RemapOp, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        data.to_vec()
    }
}
