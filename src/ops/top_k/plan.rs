//! What `top_k` is, and its kernels.

use super::{OP, TopKOp, key, oracle, rows, select};
use crate::cpu::blocks::independent_rows;
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
use std::cmp::Reverse;

impl Definition for TopKOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Rows, &select::Select]
    }

    fn problem_key(&self) -> String {
        let what = if self.indices { "indices" } else { "values" };
        format!("from{} to{} {what}", self.source, self.target)
    }

    /// Rows are f32 in every precision.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    /// A comparison of each two elements of a row.
    fn flops(&self) -> u64 {
        self.source.elements() as u64 * self.extents()[0] as u64
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Src, self.source.shape(), Role::Input),
            OperandInfo::new(Operand::Dst, self.target.shape(), Role::Output),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands::get(operands, Operand::Src).unwrap_or_default())
    }

    fn cpu(&self, _constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(*self))
    }

    fn record_layout() -> Layout {
        Layout::Nhwc
    }

    fn untunable(&self) -> Option<&'static str> {
        Some("a choice of the largest has one kernel for rows of a length")
    }
}

impl CpuKernel for TopKOp {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.source.elements())?;
        check_len(OP, "dst", dst.len(), self.target.elements())?;
        let [extent, k] = self.extents();
        let block = independent_rows(dst.len() / k, 8 * extent);
        each(dst.chunks_mut(block * k).zip(src.chunks(block * extent)), |(dst, src)| {
            let mut places = Vec::with_capacity(extent);
            for (dst, src) in dst.chunks_exact_mut(k).zip(src.chunks_exact(extent)) {
                let order = |place: &usize| (Reverse(key(src[*place])), *place);
                places.clear();
                places.extend(0..extent);
                places.select_nth_unstable_by_key(k - 1, order);
                places.truncate(k);
                places.sort_unstable_by_key(order);
                for (value, &place) in dst.iter_mut().zip(&places) {
                    *value = if self.indices { place as f32 } else { src[place] };
                }
            }
        });
        Ok(())
    }
}
