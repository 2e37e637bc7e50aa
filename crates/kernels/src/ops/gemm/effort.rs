//! What the kernels of `gemm` ask of a device.

use super::GemmOp;
use super::staging::{Staging, ahead, shared};
use crate::limits::Limits;
use crate::ops::effort::{self, Effort, groups};
use crate::ops::plan::Choice;
use crate::ops::spec::extent;

/// Bytes of a line of a cache: a part of one is read as the whole.
const LINE: u64 = 128;

impl GemmOp {
    /// Bytes of all operands.
    pub(in crate::ops) fn traffic(&self) -> u64 {
        let [m, n, k, batch] = [self.m, self.n, self.k, self.batch].map(|extent| extent as u64);
        self.precision.storage().bytes() as u64 * batch * (m * k + k * n + m * n)
    }

    /// Bytes of so many rows of A and columns of B, whose rows lie one behind the other.
    pub(in crate::ops) fn reads(&self, rows: u32, columns: u32) -> u64 {
        let bytes = self.precision.storage().bytes() as u64;
        self.k as u64 * (u64::from(rows) * bytes + (u64::from(columns) * bytes).next_multiple_of(LINE))
    }
}

/// How much longer the vec4s from local memory take whose wave is less than eight columns wide, or belongs to two splits: it
/// reads more different ones at once.
const NARROW_FACTOR: u64 = 3;

/// Of `tiled` and `staged`; `None` if the choice does not fit.
pub(super) fn tiled(op: &GemmOp, choice: &Choice) -> Option<Effort> {
    let staging = Staging::of(choice.tile, choice.work_group)?;
    let [columns4, rows, splits] = choice.tile.map(|extent| extent.max(1));
    let [x, y, _] = choice.work_group;
    let steps = extent(op.k).div_ceil(Staging::STEP * splits);
    let terms = u64::from(steps * Staging::STEP);
    let loads = staging.loads[0] + staging.loads[1];
    let narrow = if x < 8 || staging.threads < 32 { NARROW_FACTOR } else { 1 };
    Some(Effort {
        groups: groups(op.grid_of(choice.tile, [4, 1, 1]), choice.work_group),
        invocations: staging.threads * splits,
        registers: 40 + 4 * columns4 * rows + 4 * loads + 2 * (4 * columns4 + rows),
        local_bytes: 4 * op.precision.accumulator().bytes() as u32 * staging.staged,
        steps,
        ahead: true,
        barriers: steps,
        multiplies: u64::from(4 * columns4 * rows) * terms,
        loads: u64::from(loads) * u64::from(steps),
        staged: narrow * u64::from(4 * columns4 + rows) * terms / 4,
        added: u64::from(splits.ilog2() * columns4 * rows),
        reads: op.reads(rows * y, 4 * columns4 * x),
        traffic: op.traffic(),
    })
}

/// Of `thin`.
pub(super) fn thin(op: &GemmOp, choice: &Choice, limits: &Limits) -> Effort {
    let [columns4, rows, splits] = choice.tile.map(|extent| extent.max(1));
    let [x, y, _] = choice.work_group;
    let ahead = ahead(choice.tile, limits.dialect);
    let terms4 = extent(op.k / 4).div_ceil(splits);
    let steps = terms4.div_ceil(ahead);
    let staged = shared(choice.tile);
    let own = if staged { rows.div_ceil(x.max(1)) } else { rows };
    let terms4 = u64::from(terms4);
    Effort {
        groups: groups(op.grid_of(choice.tile, [4, 1, 1]), choice.work_group),
        invocations: choice.work_group.iter().product(),
        registers: 30 + 4 * columns4 * rows + ahead * (16 * columns4 + 4 * rows),
        local_bytes: 4
            * op.precision.accumulator().bytes() as u32
            * super::thin::kept(choice, limits.dialect),
        steps,
        ahead: staged,
        barriers: if staged { steps } else { 0 },
        multiplies: u64::from(16 * columns4 * rows) * terms4,
        loads: u64::from(4 * columns4 + own) * terms4,
        staged: if staged { u64::from(rows) * terms4 } else { 0 },
        added: u64::from(splits.ilog2() * columns4 * rows),
        reads: op.reads(rows * y, 4 * columns4 * x),
        traffic: op.traffic(),
    }
}

/// Of `vec4` and `micro`.
pub(super) fn alone(op: &GemmOp, choice: &Choice) -> Effort {
    let [columns4, rows, _] = choice.tile.map(|extent| extent.max(1));
    let [x, y, _] = choice.work_group;
    let reads = op.reads(rows * y, 4 * columns4 * x);
    effort::alone(
        [rows, 4 * columns4],
        extent(op.k.div_ceil(4)),
        choice,
        op.grid_of(choice.tile, [4, 1, 1]),
        [reads, op.traffic()],
    )
}
