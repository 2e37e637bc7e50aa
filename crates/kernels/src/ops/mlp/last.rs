//! `last`: two layers, a slice of what lies between them per work-group, whose size is `tile[0]`, on a grid of slices x
//! rows. The work-group of a row that arrives last makes the outputs: see `ops/arrival.rs`.

use super::MlpOp;
use super::arguments::{self, SIZE, words_of};
use super::group::Group;
use crate::dtype::Precision;
use crate::emit::{Binding, Operand, Value};
use crate::limits::Limits;
use crate::ops::arrival::{self, Arrival};
use crate::ops::group_product::{local_obstacle, shares};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, extent};

/// Weights of the first layer up to which one work-group reads them in less time than several meet in.
const FEW: usize = 32 << 10;

/// Rows from which on a work-group for each keeps a device busy.
const MANY_ROWS: usize = 64;

#[derive(Debug)]
pub(super) struct Last;

/// Whether several work-groups for each row form the first layer in less time than one.
pub(super) fn pays(op: &MlpOp) -> bool {
    op.first.is_some_and(|first| first.input.c * first.output.c > FEW) && op.rows().n < MANY_ROWS
}

/// What the work-groups of a row tell each other: a vec4 each.
fn arrival(op: &MlpOp) -> Option<Arrival> {
    Arrival::of(4 * op.first?.output.slices(), 1, 1)
}

impl Kernel<MlpOp> for Last {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("last", crate::emit::text!("../../../shaders/mlp/last.wgsl")).in_rows().of_tile()
    }

    fn offers(&self, op: &MlpOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        offers(0, [[SIZE, 1, 1], [64, 1, 1]])
    }

    fn untuned(&self, op: &MlpOp, limits: &Limits) -> bool {
        pays(op) || Group.obstacle(op, limits).is_some()
    }

    fn grid(&self, op: &MlpOp, tile: [u32; 3]) -> [u32; 3] {
        let groups = op.first.map_or(1, |first| first.output.slices());
        [extent(groups).saturating_mul(tile[0]), extent(op.rows().n), 1]
    }

    fn obstacle(&self, op: &MlpOp, limits: &Limits) -> Option<String> {
        let Some(first) = &op.first else { return Some("one layer".to_owned()) };
        if arrival(op).is_none() {
            return Some(arrival::too_many(4 * first.output.slices()));
        }
        local_obstacle(SIZE, words_of(first.input.c) + words_of(first.output.c), limits.local_memory)
    }

    fn bindings(&self, op: &MlpOp, _choice: &Choice) -> Vec<Binding> {
        let mut bindings = arguments::bindings(op);
        bindings.extend(arrival(op).map(|arrival| arrival.binding(op.rows().n)));
        bindings
    }

    fn params(&self, op: &MlpOp, _choice: &Choice) -> Params {
        arguments::params(op)
    }

    fn constants(&self, op: &MlpOp, choice: &Choice, limits: &Limits) -> Constants {
        let size = choice.tile[0];
        let of_last = shares(size, op.last.output.slices(), op.last.input.c);
        let mut constants = arguments::constants(op, size, of_last);
        if let Some(first) = &op.first {
            constants.extend(arguments::constants_of_first(first, size as usize));
        }
        constants.push((arrival::SPINS, Value::U32(arrival::spins(limits))));
        constants
    }

    fn precision(&self, op: &MlpOp) -> Option<Precision> {
        Some(op.last.precision)
    }

    fn pack(&self, op: &MlpOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        arguments::pack(op, operand, data)
    }
}
