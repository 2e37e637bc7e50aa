//! `group`: one line along the axis per work-group, whose size is `tile[0]`.

use super::ArgOp;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::reduce::groups::{GROUPS, group_sizes, groups};
use crate::ops::rows::{RowsOp, wide_obstacle, word_number};
use crate::ops::spec::{Params, binding, extent};

#[derive(Debug)]
pub(super) struct Group;

impl Kernel<ArgOp> for Group {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("group", crate::emit::text!("../../../shaders/arg/group.wgsl")).in_rows().of_tile()
    }

    fn offers(&self, op: &ArgOp, limits: &Limits) -> Vec<Offer> {
        let [_, count, _] = op.extents();
        offers(1, group_sizes(count, limits))
    }

    fn grid(&self, op: &ArgOp, tile: [u32; 3]) -> [u32; 3] {
        groups(op.invocations(), tile[0])
    }

    fn obstacle(&self, op: &ArgOp, _limits: &Limits) -> Option<String> {
        wide_obstacle(op.dtype)
    }

    fn bindings(&self, op: &ArgOp, _choice: &Choice) -> Vec<Binding> {
        let element = |operand| Element::Scalar(RowsOp::dtype(op, operand));
        vec![
            binding(Operand::Src, element(Operand::Src), Access::Read),
            binding(Operand::Dst, element(Operand::Dst), Access::Write),
        ]
    }

    fn params(&self, op: &ArgOp, _choice: &Choice) -> Params {
        RowsOp::params(op)
    }

    fn constants(&self, op: &ArgOp, choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("LARGEST", Value::U32(u32::from(op.largest))),
            ("SOURCE", word_number(op.dtype)),
            ("SIZE", Value::U32(choice.tile[0])),
            ("WIDTH", Value::U32(extent(GROUPS))),
        ]
    }
}
