//! The product and then the nest, on the CPU.

use super::GemmRowsOp;
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::op::Op;
use crate::ops::operands::Operands;

#[derive(Debug)]
pub(super) struct GemmRowsOnCpu {
    product: Box<dyn CpuKernel>,
    nest: Box<dyn CpuKernel>,
    elements: usize,
    /// The nest's sources by their place, and what each is of the op.
    sources: Vec<Operand>,
}

impl GemmRowsOnCpu {
    pub(super) fn new(op: &GemmRowsOp, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Self> {
        let is_own = |operand: &Operand| !matches!(operand, Operand::Read(_));
        let own = constants.iter().filter(|(operand, _)| is_own(operand));
        let own: Operands<'_> = own.map(|(operand, values)| (*operand, values.clone())).collect();
        let nest: &dyn Op = &*op.nest;
        Ok(GemmRowsOnCpu {
            product: Definition::cpu(&op.product, &own, shelf)?,
            nest: nest.cpu(&Operands::new())?,
            elements: op.product.m() * op.product.n(),
            sources: op.nest.source_operands(),
        })
    }
}

impl CpuKernel for GemmRowsOnCpu {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (reads, own): (Vec<_>, Vec<_>) =
            inputs.iter().copied().partition(|(operand, _)| matches!(operand, Operand::Read(_)));
        let mut product = vec![0.0; self.elements];
        self.product.run(&own, &mut [(Operand::C, &mut product)])?;
        let of = |(place, operand): (usize, &Operand)| {
            let found = reads.iter().find(|(own, _)| own == operand).map(|(_, values)| *values);
            (Operand::Arg(place as u8), found.unwrap_or(&product))
        };
        let sources: Vec<(Operand, &[f32])> = self.sources.iter().enumerate().map(of).collect();
        self.nest.run(&sources, outputs)
    }
}
