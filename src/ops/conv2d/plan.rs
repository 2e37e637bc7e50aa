//! What `conv2d` is, and its kernels.

use super::{Conv2dOp, OP, cpu, direct, grouped, matrix, oracle, shallow, sliding, split, tiled, winograd};
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::Epilogue;
use crate::error::Result;
use crate::ops::Magnitudes;
use crate::ops::convolution::Convolution;
use crate::ops::definition::Definition;
use crate::ops::expected;
use crate::ops::halves;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::{Params, extent, unsigned};
use crate::shape::Shape;

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

/// The weights of `split` and `tiled`: `[kh][kw][input slice][lane][slice][4]`, with slices of zeros
/// up to `sources`.
pub(super) fn pack_rows(problem: &Convolution, sources: usize, data: &[f32]) -> Vec<f32> {
    let (inputs, slices) = (problem.input.c, problem.output.slices());
    let taps = problem.kernel[0] * problem.kernel[1];
    let rows = 4 * sources;
    let mut out = vec![0.0; taps * rows * slices * 4];
    for (o, window) in data.chunks_exact(taps * inputs).enumerate() {
        for (tap, row) in window.chunks_exact(inputs).enumerate() {
            for (k, &weight) in row.iter().enumerate() {
                out[4 * slices * (rows * tap + k) + o] = weight;
            }
        }
    }
    out
}

/// The weights of `shallow` and `grouped`: `[slice][kh][kw][k][4]` over the inputs `k` of a group.
pub(super) fn pack_terms(problem: &Convolution, slices: usize, data: &[f32]) -> Vec<f32> {
    let terms = problem.terms();
    let mut out = vec![0.0; slices * terms * 4];
    for (o, window) in data.chunks_exact(terms).enumerate() {
        for (term, &weight) in window.iter().enumerate() {
            out[4 * (o / 4 * terms + term) + o % 4] = weight;
        }
    }
    out
}

impl Definition for Conv2dOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[
            &matrix::MATRIX,
            &matrix::MATRIX_PTX,
            &direct::Direct,
            &tiled::Tiled,
            &split::Split,
            &shallow::Shallow,
            &sliding::Sliding,
            &grouped::Grouped,
            &winograd::WINOGRAD2,
            &winograd::WINOGRAD4,
        ]
    }

    fn problem_key(&self) -> String {
        let channels = match self.0.groups {
            1 => format!("o{}", self.0.output.c),
            groups => format!("o{} groups{groups}", self.0.output.c),
        };
        problem::convolution(&self.0, &channels)
    }

    fn precision(&self) -> Precision {
        self.0.precision
    }

    fn flops(&self) -> u64 {
        self.0.flops()
    }

    fn dst_depth(&self) -> u32 {
        extent(self.0.output.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let [kernel_h, kernel_w] = self.0.kernel;
        self.0.operands(Shape::nhwc(self.0.output.c, kernel_h, kernel_w, self.0.group_inputs()))
    }

    fn maps(&self) -> Option<[Shape; 2]> {
        Some([self.0.input, self.0.output])
    }

    fn epilogue(&self) -> Epilogue {
        self.0.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        Reference::Sum(oracle::oracle(self, operands))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        let (problem, plain) = (&self.0, self.plain());
        expected::of_sum(self, &plain, problem.terms(), &problem.epilogue, operands)
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        cpu::kernel(self, constants)
    }

    fn halves(&self) -> bool {
        true
    }

    fn reach(&self, inputs: &Magnitudes<'_>, constants: &Operands<'_>) -> f64 {
        halves::convolved(&self.0, false, inputs, constants)
    }

    fn with_precision(&self, precision: Precision) -> Self {
        Conv2dOp(self.0.with_precision(precision))
    }

    fn mixes_channels() -> bool {
        true
    }
}
