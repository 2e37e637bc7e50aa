//! What `quantized_conv2d` is, and its kernels.

use super::{OP, QuantizedConv2dOp, cpu, direct, matrix, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::bytes::{self, LANES};
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;

impl Definition for QuantizedConv2dOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&matrix::MatrixPtx, &direct::Direct]
    }

    fn problem_key(&self) -> String {
        let channels = format!("o{}", self.channels);
        format!(
            "{} outside{} {}",
            problem::convolution(&self.windows, &channels),
            self.outside,
            self.range.key()
        )
    }

    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        let windows = &self.windows;
        let pixels = (windows.output.elements() / windows.output.c) as u64;
        2 * pixels * self.channels as u64 * (LANES * windows.terms()) as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.windows.output.c)
    }

    fn operands(&self) -> Vec<OperandInfo> {
        bytes::operands(&self.windows, self.weights(), self.channels)
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        cpu::kernel(self, constants)
    }
}
