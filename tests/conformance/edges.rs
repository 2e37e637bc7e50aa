//! Operands that are not numbers or very large, and work-groups that do not fill a subgroup, on some devices: what is wrong.

use crate::cases::{Breadth, Case, full_table};
use crate::cpu;
use crate::gpu;
use crate::problem::{Problem, compare, compare_ends, expected, operands};
use diptych::{
    Activation, Bits, Conv2d, Depthwise, Gemm, Padding, Pointwise, Precision, Shape, nn::TransposedConv2d,
};
use diptych_device::device::Device;
use diptych_emit::emit::Operand;
use diptych_kernels::ops::Choice;
use diptych_kernels::ops::conv2d::Conv2dOp;
use diptych_kernels::ops::depthwise::DepthwiseOp;
use diptych_kernels::ops::gemm::GemmOp;
use diptych_kernels::ops::pointwise::PointwiseOp;
use diptych_kernels::ops::transposed_conv2d::TransposedConv2dOp;
use std::sync::Arc;

/// Groups of channels of which one is infinite.
pub(crate) async fn infinity_in_a_group(devices: &[Arc<dyn Device>]) -> Vec<String> {
    let mut failures = Vec::new();
    for device in devices {
        let limits = &device.info().limits;
        // Groups of 4, 3, 6 and 2 inputs and 8, 5, 8 and 6 outputs; the middle one of three is infinite.
        for (inputs, outputs) in [(4, 8), (3, 5), (6, 8), (4, 6), (2, 6)] {
            let options = Conv2d { groups: 3, padding: Padding::Same, ..Default::default() };
            let (input, weights) = (Shape::nhwc(1, 5, 4, 3 * inputs), Shape::nhwc(3 * outputs, 3, 3, inputs));
            let op = Conv2dOp::new(input, weights, &options, true, false, Precision::F32);
            let name = format!("3 groups of {inputs} and {outputs} channels");
            let problem: Problem = Arc::new(op.expect("a valid op"));
            let mut operands = operands(&*problem);
            let src = operands.get_mut(&Operand::Src).expect("an input").to_mut();
            for pixel in src.chunks_exact_mut(3 * inputs) {
                pixel[inputs..2 * inputs].fill(f32::INFINITY);
            }
            let expected = expected(&*problem, &operands);
            // Every tile with slices that are one group's alone, and with slices of two.
            let breadth = if inputs == 4 || inputs == 3 { Breadth::Tiles } else { Breadth::Variants };
            let case = Case { number: 0, name, problem: Arc::clone(&problem), breadth };
            let mut kernels = 0;
            for choice in case.choices(limits) {
                if problem.fits(&choice, limits).is_ok() {
                    kernels += 1;
                    let outcome =
                        gpu::check(&**device, &*problem, &operands, &expected, &choice, &|_| {}).await;
                    failures
                        .extend(outcome.err().map(|failure| format!("{} [{choice}]: {failure}", case.name)));
                }
            }
            let least = if breadth == Breadth::Tiles { 3 } else { 1 };
            assert!(kernels >= least, "{}: {kernels} kernels", case.name);
            let value = expected.value();
            let infinite = value.iter().filter(|value| !value.is_finite()).count();
            assert_eq!(3 * infinite, value.len(), "the oracle keeps the groups apart");
        }
    }
    failures
}

