//! The geometry of the `tiled` kernels of `pointwise` and `conv2d`: a matrix product of pixels and
//! output channels from local memory.
//!
//! The tile is slices by pixels by layers. A work-group of `x` by `y` by layers covers `tile[0] x`
//! slices and `tile[1] y` pixels; each of its layers stages [`Staging::depth`] terms of both, and
//! sums a part of them. A staged term of the pixels is groups of four, with one vec4 between the
//! terms so that few of them fall into different banks too; one of the weights is slices.

use super::convolution::Convolution;
use super::effort::{self, Effort};
use super::plan::Choice;
use super::spec::extent;
use crate::dtype::Precision;
use crate::emit::Value;
use crate::limits::Limits;
use crate::sorted;

/// Terms that are multiplied without a loop.
const STEP: u32 = 8;

/// The most vec4s that an invocation brings for a step: they wait in registers.
const LOADS: u32 = 8;

/// The most invocations of a work-group: what drivers compile kernels for.
const INVOCATIONS: u32 = 256;

/// Work-groups that are offered for a tile.
const SIZES: usize = 16;

/// Slices, pixels and layers; the largest reuse first.
const TILES: [[u32; 3]; 13] = [
    [2, 8, 1],
    [2, 8, 2],
    [2, 4, 2],
    [2, 8, 4],
    [2, 4, 4],
    [2, 4, 8],
    [1, 4, 8],
    [1, 4, 16],
    [1, 8, 1],
    [1, 8, 4],
    [1, 4, 4],
    [2, 4, 1],
    [1, 4, 1],
];

/// What a convolution is as a matrix product: pixels of all images, slices of output channels, and
/// slices of input channels at all taps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extents {
    pub(super) pixels: u32,
    pub(super) slices: u32,
    pub(super) terms4: u32,
    images: u32,
    /// Slices of input channels at one tap.
    sources: u32,
}

impl Extents {
    pub(super) fn of(problem: &Convolution) -> Self {
        let (output, [kernel_h, kernel_w]) = (problem.output, problem.kernel);
        let sources = problem.input.slices();
        Extents {
            pixels: extent(output.n * output.w * output.h),
            slices: extent(output.slices()),
            terms4: extent(kernel_h * kernel_w * sources),
            images: extent(output.n),
            sources: extent(sources),
        }
    }
}

/// The tiles for a product of these extents: no more layers than steps.
pub(super) fn tiles(extents: Extents) -> Vec<[u32; 3]> {
    let serves = |tile: &&[u32; 3]| tile[2] == 1 || tile[2] * STEP <= 4 * extents.terms4;
    TILES.iter().filter(serves).copied().collect()
}

/// The grid of `tile`: slices x pixels x layers.
pub(super) fn grid(tile: [u32; 3], extents: Extents) -> [u32; 3] {
    [extents.slices.div_ceil(tile[0]), extents.pixels.div_ceil(tile[1]), tile[2]]
}

/// The work-groups of `tile`, the one with the fewest wasted invocations of the largest first: a
/// small map is divided evenly.
pub(super) fn work_groups(tile: [u32; 3], extents: Extents) -> Vec<[u32; 3]> {
    let [columns, rows, layers] = grid(tile, extents);
    let most = INVOCATIONS / layers;
    let mut sizes: Vec<(u64, [u32; 3])> = Vec::new();
    for x in [16, 8, 4, 2] {
        if x > 2 && x / 2 >= columns {
            continue;
        }
        let even = (1..=16).map(|groups| rows.div_ceil(groups));
        for y in [32, 16, 8, 4, 2].into_iter().chain(even) {
            let size = [x, y, layers];
            let seen = sizes.iter().any(|(_, other)| *other == size);
            let small = x * y < most / 4 && (x < columns || y < rows);
            if seen || x * y > most || small || (y > 2 && y / 2 >= rows) {
                continue;
            }
            let covered = u64::from(columns.next_multiple_of(x)) * u64::from(rows.next_multiple_of(y));
            // Reuse counts as well: the longer side of what is staged over its area.
            let staged = f64::from(x * tile[0] * 4 + y * tile[1]) / f64::from(x * tile[0] * 4 * y * tile[1]);
            sizes.push(((covered as f64 * (1.0 + 24.0 * staged) * 1024.0) as u64, size));
        }
    }
    sorted::sort_by_key(&mut sizes, |&(cost, _)| cost);
    sizes.into_iter().take(SIZES).map(|(_, size)| size).collect()
}

