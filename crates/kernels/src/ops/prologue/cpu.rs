//! The nest and then the op, on the CPU.

use super::PrologueOp;
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::op::Op;
use crate::ops::operands::Operands;

/// The op's kernel, and what comes before it.
#[derive(Debug)]
pub(super) struct PrologueOnCpu {
    nest: Box<dyn CpuKernel>,
    kernel: Box<dyn CpuKernel>,
    operand: Operand,
    elements: usize,
}

impl PrologueOnCpu {
    pub(super) fn new(op: &PrologueOp, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Self> {
        let nest: &dyn Op = &*op.nest;
        Ok(PrologueOnCpu {
            nest: nest.cpu(&Operands::new())?,
            kernel: op.op.cpu_on(constants, shelf)?,
            operand: op.operand,
            elements: op.nest.elements(),
        })
    }
}

impl CpuKernel for PrologueOnCpu {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let of_nest = |&(operand, values): &(Operand, _)| match operand {
            Operand::Read(place) => Some((Operand::Arg(place), values)),
            _ => None,
        };
        let reads: Vec<(Operand, &[f32])> = inputs.iter().filter_map(of_nest).collect();
        let mut given = vec![0.0; self.elements];
        self.nest.run(&reads, &mut [(Operand::Dst, &mut given)])?;
        let others = inputs.iter().filter(|(operand, _)| !matches!(operand, Operand::Read(_))).copied();
        let inputs: Vec<(Operand, &[f32])> = [(self.operand, &given[..])].into_iter().chain(others).collect();
        self.kernel.run(&inputs, outputs)
    }
}
