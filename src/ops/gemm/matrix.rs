//! The geometry of `matrix` and `matrix_ptx`: products of f16 operands with f32 sums by instructions
//! that multiply small matrices.
//!
//! A wave of 32 invocations sums `tile[1]` times 16 rows by `tile[0]` times 16 (`matrix`) or 8
//! (`matrix_ptx`) columns; a work-group of `32 x` by `y` is `x` by `y` waves.

use super::GemmOp;
use crate::dtype::Precision;
use crate::emit::Value;
use crate::limits::{Limits, MatrixUnit};
use crate::ops::plan::Choice;

/// Invocations that work on one small matrix together.
pub(super) const WAVE: u32 = 32;

/// Halves between the rows of a staged operand, so that eight rows fall into different banks.
const PADDING: u32 = 8;

/// Matrices of 16 x 16 per wave, columns and rows.
pub(super) const TILES: [[u32; 3]; 4] = [[4, 4, 1], [2, 4, 1], [2, 2, 1], [1, 2, 1]];

/// Matrices of 16 rows x 8 columns per warp, columns and rows.
pub(super) const PTX_TILES: [[u32; 3]; 5] = [[8, 4, 1], [4, 4, 1], [8, 2, 1], [4, 2, 1], [2, 2, 1]];

/// Bytes of local memory that devices with such instructions usually give a work-group.
const USUAL_LOCAL: u32 = 49152;

/// Waves along columns and rows, the default first.
const WAVES: [[u32; 2]; 5] = [[2, 2], [4, 2], [2, 4], [2, 1], [1, 2]];

/// What a work-group stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Staging {
    /// Terms at a time.
    step: u32,
    /// Rows and columns that the work-group covers.
    covers: [u32; 2],
    /// Loads of A and of B that an invocation makes for each step.
    loads: [u32; 2],
    threads: u32,
    /// Bytes of local memory.
    bytes: u32,
    /// Steps in local memory at once.
    stages: u32,
}

impl Staging {
    /// `None` if the invocations do not share the loads evenly. `local` bytes may be used.
    fn of(ptx: bool, choice: &Choice, local: u32) -> Option<Self> {
        let [columns, rows, _] = choice.tile;
        let [threads_x, y, depth] = choice.work_group;
        if !threads_x.is_multiple_of(WAVE) || depth != 1 {
            return None;
        }
        let (x, threads) = (threads_x / WAVE, threads_x * y);
        let covers = [16 * rows * y, if ptx { 8 } else { 16 } * columns * x];
        let of_step = |step: u32| {
            let halves = if ptx { 8 } else { 4 };
            let (a, b) = (covers[0] * step / halves, covers[1] * step / halves);
            let even = a.is_multiple_of(threads) && b.is_multiple_of(threads);
            let (stage, passed) = if ptx {
                (2 * step * (covers[0] + covers[1]), 0)
            } else {
                let rows = covers[0] * (step + PADDING) + step * (covers[1] + PADDING);
                (2 * rows, 16 * 64 * threads / WAVE)
            };
            let stages = if ptx { (local / stage).min(4) } else { 2 };
            let sums = if ptx { 512 * columns * threads / WAVE } else { 0 };
            let bytes = (stages * stage).max(sums) + passed;
            let loads = [a / threads, b / threads];
            (even && stages >= 2 && bytes <= local).then_some(Staging {
                step,
                covers,
                loads,
                threads,
                bytes,
                stages,
            })
        };
        of_step(32).or_else(|| of_step(16))
    }
}

/// The precision in which `variant` multiplies on a matrix unit, if it does.
pub(super) fn multiplies(variant: &str) -> Option<Precision> {
    match variant {
        "matrix" | "matrix_ptx" => Some(Precision::F16Storage),
        _ => None,
    }
}

/// The work-groups that suit the matrix kernels, the default first: on an H200 `matrix` is fastest
/// with eight waves of its largest tile.
pub(super) fn work_groups(variant: &'static str, tile: [u32; 3]) -> Vec<[u32; 3]> {
    let mut waves = WAVES;
    if (variant, tile) == ("matrix", TILES[0]) {
        waves.swap(0, 1);
    }
    let choices = waves.map(|[x, y]| Choice::new(variant, tile, [WAVE * x, y, 1])).into_iter();
    let even = choices.filter(|choice| Staging::of(variant == "matrix_ptx", choice, USUAL_LOCAL).is_some());
    even.map(|choice| choice.work_group).collect()
}

