//! `matrix`, `matrix_ptx` and `matrix_split_ptx`: products by instructions that multiply small
//! matrices of halves and sum in f32.
//!
//! A wave of 32 invocations sums `tile[1]` times 16 rows by `tile[0]` times 16 (`matrix`) or 8
//! (the others) columns; a work-group of `32 x` by `y` by `tile[2]` is `x` by `y` waves in each of `tile[2]` layers, each of
//! which sums a part of the terms: a product of few rows and columns has no other work for a GPU. Operands in f32
//! ([`Precision::SplitF16`]) are staged as two halves each; `matrix` serves them as well.

use super::GemmOp;
use super::arguments::preference;
use crate::dtype::Precision;
use crate::layout::Layout;
use crate::limits::{Limits, MatrixUnit};
use crate::ops::effort::{Effort, groups};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::extent;

/// Invocations that work on one small matrix together.
const WAVE: u32 = 32;

/// Halves between the rows of a staged operand, so that eight rows fall into different banks.
const PADDING: u32 = 8;

/// Matrices of 16 x 16 per wave, columns and rows, and layers.
const TILES: [[u32; 3]; 8] =
    [[4, 4, 1], [2, 4, 1], [2, 2, 1], [1, 2, 1], [2, 2, 2], [1, 2, 2], [2, 2, 4], [1, 2, 4]];

/// Matrices of 16 x 16 per wave for split operands, which have two sums, and layers.
const SPLIT_TILES: [[u32; 3]; 7] =
    [[2, 4, 1], [4, 2, 1], [2, 2, 1], [1, 2, 1], [2, 2, 2], [1, 2, 2], [1, 2, 4]];

/// Terms of a layer, at least.
const LAYER_TERMS: usize = 128;

/// The most waves of a work-group of several layers.
const MOST_WAVES: u32 = 16;

/// Products of halves that a matrix unit sums while one of f32 is.
const SPEED: u64 = 8;

/// Matrices of 16 rows x 8 columns per warp, columns and rows.
const PTX_TILES: [[u32; 3]; 5] = [[8, 4, 1], [4, 4, 1], [8, 2, 1], [4, 2, 1], [2, 2, 1]];

/// Matrices of 16 rows x 8 columns per warp for split operands.
const PTX_SPLIT_TILES: [[u32; 3]; 4] = [[4, 4, 1], [8, 2, 1], [4, 2, 1], [2, 2, 1]];

/// Bytes of local memory that devices with such instructions usually give a work-group.
const USUAL_LOCAL_BYTES: u32 = 49152;

/// Waves along columns and rows, the default first.
const WAVES: [[u32; 2]; 5] = [[2, 2], [4, 2], [2, 4], [2, 1], [1, 2]];

/// A kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    entry: VariantEntry,
    /// By cooperative matrices, or by PTX.
    cooperative: bool,
    /// Columns of its small matrices.
    columns: u32,
    /// Values that it reads at once.
    whole: usize,
    /// The precisions in which it multiplies on a matrix unit, with its tiles, the default first.
    serves: &'static [(Precision, &'static [[u32; 3]])],
}

const NO_ASSEMBLY: &str = "WGSL has no inline assembly";

pub(super) const MATRIX: Matrix = Matrix {
    entry: VariantEntry::vulkan(
        "matrix",
        crate::emit::text!("../../../shaders/gemm/matrix.wgsl"),
        "OpenCL C has no cooperative matrices",
    )
    .with_native_half()
    .listed_as(Layout::Nhwc),
    cooperative: true,
    columns: 16,
    whole: 4,
    serves: &[(Precision::F16Storage, &TILES), (Precision::SplitF16, &SPLIT_TILES)],
};

pub(super) const MATRIX_PTX: Matrix = Matrix {
    entry: VariantEntry::opencl("matrix_ptx", include_str!("../../../cl/gemm/matrix_ptx.cl"), NO_ASSEMBLY)
        .listed_as(Layout::Nhwc),
    cooperative: false,
    columns: 8,
    whole: 8,
    serves: &[(Precision::F16Storage, &PTX_TILES)],
};

