//! What `gather` is, and its kernel.

use super::{GatherOp, OP, cpu, oracle, rows};
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Reference;

impl Definition for GatherOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Rows]
    }

    fn problem_key(&self) -> String {
        let GatherOp { source, indices, axis, axes, batch_dims, .. } = self;
        format!("from{source} by{indices} axis{axis} axes{axes} shared{batch_dims}")
    }

    /// Rows are f32 in every precision: an index is exact.
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
            OperandInfo::new(Operand::Src, self.source.shape(), Role::Input),
            OperandInfo::new(Operand::Arg(0), self.indices.shape(), Role::Input),
            OperandInfo::new(Operand::Dst, self.target.shape(), Role::Output),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::GatherKernel::new(self)))
    }

    fn with_precision(&self, _precision: Precision) -> Self {
        self.clone()
    }

    fn network_precision(_wanted: Precision) -> Precision {
        Precision::F32
    }

    fn record_layout() -> Layout {
        Layout::Nhwc
    }

    fn untunable(&self) -> Option<&'static str> {
        Some("a selection has one kernel")
    }
}
