//! `matrix` and `matrix_ptx`: products by instructions that multiply small matrices of halves and sum in f32.
//!
//! A wave of 32 invocations has `tile[1]` times 16 queries of a head of keys; a work-group of `32 x` invocations is `x`
//! waves, and takes `16 tile[0]` keys at a time.

use super::estimate::Group;
use super::{AttentionOp, Sizes, estimate};
use crate::dtype::DType;
use crate::emit::Binding;
use crate::layout::Layout;
use crate::limits::{Limits, MatrixUnit};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, extent, local_obstacle};

/// Invocations that work on one small matrix together.
const WAVE: usize = 32;

/// Queries and keys of a small matrix.
const SIDE: usize = 16;

/// Small matrices along keys and along queries, the default first.
const TILES: [[u32; 3]; 4] = [[4, 1, 1], [2, 1, 1], [2, 2, 1], [4, 2, 1]];

/// Waves of a work-group, the default first.
const WAVES: [u32; 4] = [4, 2, 1, 8];

/// The fewest queries for which small matrices pay.
const FEW: usize = 9;

/// Loads of keys, and of values, that an invocation keeps on their way.
const MOST_LOADS: usize = 16;

/// Vec4s of f32 that a wave keeps of its queries and results, with its shares: what registers hold.
const MOST_KEPT: usize = 48;

/// A kernel.
#[derive(Debug)]
pub(super) struct Matrix {
    entry: VariantEntry,
    /// By cooperative matrices, or by PTX.
    cooperative: bool,
}

pub(super) const MATRIX: Matrix = Matrix {
    entry: VariantEntry::vulkan(
        "matrix",
        crate::emit::text!("../../../shaders/attention/matrix.wgsl"),
        "OpenCL C has no cooperative matrices",
    )
    .with_native_half()
    .listed_as(Layout::Nhwc)
    .by_estimate(),
    cooperative: true,
};

pub(super) const MATRIX_PTX: Matrix = Matrix {
    entry: VariantEntry::opencl(
        "matrix_ptx",
        include_str!("../../../cl/attention/matrix_ptx.cl"),
        "WGSL has no inline assembly",
    )
    .listed_as(Layout::Nhwc)
    .by_estimate(),
    cooperative: false,
};

/// What a work-group stages and keeps. Lengths of rows are in units: vec4s (`matrix`) or eights (`matrix_ptx`) of halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Staging {
    threads: usize,
    rows: usize,
    keys: usize,
    /// Small matrices along the features of keys and of values.
    depth: usize,
    width: usize,
    /// From a key, and from a value, to the next.
    key_row: usize,
    value_row: usize,
    /// Units that an invocation brings of queries, keys and values.
    loads: [usize; 3],
    /// Units in local memory.
    staged: usize,
    /// Vec4s of f32 from one row of scores or results to the next, and of all rows.
    passed_row: usize,
    passed: usize,
    /// Vec4s of halves from one row of shares to the next, and of all rows: 0 where they lie in the place of keys.
    shares_row: usize,
    shares: usize,
}

impl Staging {
    fn of(kernel: &Matrix, op: &AttentionOp, choice: &Choice) -> Self {
        let [columns, blocks, _] = choice.tile.map(|extent| extent as usize);
        let threads = choice.work_group[0] as usize;
        let (rows, keys) = (SIDE * blocks * (threads / WAVE), SIDE * columns);
        let [depth, width] = [op.sizes.depth, op.sizes.width].map(|features| features.div_ceil(SIDE));
        let (unit, padding) = if kernel.cooperative { (4, 2) } else { (8, 1) };
        let [key_units, value_units] = [depth, width].map(|matrices| matrices * SIDE / unit);
        let (key_row, value_row) = (key_units + padding, value_units + padding);
        let counts = [rows * key_units, keys * key_units, keys * value_units];
        let step = keys * (key_row + value_row);
        // Rows two vec4s further in a line of banks than eight of them, so that four rows fall into different banks.
        let passed_row = (keys / 4).next_multiple_of(8) + 2;
        let shares_row = keys / 4 + padding;
        // Shares lie where the keys were, if there is room.
        let own = if rows * shares_row <= keys * key_row { 0 } else { rows * shares_row };
        let (staged, passed, shares) = if kernel.cooperative {
            (step.max(rows * key_row), rows * passed_row, own)
        } else {
            (2 * step, 0, 0)
        };
        Staging {
            threads,
            rows,
            keys,
            depth,
            width,
            key_row,
            value_row,
            loads: counts.map(|count| count.div_ceil(threads)),
            staged,
            passed_row,
            passed,
            shares_row,
            shares,
        }
    }

