//! The CPU backend against the same table, and its errors.

use crate::cases;
use crate::problem::{Operands, Problem};
use diptych::cpu::{
    Conv2dKernel, DepthwiseKernel, GemmKernel, PointwiseKernel, SeparableConstants, SeparableKernel,
};
use diptych::emit::Operand;
use diptych::ops::pointwise::PointwiseOp;
use diptych::{Pointwise, Precision, Shape};

/// A recognisable NaN.
const CANARY: u32 = 0x7fc1_7fc1;

/// The destination, in the order of the oracle's answer; `None` for an op that the CPU backend has
/// no kernel for.
pub(crate) fn run(problem: &Problem, operands: &Operands) -> Result<Option<Vec<f32>>, String> {
    let get = |operand| operands.get(&operand).map(Vec::as_slice);
    let need = |operand| get(operand).expect("an operand of the op");
    let (bias, slope, residual) = (get(Operand::Bias), get(Operand::Slope), get(Operand::Residual));
    let src = || need(Operand::Src);
    let mut dst = problem
        .convolution()
        .map(|conv| vec![f32::from_bits(CANARY); conv.output.elements()])
        .unwrap_or_default();
    let outcome = match problem {
        Problem::Convert(_) => return Ok(None),
        Problem::Conv2d(op) => Conv2dKernel::new(op, need(Operand::Weights), bias, slope)
            .and_then(|kernel| kernel.run(src(), residual, &mut dst)),
        Problem::Depthwise(op) => DepthwiseKernel::new(op, need(Operand::Weights), bias, slope)
            .and_then(|kernel| kernel.run(src(), residual, &mut dst)),
        Problem::Pointwise(op) => PointwiseKernel::new(op, need(Operand::Weights), bias, slope)
            .and_then(|kernel| kernel.run(src(), residual, &mut dst)),
        Problem::Separable(op) => {
            let (window, window_bias) = (need(Operand::Window), get(Operand::WindowBias));
            let weights = need(Operand::Weights);
            let constants = SeparableConstants { window, window_bias, weights, bias, slope };
            SeparableKernel::new(op, constants).and_then(|kernel| kernel.run(src(), residual, &mut dst))
        }
        Problem::Gemm(op) => {
            // Some rows beyond the end, which must stay as they are.
            let mut c = vec![f32::from_bits(CANARY); op.elements_c() + 2 * op.ldc];
            if op.beta.0 != 0.0 {
                for (slot, value) in c.iter_mut().zip(need(Operand::C)).filter(|(_, value)| !value.is_nan()) {
                    *slot = *value;
                }
            }
            GemmKernel::new(op, bias, slope)
                .and_then(|kernel| kernel.run(need(Operand::A), need(Operand::B), residual, &mut c))
                .map_err(|error| error.to_string())?;
            let logical = op.batch * op.m * op.n;
            dst = (0..logical).map(|index| std::mem::take(&mut c[problem.place(index)])).collect();
            for index in 0..logical {
                c[problem.place(index)] = f32::from_bits(CANARY);
            }
            if let Some(at) = c.iter().position(|value| value.to_bits() != CANARY) {
                return Err(format!("element {at} between the rows became {}", c[at]));
            }
            Ok(())
        }
    };
    outcome.map_err(|error| error.to_string())?;
    Ok(Some(dst))
}

#[test]
fn the_cpu_backend_agrees_with_the_oracles() {
    let mut failures = Vec::new();
    let mut runs = 0;
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        for case in cases::full_table() {
            // The backend computes in f32 whatever the op says.
            if case.problem.precision() != Precision::F32 {
                continue;
            }
            let operands = case.problem.operands();
            let result = pool.install(|| run(&case.problem, &operands));
            let outcome = result.and_then(|result| match result {
                Some(result) => {
                    runs += 1;
                    case.problem.compare(&operands, &case.problem.expected(&operands), &result)
                }
                None => Ok(()),
            });
            if let Err(failure) = outcome {
                failures.push(format!("{} on {threads} threads: {failure}", case.name));
            }
        }
    }
    println!("{runs} runs on the CPU");
    assert!(failures.is_empty(), "{} failing rows:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn wrong_lengths_are_errors_with_both_numbers() {
    let op = PointwiseOp::new(
        Shape::nhwc(1, 2, 2, 3),
        Shape::nhwc(5, 1, 1, 3),
        &Pointwise::default(),
        true,
        false,
        Precision::F32,
    )
    .expect("a valid op");
    let text = |result: diptych::Result<()>| result.expect_err("an error").to_string();
    let new =
        |weights: &[f32], bias: Option<&[f32]>| PointwiseKernel::new(&op, weights, bias, None).map(drop);
    assert_eq!(text(new(&[0.0; 14], Some(&[0.0; 5]))), "pointwise weights: found 14 values, wanted 15");
    assert_eq!(text(new(&[0.0; 15], Some(&[0.0; 4]))), "pointwise bias: found 4 values, wanted 5");
    assert_eq!(text(new(&[0.0; 15], None)), "pointwise bias: found none, wanted 5 values");
    let kernel = PointwiseKernel::new(&op, &[0.0; 15], Some(&[0.0; 5]), None).expect("a kernel");
    let run =
        |src: &[f32], residual: Option<&[f32]>, len| text(kernel.run(src, residual, &mut vec![0.0; len]));
    assert_eq!(run(&[0.0; 11], None, 20), "pointwise src: found 11 values, wanted 12");
    assert_eq!(run(&[0.0; 12], None, 19), "pointwise dst: found 19 values, wanted 20");
    assert!(run(&[0.0; 12], Some(&[0.0; 20]), 20).contains("none, as the op says"));
}
