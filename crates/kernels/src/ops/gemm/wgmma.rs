//! `wgmma` and `wgmma_tf32`: products by Hopper's instructions that multiply matrices
//! straight from local memory, for f16 operands and for f32 operands with ten bits of mantissa.
//!
//! A work-group sums `tile[1]` times 64 rows by `tile[0]` times 64 columns. Its warp groups of 128
//! invocations take 64 rows each (`wgmma`) or 64 columns each (`wgmma_tf32`); it is `128 x` their
//! number.
//!
//! On an H200 `wgmma` is the fastest with tile 4x2 where that is a work-group for each multiprocessor,
//! from n = 2048 on, and with 1x1 at n = 1024 and 512.
//!
//! NVIDIA's OpenCL says that a work-group may have 48 KiB of local memory, but takes kernels of up to
//! what the multiprocessor has (227 KiB of 228, *CUDA C++ Programming Guide*, compute capability 9.0);
//! [`MatrixUnit::Ptx`]'s `warp_groups` says that the driver was seen to take one of [`WARP_GROUP_MEMORY`].

use super::GemmOp;
use super::arguments::preference;
use crate::dtype::Precision;
use crate::layout::Layout;
use crate::limits::{Limits, MatrixUnit, WARP_GROUP_MEMORY};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::extent;

/// Invocations that multiply together.
const WARP_GROUP: u32 = 128;

/// Rows or columns of one warp group, and what `tile` counts in.
const SIDE: u32 = 64;

/// Bytes of a row of A for one step, which the unit's swizzle permutes: 64 halves, 32 floats.
const LINE: u32 = 128;

/// What `wgmma` computes per work-group, in 64 columns and 64 rows, the default first.
const TILES: [[u32; 3]; 6] = [[4, 2, 1], [2, 2, 1], [1, 1, 1], [2, 1, 1], [1, 2, 1], [4, 1, 1]];

/// What `wgmma_tf32` computes per work-group.
const TF32_TILES: [[u32; 3]; 4] = [[2, 4, 1], [2, 2, 1], [1, 2, 1], [1, 1, 1]];

/// A kernel.
#[derive(Debug)]
pub(super) struct WarpGroups {
    entry: VariantEntry,
    /// Of f16 operands, or of f32 operands with ten bits of mantissa.
    halves: bool,
    tiles: &'static [[u32; 3]],
}

const NO_ASSEMBLY: &str = "WGSL has no inline assembly";

pub(super) const WGMMA: WarpGroups = WarpGroups {
    entry: VariantEntry::opencl("wgmma", include_str!("../../../cl/gemm/wgmma.cl"), NO_ASSEMBLY)
        .listed_as(Layout::Nhwc),
    halves: true,
    tiles: &TILES,
};

pub(super) const WGMMA_TF32: WarpGroups = WarpGroups {
    entry: VariantEntry::opencl("wgmma_tf32", include_str!("../../../cl/gemm/wgmma_tf32.cl"), NO_ASSEMBLY)
        .listed_as(Layout::Nhwc),
    halves: false,
    tiles: &TF32_TILES,
};

impl WarpGroups {
    /// Warp groups of a work-group.
    fn warp_groups(&self, [columns, rows, _]: [u32; 3]) -> u32 {
        if self.halves { rows } else { columns }
    }

    /// The only work-group of a tile.
    fn work_group(&self, tile: [u32; 3]) -> [u32; 3] {
        [WARP_GROUP, self.warp_groups(tile), 1]
    }
}