pub(super) const MATRIX_SPLIT_PTX: Matrix = Matrix {
    entry: VariantEntry::opencl(
        "matrix_split_ptx",
        include_str!("../../../cl/gemm/matrix_split_ptx.cl"),
        NO_ASSEMBLY,
    )
    .listed_as(Layout::Nhwc),
    cooperative: false,
    columns: 8,
    whole: 4,
    serves: &[(Precision::SplitF16, &PTX_SPLIT_TILES)],
};

/// How a kernel brings operands into local memory.
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
    fn of(kernel: &Matrix, precision: Precision) -> Self {
        match (kernel.cooperative, precision) {
            (true, Precision::SplitF16) => Way::Registers { parts: 2, registers: 32 },
            (true, _) => Way::Registers { parts: 1, registers: 32 },
            (false, Precision::SplitF16) => Way::Registers { parts: 2, registers: 48 },
            (false, _) => Way::Copies,
        }
    }
}

/// What a work-group stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Staging {
    /// Terms at a time of each layer.
    step: u32,
    /// Rows and columns that the work-group covers.
    covers: [u32; 2],
    /// Loads of A and of B that an invocation makes for each step.
    loads: [u32; 2],
    /// Invocations of a layer.
    threads: u32,
    /// Bytes of local memory of all layers.
    bytes: u32,
    /// Steps in local memory at once.
    stages: u32,
}

