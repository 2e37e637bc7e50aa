//! `rows`: one element per invocation, or four where every input's rows are of whole vec4s.

use super::{ConcatOp, MAX_INPUTS, operand};
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{line_width, lines, wide_obstacle};
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Behind which element of a row each input ends.
pub(super) const ENDS: [&str; MAX_INPUTS] = ["end0", "end1", "end2", "end3", "end4", "end5", "end6"];

#[derive(Debug)]
pub(super) struct Rows;

impl ConcatOp {
    /// Elements that every invocation moves at once.
    fn width(&self) -> usize {
        let (_, ends) = self.rows();
        if ends.iter().all(|end| end.is_multiple_of(4)) { 4 } else { 1 }
    }
}

impl Kernel<ConcatOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/concat/rows.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    fn offers(&self, _op: &ConcatOp, _limits: &Limits) -> Vec<Offer> {
        offers(1, [[1, 1, 1]])
    }

    fn grid(&self, op: &ConcatOp, _tile: [u32; 3]) -> [u32; 3] {
        lines(op.target.elements() / op.width())
    }

    fn obstacle(&self, op: &ConcatOp, _limits: &Limits) -> Option<String> {
        wide_obstacle(op.dtype)
    }

    /// Integers are words of 32 bits in every precision.
    fn precision(&self, op: &ConcatOp) -> Option<Precision> {
        let moved = if op.dtype == DType::F32 { op.precision.with_f32_sums() } else { Precision::F32 };
        Some(moved)
    }

    fn bindings(&self, op: &ConcatOp, _choice: &Choice) -> Vec<Binding> {
        let stored = if op.dtype == DType::F32 { op.precision.storage() } else { op.dtype };
        let element = if op.width() == 4 { Element::Vec4(stored) } else { Element::Scalar(stored) };
        let inputs = (0..op.inputs.len()).map(|index| binding(operand(index), element, Access::Read));
        inputs.chain([binding(Operand::Dst, element, Access::Write)]).collect()
    }

    /// Counted in vec4s where they are moved.
    fn params(&self, op: &ConcatOp, _choice: &Choice) -> Params {
        let width = op.width();
        let (_, ends) = op.rows();
        let ends = ENDS.into_iter().zip(ends).map(|(name, end)| (name, unsigned(end / width)));
        [("elements", unsigned(op.target.elements() / width))].into_iter().chain(ends).collect()
    }

    fn constants(&self, op: &ConcatOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            line_width(),
            ("INPUTS", Value::U32(extent(op.inputs.len()))),
            ("LANES", Value::U32(extent(op.width()))),
        ]
    }
}
