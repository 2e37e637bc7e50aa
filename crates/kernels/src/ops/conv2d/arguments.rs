//! What the kernels of `conv2d` are given.

use crate::emit::Operand;
use crate::ops::convolution::Convolution;
use crate::ops::spec::{self, Params, unsigned};
use crate::ops::text_arguments::TextArguments;

/// Slices of output channels, in whole tiles, so that the kernel reads zeros beyond the last.
pub(super) fn slices(problem: &Convolution, tile: [u32; 3]) -> usize {
    problem.output.slices().next_multiple_of(tile[2].max(1) as usize)
}

/// The scalars that kernels take, but for those that `without` names; those about groups only where there
/// are groups.
pub(super) fn params(problem: &Convolution, tile: [u32; 3], without: &[&str]) -> Params {
    let sources = problem.group_inputs().div_ceil(4);
    let mut params = vec![
        ("src_w", unsigned(problem.input.w)),
        ("src_h", unsigned(problem.input.h)),
        ("src_c4", unsigned(problem.input.slices())),
        // Input slices that every output slice reads: those of a group, whole ones if there are several.
        ("src_slices", unsigned(sources)),
        ("dst_w", unsigned(problem.output.w)),
        ("dst_h", unsigned(problem.output.h)),
        ("dst_c4", unsigned(problem.output.slices())),
        ("dst_tiles", unsigned(problem.output.slices().div_ceil(tile[2] as usize))),
        ("batch", unsigned(problem.output.n)),
        ("before_h", unsigned(problem.before[0])),
        ("before_w", unsigned(problem.before[1])),
    ];
    if problem.groups > 1 {
        params.push(("group_inputs", unsigned(problem.group_inputs())));
        params.push(("group_outputs", unsigned(problem.group_outputs())));
    }
    params.retain(|(name, _)| !without.contains(name));
    params
}

/// What the texts of the kernels that are matrix products are given.
pub(super) const OF_PRODUCTS: TextArguments = TextArguments {
    windows: true,
    params: |problem, _tile| params(problem, [1; 3], &["dst_tiles", "src_slices", "src_c4"]),
};

/// A constant of `shallow` and `grouped`: weights as `[slice][kh][kw][k][4]` over the inputs `k` of a group.
pub(super) fn pack_terms(problem: &Convolution, tile: [u32; 3], operand: Operand, data: &[f32]) -> Vec<f32> {
    let (terms, slices) = (problem.terms(), slices(problem, tile));
    if operand != Operand::Weights {
        return spec::pack_channels(data, slices);
    }
    let mut out = vec![0.0; slices * terms * 4];
    for (o, window) in data.chunks_exact(terms).enumerate() {
        for (term, &weight) in window.iter().enumerate() {
            out[4 * (o / 4 * terms + term) + o % 4] = weight;
        }
    }
    out
}

/// Whether the groups are whole slices of input and output channels, so that `direct` serves them.
pub(super) fn whole_slices(problem: &Convolution) -> bool {
    problem.group_inputs().is_multiple_of(4) && problem.group_outputs().is_multiple_of(4)
}

/// Whether `slices` slices of outputs that begin at a multiple of as many are of one group.
pub(super) fn shares(problem: &Convolution, slices: usize) -> bool {
    problem.group_outputs().is_multiple_of(4 * slices)
}

/// Ordinary invocations that keep a device as busy as one whose sums are as many and as long.
pub(super) const SHARE: u64 = 4;

/// Taps of a row of a long window.
const MANY_TAPS: usize = 7;

/// Input columns that an invocation of `pixels` reads.
pub(super) fn columns(problem: &Convolution, pixels: usize) -> usize {
    (pixels - 1) * problem.stride[1] + (problem.kernel[1] - 1) * problem.dilation[1] + 1
}

/// Whether a row of the window has enough taps to spare most loads.
pub(super) fn is_long(problem: &Convolution) -> bool {
    problem.kernel[1] >= MANY_TAPS
}
