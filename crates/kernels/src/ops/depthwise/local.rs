//! `local`: the input is staged in local memory, the part that the windows of a work-group touch. On a grid
//! of width x height x slices, the tile being columns and rows.

use super::DepthwiseOp;
use super::arguments::{grid, in_registers};
use crate::emit::Value;
use crate::limits::Limits;
use crate::ops::Convolution;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, extent};

/// Columns and rows of an invocation.
const TILES: [[usize; 2]; 4] = [[1, 2], [2, 2], [1, 4], [1, 1]];

/// Columns and rows of the input that the windows of a work-group span.
fn staged(problem: &Convolution, choice: &Choice) -> [u32; 2] {
    let span = |axis: usize, outputs: u32| {
        let [stride, dilation, taps] =
            [problem.stride, problem.dilation, problem.kernel].map(|of| extent(of[axis]));
        (outputs.saturating_sub(1)).saturating_mul(stride).saturating_add((taps - 1) * dilation + 1)
    };
    let outputs = |axis: usize| choice.work_group[axis].saturating_mul(choice.tile[axis]);
    [span(1, outputs(0)), span(0, outputs(1))]
}

#[derive(Debug)]
pub(super) struct Local;

impl Kernel<DepthwiseOp> for Local {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("local", crate::emit::text!("../../../shaders/depthwise/local.wgsl"))
    }

    fn offers(&self, op: &DepthwiseOp, _limits: &Limits) -> Vec<Offer> {
        let serves =
            |tile: &[usize; 2]| op.multiplier() == 1 && op.0.rows.is_none() && in_registers(&op.0, *tile);
        let tiles = TILES.into_iter().filter(serves);
        offers(0, tiles.map(|[columns, rows]| [extent(columns), extent(rows), 1]))
    }

    fn grid(&self, op: &DepthwiseOp, tile: [u32; 3]) -> [u32; 3] {
        grid(op, tile)
    }

    fn choice_obstacle(&self, op: &DepthwiseOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let depth = choice.work_group[2];
        if depth != 1 {
            return Some(format!("the work-group is {depth} deep, and one slice is staged"));
        }
        let [columns, rows] = staged(&op.0, choice).map(u64::from);
        let vec4 = 4 * op.0.precision.accumulator().bytes() as u64;
        spec::local_obstacle(vec4.saturating_mul(columns * rows), limits)
    }

    /// One slice is staged at a time.
    fn work_groups(&self, _op: &DepthwiseOp, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        [[16, 8], [8, 8], [32, 4], [16, 4], [8, 4]].map(|[x, y]| [x, y, 1]).to_vec()
    }

    fn constants(&self, op: &DepthwiseOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [columns, rows] = staged(&op.0, choice);
        let [x, y, _] = choice.tile;
        let own = [("TILE_X", x), ("TILE_Y", y), ("STAGED_W", columns), ("STAGED_H", rows)];
        [spec::window_constants(&op.0), own.map(|(name, value)| (name, Value::U32(value))).to_vec()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::Op;
    use crate::ops::depthwise::{Depthwise, DepthwiseOp};
    use crate::shape::{Padding, Shape};

    #[test]
    fn windows_of_a_work_group_are_staged_with_their_halo_or_refused() {
        let options =
            Depthwise { stride: [2, 1], dilation: [1, 2], padding: Padding::Same, ..Default::default() };
        let (input, weights) = (Shape::nhwc(1, 40, 40, 8), Shape::nhwc(1, 3, 3, 8));
        let op = DepthwiseOp::new(input, weights, &options, false, false, Precision::F32).expect("valid");
        let choice = Choice::new("local", [2, 4, 1], [8, 4, 1]);
        // 16 columns one apart and five taps wide; 16 rows two apart and three taps high.
        assert_eq!(staged(&op.0, &choice), [20, 33]);
        let limits = Limits { local_memory: 10_000, ..Limits::webgpu() };
        let op: &dyn Op = &op;
        let refused = |choice| op.fits(&choice, &limits).expect_err("refused").to_string();
        let choice = Choice::new("local", [2, 2, 1], [16, 8, 1]);
        // 36 x 33 vec4s.
        assert!(refused(choice).contains("19008 bytes of local memory, the device has 10000"));
        assert!(refused(Choice { work_group: [4, 4, 2], ..choice }).contains("2 deep"));
        assert!(op.fits(&Choice { work_group: [8, 4, 1], ..choice }, &limits).is_ok());
    }
}
