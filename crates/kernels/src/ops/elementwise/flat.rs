//! `flat`: feature maps of one shape, one vec4 per invocation, in lines of `LINE` invocations.

use super::ElementwiseOp;
use super::arguments::numbers;
use crate::emit::{Access, Binding, Body, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{line_width, lines};
use crate::ops::spec::{Params, binding, extent, unsigned};

#[derive(Debug)]
pub(super) struct Flat;

/// Vec4s of the output.
fn elements4(op: &ElementwiseOp) -> usize {
    let shape = op.output.shape();
    shape.n * shape.slices() * shape.h * shape.w
}

impl Kernel<ElementwiseOp> for Flat {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("flat", crate::emit::text!("../../../shaders/elementwise/flat.wgsl"))
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    fn offers(&self, op: &ElementwiseOp, _limits: &Limits) -> Vec<Offer> {
        let one_shape = op.inputs.iter().all(|input| input.shape() == op.output.shape());
        offers(0, one_shape.then_some([1, 1, 1]))
    }

    fn grid(&self, op: &ElementwiseOp, _tile: [u32; 3]) -> [u32; 3] {
        lines(elements4(op))
    }

    fn bindings(&self, op: &ElementwiseOp, _choice: &Choice) -> Vec<Binding> {
        let map = Element::Vec4(op.precision.storage());
        let input = |index| binding(Operand::Arg(index as u8), map, Access::Read);
        (0..op.inputs.len()).map(input).chain([binding(Operand::Dst, map, Access::Write)]).collect()
    }

    fn params(&self, op: &ElementwiseOp, _choice: &Choice) -> Params {
        let shape = op.output.shape();
        let mut params = vec![("elements4", unsigned(elements4(op)))];
        if op.must_mask() {
            params.extend([
                ("plane", unsigned(shape.h * shape.w)),
                ("slices", unsigned(shape.slices())),
                ("channels", unsigned(shape.c)),
            ]);
        }
        params.extend(numbers(&op.program));
        params
    }

    fn constants(&self, op: &ElementwiseOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("INPUTS", Value::U32(extent(op.inputs.len()))),
            ("MASK", Value::U32(u32::from(op.must_mask()))),
            line_width(),
        ]
    }

    fn body(&self, op: &ElementwiseOp, _choice: &Choice) -> Body {
        op.program.body(op.precision.accumulator(), true)
    }
}