/// How a work-group stages; lengths are in vec4s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Staging {
    /// Terms of a step.
    pub(super) depth: u32,
    /// Steps in local memory at once, of each layer.
    pub(super) sides: u32,
    /// From one staged term of the pixels to the next.
    a_row: u32,
    /// From one staged term of the weights to the next.
    b_row: u32,
    /// Pixels of the work-group.
    rows: u32,
    /// Invocations of a layer.
    threads: u32,
    /// What an invocation brings of pixels and of weights for each step.
    loads: [u32; 2],
    /// All that a work-group keeps.
    staged: u32,
}

impl Staging {
    /// The deepest that leaves registers, and fits into `local` bytes.
    pub(super) fn of(choice: &Choice, extents: Extents, precision: Precision, local: u32) -> Option<Self> {
        let ([columns, pixels, layers], [x, y, _]) = (choice.tile, choice.work_group);
        let (threads, rows) = (x * y, pixels * y);
        let (a_row, b_row) = (rows.div_ceil(4) + 1, columns * x);
        let of_depth = |depth: u32, sides: u32| {
            let staged =
                (sides * depth * (a_row + b_row) * layers).max(layers / 2 * threads * columns * pixels);
            let loads = [(rows * depth / 4).div_ceil(threads), (b_row * depth).div_ceil(threads)];
            let bytes = u64::from(staged) * 4 * precision.accumulator().bytes() as u64;
            let steps = (4 * extents.terms4).div_ceil(depth * layers);
            let fits =
                bytes <= u64::from(local) && (depth == STEP || (loads[0] + loads[1] <= LOADS && steps >= 2));
            fits.then_some(Staging { depth, sides, a_row, b_row, rows, threads, loads, staged })
        };
        [(2 * STEP, 2), (2 * STEP, 1), (STEP, 2), (STEP, 1)]
            .into_iter()
            .find_map(|(depth, sides)| of_depth(depth, sides))
    }
}

/// Why the kernel cannot run as `choice`: a work-group of another depth than the tile's layers, or one
/// that stages more than local memory holds.
pub(super) fn obstacle(
    choice: &Choice,
    extents: Extents,
    precision: Precision,
    limits: &Limits,
) -> Option<String> {
    let (depth, layers) = (choice.work_group[2], choice.tile[2]);
    if depth != layers {
        return Some(format!("the work-group is {depth} deep, {layers} layers need {layers}"));
    }
    let most = limits.local_memory;
    let none = Staging::of(choice, extents, precision, most).is_none();
    none.then(|| format!("a step of {STEP} terms needs more than {most} bytes of local memory"))
}

/// What the kernel asks of a device; `None` if it does not fit.
pub(super) fn effort(choice: &Choice, problem: &Convolution, limits: &Limits) -> Option<Effort> {
    let (extents, precision) = (Extents::of(problem), problem.precision);
    let staging = Staging::of(choice, extents, precision, limits.local_memory)?;
    let [columns, pixels, layers] = choice.tile;
    let steps = (4 * extents.terms4).div_ceil(staging.depth * layers);
    let (terms, loads) = (u64::from(steps * staging.depth), staging.loads[0] + staging.loads[1]);
    let scalar = precision.storage().bytes() as u64;
    let covers = u64::from(staging.rows) + 4 * u64::from(staging.b_row);
    Some(Effort {
        groups: effort::groups(grid(choice.tile, extents), choice.work_group),
        invocations: choice.work_group.iter().product(),
        registers: 40 + 4 * columns * pixels + 4 * loads + 2 * (4 * columns + pixels),
        local_bytes: 16 * staging.staged,
        steps,
        ahead: true,
        barriers: steps * (3 - staging.sides),
        multiplies: u64::from(4 * columns * pixels) * terms,
        loads: u64::from(loads * steps),
        staged: u64::from(4 * columns + pixels) * terms / 4,
        added: u64::from(layers.ilog2() * columns * pixels),
        reads: 4 * scalar * u64::from(extents.terms4) * covers,
        traffic: effort::traffic(problem),
    })
}

