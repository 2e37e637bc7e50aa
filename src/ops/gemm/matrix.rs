//! The geometry of `matrix`, `matrix_ptx` and `matrix_split_ptx`: products by instructions that multiply small
//! matrices of halves and sum in f32.
//!
//! A wave of 32 invocations sums `tile[1]` times 16 rows by `tile[0]` times 16 (`matrix`) or 8
//! (the others) columns; a work-group of `32 x` by `y` is `x` by `y` waves. Operands in f32
//! ([`Precision::SplitF16`]) are staged as two halves each; `matrix` serves them as well.

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
const TILES: [[u32; 3]; 4] = [[4, 4, 1], [2, 4, 1], [2, 2, 1], [1, 2, 1]];

/// The same for split operands, which have two sums.
const SPLIT_TILES: [[u32; 3]; 4] = [[2, 4, 1], [4, 2, 1], [2, 2, 1], [1, 2, 1]];

/// Matrices of 16 rows x 8 columns per warp, columns and rows.
const PTX_TILES: [[u32; 3]; 5] = [[8, 4, 1], [4, 4, 1], [8, 2, 1], [4, 2, 1], [2, 2, 1]];

/// The same for split operands.
const PTX_SPLIT_TILES: [[u32; 3]; 4] = [[4, 4, 1], [8, 2, 1], [4, 2, 1], [2, 2, 1]];

/// Bytes of local memory that devices with such instructions usually give a work-group.
const USUAL_LOCAL: u32 = 49152;

/// Waves along columns and rows, the default first.
const WAVES: [[u32; 2]; 5] = [[2, 2], [4, 2], [2, 4], [2, 1], [1, 2]];

/// How a variant brings operands into local memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By asynchronous copies, several steps ahead, eight halves at a time.
    Copies,
    /// Through registers, one step ahead, four values at a time.
    Registers {
        /// Halves that a value is staged as.
        parts: u32,
        /// Registers that an invocation has for it.
        registers: u32,
    },
}

impl Way {
    fn of(variant: &str, precision: Precision) -> Self {
        match (variant, precision) {
            ("matrix", Precision::SplitF16) => Way::Registers { parts: 2, registers: 32 },
            ("matrix", _) => Way::Registers { parts: 1, registers: 32 },
            ("matrix_split_ptx", _) => Way::Registers { parts: 2, registers: 48 },
            _ => Way::Copies,
        }
    }
}

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
    fn of(choice: &Choice, precision: Precision, local: u32) -> Option<Self> {
        let [columns, rows, _] = choice.tile;
        let [threads_x, y, depth] = choice.work_group;
        if !threads_x.is_multiple_of(WAVE) || depth != 1 {
            return None;
        }
        let (x, threads) = (threads_x / WAVE, threads_x * y);
        let covers = [16 * rows * y, unit_columns(choice.variant) * columns * x];
        let way = Way::of(choice.variant, precision);
        let of_step = |step: u32| {
            let at_once = if way == Way::Copies { 8 } else { 4 };
            let loads = covers.map(|extent| extent * step / at_once);
            let even = loads.iter().all(|loads| loads.is_multiple_of(threads));
            let loads = loads.map(|loads| loads / threads);
            // Where the sums of a row of matrices, or of one, pass to the invocations that finish them.
            let passed = if choice.variant == "matrix" { 16 * 64 } else { 512 * columns } * threads / WAVE;
            let (stages, bytes) = match way {
                Way::Copies => {
                    let stage = 2 * step * (covers[0] + covers[1]);
                    let stages = (local / stage).min(4);
                    (stages, (stages * stage).max(passed))
                }
                Way::Registers { parts, registers } => {
                    let stage = 2 * parts * (covers[0] * (step + PADDING) + step * (covers[1] + PADDING));
                    let fit = 2 * parts * (loads[0] + loads[1]) <= registers;
                    let bytes = if choice.variant == "matrix" { stage + passed } else { stage.max(passed) };
                    (u32::from(fit), bytes)
                }
            };
            let enough = if way == Way::Copies { 2 } else { 1 };
            (even && stages >= enough && bytes <= local).then_some(Staging {
                step,
                covers,
                loads,
                threads,
                bytes,
                stages,
            })
        };
        let steps: &[u32] = if way == Way::Copies { &[32, 16] } else { &[64, 32, 16] };
        steps.iter().find_map(|&step| of_step(step))
    }
}

