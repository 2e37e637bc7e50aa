//! The geometry of `wgmma` and `wgmma_tf32`: products by Hopper's instructions that multiply matrices
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
use crate::dtype::Precision;
use crate::emit::Value;
use crate::limits::{Limits, MatrixUnit, WARP_GROUP_MEMORY};
use crate::ops::plan::Choice;

/// Invocations that multiply together.
const WARP_GROUP: u32 = 128;

/// Rows or columns of one warp group, and what `tile` counts in.
const SIDE: u32 = 64;

/// Bytes of a row of A for one step, which the unit's swizzle permutes: 64 halves, 32 floats.
const LINE: u32 = 128;

/// What `wgmma` computes per work-group, in 64 columns and 64 rows, the default first.
pub(super) const TILES: [[u32; 3]; 6] = [[4, 2, 1], [2, 2, 1], [1, 1, 1], [2, 1, 1], [1, 2, 1], [4, 1, 1]];

/// What `wgmma_tf32` computes per work-group.
pub(super) const TF32_TILES: [[u32; 3]; 4] = [[2, 4, 1], [2, 2, 1], [1, 2, 1], [1, 1, 1]];

/// Whether `variant` is one of these kernels.
pub(super) fn is(variant: &str) -> bool {
    matches!(variant, "wgmma" | "wgmma_tf32")
}

/// Warp groups of a work-group.
fn warp_groups(variant: &str, [columns, rows, _]: [u32; 3]) -> u32 {
    if variant == "wgmma" { rows } else { columns }
}

/// The only work-group of a tile.
pub(super) fn work_group(variant: &str, tile: [u32; 3]) -> [u32; 3] {
    [WARP_GROUP, warp_groups(variant, tile), 1]
}

/// Invocations for `n` columns and `m` rows.
pub(super) fn grid(variant: &str, tile: [u32; 3], n: u32, m: u32) -> [u32; 2] {
    let [x, y, _] = work_group(variant, tile);
    [x * n.div_ceil(SIDE * tile[0]), y * m.div_ceil(SIDE * tile[1])]
}

impl GemmOp {
    /// The kernels and tiles that serve, if any.
    pub(super) fn wgmma_tiles(&self, limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        let halves = TILES.iter().map(|&tile| ("wgmma", tile));
        let floats = TF32_TILES.iter().map(|&tile| ("wgmma_tf32", tile));
        let serve = |(variant, _): &(&str, _)| self.wgmma_obstacle(variant, limits).is_none();
        halves.chain(floats).filter(serve).collect()
    }

    /// Why the device or the operands have no use for `variant`, if so.
    pub(super) fn wgmma_obstacle(&self, variant: &str, limits: &Limits) -> Option<String> {
        let multiplies = if variant == "wgmma" { Precision::F16Storage } else { Precision::Tf32 };
        if self.precision != multiplies {
            return Some(format!("it computes in {multiplies}, the precision is {}", self.precision));
        }
        if !matches!(limits.matrix_unit, Some(MatrixUnit::Ptx { warp_groups: true, .. })) {
            return Some("the device does not offer instructions of warp groups to this API".to_owned());
        }
        if let Some(obstacle) = self.vec4_obstacle() {
            return Some(obstacle);
        }
        let whole = if variant == "wgmma" { 8 } else { 4 };
        [("k", self.k), ("n", self.n), ("lda", self.lda), ("ldb", self.ldb)]
            .into_iter()
            .find(|(_, extent)| !extent.is_multiple_of(whole))
            .map(|(name, extent)| format!("it reads {whole} elements at once, {name} is {extent}"))
    }

    /// Why one of these kernels cannot run as `choice`, if it cannot.
    pub(super) fn wgmma_choice_obstacle(&self, choice: &Choice) -> Option<String> {
        let [x, y, z] = work_group(choice.variant, choice.tile);
        (choice.work_group != [x, y, z]).then(|| format!("its warp groups are {x} x {y} x {z} invocations"))
    }

