//! `tiled`: both operands are staged in local memory.
//!
//! A work-group of `WG_X x WG_Y x splits` covers `4 tile[0] WG_X` columns and `tile[1] WG_Y` rows.
//! Each of its splits stages [`STEP`] terms of both operands twice: A by term and groups of four
//! rows, with one vec4 between the terms so that the transposing stores fall into different banks,
//! and B by term and groups of four columns.

use super::plan::{has_local_memory, preference, staged};
use super::{GemmOp, estimate};
use crate::emit::{Binding, Dialect, Operand};
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::ops::kernel::{Constants, Kernel, Offer, offers};
use crate::ops::plan::Choice;
use crate::ops::registry::VariantEntry;
use crate::ops::spec::Params;

/// Terms staged at a time.
const STEP: u32 = Staging::STEP;

/// Groups of four columns, rows, and splits of the sum; the largest reuse first. Which suits a
/// product is estimated (`estimate.rs`).
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
    fn of(op: &GemmOp, choice: &Choice, limits: &Limits) -> Self {
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
    (bytes > u64::from(limits.local_memory))
        .then(|| format!("{bytes} bytes of local memory, the device has {}", limits.local_memory))
}

#[derive(Debug)]
pub(super) struct Tiled;

impl Kernel<GemmOp> for Tiled {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("tiled", crate::emit::text!("../../../shaders/gemm/tiled.wgsl"))
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
        let ragged = !op.k.is_multiple_of((STEP * choice.tile[2]) as usize);
        op.constants_and(choice, &staging.constants(choice, ragged, Fetching::of(op, choice, limits)))
    }

    fn estimate(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<f64> {
        has_local_memory(limits.family).then(|| estimate::tiled(op, choice, limits)).flatten()
    }

    fn place(&self) -> Layout {
        Layout::Nhwc
    }

    fn bindings(&self, op: &GemmOp, _choice: &Choice) -> Vec<Binding> {
        op.vec4_bindings()
    }

    fn params(&self, op: &GemmOp, _choice: &Choice) -> Params {
        op.vec4_params()
    }

    fn pack(&self, op: &GemmOp, choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        op.pack_columns(choice, data)
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
