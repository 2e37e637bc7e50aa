//! `maps`: feature maps of which some have extents of 1, one vec4 of channels per invocation.

use super::ElementwiseOp;
use super::arguments::{STEPS, bits, numbers};
use crate::emit::{Access, Binding, Body, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, binding, extent, unsigned};
use crate::shape::Shape;

#[derive(Debug)]
pub(super) struct Maps;

/// Vec4s from one place of `x` to the next along the width, height, slices and images of the output.
fn steps(x: Shape) -> [usize; 4] {
    let step = |extent: usize, step: usize| if extent == 1 { 0 } else { step };
    let plane = x.w * x.h;
    [step(x.w, 1), step(x.h, x.w), step(x.slices(), plane), step(x.n, plane * x.slices())]
}

/// Whether `input` has another shape than the output.
fn is_broadcast(op: &ElementwiseOp, input: usize) -> bool {
    op.inputs[input].shape() != op.output.shape()
}

impl Kernel<ElementwiseOp> for Maps {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps", crate::emit::text!("../../../shaders/elementwise/maps.wgsl"))
    }

    fn offers(&self, op: &ElementwiseOp, _limits: &Limits) -> Vec<Offer> {
        offers(1, op.as_maps().map(|_| [1, 1, 1]))
    }

    fn grid(&self, op: &ElementwiseOp, _tile: [u32; 3]) -> [u32; 3] {
        let shape = op.output.shape();
        [extent(shape.w), extent(shape.h), extent(shape.slices() * shape.n)]
    }

    fn bindings(&self, op: &ElementwiseOp, _choice: &Choice) -> Vec<Binding> {
        let map = Element::Vec4(op.precision.storage());
        let input = |index| binding(Operand::Arg(index as u8), map, Access::Read);
        (0..op.inputs.len()).map(input).chain([binding(Operand::Dst, map, Access::Write)]).collect()
    }

    fn params(&self, op: &ElementwiseOp, _choice: &Choice) -> Params {
        let shape = op.output.shape();
        let mut params = vec![
            ("width", unsigned(shape.w)),
            ("height", unsigned(shape.h)),
            ("slices", unsigned(shape.slices())),
            ("batch", unsigned(shape.n)),
        ];
        for (index, (input, names)) in op.inputs.iter().zip(STEPS).enumerate() {
            if is_broadcast(op, index) {
                params.extend(names.into_iter().zip(steps(input.shape()).map(unsigned)));
            }
        }
        if op.must_mask() {
            params.push(("channels", unsigned(shape.c)));
        }
        params.extend(numbers(&op.program));
        params
    }

    fn constants(&self, op: &ElementwiseOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let channels = op.output.shape().c;
        let splat = |input: usize| op.inputs[input].shape().c != channels;
        vec![
            ("INPUTS", Value::U32(extent(op.inputs.len()))),
            ("BROADCAST", Value::U32(bits(op, &|input| is_broadcast(op, input)))),
            ("SPLAT", Value::U32(bits(op, &splat))),
            ("MASK", Value::U32(u32::from(op.must_mask()))),
        ]
    }

    fn body(&self, op: &ElementwiseOp, _choice: &Choice) -> Body {
        op.program.body(op.precision.accumulator(), true)
    }
}