    /// The constants of one of these kernels, which `choice` fits.
    pub(super) fn wgmma_constants(&self, choice: &Choice) -> Vec<(&'static str, Value)> {
        let halves = choice.variant == "wgmma";
        let [columns, rows, _] = choice.tile.map(|extent| SIDE * extent);
        let stage = LINE * (rows + columns);
        // The largest tiles leave registers for one work-group on a multiprocessor, the others for two.
        // Alone, a work-group begins to multiply a step before it is done with the last.
        let alone = if halves { columns } else { rows } == 256;
        let stages = if alone { 4 } else { (WARP_GROUP_MEMORY / 2 / stage).min(6) };
        let overlap = u32::from(alone && halves);
        let part = columns.min(128);
        let step = if halves { 64 } else { 32 };
        let mut constants = vec![
            ("STEP", step),
            ("ROWS", rows),
            ("COLUMNS", columns),
            ("LINES", WARP_GROUP * warp_groups(choice.variant, choice.tile) / 8),
            ("B_FIRST", LINE * rows),
            ("STAGE", stage),
            ("STAGES", stages),
            ("AHEAD", stages - 1 - overlap),
            ("STAGED", stages * stage / 16),
        ];
        if halves {
            constants.extend([
                ("RAGGED", u32::from(!self.k.is_multiple_of(step as usize))),
                ("OVERLAP", overlap),
                ("PART", part),
                // In vec4s: one more than a row, so that rows begin in different banks.
                ("PITCH", part / 4 + 1),
            ]);
        } else {
            // In floats, likewise.
            constants.push(("PITCH", 20));
        }
        constants.into_iter().map(|(name, value)| (name, Value::U32(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(op: &GemmOp, variant: &'static str, tile: [u32; 3], name: &str) -> u32 {
        let choice = Choice::new(variant, tile, work_group(variant, tile));
        let found = op.wgmma_constants(&choice).into_iter().find(|(found, _)| *found == name);
        match found {
            Some((_, Value::U32(value))) => value,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[test]
    fn every_tile_keeps_steps_ahead_in_the_local_memory_that_was_asked_about() {
        let op = GemmOp::packed(4096, 4096, 4096);
        let tiles = TILES.map(|tile| ("wgmma", tile)).into_iter();
        for (variant, tile) in tiles.chain(TF32_TILES.map(|tile| ("wgmma_tf32", tile))) {
            let value = |name| constant(&op, variant, tile, name);
            assert!(16 * value("STAGED") <= WARP_GROUP_MEMORY, "{variant} {tile:?}");
            assert!(value("AHEAD") >= 2, "{variant} {tile:?}");
            // The sums that a warp passes on fit into what was staged.
            let [x, y, _] = work_group(variant, tile);
            assert!(x * y / 32 * 256 * value("PITCH") <= 16 * value("STAGED"), "{variant} {tile:?}");
        }
        assert_eq!(constant(&op, "wgmma", [4, 2, 1], "STAGED"), (192 << 10) / 16);
        assert_eq!(constant(&op, "wgmma", [2, 2, 1], "STAGES"), 3);
    }

    #[test]
    fn it_is_offered_where_the_driver_was_seen_to_take_it() {
        let op = GemmOp { precision: Precision::F16Storage, ..GemmOp::packed(64, 64, 64) };
        let on = |warp_groups| Limits {
            matrix_unit: Some(MatrixUnit::Ptx { capability: 90, warp_groups }),
            ..Limits::opencl()
        };
        assert_eq!(op.wgmma_obstacle("wgmma", &on(true)), None);
        assert!(op.wgmma_obstacle("wgmma", &on(false)).is_some());
        assert!(op.wgmma_obstacle("wgmma_tf32", &on(true)).is_some_and(|why| why.contains("tf32")));
        let odd = GemmOp { lda: 68, ..op };
        assert!(odd.wgmma_obstacle("wgmma", &on(true)).is_some_and(|why| why.contains("lda is 68")));
    }
}
