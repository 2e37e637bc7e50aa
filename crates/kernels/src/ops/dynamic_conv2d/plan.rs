//! What `dynamic_conv2d` is, and its kernels.

use super::{DynamicConv2dOp, OP, cpu, direct, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::{DType, Precision};
use crate::emit::{Epilogue, Operand};
use crate::error::Result;
use crate::ops::bytes::LANES;
use crate::ops::definition::Definition;
use crate::ops::dynamic_range::usual_ranges;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::ops::{convolution, problem};

impl Definition for DynamicConv2dOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&direct::Direct]
    }

    fn problem_key(&self) -> String {
        let channels = format!("o{}", self.channels);
        let sums = if self.sums { " sums" } else { "" };
        format!(
            "{} ranges{}{sums}{}",
            problem::convolution(&self.windows, &channels),
            self.count(),
            problem::epilogue(&self.epilogue)
        )
    }

    fn usual(&self, operand: Operand, noise: Vec<f32>) -> Vec<f32> {
        if operand == Operand::Arg(0) { usual_ranges(&noise, false) } else { noise }
    }

    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        2 * self.pixels() as u64 * self.channels as u64 * (LANES * self.windows.terms()) as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.windows.output.c)
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let mut operands = vec![
            OperandInfo::new(Operand::Src, self.windows.input, Role::Input).of(DType::U32),
            OperandInfo::new(Operand::Weights, self.weights(), Role::Constant).of(DType::U32),
            OperandInfo::new(Operand::Arg(0), self.ranges.shape(), Role::Input),
        ];
        if !self.sums {
            operands.push(OperandInfo::vector(Operand::Scale, self.channels));
        }
        operands.extend(convolution::extras(&self.epilogue, self.channels, self.output()));
        operands.push(OperandInfo::new(Operand::Dst, self.output(), Role::Output).of(self.dtype()));
        operands
    }

    fn epilogue(&self) -> Epilogue {
        self.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        cpu::kernel(self, constants)
    }
}
