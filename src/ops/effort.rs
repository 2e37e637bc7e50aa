//! What a kernel asks of a device: the counts from which `tune/occupancy.rs` estimates its time.

use super::convolution::Convolution;
use crate::shape::Shape;

/// Counts of one invocation, unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Work-groups of the launch.
    pub groups: u64,
    /// Invocations of a work-group.
    pub invocations: u32,
    /// Registers, roughly.
    pub registers: u32,
    /// Bytes of local memory of a work-group.
    pub local_bytes: u32,
    /// Rounds of loads, each of which is waited for.
    pub steps: u32,
    /// Whether the loads of a round are under way while the one before is computed.
    pub ahead: bool,
    /// Barriers of a round.
    pub barriers: u32,
    /// Multiplications and additions of scalars, fused.
    pub multiplies: u64,
    /// Vec4s read from memory.
    pub loads: u64,
    /// Vec4s read from local memory.
    pub staged: u64,
    /// Vec4s that the layers of a work-group pass each other, one after the other.
    pub added: u64,
    /// Bytes that a work-group reads, each counted once.
    pub reads: u64,
    /// Bytes of all operands.
    pub traffic: u64,
}

/// Work-groups that cover a grid.
pub(super) fn groups(grid: [u32; 3], work_group: [u32; 3]) -> u64 {
    grid.iter().zip(work_group).map(|(&extent, size)| u64::from(extent.div_ceil(size.max(1)))).product()
}

/// Bytes of a convolution's feature maps and weights.
pub(super) fn traffic(problem: &Convolution) -> u64 {
    let [kernel_h, kernel_w] = problem.kernel;
    let elements = |map: &Shape| 4 * map.n * map.h * map.w * map.slices();
    let maps = elements(&problem.input) + elements(&problem.output);
    let weights = problem.output.c * kernel_h * kernel_w * problem.group_inputs();
    ((maps + weights) * problem.precision.storage().bytes()) as u64
}
