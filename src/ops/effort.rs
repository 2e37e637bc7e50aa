//! What a kernel asks of a device: the counts from which `tune/occupancy.rs` estimates its time.

use super::convolution::Convolution;
use super::plan::Choice;
use crate::shape::Shape;

/// Counts of one invocation, unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Work-groups of the launch.
    pub groups: u64,
    /// Invocations of a work-group.
    pub invocations: u32,
    /// Registers, roughly.
    pub registers: u32,
    /// Bytes of local memory of a work-group.
    pub local_bytes: u32,
    /// Rounds of loads, each of which waits for its own.
    pub steps: u32,
    /// Whether the loads of a round travel while the one before is computed.
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
    /// Bytes that all work-groups write, and the bytes of what they read.
    pub traffic: u64,
}

/// A matrix product as an invocation sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Micro {
    /// Pixels and slices of output channels that it sums.
    pub(super) tile: [u32; 2],
    /// The extents of the work-group along those.
    pub(super) across: [u32; 2],
    /// Input slices at all taps, those that it sums itself, and at how many it works at once.
    pub(super) terms4: u32,
    pub(super) own4: u32,
    pub(super) unroll: u32,
    /// Layers that share the sum, and the results of an invocation that are added up at once.
    pub(super) layers: u32,
    pub(super) phase: u32,
}

impl Effort {
    /// A kernel whose invocations read each what they multiply.
    pub(super) fn of_micro(micro: Micro, grid: [u32; 3], choice: &Choice, problem: &Convolution) -> Self {
        let element = problem.precision.storage().bytes() as u64;
        let Micro { tile: [pixels, slices], across, terms4, own4, unroll, layers, phase } = micro;
        let (pixels, slices) = (u64::from(pixels), u64::from(slices));
        let steps = own4.div_ceil(unroll);
        let padded = u64::from(steps * unroll);
        let invocations = choice.work_group.iter().product::<u32>();
        let at_once = u64::from(unroll) * (4 * pixels + 16 * slices) + 4 * pixels * slices;
        Effort {
            groups: groups(grid, choice.work_group),
            invocations,
            registers: 40 + u32::try_from(at_once).unwrap_or(u32::MAX),
            local_bytes: if layers > 1 { 16 * invocations * phase } else { 0 },
            steps,
            ahead: false,
            barriers: 0,
            multiplies: 16 * pixels * slices * padded,
            loads: (pixels + 4 * slices) * padded,
            staged: 0,
            // All layers add up at once.
            added: 0,
            reads: 4
                * element
                * u64::from(terms4)
                * (pixels * u64::from(across[0]) + 4 * slices * u64::from(across[1])),
            traffic: traffic(problem),
        }
    }
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
