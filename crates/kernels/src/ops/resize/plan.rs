//! What `resize` is, and its kernel.

use super::{OP, ResizeMode, ResizeOp, cpu, maps, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::halves::{Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::spec::extent;

impl Definition for ResizeOp {
    const NAME: &'static str = OP;
    const HALVES: bool = true;
    const CALLS_FUNCTION: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&maps::Maps]
    }

    fn problem_key(&self) -> String {
        let (x, y, options) = (self.input, self.output, self.options);
        let mode = match options.mode {
            ResizeMode::Nearest => "nearest",
            ResizeMode::Bilinear => "bilinear",
        };
        let corners = if options.align_corners { " corners" } else { "" };
        let centers = if options.half_pixel_centers { " centers" } else { "" };
        format!("n{} h{} w{} c{} to{}x{} {mode}{corners}{centers}", x.n, x.h, x.w, x.c, y.h, y.w)
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    /// Three means of two, each of three operations.
    fn flops(&self) -> u64 {
        match self.options.mode {
            ResizeMode::Nearest => 0,
            ResizeMode::Bilinear => 9 * self.output.elements() as u64,
        }
    }

    fn dst_depth(&self) -> u32 {
        extent(self.output.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Src, self.input, Role::Input),
            OperandInfo::new(Operand::Dst, self.output, Role::Output),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands::get(operands, Operand::Src).unwrap_or_default())
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::ResizeKernel::new(self)))
    }

    fn reach(&self, inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        inputs(Operand::Src)
    }
}
