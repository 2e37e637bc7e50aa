//! A sum that the layers of a work-group share: the `split` kernels of `pointwise` and `conv2d`.
//!
//! The kernel is a matrix product of pixels and output channels. Its tile is pixels by slices by
//! layers; layer `z` of the work-group sums every `layers`-th input slice, `unroll` of them at a
//! step, so that as many loads are in flight. The layers then add their parts up in local memory,
//! [`phase`] results at a time.

use super::convolution::Convolution;
use super::effort::{self, Effort};
use super::plan::Choice;
use super::registers::Registers;
use super::spec::extent;
use crate::dtype::Precision;
use crate::emit::Value;
use crate::limits::{Family, Limits};

/// Layers for a sum over `slices` input slices: a power of two near the square root, so that the
/// layers are about as many as the steps of each.
pub(super) fn layers(slices: usize) -> u32 {
    1 << (slices.max(1).ilog2() / 2)
}

/// The tiles for pixels x slices `tiles` and sums over `slices` input slices: the
/// preferred number of layers first, then twice and half as many, never more than slices.
pub(super) fn tiles(tiles: &[[u32; 2]], slices: usize) -> Vec<[u32; 3]> {
    let wanted = layers(slices);
    let counts =
        [wanted, wanted * 2, wanted / 2].into_iter().filter(|&count| count > 0 && count as usize <= slices);
    counts.flat_map(|count| tiles.iter().map(move |&[x, y]| [x, y, count])).collect()
}

/// Whether work-groups rather than arithmetic are scarce: then a sum is split before micro-tiles
/// are tried. A CPU driver runs a work-group's layers one after the other, and barriers cost it.
pub(super) fn first(limits: &Limits) -> bool {
    matches!(limits.family, Family::Nvidia | Family::Amd)
}

/// Input slices that a layer takes at each step: more where layers are many and each has a long way
/// to go, since then the latency of loads is what a map waits for. Several output slices per
/// invocation leave no registers for more than two.
pub(super) fn unroll(slices: usize, tile: [u32; 3]) -> u32 {
    let steps = slices / tile[2].max(1) as usize;
    match (steps, tile[1], tile[2]) {
        (8.., 1, 8..) => 4,
        (2.., ..) => 2,
        _ => 1,
    }
}

/// `slices` rounded up to whole steps of the kernel: the rows of its weights, zeros beyond.
pub(super) fn padded(slices: usize, tile: [u32; 3]) -> usize {
    slices.next_multiple_of((tile[2].max(1) * unroll(slices, tile)) as usize)
}

/// Results of an invocation that are added up at once: few, because work-groups that share a
/// multiprocessor share its local memory; a single one left over would cost a barrier of its own.
fn phase(tile: [u32; 3]) -> u32 {
    match tile[0] * tile[1] {
        results @ ..=5 => results,
        _ => 4,
    }
}

/// Vec4s of local memory.
fn partials(choice: &Choice) -> u32 {
    choice.work_group.iter().product::<u32>() * phase(choice.tile)
}

/// Pixels x slices x (layers * batch), the tile being pixels, slices and layers.
pub(super) fn grid(problem: &Convolution, tile: [u32; 3]) -> [u32; 3] {
    let output = problem.output;
    [
        extent(output.w * output.h).div_ceil(tile[0]),
        extent(output.slices()).div_ceil(tile[1]),
        tile[2] * extent(output.n),
    ]
}

/// The work-groups of a kernel of `layers` layers, the default first: rows of pixels and slices
/// that neighbours read together, 256 invocations at most.
pub(super) fn work_groups(layers: u32) -> Vec<[u32; 3]> {
    [[8, 4], [4, 4], [4, 8], [8, 2], [4, 2], [8, 8], [2, 2]]
        .into_iter()
        .filter(|[x, y]| x * y * layers <= 256)
        .map(|[x, y]| [x, y, layers])
        .collect()
}

/// The constants of the kernel.
pub(super) fn constants(slices: usize, choice: &Choice) -> Vec<(&'static str, Value)> {
    let [x, y, layers] = choice.tile;
    let mut constants =
        vec![("TILE_X", x), ("TILE_Y", y), ("SPLITS", layers), ("UNROLL", unroll(slices, choice.tile))];
    if layers > 1 {
        constants.extend([("PHASE", phase(choice.tile)), ("PARTIALS", partials(choice))]);
    }
    constants.into_iter().map(|(name, value)| (name, Value::U32(value))).collect()
}

