//! How long `tiled` and `thin` take on a GPU without tuning, roughly: which tile and
//! work-group fill its multiprocessors best.
//!
//! The unit is a cycle of a multiprocessor that multiplies and adds 128 pairs in it. What a step of a
//! work-group costs is counted from its instructions; a step's latency is hidden by the waves that
//! share the multiprocessor; a work-group has a beginning and an end; whole rounds of work-groups
//! wait for their slowest. The few constants are those of an H200 (1.85 GHz, 132 multiprocessors).

use super::GemmOp;
use super::staging::{self, Staging};
use crate::limits::{Family, Limits};
use crate::ops::plan::Choice;

/// Registers of a multiprocessor, and the most that an invocation has.
const REGISTERS_PER_UNIT: u32 = 65536;
const MAX_REGISTERS: u32 = 255;
/// Invocations that a multiprocessor keeps at once.
const INVOCATIONS_PER_UNIT: u32 = 2048;
/// Bytes of memory that a multiprocessor's share of the bandwidth brings in a cycle.
const MEMORY_BYTES_PER_CYCLE: f64 = 16.0;
/// Bytes that a multiprocessor's share of the last-level cache brings in a cycle.
const CACHE_BYTES_PER_CYCLE: f64 = 22.0;
/// What remains of the sum, because its parts overlap.
const OVERLAP_FACTOR: f64 = 0.8;
/// Cycles of latency of a step, divided among the waves that hide it; more of a work-group that is
/// alone and waits at its own barriers.
const STEP_LATENCY_CYCLES: f64 = 1600.0;
const ALONE_FACTOR: f64 = 1.6;
/// How much longer the loads of factors take whose wave is less than eight columns wide, or belongs to
/// two splits: it reads more different vec4s at once.
const NARROW_FACTOR: f64 = 3.0;
/// Cycles that a work-group takes to begin and end, and to halve the splits that are left.
const WORK_GROUP_CYCLES: f64 = 5000.0;
const HALVING_CYCLES: f64 = 1000.0;
/// Bytes of B that must be on their way to a multiprocessor to use its share of the bandwidth.
const BYTES_IN_FLIGHT_PER_UNIT: f64 = 31_000.0;
/// What a second row of `thin`'s tiles adds, which finds most of B in the cache; the rest do not.
const SECOND_ROW_SHARE: f64 = 0.4;

/// Multiprocessors, or a guess at them.
fn units(limits: &Limits) -> f64 {
    let known = limits.compute_units.filter(|_| matches!(limits.family, Family::Nvidia | Family::Amd));
    f64::from(known.unwrap_or(match limits.family {
        Family::Nvidia => 128,
        Family::Amd => 64,
        _ => 16,
    }))
}

/// Invocations of a multiprocessor that hide each other's latencies.
const BUSY: f64 = 512.0;

/// Whether one invocation for each eight rows of four columns leaves most of a device idle.
pub(super) fn is_small(op: &GemmOp, limits: &Limits) -> bool {
    let tiles = op.n.div_ceil(4) as f64 * op.m.div_ceil(8) as f64 * op.batch as f64;
    tiles < BUSY * units(limits)
}

/// What both estimates begin with.
struct Launch {
    units: f64,
    /// Work-groups, and how many there are along the rows.
    groups: f64,
    down: usize,
    /// Bytes of an element, and of B.
    bytes: f64,
    b: f64,
    /// Cycles of halving the splits.
    halves: f64,
}

impl Launch {
    fn of(op: &GemmOp, choice: &Choice, limits: &Limits) -> Self {
        let [columns4, rows, splits] = choice.tile.map(|extent| extent.max(1));
        let [x, y, _] = choice.work_group.map(|extent| extent.max(1));
        let across = (op.n / 4).div_ceil((columns4 * x) as usize);
        let down = op.m.div_ceil((rows * y) as usize);
        let bytes = op.precision.storage().bytes() as f64;
        Launch {
            units: units(limits),
            groups: (across * down * op.batch) as f64,
            down,
            bytes,
            b: bytes * (op.k * op.n * op.batch) as f64,
            halves: HALVING_CYCLES * f64::from(splits.max(1).ilog2()),
        }
    }
}