impl Kernel<GemmOp> for WarpGroups {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        // Of few rows most that a warp group multiplies would not be there.
        let preference = if op.few_rows() { preference::LAST } else { preference::WARP_GROUPS };
        let serves = self.obstacle(op, limits).is_none();
        offers(preference, self.tiles.iter().copied().filter(|_| serves))
    }

    /// A tile is computed by a work-group.
    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        let [x, y, _] = self.work_group(tile);
        let groups = [extent(op.n).div_ceil(SIDE * tile[0]), extent(op.m).div_ceil(SIDE * tile[1])];
        [x.saturating_mul(groups[0]), y.saturating_mul(groups[1]), extent(op.batch)]
    }

    fn obstacle(&self, op: &GemmOp, limits: &Limits) -> Option<String> {
        let multiplies = if self.halves { Precision::F16Storage } else { Precision::Tf32 };
        if op.precision != multiplies {
            return Some(format!("it computes in {multiplies}, the precision is {}", op.precision));
        }
        if !matches!(limits.matrix_unit, Some(MatrixUnit::Ptx { warp_groups: true, .. })) {
            return Some("the device does not offer instructions of warp groups to this API".to_owned());
        }
        let whole = if self.halves { 8 } else { 4 };
        op.vec4_obstacle().or_else(|| op.row_obstacle(whole, "elements"))
    }

    fn choice_obstacle(&self, _op: &GemmOp, choice: &Choice, _limits: &Limits) -> Option<String> {
        let [x, y, z] = self.work_group(choice.tile);
        (choice.work_group != [x, y, z]).then(|| format!("its warp groups are {x} x {y} x {z} invocations"))
    }

    fn work_groups(&self, _op: &GemmOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        vec![self.work_group(tile)]
    }

    /// It is for matrix units.
    fn untuned(&self, _op: &GemmOp, _limits: &Limits) -> bool {
        true
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [columns, rows, _] = choice.tile.map(|extent| SIDE * extent);
        let stage = LINE * (rows + columns);
        // The largest tiles leave registers for one work-group on a multiprocessor, the others for two.
        // Alone, a work-group begins to multiply a step before it is done with the last.
        let alone = if self.halves { columns } else { rows } == 256;
        let stages = if alone { 4 } else { (WARP_GROUP_MEMORY / 2 / stage).min(6) };
        let overlap = u32::from(alone && self.halves);
        let part = columns.min(128);
        let step = if self.halves { 64 } else { 32 };
        let mut constants = vec![
            ("STEP", step),
            ("ROWS", rows),
            ("COLUMNS", columns),
            ("LINES", WARP_GROUP * self.warp_groups(choice.tile) / 8),
            ("B_FIRST", LINE * rows),
            ("STAGE", stage),
            ("STAGES", stages),
            ("AHEAD", stages - 1 - overlap),
            ("STAGED", stages * stage / 16),
        ];
        if self.halves {
            constants.extend([
                ("RAGGED", u32::from(!op.k.is_multiple_of(step as usize))),
                ("OVERLAP", overlap),
                ("PART", part),
                // In vec4s: one more than a row, so that rows begin in different banks.
                ("PITCH", part / 4 + 1),
            ]);
        } else {
            // In floats, likewise.
            constants.push(("PITCH", 20));
        }
        op.constants_and(choice, &constants)
    }

    fn precision(&self, op: &GemmOp) -> Option<Precision> {
        Some(op.precision)
    }

    /// A matrix unit is kept busy by fewer invocations: that of an H200 by 128 work-groups of two warp
    /// groups, or 64 of one.
    fn counted(&self, op: &GemmOp, choice: &Choice) -> u64 {
        let product = |extents: [u32; 3]| extents.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let size = product(choice.work_group);
        product(self.grid(op, choice.tile)) * 131_072 / (size * size).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Value;

    fn constant(kernel: &WarpGroups, tile: [u32; 3], name: &str) -> u32 {
        let choice = Choice::new(kernel.entry.name, tile, kernel.work_group(tile));
        let constants = kernel.constants(&GemmOp::packed(4096, 4096, 4096), &choice, &Limits::opencl());
        match constants.into_iter().find(|(found, _)| *found == name) {
            Some((_, Value::U32(value))) => value,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[test]
    fn every_tile_keeps_steps_ahead_in_the_local_memory_that_was_asked_about() {
        for kernel in [&WGMMA, &WGMMA_TF32] {
            for &tile in kernel.tiles {
                let value = |name| constant(kernel, tile, name);
                assert!(16 * value("STAGED") <= WARP_GROUP_MEMORY, "{kernel:?} {tile:?}");
                assert!(value("AHEAD") >= 2, "{kernel:?} {tile:?}");
                // The sums that a warp passes on fit into what was staged.
                let [x, y, _] = kernel.work_group(tile);
                assert!(x * y / 32 * 256 * value("PITCH") <= 16 * value("STAGED"), "{kernel:?} {tile:?}");
            }
        }
        assert_eq!(constant(&WGMMA, [4, 2, 1], "STAGED"), (192 << 10) / 16);
        assert_eq!(constant(&WGMMA, [2, 2, 1], "STAGES"), 3);
    }

    #[test]
    fn it_is_offered_where_the_driver_was_seen_to_take_it() {
        let op = GemmOp { precision: Precision::F16Storage, ..GemmOp::packed(64, 64, 64) };
        let on = |warp_groups| Limits {
            matrix_unit: Some(MatrixUnit::Ptx { capability: 90, warp_groups }),
            ..Limits::opencl()
        };
        assert_eq!(WGMMA.obstacle(&op, &on(true)), None);
        assert!(WGMMA.obstacle(&op, &on(false)).is_some());
        assert!(WGMMA_TF32.obstacle(&op, &on(true)).is_some_and(|why| why.contains("tf32")));
        let odd = GemmOp { lda: 68, ..op };
        assert!(WGMMA.obstacle(&odd, &on(true)).is_some_and(|why| why.contains("lda is 68")));
    }
}