/// Columns of the small matrices of `variant`.
pub(super) fn unit_columns(variant: &str) -> u32 {
    if variant == "matrix" { 16 } else { 8 }
}

/// Whether `variant` multiplies on a matrix unit by this module's geometry.
pub(super) fn is_matrix(variant: &str) -> bool {
    matches!(variant, "matrix" | "matrix_ptx" | "matrix_split_ptx")
}

/// The precisions in which `variant` multiplies on a matrix unit.
pub(super) fn multiplies(variant: &str) -> &'static [Precision] {
    match variant {
        "matrix" => &[Precision::F16Storage, Precision::SplitF16],
        "matrix_ptx" => &[Precision::F16Storage],
        "matrix_split_ptx" => &[Precision::SplitF16],
        _ => &[],
    }
}

/// The tiles of the kernels here that multiply in `precision`, the default first.
pub(super) fn tiles(precision: Precision) -> [(&'static str, &'static [[u32; 3]]); 2] {
    match precision {
        Precision::SplitF16 => [("matrix", &SPLIT_TILES), ("matrix_split_ptx", &PTX_SPLIT_TILES)],
        _ => [("matrix", &TILES), ("matrix_ptx", &PTX_TILES)],
    }
}

/// The work-groups that suit the matrix kernels, the default first: on an H200 eight waves are best
/// for most tiles of `matrix`, and for split operands.
pub(super) fn work_groups(variant: &'static str, tile: [u32; 3], precision: Precision) -> Vec<[u32; 3]> {
    let mut waves = WAVES;
    match (variant, tile) {
        ("matrix", [4, 4, 1] | [2, 2, 1]) | ("matrix_split_ptx", [4, 4, 1]) => waves.swap(0, 1),
        ("matrix", [2, 4, 1]) if precision == Precision::SplitF16 => waves.swap(0, 1),
        ("matrix", [4, 2, 1]) | ("matrix_split_ptx", [8, 2, 1] | [4, 2, 1]) => waves.swap(0, 2),
        _ => {}
    }
    let choices = waves.map(|[x, y]| Choice::new(variant, tile, [WAVE * x, y, 1])).into_iter();
    let even = choices.filter(|choice| Staging::of(choice, precision, USUAL_LOCAL).is_some());
    even.map(|choice| choice.work_group).collect()
}

impl GemmOp {
    /// Why the device or the operands have no use for `variant`, if so.
    pub(super) fn matrix_obstacle(&self, variant: &str, limits: &Limits) -> Option<String> {
        let multiplies = multiplies(variant);
        if !multiplies.contains(&self.precision) {
            let words: Vec<String> = multiplies.iter().map(ToString::to_string).collect();
            let words = words.join(" and ");
            return Some(format!("it computes in {words}, the precision is {}", self.precision));
        }
        match (variant, limits.matrix_unit) {
            ("matrix", Some(MatrixUnit::Cooperative { subgroup: WAVE })) => {}
            ("matrix", Some(MatrixUnit::Cooperative { subgroup })) => {
                return Some(format!("it is made for subgroups of {WAVE}, the device has {subgroup}"));
            }
            ("matrix_ptx" | "matrix_split_ptx", Some(MatrixUnit::Ptx { .. })) => {}
            _ => return Some("the device does not offer matrix instructions to this API".to_owned()),
        }
        let whole = if variant == "matrix_ptx" { 8 } else { 4 };
        if let Some(obstacle) = self.vec4_obstacle() {
            return Some(obstacle);
        }
        [("k", self.k), ("n", self.n), ("lda", self.lda), ("ldb", self.ldb)]
            .into_iter()
            .find(|(_, extent)| !extent.is_multiple_of(whole))
            .map(|(name, extent)| format!("it reads {whole} values at once, {name} is {extent}"))
    }

