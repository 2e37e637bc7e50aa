//! What `attention` is, and its kernels.

use super::{AttentionOp, OP, cpu, oracle, row, tiled};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Form;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::plan::Choice;
use crate::ops::reference::Reference;

impl Definition for AttentionOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&tiled::Tiled, &row::Row]
    }

    fn problem_key(&self) -> String {
        let AttentionOp { sizes: s, query, key, value, dst, bias, mask, rules, given, output } = self;
        let mut text = format!(
            "b{} h{} g{} m{} n{} d{} e{} q{:?} k{:?} v{:?} y{:?} to{output}",
            s.batch, s.heads, s.group, s.rows, s.keys, s.depth, s.width, query, key, value, dst
        );
        for (operand, (dims, dtype)) in given {
            text.push_str(&format!(" {} {dims} {dtype}", operand.name()));
        }
        text + &format!(" {bias:?} {mask:?} {rules:?}")
    }

    /// Rows are of f32 in every precision.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    /// Two products and the exponentials of scores.
    fn flops(&self) -> u64 {
        let sizes = &self.sizes;
        let scores = (sizes.batch * sizes.heads * self.all_rows()) as u64 * sizes.keys as u64;
        scores * (2 * sizes.depth as u64 + 2 * sizes.width as u64 + 6)
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let given = self.given.iter();
        let inputs = given
            .map(|(&operand, (dims, dtype))| OperandInfo::new(operand, dims.shape(), Role::Input).of(*dtype));
        inputs.chain([OperandInfo::new(Operand::Dst, self.output.shape(), Role::Output)]).collect()
    }

    fn form(&self, _operand: Operand, _choice: &Choice) -> Form {
        Form::Rows
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::AttentionKernel::new(self)))
    }
}
