//! The CPU backend against the same table, and its errors.

use crate::cases;
use crate::problem::{compare, compare_other, expected, operands, output};
use diptych::DType;
use diptych::{Pointwise, Precision, Shape};
use diptych_emit::emit::Operand;
use diptych_kernels::ops::pointwise::PointwiseOp;
use diptych_kernels::ops::{Op, Operands, Purpose, Role};
use std::borrow::Cow;

/// A recognisable NaN.
const CANARY: f32 = f32::from_bits(0x7fc1_7fc1);

/// The destination, in the order of the oracle's answer.
pub(crate) fn run(op: &dyn Op, operands: &Operands<'_>) -> Result<Vec<f32>, String> {
    let (mut constants, mut inputs) = (Operands::new(), Vec::new());
    for info in op.operands() {
        match info.role {
            Role::Constant => drop(constants.insert(info.operand, operands[&info.operand].clone())),
            Role::Input => inputs.push((info.operand, &*operands[&info.operand])),
            Role::Output | Role::Update => {}
        }
    }
    let output = output(op);
    // Between and behind rows that are apart, everything must stay as it is.
    let behind = if output.pitch > output.shape.c { 2 * output.pitch } else { 0 };
    let mut dst = vec![CANARY; output.elements() + behind];
    if output.role == Role::Update {
        let held = operands[&output.operand].iter();
        // Between rows there is NaN; of integers any word may be one.
        let given = |value: &f32| output.dtype != DType::F32 || !value.is_nan();
        for (slot, value) in dst.iter_mut().zip(held).filter(|(_, value)| given(value)) {
            *slot = *value;
        }
    }
    let others = op.others();
    let results = op.operands().into_iter().filter(|info| others.iter().any(|(own, _)| *own == info.operand));
    let mut written: Vec<(Operand, Vec<f32>)> =
        results.map(|info| (info.operand, vec![CANARY; info.elements()])).collect();
    let mut outputs: Vec<(Operand, &mut [f32])> =
        written.iter_mut().map(|(operand, values)| (*operand, &mut values[..])).collect();
    outputs.push((output.operand, &mut dst));
    let ran = op.cpu(&constants).and_then(|kernel| kernel.run(&inputs, &mut outputs));
    ran.map_err(|error| error.to_string())?;
    for (operand, other) in &others {
        let found = written.iter().find(|(own, _)| own == operand).map(|(_, values)| &values[..]);
        let found = found.ok_or_else(|| format!("no {}", operand.name()))?;
        compare_other(&**other, &expected(&**other, operands), found)
            .map_err(|error| format!("{}: {error}", operand.name()))?;
    }
    let places = 0..output.shape.elements();
    let result = places.map(|index| std::mem::replace(&mut dst[output.place(index)], CANARY)).collect();
    match dst.iter().position(|value| value.to_bits() != CANARY.to_bits()) {
        None => Ok(result),
        Some(at) => Err(format!("element {at} between the rows became {}", dst[at])),
    }
}

#[test]
fn the_cpu_backend_agrees_with_the_oracles() {
    let mut failures = Vec::new();
    let mut runs = 0;
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        for case in cases::full_table() {
            let op = &*case.problem;
            // The backend computes in f32 whatever the op says.
            if op.precision() != Precision::F32 || op.obstacle(Purpose::Cpu).is_some() {
                continue;
            }
            runs += 1;
            let operands = operands(op);
            let result = pool.install(|| run(op, &operands));
            let outcome = result.and_then(|result| compare(op, &expected(op, &operands), &result));
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
    let kernel = |weights: &'static [f32], bias: Option<&'static [f32]>| {
        let constants = [(Operand::Weights, Some(weights)), (Operand::Bias, bias)].into_iter();
        let given = constants.filter_map(|(operand, values)| Some((operand, Cow::Borrowed(values?))));
        op.cpu(&given.collect())
    };
    let new = |weights, bias| kernel(weights, bias).map(drop);
    assert_eq!(text(new(&[0.0; 14], Some(&[0.0; 5]))), "pointwise weights: found 14 values, wanted 15");
    assert_eq!(text(new(&[0.0; 15], Some(&[0.0; 4]))), "pointwise bias: found 4 values, wanted 5");
    assert_eq!(text(new(&[0.0; 15], None)), "pointwise bias: found none, wanted 5 values");
    let kernel = kernel(&[0.0; 15], Some(&[0.0; 5])).expect("a kernel");
    let run = |src: &[f32], residual: Option<&[f32]>, len| {
        let mut inputs = vec![(Operand::Src, src)];
        inputs.extend(residual.map(|residual| (Operand::Residual, residual)));
        text(kernel.run(&inputs, &mut [(Operand::Dst, &mut vec![0.0; len])]))
    };
    assert_eq!(run(&[0.0; 11], None, 20), "pointwise src: found 11 values, wanted 12");
    assert_eq!(run(&[0.0; 12], None, 19), "pointwise dst: found 19 values, wanted 20");
    assert!(run(&[0.0; 12], Some(&[0.0; 20]), 20).contains("none, as the op says"));
    let nothing = kernel.run(&[], &mut [(Operand::Dst, &mut [0.0; 20])]);
    assert_eq!(text(nothing), "pointwise src: found none, wanted values");
}
