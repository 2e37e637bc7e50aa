//! `rows`: neighbouring pixels of a row per invocation, on a grid of width x height x slices.

use super::DepthwiseOp;
use super::arguments::{fits_row, grid};
use crate::emit::Value;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::Registers;
use crate::ops::spec::{self, extent};

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

    fn constants(&self, op: &DepthwiseOp, choice: &Choice, _limits: &Limits) -> Constants {
        [spec::window_constants(&op.0), vec![("TILE_X", Value::U32(choice.tile[0]))]].concat()
    }
}
