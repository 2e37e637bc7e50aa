//! What `separable` is, and its kernel.

use super::{FIRST, OP, SECOND, SeparableOp, cpu, oracle, staged};
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::{Epilogue, Operand};
use crate::error::Result;
use crate::limits::{Family, Limits};
use crate::ops::Magnitudes;
use crate::ops::convolution::Convolution;
use crate::ops::definition::Definition;
use crate::ops::depthwise::DepthwiseOp;
use crate::ops::halves;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Renamed as _, Role};
use crate::ops::pointwise::PointwiseOp;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::ops::{expected, problem};
use crate::shape::Shape;

/// Input channels up to which it may be faster than its halves. Of MobileNetV1's blocks on an H200, timed
/// kernel by kernel, those of up to 128 channels took up to a third less than their halves, those of 256
/// about as long, those of 512 and more longer.
const MAX_CHANNELS_TUNED: usize = 128;

impl Definition for SeparableOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&staged::Staged]
    }

    fn problem_key(&self) -> String {
        let window = problem::convolution(&self.depthwise, &format!("o{}", self.pointwise.output.c));
        format!("{window} then{}", problem::epilogue(&self.pointwise.epilogue))
    }

    fn precision(&self) -> Precision {
        self.pointwise.precision
    }

    fn flops(&self) -> u64 {
        self.depthwise.flops() + self.pointwise.flops()
    }

    fn dst_depth(&self) -> u32 {
        extent(self.pointwise.output.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let (window, product) = (&self.depthwise, &self.pointwise);
        let [kernel_h, kernel_w] = window.kernel;
        let weights = Shape::nhwc(1, kernel_h, kernel_w, window.input.c);
        let mut operands = vec![
            OperandInfo::new(Operand::Src, window.input, Role::Input),
            OperandInfo::new(Operand::Window, weights, Role::Constant),
        ];
        let bias = OperandInfo::vector(Operand::WindowBias, window.output.c);
        operands.extend(window.epilogue.bias.then_some(bias));
        let weights = Shape::nhwc(product.output.c, 1, 1, product.input.c);
        operands.extend(product.operands(weights).into_iter().filter(|info| info.operand != Operand::Src));
        operands
    }

    fn epilogue(&self) -> Epilogue {
        self.pointwise.epilogue
    }

    fn between(&self) -> Option<Epilogue> {
        Some(self.depthwise.epilogue)
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        Reference::Sum(oracle::oracle(self, operands))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        let (first, problem) = (DepthwiseOp(self.depthwise), &self.pointwise);
        let between = Definition::expected(&first, &operands.renamed(FIRST))?;
        let off = |index| expected::tolerance(&between, None, index, problem.precision);
        let offs: Vec<f64> = (0..between.value().len()).map(off).collect();
        let mut second = operands.renamed(SECOND);
        // The second half reads the first one's result, and brings along by how far that may be off.
        let unbiased = PointwiseOp(Convolution { epilogue: Epilogue::default(), ..*problem });
        let carried = expected::carried(&unbiased, Operand::Src, &offs, &second)?;
        second.insert(Operand::Src, between.value().iter().map(|&value| value as f32).collect());
        let (op, plain) = (PointwiseOp(*problem), PointwiseOp(problem.plain()));
        expected::of_sum(&op, &plain, problem.terms(), &problem.epilogue, &second, carried)
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::SeparableKernel::new(self, constants)?))
    }

    fn halves(&self) -> bool {
        true
    }

    fn reach(&self, inputs: &Magnitudes<'_>, constants: &Operands<'_>) -> f64 {
        halves::finished(&self.pointwise.epilogue, f64::INFINITY, inputs, constants)
    }

    fn with_precision(&self, precision: Precision) -> Self {
        SeparableOp {
            depthwise: self.depthwise.with_precision(precision),
            pointwise: self.pointwise.with_precision(precision),
        }
    }

    fn worth_tuning(&self, limits: &Limits) -> bool {
        limits.family != Family::CpuDriver && self.depthwise.input.c <= MAX_CHANNELS_TUNED
    }

    /// Work-groups that share pixels sum the windows again: better few and large.
    fn share() -> u64 {
        2
    }

    fn mixes_channels() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Activation;
    use crate::limits::Limits;
    use crate::ops::depthwise::{Depthwise, DepthwiseOp};
    use crate::ops::plan::{Choice, Op};
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::{Padding, Shape};

    fn op(kernel: usize, stride: usize) -> SeparableOp {
        let window = Depthwise {
            stride: [stride; 2],
            padding: Padding::Same,
            activation: Activation::Relu6,
            ..Default::default()
        };
        let weights = Shape::nhwc(1, kernel, kernel, 30);
        let f32 = Precision::F32;
        let first = DepthwiseOp::new(Shape::nhwc(2, 9, 11, 30), weights, &window, true, false, f32);
        let first = first.expect("a depthwise");
        let weights = Shape::nhwc(17, 1, 1, 30);
        let second = PointwiseOp::new(first.0.output, weights, &Pointwise::default(), true, true, f32);
        SeparableOp::new(first, second.expect("a 1x1")).expect("a pair")
    }

    #[test]
    fn the_key_tells_the_two_epilogues_apart() {
        assert_eq!(
            Op::problem_key(&op(3, 2)),
            "n2 h9 w11 c30 o17 kernel3x3 stride2x2 pad1,1,1,1 bias relu6 then bias residual"
        );
    }

    #[test]
    fn the_grid_is_strips_by_slices_by_layers_of_each_image() {
        // 5 x 6 outputs in strips of three: two strips a column.
        assert_eq!(op(3, 2).grid("staged", [3, 2, 4]), [12, 3, 8]);
    }

    #[test]
    fn a_tile_that_local_memory_cannot_hold_is_refused_with_both_numbers() {
        let limits = Limits { local_memory: 8192, ..Limits::webgpu() };
        let choice = Choice::new("staged", [3, 2, 4], [8, 8, 4]);
        let text = op(3, 1).fits(&choice, &limits).expect_err("12 KiB in 8").to_string();
        assert!(text.contains("12288 bytes of local memory, the device has 8192"), "{text}");
        let shallow = Choice::new("staged", [1, 1, 4], [8, 8, 2]);
        let text = op(3, 1).fits(&shallow, &limits).expect_err("2 deep").to_string();
        assert!(text.contains("2 deep, 4 layers need 4"), "{text}");
    }

    #[test]
    fn windows_of_many_taps_have_no_kernel() {
        assert!(op(7, 1).space(&Limits::webgpu()).is_empty());
        assert!(!op(5, 1).space(&Limits::webgpu()).is_empty());
    }
}
