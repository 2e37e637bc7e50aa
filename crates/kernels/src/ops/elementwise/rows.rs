//! `rows`: rows of any rank, four elements of the innermost axis per invocation or one.

use super::ElementwiseOp;
use super::arguments::{STEPS, bits, numbers};
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Body, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{line_width, lines};
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Names of the output's extents, the innermost first.
const EXTENTS: [&str; 6] = ["extent0", "extent1", "extent2", "extent3", "extent4", "extent5"];

#[derive(Debug)]
pub(super) struct Rows;

/// Elements of an invocation: four where the innermost axis has whole vec4s.
fn width(op: &ElementwiseOp) -> usize {
    if op.broadcast.inner(0).0.is_multiple_of(4) { 4 } else { 1 }
}

/// Whether `input` has one element for all along the innermost axis.
fn is_splat(op: &ElementwiseOp, input: usize) -> bool {
    op.broadcast.inner(input).1 == 0
}

/// Elements of `input` that are read at once.
fn lanes(op: &ElementwiseOp, input: usize) -> usize {
    if is_splat(op, input) { 1 } else { width(op) }
}

/// The types of rows that are read and written: halves, where the op stores them and they hold it.
fn stored(op: &ElementwiseOp) -> [DType; 2] {
    let halves = [op.program.reads_half_rows(), op.program.writes_half_rows()];
    halves.map(|halves| if halves { op.precision.storage() } else { DType::F32 })
}

/// Whole vec4s, or single elements.
const fn element(dtype: DType, lanes: usize) -> Element {
    if lanes == 4 { Element::Vec4(dtype) } else { Element::Scalar(dtype) }
}

impl Kernel<ElementwiseOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/elementwise/rows.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    fn offers(&self, _op: &ElementwiseOp, _limits: &Limits) -> Vec<Offer> {
        offers(2, [[1, 1, 1]])
    }

    fn grid(&self, op: &ElementwiseOp, _tile: [u32; 3]) -> [u32; 3] {
        lines(op.output.elements() / width(op))
    }

    fn bindings(&self, op: &ElementwiseOp, _choice: &Choice) -> Vec<Binding> {
        let [read, written] = stored(op);
        let input = |index| binding(Operand::Arg(index as u8), element(read, lanes(op, index)), Access::Read);
        let written = element(written, width(op));
        (0..op.inputs.len()).map(input).chain([binding(Operand::Dst, written, Access::Write)]).collect()
    }

    fn params(&self, op: &ElementwiseOp, _choice: &Choice) -> Params {
        let (width, extents) = (width(op), &op.broadcast.extents);
        let mut params = vec![("elements", unsigned(op.output.elements() / width))];
        // The outermost extent is what is left.
        for (axis, extent) in extents.iter().rev().take(extents.len() - 1).enumerate() {
            let of = if axis == 0 { extent / width } else { *extent };
            params.push((EXTENTS[axis], unsigned(of)));
        }
        for (input, (strides, names)) in op.broadcast.strides.iter().zip(STEPS).enumerate() {
            let unit = lanes(op, input);
            for (axis, (stride, name)) in strides.iter().rev().zip(names).enumerate() {
                // From one invocation to the next along the innermost axis.
                params.push((name, unsigned(if axis == 0 { *stride } else { stride / unit })));
            }
        }
        params.extend(numbers(&op.program));
        params
    }

    fn constants(&self, op: &ElementwiseOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let wide = width(op) == 4;
        vec![
            ("INPUTS", Value::U32(extent(op.inputs.len()))),
            ("RANK", Value::U32(extent(op.broadcast.extents.len()))),
            ("WIDE", Value::U32(u32::from(wide))),
            ("SPLAT", Value::U32(if wide { bits(op, &|input| is_splat(op, input)) } else { 0 })),
            line_width(),
        ]
    }

    fn body(&self, op: &ElementwiseOp, _choice: &Choice) -> Body {
        op.program.body(DType::F32, width(op) == 4)
    }

    fn precision(&self, op: &ElementwiseOp) -> Option<Precision> {
        let halves = stored(op).contains(&DType::F16);
        Some(if halves { op.precision.with_f32_sums() } else { Precision::F32 })
    }
}
