//! The geometry of `thin`: products of few rows, which take the time that B takes to be read.
//!
//! A tile is groups of four columns, rows, and splits of the sum; a work-group is as deep as the
//! splits and narrow, so that there are enough of them: 64 bytes of a row of B side by side.

use super::GemmOp;
use crate::emit::Value;
use crate::limits::Limits;
use crate::ops::plan::Choice;

/// The most rows of a tile.
const ROWS: usize = 8;

/// Invocations of a work-group side by side, the default first.
const WIDTHS: [u32; 5] = [4, 8, 2, 16, 1];

/// The most invocations of a work-group that is offered: what drivers compile kernels for.
const INVOCATIONS: u32 = 256;

/// Vec4s of partial sums that a work-group keeps.
fn staged(choice: &Choice) -> u32 {
    let ([columns4, rows, splits], [x, y, _]) = (choice.tile, choice.work_group);
    splits / 2 * x * y * columns4 * rows
}

/// The work-groups that suit `tile`, the default first.
pub(super) fn work_groups(tile: [u32; 3]) -> Vec<[u32; 3]> {
    let sizes = WIDTHS.map(|x| [x, 1, tile[2]]).into_iter();
    sizes.filter(|size| size.iter().product::<u32>() <= INVOCATIONS).collect()
}

impl GemmOp {
    /// The tiles of `thin`: as many rows as there are, up to eight. None if `tiled` reads B as
    /// seldom.
    pub(super) fn thin_tiles(&self) -> Vec<[u32; 3]> {
        if self.m > 2 * ROWS {
            return Vec::new();
        }
        let rows = self.m.next_power_of_two().min(ROWS) as u32;
        [[1, rows, 64], [1, rows, 32], [1, rows, 16], [2, rows, 32], [1, rows, 8]].to_vec()
    }

    /// Why `thin` cannot run as `choice`, if it cannot.
    pub(super) fn thin_obstacle(&self, choice: &Choice, limits: &Limits) -> Option<String> {
        let ([.., splits], [.., depth]) = (choice.tile, choice.work_group);
        if depth != splits {
            return Some(format!("the work-group is {depth} deep, {splits} splits need {splits}"));
        }
        let bytes = u64::from(staged(choice)) * 4 * self.precision.accumulator().bytes() as u64;
        (bytes > u64::from(limits.local_memory))
            .then(|| format!("{bytes} bytes of local memory, the device has {}", limits.local_memory))
    }

    /// The constants of `thin`, which `choice` fits.
    pub(super) fn thin_constants(&self, choice: &Choice) -> Vec<(&'static str, Value)> {
        let ([_, rows, splits], [x, y, _]) = (choice.tile, choice.work_group);
        // Few rows leave registers for more of B on its way.
        let ahead = if rows <= 2 { 4 } else { 1 };
        [("SPLITS", splits), ("AHEAD", ahead), ("THREADS", x * y), ("STAGED", staged(choice))]
            .map(|(name, value)| (name, Value::U32(value)))
            .to_vec()
    }
}