    fn bytes(&self, kernel: &Matrix) -> u64 {
        let unit = if kernel.cooperative { 8 } else { 16 };
        (unit * self.staged + 16 * self.passed + 8 * self.shares) as u64
    }
}

impl Matrix {
    /// Halves that it reads at once, of which rows and the ways between them are multiples.
    const fn whole(&self) -> usize {
        if self.cooperative { 4 } else { 8 }
    }
}

impl Kernel<AttentionOp> for Matrix {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    fn offers(&self, op: &AttentionOp, limits: &Limits) -> Vec<Offer> {
        let tiles = TILES.into_iter().filter(|_| self.obstacle(op, limits).is_none());
        // No tile of which half would lie beyond the queries or keys.
        let down = |tile: &[u32; 3]| tile[1] == 1 || SIDE * tile[1] as usize <= op.all_rows();
        let across = |tile: &[u32; 3]| tile[0] == 2 || SIDE * (tile[0] as usize) < 2 * op.sizes.keys;
        offers(if op.all_rows() < FEW { 3 } else { 0 }, tiles.filter(down).filter(across))
    }

    /// A tile's rows are a wave's, and those of a work-group's waves lie one behind the other.
    fn grid(&self, op: &AttentionOp, tile: [u32; 3]) -> [u32; 3] {
        let blocks = extent(op.all_rows()).div_ceil(extent(SIDE) * tile[1]);
        [extent(WAVE) * blocks, 1, extent(op.sizes.batch * op.sizes.heads)]
    }

    fn obstacle(&self, op: &AttentionOp, limits: &Limits) -> Option<String> {
        if op.precision.storage() != DType::F16 {
            return Some(format!("it multiplies halves, the precision is {}", op.precision));
        }
        match (self.cooperative, limits.matrix_unit) {
            (true, Some(MatrixUnit::Cooperative { subgroup: 32 })) if limits.native_half => {}
            (true, Some(MatrixUnit::Cooperative { subgroup })) => {
                return Some(format!("it is made for halves in subgroups of 32, the device has {subgroup}"));
            }
            (false, Some(MatrixUnit::Ptx { .. })) => {}
            _ => return Some("the device does not offer matrix instructions to this API".to_owned()),
        }
        if self.cooperative && limits.subgroup.is_none() {
            return Some("the device has no shuffles of subgroups".to_owned());
        }
        let whole = self.whole();
        let uneven = (!op.is_whole(whole)).then(|| format!("rows that are not of whole {whole}s of halves"));
        uneven.or_else(|| op.count_obstacle()).or_else(|| op.parts_obstacle())
    }

    fn choice_obstacle(&self, op: &AttentionOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let [x, y, z] = choice.work_group;
        let waves = WAVES.iter().any(|waves| waves * extent(WAVE) == x);
        if !waves || y != 1 || z != 1 {
            return Some(format!(
                "a work-group of {x} x {y} x {z}, wanted a row of 1, 2, 4 or 8 waves of {WAVE}"
            ));
        }
        if !TILES.contains(&choice.tile) {
            return Some(format!("a tile of {:?}, wanted one of {TILES:?}", choice.tile));
        }
        let staging = Staging::of(self, op, choice);
        let [_, keys, values] = staging.loads;
        if keys.max(values) > MOST_LOADS {
            let found = format!("{keys} loads of keys and {values} of values");
            return Some(format!("{found} for an invocation at a time, wanted at most {MOST_LOADS}"));
        }
        let [columns, blocks, _] = choice.tile.map(|extent| extent as usize);
        let kept = blocks * (staging.depth + 2 * staging.width + 2 * columns);
        if kept > MOST_KEPT {
            return Some(format!("{kept} vec4s of an invocation's registers, wanted at most {MOST_KEPT}"));
        }
        let bytes = staging.bytes(self);
        local_obstacle(bytes, limits)
    }

