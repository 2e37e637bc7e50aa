//! What `copy` is, and its kernel.

use super::{CopyOp, OP, oracle, rows};
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::plan::Choice;
use crate::ops::reference::Reference;

impl Definition for CopyOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Rows]
    }

    fn problem_key(&self) -> String {
        format!("from{} of{} elements{}", self.first, self.source.elements(), self.target.elements())
    }

    /// Rows are f32 in every precision.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        0
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Src, self.source, Role::Input),
            OperandInfo::new(Operand::Dst, self.target, Role::Output),
        ]
    }

    fn form(&self, _operand: Operand, _choice: &Choice) -> Form {
        Form::Rows
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands::get(operands, Operand::Src).unwrap_or_default())
    }

    fn cpu(&self, _constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(*self))
    }

    fn with_precision(&self, _precision: Precision) -> Self {
        *self
    }

    fn network_precision(_wanted: Precision) -> Precision {
        Precision::F32
    }

    fn record_layout() -> Layout {
        Layout::Nhwc
    }

    fn untunable(&self) -> Option<&'static str> {
        Some("a copy has one kernel")
    }
}

impl CpuKernel for CopyOp {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let src = input(OP, inputs, Operand::Src)?;
        let dst = output(OP, outputs, Operand::Dst)?;
        check_len(OP, "src", src.len(), self.source.elements())?;
        check_len(OP, "dst", dst.len(), self.target.elements())?;
        let taken = src.get(self.first..self.first + dst.len());
        dst.copy_from_slice(taken.ok_or_else(|| Error::Internal(format!("{self:?} is out of range")))?);
        Ok(())
    }
}
