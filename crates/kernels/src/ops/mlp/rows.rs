//! `rows`: one layer, on a grid of its slices x rows: `tile[1]` rows, and the slices of the `tile[0]` invocations of a
//! work-group, of which `tile[2]` share a slice.

use super::MlpOp;
use super::arguments::{self, SIZE, words_of};
use crate::dtype::Precision;
use crate::emit::Binding;
use crate::emit::Operand;
use crate::limits::Limits;
use crate::limits::machine::Machine;
use crate::ops::group_product::local_obstacle;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, extent};

/// Rows of a work-group, at most.
const ROWS: usize = 4;

#[derive(Debug)]
pub(super) struct Rows;

/// Words of local memory for the rows of a work-group.
fn values(op: &MlpOp, rows: usize) -> usize {
    rows * words_of(op.rows().c)
}

/// Rows of a work-group.
fn rows(op: &MlpOp) -> usize {
    op.rows().n.next_power_of_two().min(ROWS)
}

impl Kernel<MlpOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/mlp/rows.wgsl")).in_rows().of_tile()
    }

    /// The fewest work-groups that keep all units busy: each normalises the rows once more.
    fn offers(&self, op: &MlpOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        let rows = extent(rows(op));
        let units = Machine::of(limits).map_or(32, |machine| machine.units as usize);
        let groups = |shares: u32| op.last.output.slices().div_ceil((SIZE / shares) as usize);
        let all = [16, 32, 64, 128, 256];
        let usual = all.into_iter().find(|&shares| groups(shares) >= units).unwrap_or(256);
        let others = all.into_iter().filter(|&shares| shares != usual);
        let tiles = [usual].into_iter().chain(others).map(|shares| [SIZE, rows, shares]);
        offers(0, tiles.chain([[64, rows, 64], [64, rows, 16]]))
    }

    fn grid(&self, op: &MlpOp, [size, rows, shares]: [u32; 3]) -> [u32; 3] {
        let groups = op.last.output.slices().div_ceil((size / shares.max(1)).max(1) as usize);
        [extent(groups).saturating_mul(size), extent(op.rows().n).div_ceil(rows.max(1)), 1]
    }

    fn obstacle(&self, op: &MlpOp, limits: &Limits) -> Option<String> {
        if op.first.is_some() {
            return Some("two layers".to_owned());
        }
        local_obstacle(SIZE, values(op, rows(op)), limits.local_memory)
    }

    fn choice_obstacle(&self, op: &MlpOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let [size, rows, shares] = choice.tile;
        if shares > size || !shares.is_power_of_two() {
            return Some(format!("{shares} of {size} invocations share a sum"));
        }
        local_obstacle(size, values(op, rows as usize), limits.local_memory)
    }

    fn bindings(&self, op: &MlpOp, _choice: &Choice) -> Vec<Binding> {
        arguments::bindings(op)
    }

    fn params(&self, op: &MlpOp, _choice: &Choice) -> Params {
        arguments::params(op)
    }

    fn constants(&self, op: &MlpOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [size, _, shares] = choice.tile;
        arguments::constants(op, size, shares as usize)
    }

    fn precision(&self, op: &MlpOp) -> Option<Precision> {
        Some(op.last.precision)
    }

    fn pack(&self, op: &MlpOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        arguments::pack(op, operand, data)
    }
}
