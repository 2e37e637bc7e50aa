use super::*;
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::limits::Limits;
use crate::ops::conv2d::{Conv2d, Conv2dOp};
use crate::ops::depthwise::{Depthwise, DepthwiseOp};
use crate::ops::dynamic_conv2d::{DynamicConv2d, DynamicConv2dOp};
use crate::ops::dynamic_quantize::{DynamicQuantize, DynamicQuantizeOp};
use crate::ops::gemm::{Gemm, GemmOp};
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::ops::{Answer, Reference};
use crate::shape::{Padding, Shape};

fn problems() -> Vec<Box<dyn Op>> {
    let (input, precision) = (Shape::nhwc(2, 7, 9, 6), Precision::F32);
    let mut problems: Vec<Box<dyn Op>> = Vec::new();
    for activation in crate::ops::ACTIVATIONS {
        let options = Conv2d { stride: [2, 1], padding: Padding::Same, activation, ..Default::default() };
        let op = Conv2dOp::new(input, Shape::nhwc(5, 3, 2, 6), &options, true, true, precision);
        problems.push(Box::new(op.expect("a convolution")));
        let options = Pointwise { activation };
        let op = PointwiseOp::new(input, Shape::nhwc(5, 1, 1, 6), &options, true, false, precision);
        problems.push(Box::new(op.expect("a pointwise")));
        let options = Depthwise { padding: Padding::Same, activation, ..Default::default() };
        let op = DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 12), &options, true, true, precision);
        problems.push(Box::new(op.expect("a depthwise")));
        let options =
            Gemm { alpha: Bits(-0.5), beta: Bits(2.0), ldc: Some(9), activation, ..Default::default() };
        let op = GemmOp::new(5, 7, 11, 2, &options, true, true, precision);
        problems.push(Box::new(op.expect("a product")));
    }
    assert!(problems.len() > 35, "{}", problems.len());
    problems
}

/// The form of the output.
fn form(op: &dyn Op) -> Form {
    let kernels = op.kernels();
    let (kernel, tile) = kernels.space(&Limits::webgpu())[0];
    let choice = kernel.choice(tile, [1; 3]);
    kernel.form(output(op).expect("an output").operand, &choice).expect("stored")
}

#[test]
fn the_oracles_answer_is_correct_and_a_changed_element_is_not() {
    for op in problems() {
        let operands = operands(&*op, 0);
        let expectation = Expectation::new(&*op, &operands).expect("a result");
        let (output, form) = (output(&*op).expect("an output"), form(&*op));
        let reference = op.reference(&operands, Answer::Exact).expect("a reference");
        let place = |index| output.stored_place(form, index);
        let mut stored = vec![f32::NAN; output.stored_elements(form)];
        for (index, value) in reference.value().iter().enumerate() {
            stored[place(index)] = *value as f32;
        }
        assert_eq!(expectation.compare(form, &stored), Check::Correct, "{op:?}");
        for wrong in [f32::NAN, f32::INFINITY, stored[place(5)] + 1e-3] {
            let right = std::mem::replace(&mut stored[place(5)], wrong);
            let Check::Wrong { detail } = expectation.compare(form, &stored) else {
                panic!("{op:?}: {wrong}")
            };
            assert!(detail.contains("1 of"), "{detail}");
            stored[place(5)] = right;
        }
    }
}

#[test]
fn what_is_expected_quickly_has_the_oracles_bound() {
    for op in problems() {
        let operands = operands(&*op, 0);
        let pair =
            [Answer::Exact, Answer::Quick].map(|answer| op.reference(&operands, answer).expect("an answer"));
        let [Reference::Sum(exact), Reference::Sum(quick)] = pair else { panic!("{op:?} is no sum") };
        for (wanted, found) in exact.magnitude.iter().zip(&quick.magnitude) {
            assert!((1.0..1.0025).contains(&(found / wanted)), "{op:?}: {found} for {wanted}");
        }
        // By the CPU's own error, more is carried than by a kernel that is compared with the oracle.
        for (wanted, found) in exact.carried.iter().zip(&quick.carried) {
            assert!((1.0..2.5).contains(&(found / wanted)), "{op:?}: {found} for {wanted}");
        }
        let parts = |sum: &crate::ops::Sum| (sum.terms, sum.activation, sum.slope, sum.residual.clone());
        assert_eq!(parts(&exact), parts(&quick), "{op:?}");
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
    let op = op.expect("a pointwise");
    let expectation = Expectation::new(&op, &operands(&op, 0)).expect("a result");
    assert!(expectation.elements.iter().all(|(_, tolerance)| tolerance.is_finite()));
}

#[test]
fn a_function_without_a_value_wants_nan_and_an_infinite_one_infinity() {
    let same = |found, wanted| of_bound(found, wanted, 1e-3) <= 1.0;
    let [nan, infinity] = [f64::NAN, f64::INFINITY];
    assert!(same(nan, nan) && same(infinity, infinity) && same(1.0, 1.0005));
    assert!(!same(nan, 1.0) && !same(1.0, nan) && !same(infinity, 1.0) && !same(-infinity, infinity));
    assert!(!same(1.0, 1.002) && of_bound(1.0, 1.002, 1e-3) > 1.9);
    assert_eq!((of_bound(1.0, 1.0, 0.0), of_bound(1.0, 2.0, 0.0)), (0.0, f64::INFINITY));
    assert_eq!(of_bound(nan, 1.0, infinity), infinity, "a bound without end takes numbers alone");
}

#[test]
fn ranges_are_what_a_run_finds() {
    let dims = |extents: &[usize]| Dims::new(extents).expect("small");
    let shape = |n, c| Shape::nhwc(n, 3, 3, c);
    let ranges = |op: &dyn Op| {
        let found = operands(op, 1);
        let (_, values) = found.iter().find(|(operand, _)| **operand == Operand::Arg(0)).expect("ranges");
        values.to_vec()
    };
    let mut all = Vec::new();
    for divides in [false, true] {
        let op = DynamicQuantizeOp::new(dims(&[40, 6]), dims(&[40, 3]), DynamicQuantize { divides });
        all.push((ranges(&op.expect("bytes")), divides));
    }
    let op = DynamicConv2dOp::new(shape(40, 2), shape(8, 2), dims(&[40, 3]), &DynamicConv2d::new());
    all.push((ranges(&op.expect("a convolution")), false));
    for (ranges, divides) in all {
        assert_eq!(ranges.len(), 120);
        for range in ranges.chunks(3) {
            let [scale, zero, factor] = *range else { panic!("{range:?}") };
            assert!(scale > 0.0 && factor == 1.0 / scale && zero == zero.round(), "{range:?}");
            assert!((0.0..=255.0).contains(&zero) && (!divides || scale.log2().fract() == 0.0), "{range:?}");
        }
    }
}