    fn work_groups(&self, op: &AttentionOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        let blocks = extent(op.all_rows()).div_ceil(extent(SIDE) * tile[1]);
        let fit = WAVES.into_iter().filter(|&waves| waves == 1 || waves < 2 * blocks);
        fit.map(|waves| [extent(WAVE) * waves, 1, 1]).collect()
    }

    fn counted(&self, op: &AttentionOp, choice: &Choice) -> u64 {
        4 * self.grid(op, choice.tile).iter().map(|&extent| u64::from(extent)).product::<u64>()
    }

    fn estimate(&self, op: &AttentionOp, choice: &Choice, limits: &Limits) -> Option<f64> {
        let staging = Staging::of(self, op, choice);
        let group = Group {
            invocations: extent(staging.threads),
            rows: staging.rows,
            keys: staging.keys,
            loads: staging.loads[1] + staging.loads[2],
            bytes: staging.bytes(self),
            cooperative: self.cooperative,
            blocks: choice.tile[1],
        };
        estimate::clocks(op, &group, limits)
    }

    fn bindings(&self, op: &AttentionOp, _choice: &Choice) -> Vec<Binding> {
        op.bindings(4)
    }

    fn params(&self, op: &AttentionOp, _choice: &Choice) -> Params {
        op.params(self.whole())
    }

    fn constants(&self, op: &AttentionOp, choice: &Choice, _limits: &Limits) -> Constants {
        let staging = Staging::of(self, op, choice);
        let Staging { threads, rows, keys, key_row, value_row, staged, .. } = staging;
        let Sizes { depth, width, .. } = op.sizes;
        let [loads_q, loads_k, loads_v] = staging.loads;
        let mut constants = vec![
            ("THREADS", threads),
            ("TILE_Y", choice.tile[1] as usize),
            ("ROWS", rows),
            ("KEYS", keys),
            ("D16", staging.depth),
            ("E16", staging.width),
            ("KEY_ROW", key_row),
            ("VALUE_ROW", value_row),
            ("LOADS_K", loads_k),
            ("LOADS_V", loads_v),
            ("STAGED", staged),
        ];
        if self.cooperative {
            constants.extend([
                ("D4", depth / 4),
                ("E4", width / 4),
                ("LOADS_Q", loads_q),
                ("PASSED_ROW", staging.passed_row),
                ("PASSED", staging.passed),
                ("SHARES_ROW", staging.shares_row),
                ("SHARES", staging.shares),
            ]);
        } else {
            constants.extend([("D8", depth / 8), ("E8", width / 8), ("STAGE", staged / 2)]);
        }
        op.constants(&constants)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attention;
    use super::super::examples::of_node;
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Operand;
    use crate::ops::op::Op;

    /// A device with cooperative matrices, or with PTX.
    fn limits(kernel: &Matrix) -> Limits {
        let matrices = if kernel.cooperative {
            MatrixUnit::Cooperative { subgroup: 32 }
        } else {
            MatrixUnit::Ptx { capability: 90, warp_groups: false }
        };
        let least = if kernel.cooperative { Limits::webgpu() } else { Limits::opencl() };
        Limits {
            matrix_unit: Some(matrices),
            native_half: true,
            subgroup: Some([32; 2]),
            local_memory: 49152,
            ..least
        }
    }

    #[test]
    fn no_work_group_is_launched_for_nothing() {
        let mut launches = 0;
        for kernel in [&MATRIX, &MATRIX_PTX] {
            let limits = limits(kernel);
            let (q, k, v) = (Operand::Query, Operand::Key, Operand::Value);
            let given = [q, k, v].map(|operand| (operand, &[1, 6, 1500, 64][..], DType::F32));
            let op = of_node(&Attention::default(), &given, Precision::F16Storage).expect("an op");
            let bound: &dyn Op = &op;
            for Offer { tile, .. } in kernel.offers(&op, &limits) {
                for work_group in kernel.work_groups(&op, tile) {
                    let choice = Choice::new(kernel.entry.name, tile, work_group);
                    let Ok(launch) = bound.plan(&choice, &limits) else { continue };
                    let rows = Staging::of(kernel, &op, &choice).rows;
                    assert_eq!(launch.groups(), [1500_u32.div_ceil(extent(rows)), 1, 6], "{choice}");
                    launches += 1;
                }
            }
        }
        assert!(launches > 10, "{launches}");
    }
}