/// What the kernel asks of a device.
pub(super) fn effort(choice: &Choice, problem: &Convolution, grid: [u32; 3]) -> Effort {
    let ([pixels, slices, layers], [x, y, _]) = (choice.tile, choice.work_group);
    let (sources, taps) = (problem.input.slices(), extent(problem.kernel[0] * problem.kernel[1]));
    let unroll = unroll(sources, choice.tile);
    let steps = taps * extent(padded(sources, choice.tile)) / (layers.max(1) * unroll);
    let terms4 = u64::from(steps * unroll);
    let bytes = 16 * problem.precision.storage().bytes() as u64 / 4;
    let covers = u64::from(pixels * x + 4 * slices * y);
    Effort {
        groups: effort::groups(grid, choice.work_group),
        invocations: choice.work_group.iter().product(),
        // Few of a step's operands are kept at once.
        registers: 23 + 4 * pixels * slices + unroll * (4 * pixels + 16 * slices) / 5,
        local_bytes: if layers > 1 { 16 * partials(choice) } else { 0 },
        steps,
        ahead: false,
        barriers: 0,
        multiplies: u64::from(16 * pixels * slices) * terms4,
        loads: u64::from(pixels + 4 * slices) * terms4,
        staged: 0,
        // All layers add up at once.
        added: 0,
        reads: bytes * u64::from(taps * extent(sources)) * covers,
        traffic: effort::traffic(problem),
    }
}

/// About how many registers an invocation wants. Compilers for Adreno, Intel and Apple unroll loops of few turns, as layers have
/// them, and have the loads of two turns under way together; Mali's have those of one. NVIDIA's were measured.
pub(super) fn registers(choice: &Choice, effort: &Effort, limits: &Limits) -> Registers {
    let [pixels, slices, _] = choice.tile;
    let sums = pixels * slices + pixels;
    Registers::with_barriers(match limits.family {
        family if family.is_early_adreno() => 24 * sums + 60,
        Family::Adreno(_) | Family::Intel | Family::Apple => 16 * sums + 40,
        // All operands of a step are under way together.
        family if family.has_few_registers() => {
            let operands = pixels + 4 * slices;
            let unroll = effort.loads / u64::from((effort.steps * operands).max(1));
            16 + 4 * pixels * slices + 4 * operands * u32::try_from(unroll).unwrap_or(u32::MAX / 256)
        }
        Family::Mali(_) => 8 * sums + 4,
        _ => effort.registers,
    })
}

/// Why the kernel cannot run as `choice`: a work-group of another depth than the tile's layers, or parts
/// that local memory cannot hold.
pub(super) fn obstacle(choice: &Choice, precision: Precision, limits: &Limits) -> Option<String> {
    let (depth, layers) = (choice.work_group[2], choice.tile[2]);
    if depth != layers {
        return Some(format!("the work-group is {depth} deep, {layers} splits need {layers}"));
    }
    let bytes = 4 * precision.accumulator().bytes() * partials(choice) as usize;
    let most = limits.local_memory;
    let much = layers > 1 && bytes > most as usize;
    much.then(|| format!("{bytes} bytes of local memory, the device has {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_about_as_many_as_steps() {
        assert_eq!([1, 2, 8, 16, 64, 128, 256].map(layers), [1, 1, 2, 4, 8, 8, 16]);
        assert_eq!(tiles(&[[6, 1]], 128), [[6, 1, 8], [6, 1, 16], [6, 1, 4]]);
        assert_eq!(tiles(&[[6, 1]], 1), [[6, 1, 1]]);
    }

    #[test]
    fn work_groups_are_as_deep_as_there_are_layers() {
        assert_eq!(work_groups(8)[0], [8, 4, 8]);
        assert_eq!(work_groups(16)[0], [4, 4, 16]);
        assert_eq!(work_groups(64), [[2, 2, 64]]);
    }

    #[test]
    fn weights_have_whole_steps() {
        assert_eq!(padded(1, [6, 1, 1]), 1);
        assert_eq!(padded(5, [6, 2, 2]), 8);
        assert_eq!(padded(258, [3, 1, 16]), 320);
    }
}
