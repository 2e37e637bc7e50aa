//! Ops on the CPU backend: operands, a check against the f64 oracles, and one run.
//!
//! `benches/` times the same runs through criterion.

use anyhow::{Context as _, Result, bail, ensure};
use diptych::cpu::{Conv2dKernel, DepthwiseKernel, GemmKernel, PointwiseKernel};
use diptych::ops::conv2d::Conv2dOp;
use diptych::ops::depthwise::DepthwiseOp;
use diptych::ops::gemm::{self, GemmOp};
use diptych::ops::pointwise::PointwiseOp;
use diptych::ops::{Convolution, Inputs, Reference, conv2d, depthwise, pointwise};
use diptych::tune::Problem;
use diptych::{Activation, Precision};

/// Rows of a product that are checked: its first, its last and one between.
const ROWS: usize = 3;

/// Noise in [-1, 1), multiples of 1/512: exact in f16.
pub fn noise(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*state >> 22) as f32 / 512.0 - 1.0
    };
    (0..len).map(|_| step(&mut state)).collect()
}

#[derive(Debug)]
enum Kernel {
    Conv2d(Conv2dKernel),
    Depthwise(DepthwiseKernel),
    Pointwise(PointwiseKernel),
    Gemm(GemmKernel),
}

/// An op with its operands.
#[derive(Debug)]
pub struct CpuOp {
    problem: Problem,
    kernel: Kernel,
    /// The feature map, or A.
    pub(super) left: Vec<f32>,
    /// The weights, or B.
    pub(super) right: Vec<f32>,
    /// One value for each output channel; empty without one.
    pub(super) bias: Vec<f32>,
    pub(super) dst: Vec<f32>,
}

impl CpuOp {
    /// Makes the operands and lays out the weights.
    ///
    /// # Errors
    /// If the problem is a change of layout, has operands that the suites do not use, or is not in
    /// f32.
    pub fn new(problem: Problem) -> Result<Self> {
        ensure!(problem.precision() == Precision::F32, "the CPU computes in f32");
        let convolution = |conv: &Convolution| -> Result<[Vec<f32>; 4]> {
            ensure!(!conv.epilogue.residual, "a residual is not benchmarked");
            let taps = conv.kernel[0] * conv.kernel[1] * conv.input.c / conv.groups;
            let bias = if conv.epilogue.bias { conv.output.c } else { 0 };
            Ok([
                noise(1, conv.input.elements()),
                noise(2, conv.output.c * taps),
                noise(3, bias),
                vec![0.0; conv.output.elements()],
            ])
        };
        let some = |bias: &Vec<f32>| (!bias.is_empty()).then(|| bias.clone());
        let (kernel, [left, right, bias, dst]) = match &problem {
            Problem::Conv2d(op) => {
                let parts = convolution(&op.0)?;
                let kernel = Conv2dKernel::new(op, &parts[1], some(&parts[2]).as_deref(), None)?;
                (Kernel::Conv2d(kernel), parts)
            }
            Problem::Depthwise(op) => {
                let parts = convolution(&op.0)?;
                let kernel = DepthwiseKernel::new(op, &parts[1], some(&parts[2]).as_deref(), None)?;
                (Kernel::Depthwise(kernel), parts)
            }
            Problem::Pointwise(op) => {
                let parts = convolution(&op.0)?;
                let kernel = PointwiseKernel::new(op, &parts[1], some(&parts[2]).as_deref(), None)?;
                (Kernel::Pointwise(kernel), parts)
            }
            Problem::Gemm(op) => {
                let parts = [
                    noise(1, op.elements_a()),
                    noise(2, op.elements_b()),
                    Vec::new(),
                    vec![0.0; op.elements_c()],
                ];
                (Kernel::Gemm(GemmKernel::new(op, None, None)?), parts)
            }
            Problem::Separable(_) => bail!("the suites time its halves"),
            Problem::Convert(_) => bail!("the CPU has no layouts to change"),
        };
        Ok(CpuOp { problem, kernel, left, right, bias, dst })
    }