    /// Why a matrix kernel cannot run as `choice`, if it cannot.
    pub(super) fn matrix_choice_obstacle(&self, choice: &Choice, limits: &Limits) -> Option<String> {
        let [x, y, z] = choice.work_group;
        Staging::of(choice, self.precision, limits.local_memory).is_none().then(|| {
            format!(
                "{x} x {y} x {z} invocations are not whole waves of {WAVE} that share the loads, or \
                 need more than {} bytes of local memory",
                limits.local_memory
            )
        })
    }

    /// The constants of a matrix kernel, which `choice` fits.
    pub(super) fn matrix_constants(&self, choice: &Choice, limits: &Limits) -> Vec<(&'static str, Value)> {
        let Some(staging) = Staging::of(choice, self.precision, limits.local_memory) else {
            return Vec::new();
        };
        let Staging { step, covers: [rows, columns], loads, threads, bytes, stages } = staging;
        let waves_x = choice.work_group[0] / WAVE;
        let mut constants = vec![("STEP", step), ("ROWS", rows), ("THREADS", threads)];
        constants.extend([("LOADS_A", loads[0]), ("LOADS_B", loads[1])]);
        match Way::of(choice.variant, self.precision) {
            Way::Copies => constants.extend([
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
            ]),
            Way::Registers { parts, .. } => {
                // In fours of halves.
                let (a_row, b_row) = ((step + PADDING) / 4, (columns + PADDING) / 4);
                let low = rows * a_row + step * b_row;
                let passed = 64 * threads / WAVE;
                let staged = if choice.variant == "matrix" { parts * low } else { bytes.div_ceil(8) };
                constants.extend([
                    ("RAGGED", u32::from(!self.k.is_multiple_of(step as usize))),
                    ("PARTS", parts),
                    ("WAVES_X", waves_x),
                    ("COLUMNS4", columns / 4),
                    ("A_ROW", a_row),
                    ("B_ROW", b_row),
                    ("B_FIRST", rows * a_row),
                    ("LOW", low),
                    ("STAGED", staged),
                    ("PASSED", passed),
                ]);
            }
        }
        constants.into_iter().map(|(name, value)| (name, Value::U32(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fill_48_kib_as_measured() {
        let staging = |variant, tile, work_group, precision| {
            Staging::of(&Choice::new(variant, tile, work_group), precision, 49152)
        };
        let halves = Precision::F16Storage;
        let ptx = staging("matrix_ptx", [8, 4, 1], [64, 2, 1], halves).expect("it fits");
        assert_eq!((ptx.step, ptx.covers, ptx.stages, ptx.bytes), (32, [128, 128], 3, 49152));
        let wide = staging("matrix", [4, 4, 1], [128, 2, 1], halves).expect("it fits");
        assert_eq!((wide.step, wide.covers, wide.loads, wide.bytes), (32, [128, 256], [4, 8], 27136 + 8192));
        let split = staging("matrix", [2, 4, 1], [128, 2, 1], Precision::SplitF16).expect("it fits");
        assert_eq!(
            (split.step, split.covers, split.loads, split.bytes),
            (32, [128; 2], [4; 2], 37888 + 8192)
        );
        let split =
            staging("matrix_split_ptx", [4, 4, 1], [128, 2, 1], Precision::SplitF16).expect("it fits");
        assert_eq!((split.step, split.covers, split.bytes), (32, [128; 2], 37888));
        assert_eq!(staging("matrix", [4, 4, 1], [48, 2, 1], halves), None);
    }

    #[test]
    fn the_default_work_group_fits_every_tile() {
        for precision in [Precision::F16Storage, Precision::SplitF16] {
            for (variant, tiles) in tiles(precision) {
                for &tile in tiles {
                    assert!(
                        !work_groups(variant, tile, precision).is_empty(),
                        "{variant} {tile:?} {precision}"
                    );
                }
            }
        }
    }
}
