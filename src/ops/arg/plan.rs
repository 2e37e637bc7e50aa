//! What `arg` is, and its kernels.

use super::{ArgOp, OP, cpu, oracle, rows};
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::reference::Reference;

impl Definition for ArgOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Serial, &rows::Group]
    }

    fn problem_key(&self) -> String {
        format!("{} along{} {}", self.input, self.axis, if self.largest { "max" } else { "min" })
    }

    /// Halves would not hold the indices.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        self.input.elements() as u64
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Src, self.input.shape(), Role::Input),
            OperandInfo::new(Operand::Dst, self.output.shape(), Role::Output),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands::get(operands, Operand::Src).unwrap_or_default())
    }

    fn cpu(&self, _constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::ArgKernel::new(self)))
    }

    fn record_layout() -> Layout {
        Layout::Nhwc
    }

    fn untunable(&self) -> Option<&'static str> {
        Some("the kernel of an index follows from its axis")
    }
}
