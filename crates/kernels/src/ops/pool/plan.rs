//! What `pool` is, and its kernel.

use super::{OP, PoolOp, Pooling, cpu, direct, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Epilogue, Operand};
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for PoolOp {
    const NAME: &'static str = OP;

    /// A window is short, as a depthwise convolution's.
    const SHARE: u64 = 4;
    const HALVES: bool = true;
    const CALLS_FUNCTION: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&direct::Direct]
    }

    fn problem_key(&self) -> String {
        let pooling = match self.pooling {
            Pooling::Max => "max",
            Pooling::Average => "average",
        };
        problem::convolution(&self.windows, pooling)
    }

    fn precision(&self) -> Precision {
        self.windows.precision
    }

    /// One for each element of each window.
    fn flops(&self) -> u64 {
        self.windows.flops() / 2
    }

    fn dst_depth(&self) -> u32 {
        extent(self.windows.output.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Src, self.windows.input, Role::Input),
            OperandInfo::new(Operand::Dst, self.windows.output, Role::Output),
        ]
    }

    fn maps(&self) -> Option<[Shape; 2]> {
        Some([self.windows.input, self.windows.output])
    }

    fn epilogue(&self) -> Epilogue {
        self.windows.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::PoolKernel::new(self)?))
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        halves::finished(&self.epilogue(), inputs(Operand::Src), inputs, constants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Activation;
    use crate::ops::Op;
    use crate::ops::pool::Pool;
    use crate::shape::Padding;

    #[test]
    fn the_key_tells_maximum_and_mean_apart() {
        let key = |pooling, padding| {
            let options = Pool { padding, activation: Activation::Relu, ..Pool::new(pooling, [3, 2]) };
            let op = PoolOp::new(Shape::nhwc(1, 7, 8, 5), &options, Precision::F32).expect("windows");
            Op::problem_key(&op)
        };
        assert_eq!(key(Pooling::Max, Padding::Valid), "n1 h7 w8 c5 max kernel3x2 stride3x2 relu");
        assert_eq!(
            key(Pooling::Average, Padding::Same),
            "n1 h7 w8 c5 average kernel3x2 stride3x2 pad1,1,0,0 relu"
        );
    }

    #[test]
    fn a_window_of_the_whole_map_is_a_reduction() {
        use crate::ops::operator::{Argument, Arguments, Lowered, Operator};
        let dims = Shape::nhwc(2, 9, 7, 5).into();
        let lowered = |options: Pool| {
            let inputs = [Argument { operand: Operand::Src, dims, dtype: crate::dtype::DType::F32 }];
            let dimensions = Default::default();
            let arguments = Arguments { inputs: &inputs, dimensions: &dimensions, narrow: false };
            match options.lower(arguments, Precision::F32).expect("windows") {
                Lowered::Op(op) => (op.name(), op.operands().pop().map(|output| output.shape)),
                other => panic!("{other:?}"),
            }
        };
        let whole = Pool::new(Pooling::Average, [9, 7]);
        let output = Some(Shape::nhwc(2, 1, 1, 5));
        assert_eq!(lowered(whole), ("reduce", output));
        assert_eq!(lowered(Pool { window: [11, 9], padding: Padding::Same, ..whole }), ("reduce", output));
        assert_eq!(lowered(Pool { window: [8, 7], ..whole }), ("pool", output));
        assert_eq!(lowered(Pool { activation: Activation::Relu, ..whole }), ("pool", output));
    }

    #[test]
    fn windows_without_an_element_and_slopes_are_refused() {
        let refused = |options: Pool| {
            PoolOp::new(Shape::nhwc(1, 4, 4, 3), &options, Precision::F32).expect_err("refused").to_string()
        };
        let plain = Pool::new(Pooling::Max, [2, 2]);
        let padded = |top, bottom| Padding::Explicit { top, bottom, left: 0, right: 0 };
        for padding in [padded(2, 0), padded(0, 3)] {
            let text = refused(Pool { padding, ..plain });
            assert!(text.contains("an element in every window"), "{text}");
        }
        let text = refused(Pool { activation: Activation::PRelu, ..plain });
        assert!(text.contains("slopes per channel"), "{text}");
    }
}
