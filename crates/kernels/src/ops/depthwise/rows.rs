//! `rows`: neighbouring pixels of a row per invocation, on a grid of width x height x slices.

use super::DepthwiseOp;
use super::arguments::{SIZE, beside, fits_row, grid, row_params};
use crate::emit::Value;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::Registers;
use crate::ops::spec::{self, Params, extent};

#[derive(Debug)]
pub(super) struct Rows;

impl Kernel<DepthwiseOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/depthwise/rows.wgsl"))
    }

    fn offers(&self, op: &DepthwiseOp, _limits: &Limits) -> Vec<Offer> {
        // Because each column is a register and the window is unrolled along the row.
        let serves = op.multiplier() == 1 && op.0.dilation == [1, 1];
        let tiles = [2, 4, 1].into_iter().filter(|&pixels| serves && fits_row(&op.0, pixels));
        offers(0, tiles.map(|pixels| [extent(pixels), 1, 1]))
    }

    fn registers(&self, op: &DepthwiseOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        // A row of the window, its weights, and the sums.
        let columns = choice.tile[0] + extent(op.0.kernel[1]);
        Some(Registers::alone(32 + 4 * (columns + extent(op.0.kernel[1]) + choice.tile[0])))
    }

    fn grid(&self, op: &DepthwiseOp, tile: [u32; 3]) -> [u32; 3] {
        grid(op, tile)
    }

    /// In rows, neighbours have neighbouring slices.
    fn work_groups(&self, op: &DepthwiseOp, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        let slices = beside(op);
        op.0.rows.map(|_| vec![[1, SIZE / slices, slices]]).unwrap_or_default()
    }

    fn params(&self, op: &DepthwiseOp, _choice: &Choice) -> Params {
        [spec::window_params(&op.0), row_params(op)].concat()
    }

    fn constants(&self, op: &DepthwiseOp, choice: &Choice, _limits: &Limits) -> Constants {
        let rows = u32::from(op.0.rows.is_some());
        let own = [("TILE_X", choice.tile[0]), ("ROWS", rows)].map(|(name, value)| (name, Value::U32(value)));
        [spec::window_constants(&op.0), own.to_vec()].concat()
    }
}
