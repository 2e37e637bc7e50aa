//! Sizes of work-groups whose invocations join elements.

use crate::emit::Dialect;
use crate::limits::{Family, Limits};
use crate::ops::spec::extent;

/// Work-groups of a line.
pub(in crate::ops) const GROUPS: usize = 32768;

/// The elements from which on a work-group may have 1024 invocations.
const LARGE: usize = 4096;

/// The fewest elements that a work-group joins.
pub(in crate::ops) const FEWEST: usize = 32;

/// The sizes of a work-group that joins `count` elements, the default first: each invocation has enough to do.
/// The largest only where invocations run side by side, and not through OpenCL: NVIDIA's compiler makes kernels for
/// at most 256 invocations there.
pub(in crate::ops) fn group_sizes(count: usize, limits: &Limits) -> Vec<[u32; 3]> {
    match count {
        0..FEWEST => Vec::new(),
        FEWEST..1024 => vec![[64, 1, 1], [256, 1, 1]],
        LARGE.. if limits.family != Family::CpuDriver && limits.dialect == Dialect::Wgsl => {
            vec![[1024, 1, 1], [256, 1, 1], [64, 1, 1]]
        }
        _ => vec![[256, 1, 1], [64, 1, 1]],
    }
}

/// The grid of `outputs` work-groups of `size` invocations.
pub(in crate::ops) fn groups(outputs: usize, size: u32) -> [u32; 3] {
    [extent(outputs.min(GROUPS)) * size, extent(outputs.div_ceil(GROUPS)), 1]
}
