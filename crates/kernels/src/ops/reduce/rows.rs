//! `serial`: one output per invocation, in lines of [`LINE`](crate::ops::rows::LINE) invocations; `group`: one per work-group, whose
//! size is `tile[0]`, in lines of [`GROUPS`] work-groups.

use super::ReduceOp;
use super::arguments::constants;
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Dialect, Element, Operand, Value};
use crate::limits::{Family, Limits};
use crate::ops::definition::Definition;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::{line_width, lines, wide_obstacle};
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Work-groups of a line.
pub(in crate::ops) const GROUPS: usize = 32768;

/// The elements from which on a work-group may have 1024 invocations.
const LARGE: usize = 4096;

/// The fewest elements that a work-group joins.
pub(in crate::ops) const FEWEST: usize = 32;

/// The sizes of a work-group that joins `count` elements, the default first: each invocation has enough to do.
/// The largest only where invocations run side by side, and not through OpenCL: NVIDIA's compiler makes kernels for
/// at most 256 invocations there.
pub(in crate::ops) fn group_sizes(count: usize, limits: &Limits) -> Vec<[u32; 3]> {
    match count {
        0..FEWEST => Vec::new(),
        FEWEST..1024 => vec![[64, 1, 1], [256, 1, 1]],
        LARGE.. if limits.family != Family::CpuDriver && limits.dialect == Dialect::Wgsl => {
            vec![[1024, 1, 1], [256, 1, 1], [64, 1, 1]]
        }
        _ => vec![[256, 1, 1], [64, 1, 1]],
    }
}

/// Whether a session that measured nothing joins `count` elements by a work-group, which no other thread of a CPU helps.
pub(in crate::ops) fn pays(count: usize, limits: &Limits) -> bool {
    count >= LARGE || !limits.has_lanes()
}

/// The grid of `outputs` work-groups of `size` invocations.
pub(in crate::ops) fn groups(outputs: usize, size: u32) -> [u32; 3] {
    [extent(outputs.min(GROUPS)) * size, extent(outputs.div_ceil(GROUPS)), 1]
}

/// Rows of `dtype` in and out.
pub(in crate::ops) fn bindings(dtype: DType) -> Vec<Binding> {
    let element = Element::Scalar(dtype);
    vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
}

impl ReduceOp {
    /// What its rows compute in: halves are stored where they hold the result.
    fn precision_of_rows(&self) -> Precision {
        if Definition::halves(self) { self.precision.with_f32_sums() } else { Precision::F32 }
    }

    /// The type of its rows.
    fn stored(&self) -> DType {
        if self.dtype == DType::F32 { self.precision_of_rows().storage() } else { self.dtype }
    }
}

fn params(op: &ReduceOp) -> Params {
    let merged = op.merged();
    let [kept, reduced] = [merged.kept, merged.reduced];
    vec![
        ("outputs", unsigned(merged.outputs())),
        ("count", unsigned(merged.count())),
        ("kept1", unsigned(kept[1].extent)),
        ("kept2", unsigned(kept[2].extent)),
        ("kept_step0", unsigned(kept[0].step)),
        ("kept_step1", unsigned(kept[1].step)),
        ("kept_step2", unsigned(kept[2].step)),
        ("reduced0", unsigned(reduced[0].extent)),
        ("reduced1", unsigned(reduced[1].extent)),
        ("reduced2", unsigned(reduced[2].extent)),
        ("reduced_step0", unsigned(reduced[0].step)),
        ("reduced_step1", unsigned(reduced[1].step)),
        ("reduced_step2", unsigned(reduced[2].step)),
    ]
}

#[derive(Debug)]
pub(super) struct Serial;

impl Kernel<ReduceOp> for Serial {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("serial", crate::emit::text!("../../../shaders/reduce/serial.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    fn offers(&self, _op: &ReduceOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[1, 1, 1]])
    }

    fn grid(&self, op: &ReduceOp, _tile: [u32; 3]) -> [u32; 3] {
        lines(op.merged().outputs())
    }

    fn bindings(&self, op: &ReduceOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op.stored())
    }

    fn obstacle(&self, op: &ReduceOp, _limits: &Limits) -> Option<String> {
        wide_obstacle(op.dtype)
    }

    fn params(&self, op: &ReduceOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &ReduceOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = constants(op.reduction);
        constants.push(line_width());
        constants
    }

    fn precision(&self, op: &ReduceOp) -> Option<Precision> {
        Some(op.precision_of_rows())
    }
}

#[derive(Debug)]
pub(super) struct Group;

impl Kernel<ReduceOp> for Group {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("group", crate::emit::text!("../../../shaders/reduce/group.wgsl"))
            .in_rows()
            .of_tile()
    }

    fn offers(&self, op: &ReduceOp, limits: &Limits) -> Vec<Offer> {
        match op.dtype {
            DType::F32 => offers(1, group_sizes(op.merged().count(), limits)),
            _ => Vec::new(),
        }
    }

    fn untuned(&self, op: &ReduceOp, limits: &Limits) -> bool {
        pays(op.merged().count(), limits)
    }

    fn grid(&self, op: &ReduceOp, tile: [u32; 3]) -> [u32; 3] {
        groups(op.merged().outputs(), tile[0])
    }

    fn bindings(&self, op: &ReduceOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op.stored())
    }

    fn params(&self, op: &ReduceOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &ReduceOp, choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = constants(op.reduction);
        constants.push(("SIZE", Value::U32(choice.tile[0])));
        constants.push(("WIDTH", Value::U32(extent(GROUPS))));
        constants
    }

    fn precision(&self, op: &ReduceOp) -> Option<Precision> {
        Some(op.precision_of_rows())
    }
}
