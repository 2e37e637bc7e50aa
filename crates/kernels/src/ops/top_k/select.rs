//! `select`: one row per work-group, in lines of `LINE` work-groups. `k` of `n` elements take five readings of the row
//! and `k log(k)^2 / 2` comparisons.

use super::TopKOp;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{RowsOp, wide_obstacle, word_number};
use crate::ops::spec::{Params, binding, extent, unsigned};

/// The most work-groups along an axis in WebGPU.
const LINE: usize = 65535;

/// The most elements of a row: their indices are numbers of f32 on the way.
const MOST: usize = 1 << 24;

#[derive(Debug)]
pub(super) struct Select;

fn rows(op: &TopKOp) -> usize {
    let [terms, _] = op.extents();
    op.source.elements() / terms
}

impl Kernel<TopKOp> for Select {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("select", crate::emit::text!("../../../shaders/top_k/select.wgsl")).in_rows()
    }

    fn offers(&self, op: &TopKOp, limits: &Limits) -> Vec<Offer> {
        offers(if op.is_long(limits) { 0 } else { 1 }, [[256, 1, 1], [64, 1, 1]])
    }

    fn grid(&self, op: &TopKOp, tile: [u32; 3]) -> [u32; 3] {
        let rows = rows(op);
        [extent(rows.min(LINE)) * tile[0], extent(rows.div_ceil(LINE)), 1]
    }

    /// Of a short row it leaves more idle.
    fn untuned(&self, op: &TopKOp, limits: &Limits) -> bool {
        op.is_long(limits)
    }

    fn work_groups(&self, _op: &TopKOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        vec![tile]
    }

    fn obstacle(&self, op: &TopKOp, _limits: &Limits) -> Option<String> {
        let [terms, _] = op.extents();
        let long = (terms > MOST).then(|| format!("rows of {terms} elements, at most {MOST}"));
        long.or_else(|| wide_obstacle(op.dtype))
    }

    fn choice_obstacle(&self, _op: &TopKOp, choice: &Choice, _limits: &Limits) -> Option<String> {
        let Choice { work_group, tile, .. } = *choice;
        (work_group != tile).then(|| format!("work-group {work_group:?}, wanted {tile:?}"))
    }

    fn bindings(&self, op: &TopKOp, _choice: &Choice) -> Vec<Binding> {
        let element = |operand| Element::Scalar(RowsOp::dtype(op, operand));
        vec![
            binding(Operand::Src, element(Operand::Src), Access::Read),
            binding(Operand::Dst, element(Operand::Dst), Access::ReadWrite),
        ]
    }

    fn params(&self, op: &TopKOp, _choice: &Choice) -> Params {
        let [terms, chosen] = op.extents();
        vec![("rows", unsigned(rows(op))), ("terms", unsigned(terms)), ("chosen", unsigned(chosen))]
    }

    fn constants(&self, op: &TopKOp, choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("INDICES", Value::U32(u32::from(op.indices))),
            ("SOURCE", word_number(op.dtype)),
            ("TURNED", op.turned()),
            ("SIZE", Value::U32(choice.tile[0])),
            ("WIDTH", Value::U32(extent(LINE))),
        ]
    }

    /// It has no constants.
    fn pack(&self, _op: &TopKOp, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        data.to_vec()
    }
}