/// Cycles of `tiled` until the last multiprocessor is done; `None` if it cannot run as `choice`.
pub(super) fn tiled(op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<f64> {
    let Launch { units, groups, bytes, b, halves, .. } = Launch::of(op, choice, limits);
    let splits = choice.tile[2].max(1);
    let staging = Staging::of(choice.tile, choice.work_group)?;
    let waves = f64::from(staging.threads * splits) / 32.0;
    let resident = staging.resident(choice, op.precision.accumulator().bytes() as u32, limits);
    let each = (groups / units).ceil();
    let together = f64::from(resident).min(each);
    let step = staging.step_cycles(choice);
    let steps = (op.k as f64 / f64::from(Staging::STEP * splits)).ceil();
    let latency = STEP_LATENCY_CYCLES * if together > 1.0 { 1.0 } else { ALONE_FACTOR };
    let round = steps * (together * step + latency / (together * waves)) + WORK_GROUP_CYCLES + halves;
    let from_memory = (b + bytes * (op.m * op.k * op.batch) as f64) / (MEMORY_BYTES_PER_CYCLE * units);
    Some((OVERLAP_FACTOR * each / together * round).max(from_memory + WORK_GROUP_CYCLES))
}

/// Cycles of `thin` until the last multiprocessor is done.
pub(super) fn thin(op: &GemmOp, choice: &Choice, limits: &Limits) -> f64 {
    let Launch { units, groups, down, bytes, b, halves } = Launch::of(op, choice, limits);
    let [columns4, rows, splits] = choice.tile.map(|extent| extent.max(1));
    let [x, y, _] = choice.work_group.map(|extent| extent.max(1));
    // Half a line of a row of B at once wastes the other half.
    let line = f64::from(4 * columns4 * x) * bytes / 64.0;
    // Eight rows took as many invocations of either language, whatever is loaded ahead.
    let ahead = if rows < 4 { staging::ahead(choice.tile, limits.dialect) } else { 1 };
    let each = 16.0 * bytes * f64::from(columns4 * ahead);
    // What is not staged is not loaded while something is multiplied.
    let always = if staging::shared(choice.tile) { 1.0 } else { 0.5 };
    let flying = always * each * f64::from(x * y * splits) * groups / (BYTES_IN_FLIGHT_PER_UNIT * units);
    // A tenth of the multiprocessors may have nothing to do: the others take its share.
    let share = (1.1 * groups / units).min(1.0) * line.min(1.0) * flying.min(1.0);
    let reads = match down {
        1 => 1.0,
        more => SECOND_ROW_SHARE + (more - 1) as f64,
    };
    b * reads / (MEMORY_BYTES_PER_CYCLE * units * share) + WORK_GROUP_CYCLES + halves / 4.0
}

impl Staging {
    /// Work-groups that a multiprocessor keeps at once, by local memory and by registers: the sums, two
    /// sets of factors, the loads under way, and addresses.
    fn resident(&self, choice: &Choice, element: u32, limits: &Limits) -> u32 {
        let [columns4, rows, splits] = choice.tile;
        let sums = columns4 * rows * element;
        let factors = 2 * (4 * columns4 + rows);
        let under_way = 4 * (self.loads[0] + self.loads[1]);
        let registers = (sums + factors + under_way + 20).min(MAX_REGISTERS).next_multiple_of(8);
        let invocations = self.threads * splits;
        let by_memory =
            limits.local_memory_of_unit().unwrap_or(u32::MAX) / (4 * element * self.staged).max(1);
        let by_registers = REGISTERS_PER_UNIT / (invocations * registers);
        by_registers.min(by_memory).min(INVOCATIONS_PER_UNIT / invocations).max(1)
    }

    /// Cycles of a step of a whole work-group: products, the loads of their factors at half a cycle a
    /// wave, and the loads of the next step, half of whose time in the cache overlaps.
    fn step_cycles(&self, choice: &Choice) -> f64 {
        let [columns4, rows, splits] = choice.tile.map(f64::from);
        let waves = f64::from(self.threads) * splits / 32.0;
        let step = f64::from(Self::STEP);
        let products = 4.0 * columns4 * rows * step * waves / 4.0;
        let narrow = choice.work_group[0] < 8 || self.threads < 32;
        let factors = 0.5 * (columns4 + rows / 4.0) * step * waves * if narrow { NARROW_FACTOR } else { 1.0 };
        let bringing = (30.0 + 7.0 * f64::from(self.loads[0]) + 4.0 * f64::from(self.loads[1])) * waves / 4.0;
        let [x, y] = [choice.work_group[0], choice.work_group[1]].map(f64::from);
        let bytes = 4.0 * (4.0 * columns4 * x + rows * y) * step * splits;
        products + factors + bringing + 0.5 * bytes / CACHE_BYTES_PER_CYCLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_h200s_times_are_met_within_a_third() {
        let limits = Limits { family: Family::Nvidia, compute_units: Some(132), ..Limits::opencl() };
        // n, tile, work-group, microseconds measured through OpenCL; a launch takes 5 of them.
        for (n, tile, work_group, measured) in [
            (4096, [2, 16, 1], [16, 8, 1], 2732.0),
            (4096, [2, 8, 1], [16, 16, 1], 2846.0),
            (2048, [2, 16, 1], [16, 8, 1], 347.0),
            (1024, [2, 8, 2], [16, 8, 2], 56.1),
            (1024, [2, 8, 2], [8, 8, 2], 58.9),
            (512, [2, 4, 4], [8, 8, 4], 14.1),
            (512, [2, 8, 4], [8, 4, 4], 15.5),
            (512, [1, 4, 4], [8, 8, 4], 15.0),
        ] {
            let choice = Choice::new("tiled", tile, work_group);
            let cycles = tiled(&GemmOp::packed(n, n, n), &choice, &limits).expect("an estimate");
            let ratio = (cycles / 1850.0 + 5.0) / measured;
            assert!((0.75..1.34).contains(&ratio), "{n} {choice}: {ratio}");
        }
    }

    #[test]
    fn the_drivers_share_of_local_memory_decides() {
        // Microseconds of two choices, measured on an H200: work-groups of 25 KiB that run alone through Vulkan and in
        // pairs through OpenCL, and smaller ones.
        let [vulkan, opencl] = [Limits::webgpu(), Limits::opencl()].map(|limits| Limits {
            family: Family::Nvidia,
            compute_units: Some(132),
            local_memory: 48 << 10,
            ..limits
        });
        let large = Choice::new("tiled", [2, 8, 4], [8, 4, 4]);
        let small = Choice::new("tiled", [2, 4, 2], [8, 8, 2]);
        let op = GemmOp::packed(197, 2304, 768);
        for (limits, measured) in [(&vulkan, [45.3, 37.7]), (&opencl, [27.7, 31.0])] {
            let [large, small] =
                [large, small].map(|choice| tiled(&op, &choice, limits).expect("an estimate"));
            assert_eq!(large < small, measured[0] < measured[1], "{:?}: {large} {small}", limits.dialect);
        }
    }
}
