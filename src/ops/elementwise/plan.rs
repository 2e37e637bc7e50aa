//! What `elementwise` is, and its kernels.

use super::{ElementwiseOp, OP, cpu, flat, maps, oracle, rows};
use crate::cpu::CpuKernel;
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Operand, Scalar};
use crate::error::Result;
use crate::ops::Magnitudes;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::spec::{Params, extent};

/// Names of the numbers of a program as a kernel's scalars.
const NUMBERS: [&str; 16] = [
    "number0", "number1", "number2", "number3", "number4", "number5", "number6", "number7", "number8",
    "number9", "number10", "number11", "number12", "number13", "number14", "number15",
];

/// Names of each input's steps along the axes.
pub(super) const STEPS: [[&str; 6]; 6] = [
    ["step0_0", "step0_1", "step0_2", "step0_3", "step0_4", "step0_5"],
    ["step1_0", "step1_1", "step1_2", "step1_3", "step1_4", "step1_5"],
    ["step2_0", "step2_1", "step2_2", "step2_3", "step2_4", "step2_5"],
    ["step3_0", "step3_1", "step3_2", "step3_3", "step3_4", "step3_5"],
    ["step4_0", "step4_1", "step4_2", "step4_3", "step4_4", "step4_5"],
    ["step5_0", "step5_1", "step5_2", "step5_3", "step5_4", "step5_5"],
];

/// Invocations of a line: 65535 work-groups, the most along an axis in WebGPU, reach 2^31 elements.
pub(super) const LINE: usize = 65536;

/// The grid of `count` invocations in lines.
pub(super) fn lines(count: usize) -> [u32; 3] {
    [extent(count.min(LINE)), extent(count.div_ceil(LINE)), 1]
}

/// The program's numbers.
pub(super) fn numbers(op: &ElementwiseOp) -> Params {
    NUMBERS
        .into_iter()
        .zip(op.program.numbers())
        .map(|(name, number)| (name, Scalar::F32(number.0)))
        .collect()
}

/// Which of the inputs `is` holds for, a bit for each.
pub(super) fn bits(op: &ElementwiseOp, is: &dyn Fn(usize) -> bool) -> u32 {
    (0..op.inputs.len()).filter(|&input| is(input)).map(|input| 1 << input).sum()
}

impl Definition for ElementwiseOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&flat::Flat, &maps::Maps, &rows::Rows]
    }

    /// The formula, and the dimensions of the inputs.
    fn problem_key(&self) -> String {
        let dims: Vec<String> = self.inputs.iter().map(Dims::to_string).collect();
        format!("{} {}", self.program.key(), dims.join(" "))
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    /// One for each step and element.
    fn flops(&self) -> u64 {
        (self.program.steps().len() * self.output.elements()) as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.output.shape().slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let input = |(index, dims): (usize, &Dims)| {
            OperandInfo::new(Operand::Arg(index as u8), dims.shape(), Role::Input)
        };
        let output = OperandInfo::new(Operand::Dst, self.output.shape(), Role::Output);
        self.inputs.iter().enumerate().map(input).chain([output]).collect()
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::Blocks::new(self)))
    }

    fn halves(&self) -> bool {
        self.program.halves()
    }

    fn reach(&self, inputs: &Magnitudes<'_>, _constants: &Operands<'_>) -> f64 {
        self.program.reach(inputs)
    }

    fn with_precision(&self, precision: Precision) -> Self {
        ElementwiseOp { precision, ..self.clone() }
    }
}
