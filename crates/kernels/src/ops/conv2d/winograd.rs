//! The geometry and the weights of `winograd2` and `winograd4`: `y = A^T [sum_k U_k * V_k] A` with
//! `U = G w G^T` and `V = B^T x B`, for 3x3 windows of step 1 without groups.
//!
//! A work-group of `x * y * (positions * stacks)` covers `tile[0] x` tiles of `m x m` outputs and
//! `tile[1] y` output slices. Each step stages `tile[2]` input slices: the transformed patches by
//! position, slice and tile, and the weights by position, input channel and output slice.
//!
//! The result of a tile depends on all of its patch: an infinite input makes every output of the tiles
//! that read it NaN, beyond the windows it lies in, because infinities of both signs are added.
//!
//! Weights are packed as `[step][position][slice of the step][lane][output slice][4]`, with zeros up
//! to a whole number of steps and one step of zeros after the last, for the stacks that have nothing
//! left to do. They are transformed in f64 and rounded once.

use super::arguments::slices;
use super::transforms::transformed;
use super::{Conv2dOp, winograd_bound};
use crate::dtype::{DType, Precision};
use crate::emit::winograd::Minimal;
use crate::emit::{Operand, Value};
use crate::error::Result;
use crate::limits::{Family, Limits};
use crate::ops::convolution::Convolution;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::operands::Operands;
use crate::ops::plan::Choice;
use crate::ops::reference::Reference;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{self, Params, extent, unsigned};
use crate::shape::Border;

/// Tiles, output slices and input slices of an invocation, the most reuse first: an untuned session
/// takes the first that leaves enough work-groups. On an H200 that is at most 4 % slower than the best
/// of these through OpenCL and 9 % through Vulkan, for 64 channels at 56x56 and, eight images, at
/// 112x112, 128 at 28x28, 256 at 14x14 and 512 at 7x7.
const TILES2: [[u32; 3]; 6] = [[8, 2, 2], [4, 2, 2], [4, 1, 2], [2, 2, 2], [8, 2, 1], [4, 2, 1]];
const TILES4: [[u32; 3]; 4] = [[4, 2, 1], [4, 2, 2], [2, 2, 1], [4, 1, 1]];

/// Invocations along tiles and slices, and stacks; the first that makes enough work-groups is the
/// default.
const GROUPS: [[u32; 3]; 10] = [
    [4, 4, 1],
    [4, 2, 2],
    [2, 2, 4],
    [2, 2, 1],
    [4, 2, 1],
    [8, 2, 1],
    [2, 1, 4],
    [2, 1, 1],
    [1, 2, 1],
    [2, 2, 2],
];

/// Work-groups that keep a large GPU busy, if each has 256 invocations.
const ENOUGH_GROUPS: u32 = 96;

/// The fewest input and output slices with which an untuned session takes `winograd2`.
const UNTUNED_SLICES: usize = 16;

/// The most invocations of a work-group that is offered.
const INVOCATIONS: u32 = 256;

/// The most bytes of local memory that a work-group is offered with, in f32.
const MAX_LOCAL_BYTES: u32 = 48 << 10;

/// The deepest work-group that devices allow everywhere.
const MAX_DEPTH: u32 = 64;

/// A kernel of tiles of so many rows and columns of outputs.
#[derive(Debug)]
pub(super) struct Winograd {
    entry: VariantEntry,
    pub(super) results: u32,
    tiles: &'static [[u32; 3]],
}

pub(super) const WINOGRAD2: Winograd = Winograd {
    entry: VariantEntry::wgsl("winograd2", crate::emit::text!("../../../shaders/conv2d/winograd2.wgsl"))
        .with_ordinary(Ordinary::Convolution)
        .with_other_sums(),
    results: 2,
    tiles: &TILES2,
};
pub(super) const WINOGRAD4: Winograd = Winograd {
    entry: VariantEntry::wgsl("winograd4", crate::emit::text!("../../../shaders/conv2d/winograd4.wgsl"))
        .with_ordinary(Ordinary::Convolution)
        .with_other_sums(),
    results: 4,
    tiles: &TILES4,
};

/// Whether the transforms apply.
fn serves(problem: &Convolution) -> bool {
    problem.kernel == [3, 3]
        && problem.stride == [1, 1]
        && problem.dilation == [1, 1]
        && problem.groups == 1
        && problem.border == Border::Zeros
}

/// Tiles along height and width.
fn tiles(problem: &Convolution, results: u32) -> [usize; 2] {
    [problem.output.h, problem.output.w].map(|extent| extent.div_ceil(results as usize))
}

fn positions(results: u32) -> u32 {
    (results + 2).pow(2)
}

