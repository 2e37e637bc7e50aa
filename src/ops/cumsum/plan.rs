//! What `cumsum` is, and its kernel.

use super::{CumSumOp, OP, oracle, rows};
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

impl Definition for CumSumOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Rows]
    }

    fn problem_key(&self) -> String {
        let mut text = format!("of{} axis{}", self.dims, self.axis);
        for (told, word) in [(self.exclusive, " exclusive"), (self.reverse, " reverse")] {
            if told {
                text.push_str(word);
            }
        }
        text
    }

    /// Rows are f32 in every precision.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        self.dims.elements() as u64
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let info = |operand, role| OperandInfo::new(operand, self.dims.shape(), role);
        vec![info(Operand::Src, Role::Input), info(Operand::Dst, Role::Output)]
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
        Some("running sums have one kernel")
    }
}

impl CpuKernel for CumSumOp {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.dims.elements())?;
        check_len(OP, "dst", dst.len(), self.dims.elements())?;
        let (extent, inner) = (self.extent(), self.inner());
        let whole = extent * inner;
        let block = independent_rows(dst.len() / whole, MOVED * whole) * whole;
        each(dst.chunks_mut(block).zip(src.chunks(block)), |(dst, src)| {
            for (dst, src) in dst.chunks_exact_mut(whole).zip(src.chunks_exact(whole)) {
                let mut sums = vec![0.0; inner];
                for step in 0..extent {
                    let at = if self.reverse { extent - 1 - step } else { step } * inner;
                    let terms = dst[at..at + inner].iter_mut().zip(&src[at..at + inner]).zip(&mut sums);
                    for ((value, term), sum) in terms {
                        let before = *sum;
                        *sum += term;
                        *value = if self.exclusive { before } else { *sum };
                    }
                }
            }
        });
        Ok(())
    }
}
