use super::*;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::gemm::Gemm;
use crate::ops::pointwise::Pointwise;
use crate::ops::{Inputs, conv2d, depthwise, gemm, pointwise};
use crate::shape::{Padding, Shape};

fn problems() -> Vec<Problem> {
    let (input, precision) = (Shape::nhwc(2, 7, 9, 6), Precision::F32);
    let mut problems = Vec::new();
    for activation in crate::ops::ACTIVATIONS {
        let options = Conv2d { stride: [2, 1], padding: Padding::Same, activation, ..Default::default() };
        let op = Conv2dOp::new(input, Shape::nhwc(5, 3, 2, 6), &options, true, true, precision);
        problems.push(Problem::Conv2d(op.expect("a convolution")));
        let options = Pointwise { activation };
        let op = PointwiseOp::new(input, Shape::nhwc(5, 1, 1, 6), &options, true, false, precision);
        problems.push(Problem::Pointwise(op.expect("a pointwise")));
        let options = Depthwise { padding: Padding::Same, activation, ..Default::default() };
        let op = DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 12), &options, true, true, precision);
        problems.push(Problem::Depthwise(op.expect("a depthwise")));
        let options =
            Gemm { alpha: Bits(-0.5), beta: Bits(2.0), ldc: Some(9), activation, ..Default::default() };
        let op = GemmOp::new(5, 7, 11, 2, &options, true, true, precision);
        problems.push(Problem::Gemm(op.expect("a product")));
    }
    problems
}

fn oracle(problem: &Problem, operands: &Operands) -> Reference {
    let get = |operand| operands.get(&operand).map(Vec::as_slice);
    let need = |operand| get(operand).expect("an operand");
    let (bias, slope, residual) = (get(Operand::Bias), get(Operand::Slope), get(Operand::Residual));
    if let Problem::Gemm(op) = problem {
        let (a, b) = (need(Operand::A), need(Operand::B));
        return gemm::oracle(op, a, b, get(Operand::C), bias, slope, residual);
    }
    let inputs = Inputs { src: need(Operand::Src), weights: need(Operand::Weights), bias, slope, residual };
    match problem {
        Problem::Conv2d(op) => conv2d::oracle(op, &inputs),
        Problem::Depthwise(op) => depthwise::oracle(op, &inputs),
        Problem::Pointwise(op) => pointwise::oracle(op, &inputs),
        _ => unreachable!("a product was answered above"),
    }
}

#[test]
fn the_oracles_answer_is_correct_and_a_changed_element_is_not() {
    for problem in problems() {
        let operands = problem.operands().expect("operands");
        let expectation = Expectation::new(&problem, &operands).expect("a result");
        let reference = oracle(&problem, &operands);
        let places = problem.places();
        let length = 1 + places.iter().map(|place| place[1]).max().expect("elements");
        let mut stored = vec![f32::NAN; length];
        for (value, [_, place]) in reference.value.iter().zip(&places) {
            stored[*place] = *value as f32;
        }
        assert_eq!(expectation.compare(&stored), Check::Correct, "{problem:?}");
        for wrong in [f32::NAN, f32::INFINITY, stored[places[5][1]] + 1e-3] {
            let right = std::mem::replace(&mut stored[places[5][1]], wrong);
            let Check::Wrong { detail } = expectation.compare(&stored) else {
                panic!("{problem:?}: {wrong}")
            };
            assert!(detail.contains("1 of"), "{detail}");
            stored[places[5][1]] = right;
        }
    }
}

#[test]
fn magnitudes_are_the_oracles() {
    for problem in problems() {
        let operands = problem.operands().expect("operands");
        let reference = oracle(&problem, &operands);
        let positive = operands.iter().map(|(operand, values)| (*operand, absolute(values))).collect();
        let magnitudes = problem.magnitudes().on_cpu(&positive).expect("magnitudes");
        for (wanted, [place, _]) in reference.magnitude.iter().zip(problem.places()) {
            assert!((f64::from(magnitudes[place]) / wanted - 1.0).abs() < 1e-5, "{problem:?}");
        }
        assert_eq!(problem.terms(), reference.terms, "{problem:?}");
    }
}

#[test]
fn a_thousand_half_terms_still_have_a_bound() {
    let op = PointwiseOp::new(
        Shape::nhwc(1, 2, 2, 2048),
        Shape::nhwc(4, 1, 1, 2048),
        &Pointwise::default(),
        true,
        false,
        Precision::F16,
    );
    let problem = Problem::Pointwise(op.expect("a pointwise"));
    let expectation = Expectation::new(&problem, &problem.operands().expect("operands")).expect("a result");
    assert!(expectation.elements.iter().all(|(_, _, tolerance)| tolerance.is_finite()));
}