/// Tiles of all images x output slices x positions.
fn grid(problem: &Convolution, results: u32, tile: [u32; 3]) -> [u32; 3] {
    let [rows, columns] = tiles(problem, results);
    [
        extent(problem.output.n * rows * columns).div_ceil(tile[0]),
        extent(problem.output.slices()).div_ceil(tile[1]),
        positions(results),
    ]
}

/// The work-groups that a kernel is made for, the default first: the first that makes enough of
/// them, or else the one that makes most.
fn work_groups(problem: &Convolution, results: u32, tile: [u32; 3]) -> Vec<[u32; 3]> {
    let mut sizes: Vec<[u32; 3]> = GROUPS
        .into_iter()
        .map(|[x, y, stacks]| [x, y, stacks * positions(results)])
        .filter(|size| size.iter().product::<u32>() <= INVOCATIONS && size[2] <= MAX_DEPTH)
        .filter(|&size| {
            let staging = Staging::of(results, &Choice::new("", tile, size));
            staging.is_some_and(|staging| 16 * staging.staged <= MAX_LOCAL_BYTES)
        })
        .collect();
    let [tiles, slices, _] = grid(problem, results, tile.map(|extent| extent.max(1)));
    let groups = |[x, y, _]: [u32; 3]| tiles.div_ceil(x) * slices.div_ceil(y);
    // Stacks of large tiles are slower than one of smaller tiles.
    let stacked = |[_, _, z]: [u32; 3]| z > positions(results) && tile[0] > 4;
    let large = |size: [u32; 3]| 2 * size.iter().product::<u32>() > INVOCATIONS && !stacked(size);
    let enough = sizes.iter().position(|&size| large(size) && groups(size) >= ENOUGH_GROUPS);
    let most = || (0..sizes.len()).filter(|&at| large(sizes[at])).max_by_key(|&at| groups(sizes[at]));
    if let Some(default) = enough.or_else(most) {
        sizes[..=default].rotate_right(1);
    }
    sizes
}

/// Whether a session that measured nothing may run F(2x2, 3x3): on NVIDIA's GPUs from 64 channels on,
/// where it was measured, with sums in f32.
fn measured(problem: &Convolution, limits: &Limits) -> bool {
    let slices = problem.input.slices().min(problem.output.slices());
    serves(problem)
        && limits.family == Family::Nvidia
        && problem.precision.accumulator() == DType::F32
        && slices >= UNTUNED_SLICES
}

/// What a work-group stages; lengths are in vec4s.
struct Staging {
    /// Tiles and output slices of the work-group.
    covers: [u32; 2],
    /// Columns of patches, and vec4s of weights, of a stack's step.
    items: [u32; 2],
    /// Invocations of a stack.
    threads: u32,
    stacks: u32,
    /// What a stack keeps: the patches, and behind them the weights.
    patches: u32,
    side: u32,
    /// Sums of an invocation that are exchanged at once.
    phase: u32,
    staged: u32,
}

impl Staging {
    /// `None` if the work-group is not a whole number of stacks.
    fn of(results: u32, choice: &Choice) -> Option<Self> {
        let ([a, b, depth], [x, y, z]) = (choice.tile, choice.work_group);
        let (positions, patch) = (positions(results), results + 2);
        if z == 0 || !z.is_multiple_of(positions) {
            return None;
        }
        let (covers, threads, stacks) = ([a * x, b * y], x * y * positions, z / positions);
        let items = [covers[0] * patch * depth, positions * depth * 4 * covers[1]];
        let patches = items[0] * patch;
        let side = patches + items[1];
        let phase = (side / threads).clamp(1, a * b);
        Some(Staging {
            covers,
            items,
            threads,
            stacks,
            patches,
            side,
            phase,
            staged: stacks * side.max(threads * phase),
        })
    }
}

/// Why a kernel cannot run as `choice`: a work-group that is not made of whole stacks, or more than local
/// memory can hold.
fn obstacle(results: u32, choice: &Choice, precision: Precision, limits: &Limits) -> Option<String> {
    let Some(staging) = Staging::of(results, choice) else {
        let (depth, stack) = (choice.work_group[2], positions(results));
        return Some(format!("the work-group is {depth} deep, wanted whole stacks of {stack}"));
    };
    let bytes = u64::from(staging.staged) * 4 * precision.accumulator().bytes() as u64;
    let most = limits.local_memory;
    (bytes > u64::from(most)).then(|| format!("{bytes} bytes of local memory, the device has {most}"))
}

