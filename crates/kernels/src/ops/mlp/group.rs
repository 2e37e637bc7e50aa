//! `group`: two layers, a row per work-group, whose size is `tile[0]`.

use super::MlpOp;
use super::arguments::{self, SIZE, words_of};
use super::last::{Last, pays};
use crate::dtype::Precision;
use crate::emit::{Binding, Operand};
use crate::limits::Limits;
use crate::ops::group_product::{local_obstacle, shares};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, extent};

#[derive(Debug)]
pub(super) struct Group;

impl Kernel<MlpOp> for Group {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("group", crate::emit::text!("../../../shaders/mlp/group.wgsl")).in_rows().of_tile()
    }

    fn offers(&self, op: &MlpOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        offers(1, [[SIZE, 1, 1], [64, 1, 1]])
    }

    fn untuned(&self, op: &MlpOp, limits: &Limits) -> bool {
        !pays(op) || Last.obstacle(op, limits).is_some()
    }

    fn grid(&self, op: &MlpOp, tile: [u32; 3]) -> [u32; 3] {
        [tile[0], extent(op.rows().n), 1]
    }

    fn obstacle(&self, op: &MlpOp, limits: &Limits) -> Option<String> {
        let Some(first) = &op.first else { return Some("one layer".to_owned()) };
        local_obstacle(SIZE, words_of(first.input.c) + words_of(first.output.c), limits.local_memory)
    }

    fn bindings(&self, op: &MlpOp, _choice: &Choice) -> Vec<Binding> {
        arguments::bindings(op)
    }

    fn params(&self, op: &MlpOp, _choice: &Choice) -> Params {
        arguments::params(op)
    }

    fn constants(&self, op: &MlpOp, choice: &Choice, _limits: &Limits) -> Constants {
        let size = choice.tile[0];
        let of_last = shares(size, op.last.output.slices(), op.last.input.c);
        let mut constants = arguments::constants(op, size, of_last);
        if let Some(first) = &op.first {
            let shares = shares(size, first.output.slices(), first.input.c);
            constants.extend(arguments::constants_of_first(first, shares));
        }
        constants
    }

    fn precision(&self, op: &MlpOp) -> Option<Precision> {
        Some(op.last.precision)
    }

    fn pack(&self, op: &MlpOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        arguments::pack(op, operand, data)
    }
}
