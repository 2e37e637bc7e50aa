//! What `moments` is, and its kernel.

use super::{MomentsOp, OP, cpu, maps, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for MomentsOp {
    const NAME: &'static str = OP;

    /// It reads a map that may be stored so; what it writes is f32.
    const HALVES: bool = true;
    const UNTUNABLE: Option<&'static str> = Some("moments have one kernel");

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&maps::Maps]
    }

    fn problem_key(&self) -> String {
        let Shape { n, h, w, c } = self.map;
        format!("n{n} h{h} w{w} c{c}{}", if self.centred { "" } else { " uncentred" })
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    /// Two sums, a difference and a square.
    fn flops(&self) -> u64 {
        4 * self.map.elements() as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.map.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Src, self.map, Role::Input),
            OperandInfo::new(Operand::Dst, self.moments().shape(), Role::Output),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::MomentsKernel { op: *self }))
    }
}