impl Kernel<Conv2dOp> for Winograd {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    /// F(4x4, 3x3) is not offered where sums are kept in f16: its transforms multiply by up to 8 * 8, and
    /// of the eleven bits of an f16 four or five would be left.
    fn offers(&self, op: &Conv2dOp, limits: &Limits) -> Vec<Offer> {
        let slices = op.0.input.slices();
        let exact = self.results == 2 || op.0.precision != Precision::F16;
        if !serves(&op.0) || slices == 1 || !exact {
            return Vec::new();
        }
        offers(if measured(&op.0, limits) { 0 } else { 5 }, self.tiles.iter().copied())
    }

    fn grid(&self, op: &Conv2dOp, tile: [u32; 3]) -> [u32; 3] {
        grid(&op.0, self.results, tile)
    }

    fn choice_obstacle(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Option<String> {
        obstacle(self.results, choice, op.0.precision, limits)
    }

    fn work_groups(&self, op: &Conv2dOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        work_groups(&op.0, self.results, tile)
    }

    fn registers(&self, _op: &Conv2dOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        Some(Registers::with_barriers(registers::of_product(choice.tile[1] * choice.tile[2], choice.tile[0])))
    }

    fn params(&self, op: &Conv2dOp, choice: &Choice) -> Params {
        params(&op.0, self.results, choice.tile)
    }

    fn constants(&self, _op: &Conv2dOp, choice: &Choice, _limits: &Limits) -> Constants {
        constants(self.results, choice)
    }

    fn pack(&self, op: &Conv2dOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        match operand {
            Operand::Weights => pack(&op.0, self.results, choice.tile, data),
            _ => spec::pack_channels(data, slices(&op.0, choice.tile)),
        }
    }

    /// F(4x4, 3x3) was nowhere the faster, and rounds more.
    fn untuned(&self, op: &Conv2dOp, limits: &Limits) -> bool {
        self.results == 2 && measured(&op.0, limits)
    }

    /// Each does the work of several; its stacks are not in the grid.
    fn counted(&self, op: &Conv2dOp, choice: &Choice) -> u64 {
        let grid = self.grid(op, choice.tile);
        let groups = (0..3).map(|axis| grid[axis].div_ceil(choice.work_group[axis]));
        3 * groups.chain(choice.work_group).map(u64::from).product::<u64>()
    }

    fn reference(&self, op: &Conv2dOp, operands: &Operands<'_>, reference: Reference) -> Result<Reference> {
        let Reference::Sum(exact) = &reference else { return Ok(reference) };
        let own = winograd_bound::reference(op, self.results, operands, exact);
        Ok(own.map_or(reference, Reference::Sum))
    }
}

/// The constants of the kernel, which `choice` fits.
fn constants(results: u32, choice: &Choice) -> Vec<(&'static str, Value)> {
    let Some(staging) = Staging::of(results, choice) else { return Vec::new() };
    [
        ("OUTPUT", results),
        ("PATCH", results + 2),
        ("POSITIONS", positions(results)),
        ("TILE_X", choice.tile[0]),
        ("DEPTH", choice.tile[2]),
        ("TILES", staging.covers[0]),
        ("SLICES", staging.covers[1]),
        ("THREADS", staging.threads),
        ("STACKS", staging.stacks),
        ("ITEMS_V", staging.items[0]),
        ("ITEMS_U", staging.items[1]),
        ("LOADS_V", staging.items[0].div_ceil(staging.threads)),
        ("LOADS_U", staging.items[1].div_ceil(staging.threads)),
        ("ROWS_U", positions(results) * choice.tile[2] * 4),
        ("FIRST_U", staging.patches),
        ("SIDE", staging.side),
        ("PHASE", staging.phase),
        ("STAGED", staging.staged),
    ]
    .map(|(name, value)| (name, Value::U32(value)))
    .to_vec()
}

/// Steps over the input slices.
fn steps(problem: &Convolution, tile: [u32; 3]) -> usize {
    problem.input.slices().div_ceil(tile[2].max(1) as usize)
}

/// The scalars of the kernel.
fn params(problem: &Convolution, results: u32, tile: [u32; 3]) -> Params {
    let [rows, columns] = tiles(problem, results);
    vec![
        ("src_w", unsigned(problem.input.w)),
        ("src_h", unsigned(problem.input.h)),
        ("src_c4", unsigned(problem.input.slices())),
        ("dst_w", unsigned(problem.output.w)),
        ("dst_h", unsigned(problem.output.h)),
        ("dst_c4", unsigned(problem.output.slices())),
        ("before_h", unsigned(problem.before[0])),
        ("before_w", unsigned(problem.before[1])),
        ("tiles_w", unsigned(columns)),
        ("tiles_h", unsigned(rows)),
        ("tiles", unsigned(problem.output.n * rows * columns)),
        ("steps", unsigned(steps(problem, tile))),
    ]
}

/// The weights as the kernel reads them; `data` is `oc 3 3 c`.
fn pack(problem: &Convolution, results: u32, tile: [u32; 3], data: &[f32]) -> Vec<f32> {
    let Some(minimal) = Minimal::of(results as usize) else { return Vec::new() };
    let (inputs, slices, depth) = (problem.input.c, problem.output.slices(), tile[2].max(1) as usize);
    let positions = positions(results) as usize;
    let row = 4 * slices;
    let mut out = vec![0.0; (steps(problem, tile) + 1) * positions * 4 * depth * row];
    for (index, weights) in transformed(problem, minimal, data).chunks_exact(problem.output.c).enumerate() {
        let (position, k) = (index / inputs, index % inputs);
        let (step, term) = (k / (4 * depth), k % (4 * depth));
        let first = ((step * positions + position) * 4 * depth + term) * row;
        for (slot, &weight) in out[first..].iter_mut().zip(weights) {
            *slot = weight as f32;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::conv2d::{Conv2d, Conv2dOp};
    use crate::shape::Shape;

    fn problem(c: usize, oc: usize) -> Convolution {
        let (input, weights) = (Shape::nhwc(2, 9, 7, c), Shape::nhwc(oc, 3, 3, c));
        let op = Conv2dOp::new(input, weights, &Conv2d::default(), false, false, Precision::F32);
        op.expect("a valid convolution").0
    }

    #[test]
    fn a_filter_is_transformed_and_put_where_its_step_reads_it() {
        let problem = problem(9, 6);
        let mut data = vec![0.0; 6 * 9 * 9];
        // The middle tap of input channel 8 and output channel 5: G [0 1 0]^T is 0 1/2 -1/2 0.
        data[(5 * 9 + 4) * 9 + 8] = 4.0;
        let packed = pack(&problem, 2, [4, 2, 2], &data);
        // Two steps of two slices and one of zeros, 16 positions, 8 channels by 2 slices of outputs.
        assert_eq!(packed.len(), 3 * 16 * 8 * 8);
        for (index, &value) in packed.iter().enumerate() {
            let (step, position) = (index / (16 * 64), index / 64 % 16);
            let (row, column) = (position / 4, position % 4);
            let here = step == 1 && index % 64 == 5 && [1, 2].contains(&row) && [1, 2].contains(&column);
            let wanted = if !here {
                0.0
            } else if row == column {
                1.0
            } else {
                -1.0
            };
            assert_eq!(value, wanted, "step {step}, position {position}, {}", index % 64);
        }
    }

    #[test]
    fn tiles_hang_over_and_the_default_work_groups_fit_small_devices() {
        let problem = problem(9, 6);
        // 7 x 5 outputs: 4 x 3 tiles of 2 x 2, 2 x 2 of 4 x 4, of two images.
        assert_eq!(grid(&problem, 2, [4, 2, 2]), [6, 1, 16]);
        assert_eq!(grid(&problem, 4, [4, 1, 1]), [2, 2, 36]);
        let limits = Limits::webgpu();
        for (kernel, tile) in [(WINOGRAD2, TILES2[1]), (WINOGRAD4, TILES4[0])] {
            let fits = |&work_group: &[u32; 3]| {
                let choice = Choice::new(kernel.entry.name, tile, work_group);
                obstacle(kernel.results, &choice, Precision::F32, &limits).is_none()
            };
            assert!(work_groups(&problem, kernel.results, tile).iter().any(fits), "{kernel:?} {tile:?}");
        }
        let broken = Choice::new("winograd2", [4, 2, 2], [4, 2, 17]);
        let reason = obstacle(2, &broken, Precision::F32, &limits).expect("no whole stack");
        assert!(reason.contains("17 deep, wanted whole stacks of 16"), "{reason}");
    }

    #[test]
    fn other_windows_and_half_sums_of_large_tiles_are_left_out() {
        let plain = problem(9, 6);
        let offered = |problem| {
            [WINOGRAD2, WINOGRAD4]
                .map(|kernel| kernel.offers(&Conv2dOp::of(problem), &Limits::webgpu()).len())
        };
        for other in [
            Convolution { stride: [1, 2], ..plain },
            Convolution { kernel: [3, 2], ..plain },
            Convolution { dilation: [2, 1], ..plain },
            Convolution { groups: 3, ..plain },
        ] {
            assert_eq!(offered(other), [0, 0], "{other:?}");
        }
        let half = Convolution { precision: Precision::F16, ..plain };
        assert_eq!(offered(half), [TILES2.len(), 0]);
        assert_eq!(offered(plain), [TILES2.len(), TILES4.len()]);
    }
}
