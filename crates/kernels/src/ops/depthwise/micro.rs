//! `micro`: a tile of columns and rows per invocation, in registers, on a grid of the tiles of a plane x slices.

use super::DepthwiseOp;
use super::arguments::{SIZE, beside, in_registers, row_params};
use crate::emit::{Scalar, Value};
use crate::limits::{Family, Limits};
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::Registers;
use crate::ops::spec::{self, Params, extent};

#[derive(Debug)]
pub(super) struct Micro;

impl Kernel<DepthwiseOp> for Micro {
    fn entry(&self) -> VariantEntry {
        // A warp of one slice, whose invocations share its weights.
        VariantEntry::wgsl("micro", crate::emit::text!("../../../shaders/depthwise/micro.wgsl"))
            .with_ordinary(Ordinary::Size([32, 2, 1]))
    }

    fn offers(&self, op: &DepthwiseOp, limits: &Limits) -> Vec<Offer> {
        let serves = |tile: &[usize; 2]| op.multiplier() == 1 && in_registers(&op.0, *tile);
        let tiles = [[1, 2], [2, 2], [2, 1], [1, 4], [1, 1]].into_iter().filter(serves);
        // Its text is the longest.
        let preference = u32::from(limits.compiles_slowly());
        offers(preference, tiles.map(|[columns, rows]| [extent(columns), extent(rows), 1]))
    }

    fn registers(&self, _op: &DepthwiseOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        // Of a window of 3x3: the loads of all taps are under way together.
        Some(Registers::alone(32 + 30 * choice.tile[0] * choice.tile[1]))
    }

    fn grid(&self, op: &DepthwiseOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.0.output;
        let tiles = extent(output.w).div_ceil(tile[0]) * extent(output.h).div_ceil(tile[1]);
        [tiles, extent(output.slices()) * extent(output.n), 1]
    }

    /// The loads of all taps are more than the registers of these hold: Mesa's compilers spill some for any tile.
    fn untuned(&self, _op: &DepthwiseOp, limits: &Limits) -> bool {
        let few = matches!(limits.family, Family::Intel | Family::Mali(_) | Family::Apple);
        !few && !limits.family.is_early_adreno()
    }

    /// In rows, neighbours have neighbouring slices.
    fn work_groups(&self, op: &DepthwiseOp, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        let slices = beside(op);
        op.0.rows.map(|_| vec![[SIZE / slices, slices, 1]]).unwrap_or_default()
    }

    fn params(&self, op: &DepthwiseOp, choice: &Choice) -> Params {
        let tiles = extent(op.0.output.w).div_ceil(choice.tile[0]);
        [spec::window_params(&op.0), vec![("tiles_w", Scalar::U32(tiles))], row_params(op)].concat()
    }

    fn constants(&self, op: &DepthwiseOp, choice: &Choice, _limits: &Limits) -> Constants {
        let rows = ("ROWS", u32::from(op.0.rows.is_some()));
        let tile = [("TILE_X", choice.tile[0]), ("TILE_Y", choice.tile[1]), rows];
        let tile = tile.map(|(name, value)| (name, Value::U32(value)));
        [spec::window_constants(&op.0), tile.to_vec()].concat()
    }
}
