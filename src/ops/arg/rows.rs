//! `serial`: one line along the axis per invocation; `group`: one per work-group, whose size is `tile[0]`.

use super::ArgOp;
use crate::emit::{Binding, Value};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::reduce::rows::{GROUPS, bindings, group_sizes, groups, wrong_group};
use crate::ops::rows::{self, line_width};
use crate::ops::spec::{Params, extent, unsigned};

fn lines(op: &ArgOp) -> usize {
    let [outer, _, inner] = op.extents();
    outer * inner
}

fn params(op: &ArgOp) -> Params {
    let [_, count, inner] = op.extents();
    vec![("lines", unsigned(lines(op))), ("count", unsigned(count)), ("inner", unsigned(inner))]
}

#[derive(Debug)]
pub(super) struct Serial;

impl Kernel<ArgOp> for Serial {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("serial", crate::emit::text!("../../../shaders/arg/serial.wgsl"))
    }

    fn offers(&self, _op: &ArgOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[1, 1, 1]])
    }

    fn grid(&self, op: &ArgOp, _tile: [u32; 3]) -> [u32; 3] {
        rows::lines(lines(op))
    }

    fn ordinary(&self) -> Ordinary {
        Ordinary::Size([64, 1, 1])
    }

    fn layouts(&self) -> &'static [Layout] {
        &[Layout::Nhwc]
    }

    fn bindings(&self, _op: &ArgOp, _choice: &Choice) -> Vec<Binding> {
        bindings()
    }

    fn params(&self, op: &ArgOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &ArgOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![("LARGEST", Value::U32(u32::from(op.largest))), line_width()]
    }
}

#[derive(Debug)]
pub(super) struct Group;

impl Kernel<ArgOp> for Group {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("group", crate::emit::text!("../../../shaders/arg/group.wgsl"))
    }

    fn offers(&self, op: &ArgOp, limits: &Limits) -> Vec<Offer> {
        let [_, count, _] = op.extents();
        offers(1, group_sizes(count, limits))
    }

    fn grid(&self, op: &ArgOp, tile: [u32; 3]) -> [u32; 3] {
        groups(lines(op), tile[0])
    }

    fn work_groups(&self, _op: &ArgOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        vec![tile]
    }

    fn choice_obstacle(&self, _op: &ArgOp, choice: &Choice, _limits: &Limits) -> Option<String> {
        wrong_group(choice)
    }

    fn layouts(&self) -> &'static [Layout] {
        &[Layout::Nhwc]
    }

    fn bindings(&self, _op: &ArgOp, _choice: &Choice) -> Vec<Binding> {
        bindings()
    }

    fn params(&self, op: &ArgOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &ArgOp, choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("LARGEST", Value::U32(u32::from(op.largest))),
            ("SIZE", Value::U32(choice.tile[0])),
            ("WIDTH", Value::U32(extent(GROUPS))),
        ]
    }
}
