//! About how long a choice takes on a GPU without tuning.
//!
//! A multiprocessor runs its share of the work-groups, some of them side by side. A step of keys takes what the products of
//! all of these take, and once what its loads and barriers make them wait. The constants are those of an NVIDIA H100 through
//! OpenCL and Vulkan; the unit is a cycle of a multiprocessor that multiplies and adds 128 pairs in it.

use super::AttentionOp;
use crate::limits::{Family, Limits};

/// What a step takes against its products alone: more where an invocation has few queries, for which it reads keys and
/// values again, and where a work-group has few invocations. Of `row`, whose factors come from memory.
const QUERIES_FACTOR: f64 = 1.6;
const INVOCATIONS_FACTOR: f64 = 38.0;
const ROW_FACTOR: f64 = 4.0;

/// Cycles that a step waits.
const TILED_WAIT: f64 = 2500.0;
const ROW_WAIT: f64 = 6500.0;

/// What products take on a matrix unit against those of f32, and cycles that a step makes a wave wait for each key, once and for
/// each 16 of its queries: by cooperative matrices, whose scores pass through local memory, and by PTX.
const COOPERATIVE: (f64, f64) = (0.4, 60.0);
const PTX: (f64, f64) = (0.06, 17.0);

/// Invocations of a multiprocessor.
const INVOCATIONS_PER_UNIT: u32 = 2048;

/// Work-groups that a multiprocessor has at once, at most.
const MOST_RESIDENT: u64 = 16;

/// Pairs that a multiprocessor multiplies and adds in a cycle.
const PAIRS_PER_CYCLE: f64 = 128.0;

/// What a work-group of a choice has.
pub(super) struct Group {
    pub(super) invocations: u32,
    /// Queries, and keys at a time.
    pub(super) rows: usize,
    pub(super) keys: usize,
    /// Bytes of local memory.
    pub(super) bytes: u64,
    pub(super) unit: Unit,
}

/// What multiplies, and where its factors come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    /// Invocations, from memory.
    Rows,
    /// Invocations with so many queries each, from local memory.
    Staged(u32),
    /// Instructions that multiply small matrices of halves, so many of 16 queries in a wave.
    Matrices { cooperative: bool, blocks: u32 },
}

/// Multiprocessors, or a guess at them.
fn units(limits: &Limits) -> f64 {
    let known = limits.compute_units.filter(|_| matches!(limits.family, Family::Nvidia | Family::Amd));
    f64::from(known.unwrap_or(if limits.family == Family::Nvidia { 128 } else { 32 }))
}

