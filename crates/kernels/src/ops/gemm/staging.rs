//! How work-groups stage their operands: both, for `tiled` and `staged`; A alone, for `thin`.

use super::GemmOp;
use crate::emit::Dialect;
use crate::limits::{Family, Limits};
use crate::ops::plan::Choice;
use crate::ops::spec::local_obstacle;

/// Terms staged at a time.
const STEP: u32 = Staging::STEP;

/// Work-groups along columns and rows.
const GROUPS: [[u32; 2]; 8] = [[8, 16], [16, 8], [16, 16], [8, 8], [8, 4], [4, 8], [4, 4], [2, 2]];

/// The most invocations of a work-group that is offered: what drivers compile kernels for.
const INVOCATIONS: u32 = 256;

/// The work-groups that suit `tile`, the default first.
pub(super) fn work_groups(tile: [u32; 3]) -> Vec<[u32; 3]> {
    let default = match tile {
        [4, ..] => [8, 16],
        [_, 16, _] => [16, 8],
        [_, _, 1] => [16, 16],
        [_, _, 2] => [16, 8],
        [_, _, 4] => [8, 8],
        _ => [8, 4],
    };
    let others = GROUPS.into_iter().filter(|group| *group != default);
    std::iter::once(default)
        .chain(others)
        .map(|[x, y]| [x, y, tile[2]])
        .filter(|size| size.iter().product::<u32>() <= INVOCATIONS && Staging::of(tile, *size).is_some())
        .collect()
}

/// When a step's terms are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fetching {
    /// Before the products of a step rather than after its barrier.
    early: bool,
    /// By a branch rather than by an index that stays within the operand.
    guarded: bool,
    /// Steps whose terms are on their way at once.
    ahead: u32,
}

/// The most vec4s of sums of a kernel that fetches two steps ahead, and the least steps of its slices.
const SUMS_AHEAD: u32 = 4;
const STEPS_AHEAD: usize = 8;

impl Fetching {
    /// On an H200 NVIDIA's two compilers keep the loads apart from their use best so: at n = 4096, 50 and 47.5
    /// TFLOP/s instead of 47.5 and 44 the other way round. Through Vulkan few products hide no load of the step
    /// before: with two steps under way small tiles take 14 to 20 % less, and all others, and OpenCL, as long or longer.
    pub(super) fn of(op: &GemmOp, choice: &Choice, limits: &Limits) -> Self {
        let [columns4, rows, splits] = choice.tile;
        let long = op.k >= STEPS_AHEAD * (STEP * splits) as usize;
        match limits.dialect {
            Dialect::Wgsl => {
                // Drivers that run on a CPU have it for the tests; their products are not staged otherwise.
                let measured = matches!(limits.family, Family::Nvidia | Family::CpuDriver);
                let few = columns4 * rows <= SUMS_AHEAD && measured;
                Fetching { early: false, guarded: true, ahead: if few && long { 2 } else { 1 } }
            }
            Dialect::OpenClC => {
                let large = rows == 16 && splits == 1;
                Fetching { early: large, guarded: large, ahead: 1 }
            }
        }
    }

    /// One step ahead, in the language of `limits`.
    pub(super) fn one(limits: &Limits) -> Self {
        Fetching { early: false, guarded: limits.dialect == Dialect::Wgsl, ahead: 1 }
    }
}

/// How a work-group stages its operands; lengths are in vec4s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Staging {
    /// From one staged term of A to the next.
    pub(super) a_row: u32,
    /// From one staged term of B to the next.
    pub(super) b_row: u32,
    /// Vec4s of A and of B that an invocation brings for each step.
    pub(super) loads: [u32; 2],
    /// Invocations of one split.
    pub(super) threads: u32,
    /// All that a work-group keeps.
    pub(super) staged: u32,
}

impl Staging {
    /// Terms staged at a time.
    pub(super) const STEP: u32 = 8;

    /// `None` if the invocations do not share the loads evenly.
    pub(super) fn of(tile: [u32; 3], work_group: [u32; 3]) -> Option<Self> {
        let [columns4, rows, splits] = tile;
        let [x, y, _] = work_group;
        let threads = x * y;
        let (a, b) = (rows * y * STEP / 4, columns4 * x * STEP);
        if !a.is_multiple_of(threads) || !b.is_multiple_of(threads) {
            return None;
        }
        let (a_row, b_row) = (rows * y / 4 + 1, columns4 * x);
        let both_sides = 2 * STEP * (a_row + b_row) * splits;
        let partial_sums = splits / 2 * threads * columns4 * rows;
        let loads = [a / threads, b / threads];
        Some(Staging { a_row, b_row, loads, threads, staged: both_sides.max(partial_sums) })
    }

    /// What `shared/product_loop` names.
    pub(super) fn constants(
        &self,
        choice: &Choice,
        ragged: bool,
        fetching: Fetching,
    ) -> [(&'static str, u32); 19] {
        let [x, y, _] = choice.work_group;
        let side = STEP * (self.a_row + self.b_row);
        // Eight by four invocations side by side read the fewest different vec4s at once, in quarters
        // of four by two.
        let [lanes_x, lanes_y, paired] = if x % 8 == 0 && y % 4 == 0 { [8, 4, 2] } else { [x, 1, 1] };
        [
            ("SPLITS", choice.tile[2]),
            ("STEP", STEP),
            ("RAGGED", u32::from(ragged)),
            ("A_ROW", self.a_row),
            ("B_ROW", self.b_row),
            ("B_FIRST", STEP * self.a_row),
            ("SIDE", side),
            ("SLICE", 2 * side),
            ("STAGED", self.staged),
            ("LOADS_A", self.loads[0]),
            ("LOADS_B", self.loads[1]),
            ("THREADS", self.threads),
            ("MASK", self.staged.next_power_of_two() - 1),
            ("LANES_X", lanes_x),
            ("LANES_Y", lanes_y),
            ("PAIRED", paired),
            ("EARLY", u32::from(fetching.early)),
            ("GUARDED", u32::from(fetching.guarded)),
            ("AHEAD", fetching.ahead),
        ]
    }
}

/// Why a work-group cannot stage as `choice` says, if it cannot.
pub(super) fn tile_obstacle(op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<String> {
    let ([.., splits], [x, y, depth]) = (choice.tile, choice.work_group);
    if depth != splits {
        return Some(format!("the work-group is {depth} deep, {splits} splits need {splits}"));
    }
    let Some(staging) = Staging::of(choice.tile, choice.work_group) else {
        return Some(format!("{x} x {y} invocations do not share the loads of {STEP} terms evenly"));
    };
    let bytes = u64::from(staging.staged) * 4 * op.precision.accumulator().bytes() as u64;
    local_obstacle(bytes, limits)
}

/// Whether a work-group of `thin` stages its rows of A, and loads the next of B meanwhile. With few rows
/// each invocation can read them itself; which is faster depends on how many invocations there are, so
/// that of these tiles one stages and the others do not.
pub(super) const fn shared(tile: [u32; 3]) -> bool {
    tile[1] >= 4 || (tile[0] == 1 && tile[2] == 32)
}

/// Groups of four terms that an invocation of `thin` sums at a time: as many loads of B are on their way. On an
/// H200, of 1 and 2, through Vulkan and OpenCL: eight rows of A in 28 and 36, 25 and 22 microseconds.
pub(super) fn ahead(tile: [u32; 3], dialect: Dialect) -> u32 {
    if shared(tile) && dialect == Dialect::Wgsl { 1 } else { 2 }
}
