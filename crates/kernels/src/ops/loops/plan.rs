//! What `loops` is, and its kernels.

use super::{Halves, LoopsOp, Nest, OP, cpu, flat, oracle, rows};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Reference;

impl Definition for LoopsOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&flat::Flat, &rows::Rows]
    }

    fn problem_key(&self) -> String {
        let halves = match self.halves {
            Halves::ALL => String::new(),
            Halves { sources, result } => format!(" halves{sources:b}{}", if result { "y" } else { "" }),
        };
        self.nest.key() + &halves
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn flops(&self) -> u64 {
        self.nest.operations()
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let source = |(place, dims): (usize, &crate::dims::Dims)| {
            OperandInfo::new(Operand::Arg(place as u8), dims.shape(), Role::Input)
        };
        let result = OperandInfo::new(Operand::Dst, self.nest.target.shape(), Role::Output);
        self.nest.sources.iter().enumerate().map(source).chain([result]).collect()
    }

    fn nest(&self) -> Option<(Nest, Vec<Operand>)> {
        let sources = (0..self.nest.sources.len()).map(|source| Operand::Arg(source as u8));
        Some((Nest::clone(&self.nest), sources.collect()))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::LoopsKernel::new(self)))
    }
}