/// Cycles until the last multiprocessor is done; `None` where local memory is no memory of its own.
pub(super) fn cycles(op: &AttentionOp, group: &Group, limits: &Limits) -> Option<f64> {
    if !limits.family.has_local_memory() {
        return None;
    }
    let sizes = &op.sizes;
    let groups = (op.parts * op.all_rows().div_ceil(group.rows) * sizes.batch * sizes.heads) as f64;
    let each = (groups / units(limits)).ceil();
    let of_unit = u64::from(limits.local_memory_of_unit().unwrap_or(limits.local_memory));
    let resident = (of_unit / group.bytes.max(1))
        .min(u64::from(INVOCATIONS_PER_UNIT / group.invocations.max(1)))
        .clamp(1, MOST_RESIDENT);
    let together = each.min(resident as f64);
    let pairs = (group.rows * group.keys * (sizes.depth + sizes.width)) as f64;
    let invocations = f64::from(group.invocations.max(1));
    let (factor, wait) = match group.unit {
        Unit::Staged(queries) => {
            let reads = QUERIES_FACTOR / f64::from(queries.max(1));
            (1.0 + reads + INVOCATIONS_FACTOR / invocations, TILED_WAIT)
        }
        Unit::Rows => (ROW_FACTOR, ROW_WAIT),
        Unit::Matrices { cooperative, blocks } => {
            let (factor, wait) = if cooperative { COOPERATIVE } else { PTX };
            (factor, wait * group.keys as f64 * (1.0 + f64::from(blocks)))
        }
    };
    let step = together * factor * pairs / PAIRS_PER_CYCLE + wait;
    Some(each / together * op.span().div_ceil(group.keys) as f64 * step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Dialect;
    use crate::ops::attention::NUMBERS;
    use crate::ops::plan::Choice;

    #[test]
    fn an_h100s_times_are_met_within_a_half() {
        let opencl = Limits { family: Family::Nvidia, compute_units: Some(132), ..Limits::opencl() };
        let vulkan = Limits { dialect: Dialect::Wgsl, local_memory: 49152, ..opencl.clone() };
        // Heads, queries, keys and features; microseconds measured, of which a launch takes 5.
        for (extents, kernel, tile, size, measured, limits) in [
            ([6, 1500, 1500, 64], "tiled", [1, 4, 1], [16, 8, 1], 179.6, &opencl),
            ([6, 1500, 1500, 64], "tiled", [1, 4, 1], [16, 8, 1], 231.4, &vulkan),
            ([6, 1500, 1500, 64], "tiled", [1, 2, 1], [16, 8, 1], 221.5, &opencl),
            ([6, 1500, 1500, 64], "tiled", [2, 4, 1], [8, 8, 1], 204.7, &opencl),
            ([6, 1500, 1500, 64], "tiled", [2, 2, 1], [8, 16, 1], 208.7, &opencl),
            ([6, 1500, 1500, 64], "tiled", [1, 4, 1], [8, 16, 1], 268.7, &vulkan),
            ([12, 197, 197, 64], "tiled", [1, 2, 1], [16, 4, 1], 19.1, &opencl),
            ([12, 197, 197, 64], "tiled", [1, 4, 1], [16, 8, 1], 20.4, &opencl),
            ([12, 197, 197, 64], "row", [128, 4, 1], [128, 1, 1], 22.3, &opencl),
            ([12, 1, 512, 64], "row", [256, 1, 1], [256, 1, 1], 14.5, &opencl),
            ([12, 1, 2048, 64], "row", [256, 1, 1], [256, 1, 1], 44.6, &opencl),
        ] {
            let op = (NUMBERS.op)(&extents, None, Precision::F32).expect("extents");
            let kernel = op.kernel(kernel).expect("a kernel");
            let choice = Choice::new(kernel.name(), tile, size);
            let cycles = kernel.estimate(&choice, limits).expect("an estimate");
            let ratio = (cycles / 1755.0 + 5.0) / measured;
            assert!((0.67..1.5).contains(&ratio), "{extents:?} {choice}: {ratio}");
        }
    }

    #[test]
    fn many_queries_are_tiled_and_one_is_not() {
        let limits = Limits {
            family: Family::Nvidia,
            compute_units: Some(132),
            local_memory: 49152,
            ..Limits::opencl()
        };
        for (extents, wanted) in [
            ([6, 1500, 1500, 64], "tiled tile 1x4x1 work-group (16,8,1)"),
            ([12, 197, 197, 64], "tiled"),
            ([12, 1, 512, 64], "row tile 256x1x1 work-group (256,1,1)"),
        ] {
            let op = (NUMBERS.op)(&extents, None, Precision::F32).expect("extents");
            let kernels = op.kernels();
            let mut best: Option<(f64, String)> = None;
            for (kernel, tile) in kernels.space(&limits) {
                for size in kernel.work_groups(tile) {
                    let choice = kernel.choice(tile, size);
                    if kernel.fits(&choice, &limits).is_ok() {
                        let time = kernel.estimate(&choice, &limits).expect("an estimate");
                        if best.as_ref().is_none_or(|(least, _)| time < *least) {
                            best = Some((time, choice.to_string()));
                        }
                    }
                }
            }
            let (_, best) = best.expect("a kernel");
            assert!(best.starts_with(wanted), "{extents:?}: {best}");
        }
    }
}