    /// One run.
    ///
    /// # Errors
    /// If the operands do not fit, which [`CpuOp::new`] rules out.
    pub fn run(&mut self) -> Result<()> {
        match &self.kernel {
            Kernel::Conv2d(kernel) => kernel.run(&self.left, None, &mut self.dst)?,
            Kernel::Depthwise(kernel) => kernel.run(&self.left, None, &mut self.dst)?,
            Kernel::Pointwise(kernel) => kernel.run(&self.left, None, &mut self.dst)?,
            Kernel::Gemm(kernel) => kernel.run(&self.left, &self.right, None, &mut self.dst)?,
        }
        Ok(())
    }

    /// Runs once and compares with the oracle: every element, or three rows of a product. Returns
    /// what was compared.
    ///
    /// # Errors
    /// If an element is off by more than rounding explains.
    pub fn check(&mut self) -> Result<&'static str> {
        self.dst.fill(f32::NAN);
        self.run()?;
        self.compare()
    }

    /// Compares what is there.
    pub(super) fn compare(&self) -> Result<&'static str> {
        let inputs = Inputs {
            src: &self.left,
            weights: &self.right,
            bias: (!self.bias.is_empty()).then_some(&self.bias[..]),
            slope: None,
            residual: None,
        };
        let (reference, activation) = match &self.problem {
            Problem::Conv2d(op @ Conv2dOp(conv)) => (conv2d::oracle(op, &inputs), conv.epilogue.activation),
            Problem::Depthwise(op @ DepthwiseOp(conv)) => {
                (depthwise::oracle(op, &inputs), conv.epilogue.activation)
            }
            Problem::Pointwise(op @ PointwiseOp(conv)) => {
                (pointwise::oracle(op, &inputs), conv.epilogue.activation)
            }
            Problem::Gemm(op) => {
                self.check_rows(op)?;
                return Ok("three rows, against the oracle in f64");
            }
            Problem::Separable(_) => bail!("the suites time its halves"),
            Problem::Convert(_) => bail!("the CPU has no layouts to change"),
        };
        hold(&reference, activation, &self.dst)?;
        Ok("every element, against the oracle in f64")
    }

    /// Checks rows of the first and of the last product of a batch.
    fn check_rows(&self, op: &GemmOp) -> Result<()> {
        let few = GemmOp { m: ROWS, batch: 1, ..*op };
        for matrix in [0, op.batch - 1] {
            let rows = [0, op.m / 2, op.m - 1].map(|row| matrix * op.m + row);
            let pick = |from: &[f32], width: usize| -> Result<Vec<f32>> {
                let picked: Option<Vec<&[f32]>> =
                    rows.iter().map(|row| from.get(row * width..(row + 1) * width)).collect();
                Ok(picked.context("a row beyond the matrix")?.concat())
            };
            let b = self.right.get(matrix * op.k * op.ldb..).context("a matrix beyond the batch")?;
            let reference = gemm::oracle(&few, &pick(&self.left, op.lda)?, b, None, None, None, None);
            hold(&reference, Activation::None, &pick(&self.dst, op.ldc)?)?;
        }
        Ok(())
    }
}

fn hold(reference: &Reference, activation: Activation, found: &[f32]) -> Result<()> {
    ensure!(
        reference.value.len() == found.len(),
        "wrong: {} results, wanted {}",
        found.len(),
        reference.value.len()
    );
    for (index, (found, wanted)) in found.iter().zip(&reference.value).enumerate() {
        let tolerance = reference.tolerance(index, activation, 0.0, Precision::F32, None);
        let error = (f64::from(*found) - wanted).abs();
        // NaN is not within.
        if !matches!(
            error.partial_cmp(&tolerance),
            Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)
        ) {
            bail!("wrong: element {index} is {found}, wanted {wanted} +- {tolerance:.2e}");
        }
    }
    Ok(())
}
