//! The tiles and the weights of `grouped`, for groups that are no whole slices of channels.
//!
//! A lane of a slice that is of another group must not be read, even times a zero weight: an infinity
//! there would make the product NaN. So each output lane reads channels of its own group alone.
//!
//! Weights are packed as `[slice][kh][kw][k][4]`, over the inputs `k` of a group.

use crate::emit::Value;
use crate::ops::convolution::Convolution;

/// Whether the groups are whole slices of input and output channels, so that `direct` serves them.
pub(super) fn whole_slices(problem: &Convolution) -> bool {
    problem.group_inputs().is_multiple_of(4) && problem.group_outputs().is_multiple_of(4)
}

/// Whether `slices` slices of outputs that begin at a multiple of as many are of one group.
pub(super) fn shares(problem: &Convolution, slices: usize) -> bool {
    problem.group_outputs().is_multiple_of(4 * slices)
}

/// The groups that the four channels of an output slice are of, at most; 4 is a multiple of it, and
/// channels of as many runs of equal length are of one group.
fn distinct(problem: &Convolution) -> u32 {
    match problem.group_outputs() {
        outputs if outputs.is_multiple_of(4) => 1,
        outputs if outputs.is_multiple_of(2) => 2,
        _ => 4,
    }
}

/// Pixels of a row by slices, the most reuse first.
pub(super) fn space(problem: &Convolution) -> Vec<(&'static str, [u32; 3])> {
    if problem.groups == 1 || whole_slices(problem) {
        return Vec::new();
    }
    let mut tiles = vec![[4, 1, 1], [2, 1, 1], [1, 1, 1]];
    if shares(problem, 2) {
        tiles.extend([[4, 1, 2], [2, 1, 2], [1, 1, 2]]);
    }
    tiles.into_iter().map(|tile| ("grouped", tile)).collect()
}

/// The constants of the kernel beside the window's.
pub(super) fn constants(problem: &Convolution, tile: [u32; 3]) -> Vec<(&'static str, Value)> {
    // Whole vec4s of inputs, where a group's begin at one.
    let step = if problem.group_inputs().is_multiple_of(4) { 4 } else { 1 };
    [("TILE_X", tile[0]), ("TILE_Z", tile[2]), ("DISTINCT", distinct(problem)), ("STEP", step)]
        .map(|(name, value)| (name, Value::U32(value)))
        .to_vec()
}

/// The weights as the kernel reads them, `slices` slices of them; `data` is `oc kh kw c/groups`.
pub(super) fn pack(problem: &Convolution, slices: usize, data: &[f32]) -> Vec<f32> {
    let terms = problem.kernel[0] * problem.kernel[1] * problem.group_inputs();
    let mut out = vec![0.0; slices * terms * 4];
    for (o, window) in data.chunks_exact(terms).enumerate() {
        for (term, &weight) in window.iter().enumerate() {
            out[4 * (o / 4 * terms + term) + o % 4] = weight;
        }
    }
    out
}
