//! What `attention` is, and its kernels.

use super::{AttentionOp, OP, cpu, matrix, oracle, row, tiled};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::halves::{Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::softmax::LARGEST_EXPONENT;

impl Definition for AttentionOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;

    /// How far its results are off depends on how large scores are, as with a softmax.
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&tiled::Tiled, &row::Row, &matrix::MATRIX, &matrix::MATRIX_PTX]
    }

    fn problem_key(&self) -> String {
        let AttentionOp { sizes: s, query, key, value, dst, bias, mask, rules, parts, given, output, .. } =
            self;
        let mut text = format!(
            "b{} h{} g{} m{} n{} d{} e{} q{:?} k{:?} v{:?} y{:?} to{output}",
            s.batch, s.heads, s.group, s.rows, s.keys, s.depth, s.width, query, key, value, dst
        );
        for (operand, (dims, dtype)) in given {
            text.push_str(&format!(" {} {dims} {dtype}", operand.name()));
        }
        text.push_str(&format!(" {bias:?} {mask:?} {rules:?}"));
        if *parts > 1 {
            text.push_str(&format!(" in{parts}"));
        }
        text
    }

    fn precision(&self) -> Precision {
        self.precision
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

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    /// At most the largest value, unless the rounding of a score moves its power by more than a hundredth or so.
    fn reach(&self, inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        let [query, key] = [Operand::Query, Operand::Key].map(|operand| inputs(operand).magnitude());
        let products = self.sizes.depth as f64 * query * key;
        let score = f64::from(self.rules.scale.0.abs()) * products;
        let score = if self.rules.softcap.0 > 0.0 { score.min(self.rules.softcap.0.into()) } else { score };
        // A query without an attended key gives 0.
        let mean = inputs(Operand::Value).hull(Reach::around(0.0));
        // That to a part of the keys gives the logarithm of its sum, too.
        if self.parts == 1 && score <= LARGEST_EXPONENT { mean } else { Reach::ALL }
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::AttentionKernel::new(self)))
    }
}
