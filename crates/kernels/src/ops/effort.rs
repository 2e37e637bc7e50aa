//! What a kernel asks of a device: the counts from which `cost.rs` estimates its time.

use super::convolution::Convolution;
use super::plan::Choice;
use super::registers;
use super::spec::extent;
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
    /// Barriers of all rounds.
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

/// What a kernel asks whose invocations have nothing to do with each other: each reads `own[0]` vec4s of the first operand and
/// `own[1]` of the second for each of `steps` rounds of four terms, and sums `own[0]` by a quarter of `own[1]` vec4s.
pub(super) fn alone(
    own: [u32; 2],
    steps: u32,
    choice: &Choice,
    grid: [u32; 3],
    [reads, traffic]: [u64; 2],
) -> Effort {
    let [first, second] = own;
    let terms4 = u64::from(steps);
    Effort {
        groups: groups(grid, choice.work_group),
        invocations: choice.work_group.iter().product(),
        registers: registers::of_pixels(first, second.div_ceil(4)),
        local_bytes: 0,
        steps,
        ahead: false,
        barriers: 0,
        multiplies: u64::from(4 * first * second) * terms4,
        loads: u64::from(first + second) * terms4,
        staged: 0,
        added: 0,
        reads,
        traffic,
    }
}

/// Invocations of neighbouring work-groups that find what they share in a cache of their unit, if each has fewer.
const NEIGHBOURS: u32 = 64;

/// The effort of a convolution without local memory whose invocations have `pixels` by `slices` results each; `side_by_side` are
/// the invocations of a work-group that have other pixels, and other slices.
pub(super) fn of_map(
    problem: &Convolution,
    choice: &Choice,
    [pixels, slices]: [u32; 2],
    side_by_side: [u32; 2],
    grid: [u32; 3],
) -> Effort {
    let taps = extent(problem.kernel[0] * problem.kernel[1]);
    let steps = taps * extent(problem.group_inputs().div_ceil(4));
    let [along, across] = side_by_side.map(u64::from);
    let neighbours: u64 = (NEIGHBOURS / choice.work_group.iter().product::<u32>().max(1)).max(1).into();
    let bytes = 4 * problem.precision.storage().bytes() as u64 * u64::from(steps);
    let reads =
        bytes * (u64::from(pixels) * along * neighbours + u64::from(4 * slices) * across) / neighbours;
    alone([pixels, 4 * slices], steps, choice, grid, [reads, traffic(problem)])
}

/// Bytes of a convolution's feature maps and weights.
pub(super) fn traffic(problem: &Convolution) -> u64 {
    let [kernel_h, kernel_w] = problem.kernel;
    let elements = |map: &Shape| 4 * map.n * map.h * map.w * map.slices();
    let maps = elements(&problem.input) + elements(&problem.output);
    let weights = problem.output.c * kernel_h * kernel_w * problem.group_inputs();
    ((maps + weights) * problem.precision.storage().bytes()) as u64
}