impl Staging {
    /// `None` if the invocations do not share the loads evenly. `local` bytes may be used.
    fn of(kernel: &Matrix, choice: &Choice, precision: Precision, local: u32) -> Option<Self> {
        let [columns, rows, layers] = choice.tile;
        let [threads_x, y, depth] = choice.work_group;
        if !threads_x.is_multiple_of(WAVE) || depth != layers {
            return None;
        }
        let (x, threads) = (threads_x / WAVE, threads_x * y);
        let covers = [16 * rows * y, kernel.columns * columns * x];
        let way = Way::of(kernel, precision);
        let of_step = |step: u32| {
            let at_once = if way == Way::Copies { 8 } else { 4 };
            let loads = covers.map(|extent| extent * step / at_once);
            let even = loads.iter().all(|loads| loads.is_multiple_of(threads));
            let loads = loads.map(|loads| loads / threads);
            // Where the sums of a row of matrices, or of one, pass to the invocations that finish them.
            let passed = if kernel.cooperative { 16 * 64 } else { 512 * columns } * threads / WAVE;
            let (stages, bytes) = match way {
                Way::Copies => {
                    let stage = 2 * step * (covers[0] + covers[1]);
                    let stages = (local / stage).min(4);
                    (stages, (stages * stage).max(passed))
                }
                Way::Registers { parts, registers } => {
                    let stage = 2 * parts * (covers[0] * (step + PADDING) + step * (covers[1] + PADDING));
                    let fit = 2 * parts * (loads[0] + loads[1]) <= registers;
                    let bytes =
                        if kernel.cooperative { layers * (stage + passed) } else { stage.max(passed) };
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

impl Matrix {
    /// The work-groups that suit `tile`, the default first: on an H200 eight waves are best for most tiles of
    /// `matrix`, and for split operands.
    fn waves(&self, tile: [u32; 3], precision: Precision) -> Vec<[u32; 3]> {
        let mut waves = WAVES;
        let split = precision == Precision::SplitF16;
        match (self.cooperative, split, tile) {
            (true, _, [4, 4, 1] | [2, 2, 1]) | (true, true, [2, 4, 1]) | (false, true, [4, 4, 1]) => {
                waves.swap(0, 1);
            }
            (true, _, [4, 2, 1]) | (false, true, [8, 2, 1] | [4, 2, 1]) => waves.swap(0, 2),
            _ => {}
        }
        let few = |[x, y]: &[u32; 2]| tile[2] == 1 || x * y * tile[2] <= MOST_WAVES;
        let choices = waves.into_iter().filter(few);
        let choices = choices.map(|[x, y]| Choice::new(self.entry.name, tile, [WAVE * x, y, tile[2]]));
        let even = choices.filter(|choice| Staging::of(self, choice, precision, USUAL_LOCAL_BYTES).is_some());
        even.map(|choice| choice.work_group).collect()
    }
}

impl GemmOp {
    /// Whether a session that measured nothing leaves a product of halves to matrix instructions, however few they are: there
    /// are rows enough for them. On an H100, 257 rows by 384 columns of 384 terms took kernels without them 19 us in halves
    /// and 12 in f32.
    pub(super) fn is_for_matrix_unit(&self, limits: &Limits) -> bool {
        let enough = self.precision == Precision::F16Storage && self.m >= 3 * 16;
        let runs = |kernel: &Matrix| {
            kernel.offers(self, limits).into_iter().any(|Offer { tile, .. }| {
                let sizes = kernel.work_groups(self, tile).into_iter();
                let mut choices = sizes.map(|size| Choice::new(kernel.entry().name, tile, size));
                choices.any(|choice| kernel.choice_obstacle(self, &choice, limits).is_none())
            })
        };
        enough && [&MATRIX, &MATRIX_PTX].into_iter().any(runs)
    }
}

impl Kernel<GemmOp> for Matrix {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        let own = self.serves.iter().find(|(precision, _)| *precision == op.precision);
        let own = own.filter(|_| self.obstacle(op, limits).is_none());
        let long = |[_, _, layers]: &[u32; 3]| *layers == 1 || op.k >= LAYER_TERMS * *layers as usize;
        offers(preference::MATRIX, own.iter().flat_map(|(_, tiles)| tiles.iter().copied().filter(long)))
    }

    /// A tile is computed by a wave, and counts matrices.
    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [self.columns, 16, WAVE])
    }

    fn obstacle(&self, op: &GemmOp, limits: &Limits) -> Option<String> {
        if !self.serves.iter().any(|(precision, _)| *precision == op.precision) {
            let words: Vec<String> = self.serves.iter().map(|(precision, _)| precision.to_string()).collect();
            let words = words.join(" and ");
            return Some(format!("it computes in {words}, the precision is {}", op.precision));
        }
        match (self.cooperative, limits.matrix_unit) {
            (true, Some(MatrixUnit::Cooperative { subgroup: WAVE })) => {}
            (true, Some(MatrixUnit::Cooperative { subgroup })) => {
                return Some(format!("it is made for subgroups of {WAVE}, the device has {subgroup}"));
            }
            (false, Some(MatrixUnit::Ptx { .. })) => {}
            _ => return Some("the device does not offer matrix instructions to this API".to_owned()),
        }
        op.vec4_obstacle().or_else(|| op.row_obstacle(self.whole, "values"))
    }

    /// It is for matrix units.
    fn untuned(&self, _op: &GemmOp, _limits: &Limits) -> bool {
        true
    }

    fn choice_obstacle(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let [x, y, z] = choice.work_group;
        Staging::of(self, choice, op.precision, limits.local_memory).is_none().then(|| {
            format!(
                "{x} x {y} x {z} invocations are not whole waves of {WAVE} that share the loads, or \
                 need more than {} bytes of local memory",
                limits.local_memory
            )
        })
    }

    fn work_groups(&self, op: &GemmOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.waves(tile, op.precision)
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Constants {
        let Some(staging) = Staging::of(self, choice, op.precision, limits.local_memory) else {
            return Vec::new();
        };
        let Staging { step, covers: [rows, columns], loads, threads, bytes, stages } = staging;
        let waves_x = choice.work_group[0] / WAVE;
        let mut constants = vec![("STEP", step), ("ROWS", rows), ("THREADS", threads)];
        constants.extend([("LOADS_A", loads[0]), ("LOADS_B", loads[1])]);
        match Way::of(self, op.precision) {
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
                let layers = choice.tile[2];
                let passed = 64 * layers * threads / WAVE;
                let staged = if self.cooperative { layers * parts * low } else { bytes.div_ceil(8) };
                constants.extend([
                    ("RAGGED", u32::from(!op.k.is_multiple_of((step * layers) as usize))),
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
                if self.cooperative {
                    constants.extend([("LAYERS", layers), ("LAYER", parts * low)]);
                }
            }
        }
        op.constants_and(choice, &constants)
    }

    fn precision(&self, op: &GemmOp) -> Option<Precision> {
        Some(op.precision)
    }

    /// What a choice of `matrix` asks; kernels in PTX were not counted.
    fn effort(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<Effort> {
        if !self.cooperative {
            return None;
        }
        let staging = Staging::of(self, choice, op.precision, limits.local_memory)?;
        let Staging { step, covers, loads, bytes, .. } = staging;
        let split = op.precision == Precision::SplitF16;
        let [columns, rows, layers] = choice.tile;
        let steps = extent(op.k).div_ceil(step * layers);
        let sixteens = u64::from(steps * step / 16);
        // Vec4s of an invocation for the sums, and for what is multiplied; split operands have two of each, and three products.
        let (parts, products) = if split { (2, 3) } else { (1, 1) };
        let sums = 2 * columns * rows;
        let read = u64::from((loads[0] + loads[1]) * steps);
        Some(Effort {
            groups: groups(self.grid(op, choice.tile), choice.work_group),
            invocations: choice.work_group.iter().product(),
            registers: 40 + parts * (4 * sums + 4 * (rows + columns) + 2 * (loads[0] + loads[1])),
            local_bytes: bytes,
            steps,
            ahead: true,
            barriers: 2 * steps,
            multiplies: products * 64 * u64::from(sums) * sixteens / SPEED,
            loads: if split { read } else { read.div_ceil(2) },
            staged: u64::from(parts * (rows + columns)) * sixteens,
            added: if layers > 1 { u64::from(sums) } else { 0 },
            reads: op.reads(covers[0], covers[1]),
            traffic: op.traffic(),
        })
    }

    /// A matrix unit is kept busy by fewer invocations, most of all where copies are asynchronous. Half as
    /// many of the smallest cooperative tile are still faster than the kernels without such a unit.
    fn counted(&self, op: &GemmOp, choice: &Choice) -> u64 {
        let invocations: u64 = self.grid(op, choice.tile).iter().map(|&extent| u64::from(extent)).product();
        let few = self.cooperative && choice.tile[..2] == [1, 2];
        let copies = Way::of(self, op.precision) == Way::Copies;
        if few || copies { 4 * invocations } else { 2 * invocations }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fill_48_kib_as_measured() {
        let staging = |kernel: &Matrix, tile, work_group, precision| {
            Staging::of(kernel, &Choice::new(kernel.entry.name, tile, work_group), precision, 49152)
        };
        let halves = Precision::F16Storage;
        let ptx = staging(&MATRIX_PTX, [8, 4, 1], [64, 2, 1], halves).expect("it fits");
        assert_eq!((ptx.step, ptx.covers, ptx.stages, ptx.bytes), (32, [128, 128], 3, 49152));
        let wide = staging(&MATRIX, [4, 4, 1], [128, 2, 1], halves).expect("it fits");
        assert_eq!((wide.step, wide.covers, wide.loads, wide.bytes), (32, [128, 256], [4, 8], 27136 + 8192));
        let split = staging(&MATRIX, [2, 4, 1], [128, 2, 1], Precision::SplitF16).expect("it fits");
        assert_eq!(
            (split.step, split.covers, split.loads, split.bytes),
            (32, [128; 2], [4; 2], 37888 + 8192)
        );
        let split = staging(&MATRIX_SPLIT_PTX, [4, 4, 1], [128, 2, 1], Precision::SplitF16).expect("it fits");
        assert_eq!((split.step, split.covers, split.bytes), (32, [128; 2], 37888));
        assert_eq!(staging(&MATRIX, [4, 4, 1], [48, 2, 1], halves), None);
    }

    #[test]
    fn the_default_work_group_fits_every_tile() {
        for kernel in [MATRIX, MATRIX_PTX, MATRIX_SPLIT_PTX] {
            for &(precision, tiles) in kernel.serves {
                for &tile in tiles {
                    assert!(!kernel.waves(tile, precision).is_empty(), "{kernel:?} {tile:?} {precision}");
                }
            }
        }
    }
}
