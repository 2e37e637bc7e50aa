//! `group`: one row per work-group, whose size is `tile[0]`, in lines of `GROUPS` work-groups.

use super::{DynamicRangeOp, RangeRule};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::reduce::groups::{GROUPS, groups};
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, binding, extent};

/// Elements from which on the default is the larger work-group.
const LONG: usize = 1024;

#[derive(Debug)]
pub(super) struct Group;

impl Kernel<DynamicRangeOp> for Group {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("group", DynamicRangeOp::TEXT).in_rows().of_tile()
    }

    fn offers(&self, op: &DynamicRangeOp, _limits: &Limits) -> Vec<Offer> {
        match op.count() {
            0..LONG => offers(0, [[64, 1, 1], [256, 1, 1]]),
            _ => offers(0, [[256, 1, 1], [64, 1, 1]]),
        }
    }

    fn grid(&self, op: &DynamicRangeOp, tile: [u32; 3]) -> [u32; 3] {
        groups(op.rows(), tile[0])
    }

    fn bindings(&self, _op: &DynamicRangeOp, _choice: &Choice) -> Vec<Binding> {
        let element = Element::Scalar(DType::F32);
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    fn params(&self, op: &DynamicRangeOp, _choice: &Choice) -> Params {
        RowsOp::params(op)
    }

    fn constants(&self, op: &DynamicRangeOp, choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("SIZE", Value::U32(choice.tile[0])),
            ("WIDTH", Value::U32(extent(GROUPS))),
            ("NEARER", Value::U32(u32::from(op.rule == RangeRule::Nearer))),
        ]
    }
}
