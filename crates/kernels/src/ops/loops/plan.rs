//! What `loops` is, and its kernels.

use super::nest::word_of;
use super::{LoopsOp, Nest, OP, OpNest, OperandSet, cpu, flat, oracle, result_operand, rows, words};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Form;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::op::Op;
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
        let source = self.sources.iter().position(|&own| own == operand);
        let of_maps = match operand {
            _ if source.is_some() => source.is_some_and(|source| self.maps.has_source(source)),
            Operand::Dst => self.maps.has_result(0),
            Operand::Result(result) => self.maps.has_result(usize::from(result)),
            _ => false,
        };
        if of_maps { Form::C4 } else { Form::Rows }
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let source = |(place, dims): (usize, &Dims)| {
            let dtype = self.nest.types.get(place).copied().unwrap_or_default();
            OperandInfo::new(self.source(place), dims.shape(), Role::Input).of(word_of(dtype))
        };
        let result = |(place, dims): (usize, Dims)| {
            let dtype = self.nest.result_type(place);
            OperandInfo::new(result_operand(place), dims.shape(), Role::Output).of(word_of(dtype))
        };
        // What is written last is the first result.
        let results = self.nest.targets().enumerate().map(result).collect::<Vec<_>>().into_iter().rev();
        self.nest.sources.iter().enumerate().map(source).chain(results).collect()
    }

    fn nest(&self) -> Option<OpNest> {
        let nest = OpNest::new(Nest::clone(&self.nest), self.sources.clone());
        Some(nest.with_halves(self.halves))
    }

    fn others(&self) -> Vec<(Operand, Box<dyn Op>)> {
        let other = |(result, operand)| Some((operand, Box::new(self.of_result(result)?) as Box<dyn Op>));
        self.further().filter_map(other).collect()
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        if self.nest.has_integers() {
            return Ok(Box::new(words::WordsKernel::new(self)));
        }
        Ok(Box::new(cpu::LoopsKernel::of(&self.nest)))
    }
}
