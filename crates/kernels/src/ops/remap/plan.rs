//! What `remap` is, and its kernels.

use super::{OP, RemapOp, Rule, oracle, transpose};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::{DType, Precision};
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::halves::{Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::loops::{self, AsNest, OpNest};
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::rows::word_key;
use crate::ops::spec::extent;

impl Definition for RemapOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::ELEMENTS_OF_MAPS, &transpose::Transpose, &AsNest::ELEMENTS]
    }

    fn problem_key(&self) -> String {
        let rule = match self.rule {
            Rule::Within => String::new(),
            Rule::Fill(Bits(value)) => format!(" fill{value}"),
            Rule::Reflect => " reflect".to_owned(),
            Rule::Symmetric => " symmetric".to_owned(),
            Rule::Edge => " edge".to_owned(),
            Rule::Wrap => " wrap".to_owned(),
        };
        let mut text = format!("from{} to{}{rule}", self.source, self.target);
        for axis in &self.axes {
            text.push_str(&format!(" {}of{}by{}", axis.extent, axis.source, axis.stride));
            if (axis.start, axis.step) != (0, 1) {
                text.push_str(&format!("at{}step{}", axis.start, axis.step));
            }
        }
        text + &word_key(self.dtype)
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn flops(&self) -> u64 {
        0
    }

    fn dst_depth(&self) -> u32 {
        extent(self.target.shape().slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Src, self.source.shape(), Role::Input).of(self.dtype),
            OperandInfo::new(Operand::Dst, self.target.shape(), Role::Output).of(self.dtype),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands::get(operands, Operand::Src).unwrap_or_default())
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        loops::kernel(OP, self.nest_of_words(), &[Operand::Src], self.target)
    }

    fn halves(&self) -> bool {
        self.dtype == DType::F32
    }

    fn reach(&self, inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        if !self.fills() {
            return inputs(Operand::Src);
        }
        // Halves have an infinity too.
        let fill = if self.fill().is_infinite() { 0.0 } else { f64::from(self.fill()) };
        inputs(Operand::Src).hull(Reach::new(fill, fill))
    }

    fn nest(&self) -> Option<OpNest> {
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src]))
    }
}
