//! What the kernels of `elementwise` are given.

use super::{ElementwiseOp, Program};
use crate::emit::Scalar;
use crate::ops::spec::Params;

/// Names of the numbers of a program as a kernel's scalars.
const NUMBERS: [&str; 16] = [
    "number0", "number1", "number2", "number3", "number4", "number5", "number6", "number7", "number8",
    "number9", "number10", "number11", "number12", "number13", "number14", "number15",
];

/// Names of each input's steps along the axes.
pub(in crate::ops) const STEPS: [[&str; 6]; 6] = [
    ["step0_0", "step0_1", "step0_2", "step0_3", "step0_4", "step0_5"],
    ["step1_0", "step1_1", "step1_2", "step1_3", "step1_4", "step1_5"],
    ["step2_0", "step2_1", "step2_2", "step2_3", "step2_4", "step2_5"],
    ["step3_0", "step3_1", "step3_2", "step3_3", "step3_4", "step3_5"],
    ["step4_0", "step4_1", "step4_2", "step4_3", "step4_4", "step4_5"],
    ["step5_0", "step5_1", "step5_2", "step5_3", "step5_4", "step5_5"],
];

/// The program's numbers.
pub(in crate::ops) fn numbers(program: &Program) -> Params {
    NUMBERS.into_iter().zip(program.numbers()).map(|(name, number)| (name, Scalar::F32(number.0))).collect()
}

/// Which of the inputs `is` holds for, a bit for each.
pub(super) fn bits(op: &ElementwiseOp, is: &dyn Fn(usize) -> bool) -> u32 {
    (0..op.inputs.len()).filter(|&input| is(input)).map(|input| 1 << input).sum()
}