/// Zero times an infinity is no number; the lanes beyond the channels are zero all the same, in every kernel
/// that sums over channels.
pub(crate) async fn lanes_beyond_the_channels(devices: &[Arc<dyn Device>]) -> Vec<String> {
    let (input, output, precision) = (Shape::nhwc(1, 6, 5, 5), 6, Precision::F32);
    let window = |size| Shape::nhwc(output, size, size, input.c);
    let same = Conv2d { padding: Padding::Same, ..Default::default() };
    let conv2d = Conv2dOp::new(input, window(3), &same, true, false, precision).expect("a valid op");
    let plain = Pointwise::default();
    let pointwise = PointwiseOp::new(input, window(1), &plain, true, false, precision).expect("a valid op");
    let transposed = TransposedConv2d { stride: [2, 2], ..Default::default() };
    let transposed = TransposedConv2dOp::new(input, window(2), &transposed, true, false, precision);
    let problems: [Problem; 3] =
        [Arc::new(conv2d), Arc::new(pointwise), Arc::new(transposed.expect("a valid op"))];
    let mut failures = Vec::new();
    for device in devices {
        let limits = &device.info().limits;
        for problem in &problems {
            let mut operands = operands(&**problem);
            operands.get_mut(&Operand::Src).expect("an input").to_mut().fill(f32::INFINITY);
            let expected = expected(&**problem, &operands);
            assert!(expected.value().iter().all(|value| !value.is_finite()), "each sum has an infinite term");
            let name = problem.name().to_owned();
            let case = Case { number: 0, name, problem: Arc::clone(problem), breadth: Breadth::Variants };
            let mut kernels = 0;
            for choice in case.choices(limits) {
                if problem.fits(&choice, limits).is_ok() {
                    kernels += 1;
                    let outcome =
                        gpu::check(&**device, &**problem, &operands, &expected, &choice, &|_| {}).await;
                    failures
                        .extend(outcome.err().map(|failure| format!("{} [{choice}]: {failure}", case.name)));
                }
            }
            assert!(kernels > 0, "{}: no kernel on {}", case.name, device.info());
        }
    }
    failures
}

/// What is no number stays none, and what is large does not overflow on its way, on every backend.
pub(crate) async fn activations(devices: &[Arc<dyn Device>]) -> Vec<String> {
    let inf = f32::INFINITY;
    let edges = [
        f32::NAN,
        inf,
        -inf,
        f32::MAX,
        -f32::MAX,
        1e30,
        12.0,
        -12.0,
        7.0,
        -3.0,
        0.0,
        -1e-3,
        1e-20,
        -1e4,
        0.5,
    ];
    let mut failures = Vec::new();
    for activation in [
        Activation::None,
        Activation::Relu,
        Activation::Relu6,
        Activation::LeakyRelu(Bits(0.125)),
        Activation::PRelu,
        Activation::Sigmoid,
        Activation::Tanh,
        Activation::HardSwish,
        Activation::HardSigmoid,
        Activation::Silu,
        Activation::Gelu,
        Activation::GeluTanh,
    ] {
        // Windows of one pixel: each value is alone in its sum.
        let (input, weights) = (Shape::nhwc(1, 3, 5, 4), Shape::nhwc(1, 1, 1, 4));
        let options = Depthwise { activation, ..Default::default() };
        let op = DepthwiseOp::new(input, weights, &options, false, false, Precision::F32);
        let problem: Problem = Arc::new(op.expect("a valid op"));
        let mut operands = operands(&*problem);
        operands.insert(Operand::Weights, vec![1.0; 4].into());
        operands.insert(Operand::Src, edges.iter().copied().cycle().take(input.elements()).collect());
        let expected = expected(&*problem, &operands);
        let case = Case { number: 0, name: format!("{activation:?}"), problem, breadth: Breadth::Variants };
        for device in devices {
            let limits = &device.info().limits;
            for choice in case.choices(limits) {
                if case.problem.fits(&choice, limits).is_ok() {
                    let (device, problem) = (&**device, &*case.problem);
                    let by = &compare_ends;
                    let outcome =
                        gpu::check_by(by, device, problem, &operands, &expected, &choice, &|_| {}).await;
                    let name = format!("{} [{choice}] on {}", case.name, device.info());
                    failures.extend(outcome.err().map(|failure| format!("{name}: {failure}")));
                }
            }
        }
        let result = cpu::run(&*case.problem, &operands).expect("a run");
        let outcome = compare_ends(&*case.problem, &expected, &result);
        failures.extend(outcome.err().map(|failure| format!("{} on the CPU: {failure}", case.name)));
    }
    failures
}

