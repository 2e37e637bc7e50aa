//! `tiled`: both operands are staged in local memory.
//!
//! A work-group of `WG_X x WG_Y x splits` covers `4 tile[0] WG_X` columns and `tile[1] WG_Y` rows.
//! Each of its splits stages [`STEP`] terms of both operands twice: A by term and groups of four
//! rows, with one vec4 between the terms so that the transposing stores fall into different banks,
//! and B by term and groups of four columns.

use super::arguments::{preference, staged};
use super::staging::{Fetching, Staging, tile_obstacle, work_groups};
use super::{GemmOp, effort};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};

/// Groups of four columns, rows, and splits of the sum; the largest reuse first. Which suits a
/// product is estimated (`effort.rs`).
const TILES: [[u32; 3]; 12] = [
    [2, 16, 1],
    [4, 8, 1],
    [2, 8, 1],
    [2, 8, 2],
    [2, 8, 4],
    [2, 4, 4],
    [1, 4, 4],
    [1, 4, 8],
    [1, 8, 2],
    [2, 4, 2],
    [2, 4, 1],
    [1, 4, 1],
];

#[derive(Debug)]
pub(super) struct Tiled;

impl Kernel<GemmOp> for Tiled {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("tiled", crate::emit::text!("../../../shaders/gemm/tiled.wgsl"))
            .listed_as(Layout::Nhwc)
            .by_estimate()
    }

    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        let tiles = TILES.into_iter().filter(|_| op.vec4_obstacle().is_none());
        offers(staged(preference::TILED, limits), tiles)
    }

    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [4, 1, 1])
    }

    fn obstacle(&self, op: &GemmOp, _limits: &Limits) -> Option<String> {
        op.vec4_obstacle()
    }

    fn choice_obstacle(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<String> {
        tile_obstacle(op, choice, limits)
    }

    fn work_groups(&self, _op: &GemmOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        work_groups(tile)
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Constants {
        let Some(staging) = Staging::of(choice.tile, choice.work_group) else { return Vec::new() };
        let ragged = !op.k.is_multiple_of((Staging::STEP * choice.tile[2]) as usize);
        op.constants_and(choice, &staging.constants(choice, ragged, Fetching::of(op, choice, limits)))
    }

    fn registers(&self, _op: &GemmOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        let staging = Staging::of(choice.tile, choice.work_group)?;
        Some(Registers::with_barriers(registers::of_staged(choice.tile[0], choice.tile[1], staging.loads)))
    }

    fn effort(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        effort::tiled(op, choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_work_group_shares_the_loads_and_fits_48_kib() {
        for tile in TILES {
            let groups = work_groups(tile);
            let staging = Staging::of(tile, groups[0]).expect("even loads");
            assert!(16 * staging.staged <= 49152, "{tile:?} {:?}: {staging:?}", groups[0]);
            assert!(groups.len() > 2, "{tile:?}: {groups:?}");
        }
        assert_eq!(work_groups([4, 8, 1])[0], [8, 16, 1]);
        assert_eq!(work_groups([1, 4, 8])[0], [8, 4, 8]);
    }

    #[test]
    fn an_uneven_share_is_refused() {
        assert_eq!(Staging::of([2, 8, 1], [3, 5, 1]), None);
        assert_eq!(Staging::of([2, 8, 1], [16, 16, 1]).map(|staging| staging.loads), Some([1, 1]));
    }
}
