//! What `elementwise` is, and its kernels.

use super::{ElementwiseOp, OP, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::halves::{Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::loops::{self, AsNest, OpNest, OperandSet};
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::spec::extent;

impl Definition for ElementwiseOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::ELEMENTS_OF_MAPS, &AsNest::ELEMENTS]
    }

    /// The formula, and the dimensions of the inputs.
    fn problem_key(&self) -> String {
        let dims: Vec<String> = self.inputs.iter().map(Dims::to_string).collect();
        format!("{} {}", self.program.key(), dims.join(" "))
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    /// One for each step and element.
    fn flops(&self) -> u64 {
        (self.program.steps().len() * self.output.elements()) as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.output.shape().slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let input = |(index, dims): (usize, &Dims)| {
            OperandInfo::new(Operand::Arg(index as u8), dims.shape(), Role::Input)
        };
        let output = OperandInfo::new(Operand::Dst, self.output.shape(), Role::Output);
        self.inputs.iter().enumerate().map(input).chain([output]).collect()
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        let operands: Vec<Operand> = (0..self.inputs.len()).map(|place| Operand::Arg(place as u8)).collect();
        loops::kernel(OP, self.as_nest(), &operands, self.output)
    }

    fn halves(&self) -> bool {
        self.program.halves()
    }

    fn reach(&self, inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        self.program.reach(inputs)
    }

    fn is_singular(&self, inputs: &Reaches<'_>) -> bool {
        self.program.is_singular(inputs)
    }

    fn nest(&self) -> Option<OpNest> {
        // Functions may be of numbers that halves do not hold.
        let halves = OperandSet {
            sources: if self.program.reads_half_rows() { u32::MAX } else { 0 },
            results: u32::from(self.program.writes_half_rows()),
        };
        Some(OpNest::of_arguments(self.as_nest()?).with_halves(halves))
    }
}
