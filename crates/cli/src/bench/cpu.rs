//! Ops on the CPU backend: operands, a check against the f64 oracles, and one run.
//!
//! `benches/` times the same runs through criterion.

use anyhow::{Context as _, Result, bail, ensure};
use diptych::Precision;
use diptych_emit::emit::Operand;
use diptych_kernels::ops::{Answer, CpuKernel, Op, OperandInfo, Operands, Reference, Role};
use std::sync::Arc;

/// Of an op of more operations than this, three rows are checked: its first, its last and one between.
const MOST_CHECKED: u64 = 1 << 28;

/// Noise in [-1, 1), multiples of 1/512: exact in f16.
pub fn noise(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*state >> 22) as f32 / 512.0 - 1.0
    };
    (0..len).map(|_| step(&mut state)).collect()
}

/// An op with its operands.
#[derive(Debug)]
pub struct CpuOp {
    op: Arc<dyn Op>,
    kernel: Box<dyn CpuKernel>,
    /// What is read at each run.
    inputs: Vec<Operand>,
    pub(super) operands: Operands<'static>,
    output: OperandInfo,
    pub(super) dst: Vec<f32>,
}

impl CpuOp {
    /// Makes the operands and lays out the weights.
    ///
    /// # Errors
    /// If the CPU does not run the op, or it is not in f32.
    pub fn new(op: Arc<dyn Op>) -> Result<Self> {
        ensure!(op.precision() == Precision::F32, "the CPU computes in f32");
        let infos = op.operands();
        let output = *infos.last().context("an op that writes nothing")?;
        let read = infos.iter().filter(|info| info.role != Role::Output);
        let operands: Operands<'static> = read
            .map(|info| (info.operand, noise(info.operand.number() as u32 + 1, info.elements()).into()))
            .collect();
        let role =
            |operand: Operand, role| infos.iter().any(|info| (info.operand, info.role) == (operand, role));
        let constants = operands.iter().filter(|(operand, _)| role(**operand, Role::Constant));
        let constants: Operands<'_> =
            constants.map(|(operand, values)| (*operand, values.as_ref().into())).collect();
        let kernel = op.cpu(&constants)?;
        let inputs = operands.keys().copied().filter(|operand| role(*operand, Role::Input)).collect();
        Ok(CpuOp { op, kernel, inputs, operands, output, dst: vec![0.0; output.elements()] })
    }

    /// One run.
    ///
    /// # Errors
    /// If the operands do not fit, which [`CpuOp::new`] rules out.
    pub fn run(&mut self) -> Result<()> {
        let inputs: Vec<(Operand, &[f32])> =
            self.inputs.iter().map(|operand| (*operand, &*self.operands[operand])).collect();
        Ok(self.kernel.run(&inputs, &mut [(self.output.operand, &mut self.dst)])?)
    }

    /// Runs once and compares with the oracle: every element, or three rows of a large result. Returns
    /// what was compared.
    ///
    /// # Errors
    /// If an element is off by more than rounding explains.
    pub fn check(&mut self) -> Result<&'static str> {
        self.dst.fill(f32::NAN);
        if self.output.role == Role::Update {
            self.dst.copy_from_slice(&self.operands[&self.output.operand]);
        }
        self.run()?;
        self.compare()
    }

    /// Compares what is there.
    pub(super) fn compare(&self) -> Result<&'static str> {
        let columns = self.output.shape.c;
        let found: Vec<f32> =
            (0..self.output.shape.elements()).map(|index| self.dst[self.output.place(index)]).collect();
        if self.op.flops() <= MOST_CHECKED {
            hold(&self.op.reference(&self.operands, Answer::Exact)?, &found)?;
            return Ok("every element, against the oracle in f64");
        }
        let last = found.len() / columns - 1;
        let rows = [0, last / 2, last];
        let picked: Option<Vec<&[f32]>> =
            rows.iter().map(|row| found.get(row * columns..(row + 1) * columns)).collect();
        let picked = picked.context("a row beyond the result")?.concat();
        hold(&self.op.reference(&self.operands, Answer::Rows(&rows))?, &picked)?;
        Ok("three rows, against the oracle in f64")
    }
}

fn hold(reference: &Reference, found: &[f32]) -> Result<()> {
    let values = reference.value();
    ensure!(values.len() == found.len(), "wrong: {} results, wanted {}", found.len(), values.len());
    for (index, (found, wanted)) in found.iter().zip(values).enumerate() {
        let tolerance = reference.tolerance(index, Precision::F32);
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
