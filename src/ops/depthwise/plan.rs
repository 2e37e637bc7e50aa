//! What `depthwise` is, and its kernels.

use super::{DepthwiseOp, OP, cpu, direct, local, micro, multiplier, oracle, rows};
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::{Epilogue, Operand};
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
use crate::ops::spec::{self, Params, extent, unsigned};
use crate::shape::Shape;

/// The most input columns or rows that a kernel keeps in registers.
const MAX_COLUMNS: usize = 16;

/// The most taps of a window that a kernel keeps in registers.
const MAX_WEIGHTS: usize = 25;

/// Input columns (axis 1) or rows (axis 0) that so many neighbouring outputs read.
pub(super) fn span(problem: &Convolution, axis: usize, outputs: usize) -> usize {
    (outputs - 1) * problem.stride[axis] + (problem.kernel[axis] - 1) * problem.dilation[axis] + 1
}

/// Whether a tile of columns and rows fits into registers: the window is unrolled, and its weights and a
/// row of the input are registers.
pub(super) fn in_registers(problem: &Convolution, [columns, rows]: [usize; 2]) -> bool {
    let weights = problem.kernel[0] * problem.kernel[1];
    weights <= MAX_WEIGHTS && fits_row(problem, columns) && span(problem, 0, rows) <= MAX_COLUMNS
}

/// Whether the input columns of so many neighbouring outputs fit into registers.
pub(super) fn fits_row(problem: &Convolution, columns: usize) -> bool {
    span(problem, 1, columns) <= MAX_COLUMNS
}

/// Width x height x slices, the tile being columns and rows.
pub(super) fn grid(op: &DepthwiseOp, tile: [u32; 3]) -> [u32; 3] {
    let output = op.0.output;
    let slices = extent(output.slices()) * extent(output.n);
    [extent(output.w).div_ceil(tile[0]), extent(output.h).div_ceil(tile[1]), slices]
}

/// The scalars that every kernel takes.
pub(super) fn params(op: &DepthwiseOp) -> Params {
    let problem = &op.0;
    vec![
        ("src_w", unsigned(problem.input.w)),
        ("src_h", unsigned(problem.input.h)),
        ("dst_w", unsigned(problem.output.w)),
        ("dst_h", unsigned(problem.output.h)),
        ("dst_c4", unsigned(problem.output.slices())),
        ("batch", unsigned(problem.output.n)),
        ("before_h", unsigned(problem.before[0])),
        ("before_w", unsigned(problem.before[1])),
    ]
}

/// A constant as every kernel reads it: weights as `[slice][kh][kw][4]` over the output channels.
pub(super) fn pack(op: &DepthwiseOp, operand: Operand, data: &[f32]) -> Vec<f32> {
    let problem = &op.0;
    match operand {
        Operand::Weights => spec::pack_window(data, problem.kernel[0] * problem.kernel[1], problem.output.c),
        _ => spec::pack_channels(data, problem.output.slices()),
    }
}

impl Definition for DepthwiseOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        // `local` pays where caches are poor, and that a measurement says.
        &[&micro::Micro, &rows::Rows, &direct::Direct, &local::Local, &multiplier::Multiplier]
    }

    fn problem_key(&self) -> String {
        problem::convolution(&self.0, &format!("mult{}", self.multiplier()))
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
        self.0.operands(Shape::nhwc(1, kernel_h, kernel_w, self.0.output.c))
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
        halves::convolved(&self.0, true, inputs, constants)
    }

    fn with_precision(&self, precision: Precision) -> Self {
        DepthwiseOp(self.0.with_precision(precision))
    }

    /// A window is short: its loads are in flight together, and few invocations suffice.
    fn share() -> u64 {
        4
    }
}
