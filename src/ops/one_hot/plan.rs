//! What `one_hot` is, and its kernel.

use super::{OP, OneHotOp, oracle, rows};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::reference::Reference;

impl Definition for OneHotOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Rows]
    }

    fn problem_key(&self) -> String {
        format!("from{} to{} axis{} on{} off{}", self.indices, self.target, self.axis, self.on.0, self.off.0)
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
            OperandInfo::new(Operand::Src, self.indices.shape(), Role::Input),
            OperandInfo::new(Operand::Dst, self.target.shape(), Role::Output),
        ]
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
        Some("an encoding has one kernel")
    }
}

impl CpuKernel for OneHotOp {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.indices.elements())?;
        check_len(OP, "dst", dst.len(), self.target.elements())?;
        let (depth, inner) = (self.depth(), self.inner());
        let block = independent_rows(dst.len() / inner, MOVED * inner);
        each(dst.chunks_mut(block * inner).enumerate(), |(index, dst)| {
            for (row, dst) in dst.chunks_exact_mut(inner).enumerate() {
                let row = index * block + row;
                let at = (row % depth) as f32;
                let indices = &src[row / depth * inner..(row / depth + 1) * inner];
                for (value, &index) in dst.iter_mut().zip(indices) {
                    *value = if index == at { self.on.0 } else { self.off.0 };
                }
            }
        });
        Ok(())
    }
}