/// Means of 2^18 and 3000 times the deviation: a kernel that sums the values as they are loses the deviation's bits.
pub(crate) async fn large_means(devices: &[Arc<dyn Device>]) -> Vec<String> {
    let mut failures = Vec::new();
    let table = full_table();
    let normalising = |case: &&Case| match case.problem.name() {
        "normalize" => true,
        "mlp" => case.problem.problem_key().contains("normalized"),
        _ => false,
    };
    let of_f32 = table.iter().filter(|case| case.problem.precision() == Precision::F32).filter(normalising);
    for case in of_f32 {
        let problem = &*case.problem;
        let (number, name) = (case.number, case.name.clone());
        let case = Case { number, name, problem: Arc::clone(&case.problem), breadth: Breadth::Variants };
        let mut operands = operands(problem);
        let mean = if case.number.is_multiple_of(2) { 262_144.0 } else { -3000.0 };
        let src = operands.get_mut(&Operand::Src).expect("an input").to_mut();
        src.iter_mut().for_each(|x| *x += mean);
        let expected = expected(problem, &operands);
        for device in devices {
            let limits = &device.info().limits;
            for choice in
                case.choices(limits).into_iter().filter(|choice| problem.fits(choice, limits).is_ok())
            {
                let outcome = gpu::check(&**device, problem, &operands, &expected, &choice, &|_| {}).await;
                let name = format!("{} {} [{choice}] on {}", problem.name(), case.name, device.info());
                failures.extend(outcome.err().map(|failure| format!("{name}: {failure}")));
            }
        }
        let outcome = compare(problem, &expected, &cpu::run(problem, &operands).expect("a run"));
        let name = format!("{} {} on the CPU", problem.name(), case.name);
        failures.extend(outcome.err().map(|failure| format!("{name}: {failure}")));
    }
    failures
}

/// Subgroups of which lanes are missing, as the last one of these work-groups is wherever subgroups are larger.
pub(crate) async fn missing_lanes(devices: &[Arc<dyn Device>]) -> Vec<String> {
    let mut failures = Vec::new();
    for device in devices {
        let limits = &device.info().limits;
        for ([batch, m, n, k], precision) in
            [([1, 9, 72, 68], Precision::F32), ([2, 5, 24, 132], Precision::F16Storage)]
        {
            let op = GemmOp::new(m, n, k, batch, &Gemm::default(), true, true, precision);
            let problem: Problem = Arc::new(op.expect("a valid op"));
            let operands = operands(&*problem);
            let expected = expected(&*problem, &operands);
            for invocations in [1, 3, 12, 21, 33, 67] {
                let choice = Choice::new("subgroup", [1, 4, 1], [invocations, 1, 1]);
                if limits.subgroup.is_some() {
                    let outcome =
                        gpu::check(&**device, &*problem, &operands, &expected, &choice, &|_| {}).await;
                    failures.extend(outcome.err().map(|failure| format!("{precision} {choice}: {failure}")));
                } else {
                    let error = problem.fits(&choice, limits).expect_err("no subgroups").to_string();
                    assert!(error.contains("does not offer subgroups"), "{error}");
                }
            }
            // Three lanes are never a whole subgroup: a mistake in what they do then must be seen.
            let few = Choice::new("subgroup", [1, 4, 1], [3, 1, 1]);
            if limits.subgroup.is_some() {
                let outcome = gpu::check(&**device, &*problem, &operands, &expected, &few, &|source| {
                    let (right, wrong) = ("term4 < params.k4", "term4 + 1u < params.k4");
                    assert!(source.text.contains(right), "{}", source.text);
                    source.text = source.text.replace(right, wrong);
                })
                .await;
                let failure = outcome.expect_err("a term is dropped");
                assert!(failure.contains("element"), "{failure}");
            }
            let square = Choice::new("subgroup", [1, 4, 1], [8, 4, 1]);
            assert!(problem.fits(&square, limits).is_err(), "a row of invocations is wanted");
        }
    }
    failures
}
