//! The geometry of `thin`: products of few rows, which take the time that B takes to be read.
//!
//! A tile is groups of four columns, rows, and splits of the sum; a work-group is as deep as the
//! splits and narrow, so that there are enough of them: 64 bytes of a row of B side by side.

use super::GemmOp;
use crate::emit::{Dialect, Value};
use crate::limits::Limits;
use crate::ops::plan::Choice;

/// The most rows of a tile, and of a product. On an H200 sixteen rows, which two tiles share, took less
/// than `tiled`; up to 32 it is offered to the tuner, and estimated as if each tile read B.
const ROWS: usize = 8;
const MOST_ROWS: usize = 4 * ROWS;

/// Invocations of a work-group side by side, the default first.
const WIDTHS: [u32; 5] = [4, 8, 2, 16, 1];

/// The most invocations of a work-group that is offered: what drivers compile kernels for.
const INVOCATIONS: u32 = 256;

/// Whether a work-group stages its rows of A, and the next of B is on its way meanwhile. With few rows
/// each invocation can read them itself; which is faster depends on how many invocations there are, so
/// that of these tiles one stages and the others do not.
pub(super) const fn shared(tile: [u32; 3]) -> bool {
    tile[1] >= 4 || (tile[0] == 1 && tile[2] == 32)
}

/// Groups of four terms that an invocation sums at a time: as many loads of B are on their way. On an
/// H200, of 1 and 2, through Vulkan and OpenCL: eight rows of A in 28 and 36, 25 and 22 microseconds.
pub(super) fn ahead(tile: [u32; 3], dialect: Dialect) -> u32 {
    if shared(tile) && dialect == Dialect::Wgsl { 1 } else { 2 }
}

/// Vec4s that a work-group keeps: its rows of A twice over, then partial sums.
fn staged(choice: &Choice, dialect: Dialect) -> u32 {
    let ([columns4, rows, splits], [x, y, _]) = (choice.tile, choice.work_group);
    let partial_sums = splits / 2 * x * y * columns4 * rows;
    let window = if shared(choice.tile) { 2 * rows * splits * ahead(choice.tile, dialect) } else { 0 };
    partial_sums.max(window)
}

/// The work-groups that suit `tile`, the default first.
pub(super) fn work_groups(tile: [u32; 3]) -> Vec<[u32; 3]> {
    // With few rows, half as many work-groups of whole lines of B.
    let widths = if tile[1] < 4 && shared(tile) { [8, 4, 2, 16, 1] } else { WIDTHS };
    let sizes = widths.map(|x| [x, 1, tile[2]]).into_iter();
    sizes.filter(|size| size.iter().product::<u32>() <= INVOCATIONS).collect()
}

impl GemmOp {
    /// Whether there are so few rows that most of a matrix instruction's would be missing.
    pub(super) const fn few_rows(&self) -> bool {
        self.m <= 2 * ROWS
    }

    /// The tiles of `thin`: as many rows as there are, up to eight. None if `tiled` reads B as
    /// seldom.
    pub(super) fn thin_tiles(&self) -> Vec<[u32; 3]> {
        if self.m > MOST_ROWS {
            return Vec::new();
        }
        let rows = self.m.next_power_of_two().min(ROWS) as u32;
        [[1, rows, 64], [1, rows, 32], [1, rows, 16], [2, rows, 32], [1, rows, 8]].to_vec()
    }

    /// Why `thin` cannot run as `choice`, if it cannot.
    pub(super) fn thin_obstacle(&self, choice: &Choice, limits: &Limits) -> Option<String> {
        let ([.., splits], [_, y, depth]) = (choice.tile, choice.work_group);
        if depth != splits {
            return Some(format!("the work-group is {depth} deep, {splits} splits need {splits}"));
        }
        if y != 1 && shared(choice.tile) {
            return Some(format!("the work-group has {y} rows of tiles, one shares its rows of A"));
        }
        let bytes =
            u64::from(staged(choice, limits.dialect)) * 4 * self.precision.accumulator().bytes() as u64;
        (bytes > u64::from(limits.local_memory))
            .then(|| format!("{bytes} bytes of local memory, the device has {}", limits.local_memory))
    }

    /// The constants of `thin`, which `choice` fits.
    pub(super) fn thin_constants(&self, choice: &Choice, limits: &Limits) -> Vec<(&'static str, Value)> {
        let ([_, rows, splits], [x, y, _]) = (choice.tile, choice.work_group);
        let ahead = ahead(choice.tile, limits.dialect);
        [
            ("SPLITS", splits),
            ("AHEAD", ahead),
            ("SHARED", u32::from(shared(choice.tile))),
            ("WINDOW", ahead * splits),
            ("LOADS_A", (rows * ahead).div_ceil(x)),
            ("THREADS", x * y),
            ("STAGED", staged(choice, limits.dialect)),
        ]
        .map(|(name, value)| (name, Value::U32(value)))
        .to_vec()
    }
}