impl GemmOp {
    /// Why the device or the operands have no use for `variant`, if so.
    pub(super) fn matrix_obstacle(&self, variant: &str, limits: &Limits) -> Option<String> {
        let multiplies = multiplies(variant).unwrap_or_default();
        if self.precision != multiplies {
            return Some(format!("it computes in {multiplies}, the precision is {}", self.precision));
        }
        match (variant, limits.matrix_unit) {
            ("matrix", Some(MatrixUnit::Cooperative { subgroup: WAVE })) => {}
            ("matrix", Some(MatrixUnit::Cooperative { subgroup })) => {
                return Some(format!("it is made for subgroups of {WAVE}, the device has {subgroup}"));
            }
            ("matrix_ptx", Some(MatrixUnit::Ptx { .. })) => {}
            _ => return Some("the device does not offer matrix instructions to this API".to_owned()),
        }
        let whole = if variant == "matrix" { 4 } else { 8 };
        if let Some(obstacle) = self.vec4_obstacle() {
            return Some(obstacle);
        }
        [("k", self.k), ("n", self.n), ("lda", self.lda), ("ldb", self.ldb)]
            .into_iter()
            .find(|(_, extent)| !extent.is_multiple_of(whole))
            .map(|(name, extent)| format!("it reads {whole} halves at once, {name} is {extent}"))
    }

    /// Why a matrix kernel cannot run as `choice`, if it cannot.
    pub(super) fn matrix_choice_obstacle(&self, choice: &Choice, limits: &Limits) -> Option<String> {
        let [x, y, z] = choice.work_group;
        Staging::of(choice.variant == "matrix_ptx", choice, limits.local_memory).is_none().then(|| {
            format!(
                "{x} x {y} x {z} invocations are not whole waves of {WAVE} that share the loads, or \
                 need more than {} bytes of local memory",
                limits.local_memory
            )
        })
    }

    /// The constants of a matrix kernel, which `choice` fits.
    pub(super) fn matrix_constants(&self, choice: &Choice, limits: &Limits) -> Vec<(&'static str, Value)> {
        let ptx = choice.variant == "matrix_ptx";
        let Some(staging) = Staging::of(ptx, choice, limits.local_memory) else { return Vec::new() };
        let Staging { step, covers: [rows, columns], loads, threads, bytes, stages } = staging;
        let waves_x = choice.work_group[0] / WAVE;
        let mut constants = vec![("STEP", step), ("ROWS", rows), ("THREADS", threads)];
        constants.extend([("LOADS_A", loads[0]), ("LOADS_B", loads[1])]);
        if ptx {
            constants.extend([
                ("WARPS_X", waves_x),
                ("COLUMNS", columns),
                ("B_FIRST", 2 * step * rows),
                ("STAGE", 2 * step * (rows + columns)),
                ("STAGES", stages),
                ("STAGED", bytes.div_ceil(16)),
                // Rows that fill 128 bytes: after so many the chunks of eight halves are permuted
                // differently, those of B among the first eight.
                ("A_TURN", 64 / step),
                ("B_TURN", (64 / columns).max(1)),
                ("B_CHUNKS", (columns / 8).min(8)),
            ]);
        } else {
            let (a_row, b_row) = ((step + PADDING) / 4, (columns + PADDING) / 4);
            let side = rows * a_row + step * b_row;
            constants.extend([
                ("RAGGED", u32::from(!self.k.is_multiple_of(step as usize))),
                ("WAVES_X", waves_x),
                ("COLUMNS4", columns / 4),
                ("A_ROW", a_row),
                ("B_ROW", b_row),
                ("B_FIRST", rows * a_row),
                ("SIDE", side),
                ("STAGED", 2 * side),
                ("PASSED", 64 * threads / WAVE),
            ]);
        }
        constants.into_iter().map(|(name, value)| (name, Value::U32(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_keeps_several_steps_in_48_kib() {
        let staging = |variant, tile, work_group| {
            Staging::of(variant == "matrix_ptx", &Choice::new(variant, tile, work_group), 49152)
        };
        let ptx = staging("matrix_ptx", [8, 4, 1], [64, 2, 1]).expect("it fits");
        assert_eq!((ptx.step, ptx.covers, ptx.stages, ptx.bytes), (32, [128, 128], 3, 49152));
        let wide = staging("matrix", [4, 4, 1], [128, 2, 1]).expect("it fits");
        assert_eq!((wide.step, wide.covers, wide.loads), (16, [128, 256], [2, 4]));
        assert_eq!(staging("matrix", [4, 4, 1], [48, 2, 1]), None);
    }
}
