//! What `loops` is, and its kernels.

use super::{LoopsOp, Nest, OP, OperandSet, cpu, flat, oracle, rows};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Form;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::plan::Choice;
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
            OperandSet::ALL => String::new(),
            OperandSet::NONE => " halves".to_owned(),
            some => some.key("halves"),
        };
        self.nest.key() + &halves + &self.maps.key("maps")
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

    fn form(&self, operand: Operand, _choice: &Choice) -> Form {
        let of_maps = match operand {
            Operand::Arg(source) => self.maps.has_source(usize::from(source)),
            Operand::Dst => self.maps.result,
            _ => false,
        };
        if of_maps { Form::C4 } else { Form::Rows }
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
