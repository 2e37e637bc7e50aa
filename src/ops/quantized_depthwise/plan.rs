//! What `quantized_depthwise` is, and its kernels.

use super::{OP, QuantizedDepthwiseOp, cpu, direct, oracle};
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

impl Definition for QuantizedDepthwiseOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&direct::Direct]
    }

    fn problem_key(&self) -> String {
        format!(
            "{} outside{} {}",
            problem::convolution(&self.windows, "words"),
            self.outside,
            self.range.key()
        )
    }

    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        LANES as u64 * self.windows.flops()
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
