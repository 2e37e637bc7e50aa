//! What `transposed_conv2d` is, and its kernel.

use super::{OP, TransposedConv2dOp, cpu, direct, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Epilogue;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::expected;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for TransposedConv2dOp {
    const NAME: &'static str = OP;
    const MIXES_CHANNELS: bool = true;
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&direct::Direct]
    }

    /// The output's extents, and how much of the first window lies before it, say all about the padding.
    fn packing(&self) -> Option<String> {
        Some(self.0.packing())
    }

    fn problem_key(&self) -> String {
        let (x, y, [kh, kw], [sh, sw]) = (self.0.input, self.0.output, self.0.kernel, self.0.stride);
        let [top, left] = self.0.before;
        let mut key = format!(
            "n{} h{} w{} c{} o{} kernel{kh}x{kw} stride{sh}x{sw} to{}x{}",
            x.n, x.h, x.w, x.c, y.c, y.h, y.w
        );
        if [top, left] != [0, 0] {
            key.push_str(&format!(" before{top},{left}"));
        }
        key + &problem::epilogue(&self.0.epilogue)
    }

    fn precision(&self) -> Precision {
        self.0.precision
    }

    /// Two for each tap of each input pixel, as if all of them were inside of the output.
    fn flops(&self) -> u64 {
        let taps = self.0.kernel[0] * self.0.kernel[1] * self.0.output.c;
        2 * self.0.input.elements() as u64 * taps as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.0.output.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let [kernel_h, kernel_w] = self.0.kernel;
        self.0.operands(Shape::nhwc(self.0.output.c, kernel_h, kernel_w, self.0.input.c))
    }

    fn epilogue(&self) -> Epilogue {
        self.0.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        Reference::Sum(oracle::oracle(self, operands))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        expected::of_sum(self, &self.plain(), self.terms(), &self.0.epilogue, operands)
    }

    fn cpu(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::Transposed::new(self, constants, shelf)?))
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        halves::finished(&self.0.epilogue, Reach::ALL, inputs, constants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Op;
    use crate::ops::transposed_conv2d::TransposedConv2d;
    use crate::shape::Padding;

    #[test]
    fn the_key_says_where_the_output_begins() {
        let key = |padding| {
            let options = TransposedConv2d { stride: [2, 2], padding, ..Default::default() };
            let (input, weights) = (Shape::nhwc(1, 5, 7, 8), Shape::nhwc(4, 4, 4, 8));
            let op = TransposedConv2dOp::new(input, weights, &options, true, false, Precision::F32);
            Op::problem_key(&op.expect("windows"))
        };
        assert_eq!(key(Padding::Valid), "n1 h5 w7 c8 o4 kernel4x4 stride2x2 to12x16 bias");
        assert_eq!(key(Padding::Same), "n1 h5 w7 c8 o4 kernel4x4 stride2x2 to10x14 before1,1 bias");
    }
}