/// The constants of the kernel, which `choice` fits; for a `window`, those of its gathering too.
pub(super) fn constants(
    choice: &Choice,
    extents: Extents,
    precision: Precision,
    window: bool,
    limits: &Limits,
) -> Vec<(&'static str, Value)> {
    let ([columns, pixels, layers], [x, y, _]) = (choice.tile, choice.work_group);
    let Some(staging) = Staging::of(choice, extents, precision, limits.local_memory) else {
        return Vec::new();
    };
    let Staging { depth, sides, a_row, b_row, rows, threads, loads, staged } = staging;
    let side = depth * (a_row + b_row);
    // Eight by four invocations side by side read the fewest different vec4s at once.
    let [lanes_x, lanes_y] = if x % 8 == 0 && y % 4 == 0 { [8, 4] } else { [x, 1] };
    let mut constants = vec![
        ("TILE_X", columns),
        ("TILE_Y", pixels),
        ("SPLITS", layers),
        ("STEP", STEP),
        ("DEPTH4", depth / 4),
        ("SIDES", sides),
        ("RAGGED", u32::from(!extents.terms4.is_multiple_of(depth / 4 * layers))),
        ("BATCHED", u32::from(extents.images > 1)),
        ("ROWS", rows),
        ("A_ROW", a_row),
        ("B_ROW", b_row),
        ("B_FIRST", depth * a_row),
        ("SIDE", side),
        ("SLICE", sides * side),
        ("STAGED", staged),
        ("LOADS_A", loads[0]),
        ("LOADS_B", loads[1]),
        ("EVEN_A", u32::from((rows * depth / 4).is_multiple_of(threads))),
        ("EVEN_B", u32::from((b_row * depth).is_multiple_of(threads))),
        ("THREADS", threads),
        ("LANES_X", lanes_x),
        ("LANES_Y", lanes_y),
    ];
    if window {
        // Aligned: all that is staged at a step belongs to one tap.
        let aligned = extents.sources.is_multiple_of(depth / 4);
        constants.extend([("SOURCES", extents.sources), ("ALIGNED", u32::from(aligned))]);
    }
    constants.into_iter().map(|(name, value)| (name, Value::U32(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE_27: Extents = Extents { pixels: 81, slices: 256, terms4: 256, images: 1, sources: 256 };

    #[test]
    fn a_small_map_is_divided_evenly() {
        for (tile, wasted) in [([1, 4, 4], 4), ([2, 8, 2], 9)] {
            let [x, y, z] = work_groups(tile, NODE_27)[0];
            assert_eq!(z, tile[2]);
            let covered = NODE_27.pixels.next_multiple_of(tile[1] * y);
            assert!(covered - NODE_27.pixels <= wasted, "{x} x {y}: {covered} pixels");
        }
    }

    #[test]
    fn every_tile_has_work_groups_for_any_extents() {
        for (pixels, slices, terms4) in [(1, 1, 1), (3, 2, 9), (81, 256, 256), (135_200, 8, 8)] {
            let extents = Extents { pixels, slices, terms4, ..NODE_27 };
            for tile in tiles(extents) {
                let groups = work_groups(tile, extents);
                assert!(!groups.is_empty(), "{tile:?} {extents:?}");
                assert!(groups.iter().all(|size| size.iter().product::<u32>() <= INVOCATIONS));
            }
        }
        assert!(tiles(Extents { terms4: 2, ..NODE_27 }).iter().all(|tile| tile[2] == 1));
    }

    #[test]
    fn a_step_is_as_deep_as_registers_and_local_memory_allow() {
        let of = |tile, work_group, local| {
            let choice = Choice::new("tiled", tile, work_group);
            Staging::of(&choice, NODE_27, Precision::F32, local)
        };
        let staging = of([1, 4, 4], [8, 7, 4], 49152).expect("it fits");
        assert_eq!((staging.rows, staging.threads, staging.depth, staging.sides), (28, 56, 16, 2));
        assert_eq!(staging.loads, [2, 3]);
        assert_eq!(of([2, 8, 4], [8, 8, 4], 4096), None);
    }
}
