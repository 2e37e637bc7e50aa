//! `group`: an image per work-group, whose size is `tile[0]`.

use super::SqueezeOp;
use super::arguments;
use super::last::pays;
use crate::emit::{Binding, Operand, Value};
use crate::layout::Form;
use crate::limits::Limits;
use crate::ops::group_product::{local_obstacle, shares};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, extent};

#[derive(Debug)]
pub(super) struct Group;

/// Words of local memory for means.
fn words(op: &SqueezeOp) -> usize {
    (4 * op.map.slices()).next_power_of_two().max(64)
}

impl Kernel<SqueezeOp> for Group {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("group", crate::emit::text!("../../../shaders/squeeze/group.wgsl")).of_tile()
    }

    fn offers(&self, op: &SqueezeOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        offers(1, [[256, 1, 1], [64, 1, 1]])
    }

    fn untuned(&self, op: &SqueezeOp, limits: &Limits) -> bool {
        !pays(op) || super::last::Last.obstacle(op, limits).is_some()
    }

    fn grid(&self, op: &SqueezeOp, tile: [u32; 3]) -> [u32; 3] {
        [tile[0], extent(op.map.n), 1]
    }

    fn obstacle(&self, op: &SqueezeOp, limits: &Limits) -> Option<String> {
        local_obstacle(256, words(op), limits.local_memory)
    }

    fn form(&self, op: &SqueezeOp, operand: Operand, _choice: &Choice) -> Option<Form> {
        arguments::form(op, operand)
    }

    fn bindings(&self, op: &SqueezeOp, _choice: &Choice) -> Vec<Binding> {
        arguments::bindings(op)
    }

    fn params(&self, op: &SqueezeOp, _choice: &Choice) -> Params {
        arguments::params(op)
    }

    fn constants(&self, op: &SqueezeOp, choice: &Choice, _limits: &Limits) -> Constants {
        let size = choice.tile[0];
        let mut constants = arguments::constants(op, size, words(op));
        let lanes = shares(size, op.map.slices(), op.plane());
        constants.push(("LANES", Value::U32(extent(lanes))));
        constants
    }

    fn pack(&self, op: &SqueezeOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        arguments::pack(op, operand, data)
    }
}
