//! `serial`: one line along the axis per invocation; `group`: one per work-group, whose size is `tile[0]`.

use super::SoftmaxOp;
use crate::dtype::Precision;
use crate::emit::{Binding, Scalar, Value};
use crate::limits::{Family, Limits};
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::reduce::rows::{GROUPS, bindings, group_sizes, groups, pays};
use crate::ops::rows::{self, line_width};
use crate::ops::spec::{Params, extent, unsigned};

fn lines(op: &SoftmaxOp) -> usize {
    let [outer, _, inner] = op.extents();
    outer * inner
}

fn params(op: &SoftmaxOp) -> Params {
    let [_, count, inner] = op.extents();
    vec![
        ("lines", unsigned(lines(op))),
        ("count", unsigned(count)),
        ("inner", unsigned(inner)),
        ("beta", Scalar::F32(op.beta.0)),
    ]
}

#[derive(Debug)]
pub(super) struct Serial;

impl Kernel<SoftmaxOp> for Serial {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("serial", crate::emit::text!("../../../shaders/softmax/serial.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    fn offers(&self, _op: &SoftmaxOp, _limits: &Limits) -> Vec<Offer> {
        offers(1, [[1, 1, 1]])
    }

    fn grid(&self, op: &SoftmaxOp, _tile: [u32; 3]) -> [u32; 3] {
        rows::lines(lines(op))
    }

    fn bindings(&self, op: &SoftmaxOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op.precision.storage())
    }

    fn params(&self, op: &SoftmaxOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &SoftmaxOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![("LOG", Value::U32(u32::from(op.log))), line_width()]
    }

    fn precision(&self, op: &SoftmaxOp) -> Option<Precision> {
        Some(op.precision.with_f32_sums())
    }
}

#[derive(Debug)]
pub(super) struct Group;

impl Kernel<SoftmaxOp> for Group {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("group", crate::emit::text!("../../../shaders/softmax/group.wgsl"))
            .in_rows()
            .of_tile()
    }

    /// Before one invocation for a line where a line's elements are neighbours, which it reads together, and
    /// invocations are many enough to read them at once.
    fn offers(&self, op: &SoftmaxOp, limits: &Limits) -> Vec<Offer> {
        let [_, count, inner] = op.extents();
        let together = inner == 1 && limits.family != Family::CpuDriver;
        offers(if together { 0 } else { 2 }, group_sizes(count, limits))
    }

    fn untuned(&self, op: &SoftmaxOp, limits: &Limits) -> bool {
        pays(op.extents()[1], limits)
    }

    fn grid(&self, op: &SoftmaxOp, tile: [u32; 3]) -> [u32; 3] {
        groups(lines(op), tile[0])
    }

    fn bindings(&self, op: &SoftmaxOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op.precision.storage())
    }

    fn params(&self, op: &SoftmaxOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &SoftmaxOp, choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("LOG", Value::U32(u32::from(op.log))),
            ("SIZE", Value::U32(choice.tile[0])),
            ("WIDTH", Value::U32(extent(GROUPS))),
        ]
    }

    fn precision(&self, op: &SoftmaxOp) -> Option<Precision> {
        Some(op.precision.with_f32_sums())
    }
}
