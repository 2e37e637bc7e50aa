//! More images than a device launches work-groups along an axis, and longer sums than a driver's loops have turns.

use crate::cases::{Breadth, Case};
use crate::gpu;
use crate::moves::lowered;
use crate::problem::{Problem, expected, operands};
use diptych::{
    Bits, Conv2d, Depthwise, Dims, Gemm, Padding, Pointwise, Pool, Pooling, Precision, Reduce, Reduction,
    Shape, Softmax,
    nn::{ArgReduce, CumSum, Normalize, TransposedConv2d},
};
use diptych_device::device::Device;
use diptych_emit::emit::Operand;
use diptych_kernels::ops::arg::ArgOp;
use diptych_kernels::ops::conv2d::Conv2dOp;
use diptych_kernels::ops::depthwise::DepthwiseOp;
use diptych_kernels::ops::gate::GateOp;
use diptych_kernels::ops::gemm::GemmOp;
use diptych_kernels::ops::normalize::NormalizeOp;
use diptych_kernels::ops::pointwise::PointwiseOp;
use diptych_kernels::ops::pool::PoolOp;
use diptych_kernels::ops::reduce::ReduceOp;
use diptych_kernels::ops::softmax::SoftmaxOp;
use diptych_kernels::ops::transposed_conv2d::TransposedConv2dOp;
use diptych_kernels::ops::{Choice, Launch};
use std::sync::Arc;

const F32: Precision = Precision::F32;

/// Kernels of an op whose loops are tried, unless all are.
const FEW: usize = 3;

fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("small")
}

/// More images than WebGPU launches work-groups along an axis.
const MANY: usize = 66_000;

/// Each op with an axis of its grid along which more work-groups are than the device launches: all choices where `full` asks for
/// it. Otherwise one of each kernel, planned for a device that launches few, and one op as it is.
pub(crate) async fn many_images(devices: &[Arc<dyn Device>], full: bool) -> Vec<String> {
    let pool = PoolOp::new(Shape::nhwc(MANY, 1, 2, 4), &Pool::new(Pooling::Max, [1, 2]), F32);
    let pool: Problem = Arc::new(pool.expect("a valid op"));
    let mut failures = every_kernel(devices, &pool, full, None, &mut is_folded).await;
    let (images, most) = if full { (MANY, None) } else { (66, Some(60)) };
    let input = Shape::nhwc(images, 1, 2, 4);
    let gemm = GemmOp::new(2, 4, 4, images, &Gemm::default(), true, false, F32);
    let pointwise = PointwiseOp::new(input, Shape::nhwc(4, 1, 1, 4), &Pointwise::default(), true, false, F32);
    let window = Shape::nhwc(4, 1, 2, 4);
    let same = Conv2d { padding: Padding::Same, ..Conv2d::default() };
    let conv2d = Conv2dOp::new(input, window, &same, true, false, F32);
    let transposed = TransposedConv2d { stride: [1, 2], ..TransposedConv2d::default() };
    let transposed = TransposedConv2dOp::new(input, window, &transposed, true, false, F32);
    let depthwise = DepthwiseOp::new(input, Shape::nhwc(1, 1, 2, 4), &Depthwise::default(), true, false, F32);
    let problems: [Problem; 5] = [
        Arc::new(gemm.expect("a valid op")),
        Arc::new(pointwise.expect("a valid op")),
        Arc::new(conv2d.expect("a valid op")),
        Arc::new(transposed.expect("a valid op")),
        Arc::new(depthwise.expect("a valid op")),
    ];
    for problem in problems {
        failures.extend(every_kernel(devices, &problem, full, most, &mut is_folded).await);
    }
    failures.extend(many_groups(devices, images, full, most).await);
    failures
}

/// Whether it is launched in lines.
fn is_folded(launched: &Launch) -> bool {
    launched.spec.folded.is_some()
}

/// Checks ops with a work-group for each result that have more of these than a device launches along an axis: they are
/// launched in lines or, where the device has no such limit, whole.
async fn many_groups(
    devices: &[Arc<dyn Device>],
    images: usize,
    full: bool,
    most: Option<u32>,
) -> Vec<String> {
    let map = Shape::nhwc(images, 1, 2, 4);
    let factor = |bias| {
        let weights = Shape::nhwc(4, 1, 1, 4);
        let pixel = Shape::nhwc(images, 1, 1, 4);
        PointwiseOp::new(pixel, weights, &Pointwise::default(), bias, false, F32).expect("a valid op")
    };
    let gate = GateOp::new(Some(factor(true)), factor(false), map, false);
    let mean = Reduce { reduction: Reduction::Mean, axes: vec![1, 2], keep_dims: true };
    let normalize = Normalize { axes: vec![1, 2], epsilon: Bits(1e-3), ..Normalize::default() };
    let extents = dims(&[images, 1, 2, 4]);
    let problems: [Problem; 3] = [
        Arc::new(gate.expect("a valid op")),
        // The fewest that a work-group joins.
        Arc::new(ReduceOp::new(dims(&[images, 1, 32, 1]), &mean, F32).expect("a valid op")),
        Arc::new(NormalizeOp::new(extents, &normalize, false, false, F32).expect("a valid op")),
    ];
    let mut failures = Vec::new();
    for (problem, device) in
        problems.iter().flat_map(|problem| devices.iter().map(move |device| (problem, device)))
    {
        let mut tried = 0;
        let is_large = &mut |launched: &Launch| {
            let beyond = launched.groups().iter().any(|&groups| groups > most.unwrap_or(65_535));
            let is_large = launched.spec.folded.is_some() || beyond;
            tried += usize::from(is_large);
            is_large
        };
        failures.extend(every_kernel(std::slice::from_ref(device), problem, full, most, is_large).await);
        assert!(tried > 0, "{}: no kernel on {}", problem.problem_key(), device.info());
    }
    failures
}

/// A kernel of each family with a sum of more than 65,535 turns: on devices with such a limit those that loop so often,
/// on the others all, where `full` asks for it.
pub(crate) async fn long_sums(devices: &[Arc<dyn Device>], full: bool) -> Vec<String> {
    let is_limited = |device: &Arc<dyn Device>| device.info().limits.max_turns.is_some();
    let devices: Vec<_> = devices.iter().filter(|device| full || is_limited(device)).cloned().collect();
    // No whole number of vec4s, of which a loop takes one a turn.
    let terms = 66_001;
    let cumsum = CumSum { axis: 0, exclusive: false, reverse: false };
    let reduce = |extents: &[usize], axes: &[isize], reduction| {
        let options = Reduce { reduction, axes: axes.to_vec(), keep_dims: true };
        ReduceOp::new(dims(extents), &options, F32).expect("a valid op")
    };
    let softmax = SoftmaxOp::new(dims(&[1, terms]), &Softmax::default(), F32);
    let arg = ArgReduce { largest: true, axis: 1, keep_dims: false };
    let odd = GemmOp::new(1, 3, terms + 1, 1, &Gemm::default(), false, false, F32);
    let wide = GemmOp::new(1, 4, 4 * terms, 1, &Gemm::default(), false, false, F32);
    let pixel = Shape::nhwc(1, 1, 1, 4 * terms);
    let pointwise =
        PointwiseOp::new(pixel, Shape::nhwc(4, 1, 1, 4 * terms), &Pointwise::default(), false, false, F32);
    let square = Shape::nhwc(1, 3, 3, 30_000);
    let conv2d = Conv2dOp::new(square, Shape::nhwc(4, 3, 3, 30_000), &Conv2d::default(), false, false, F32);
    let map = Shape::nhwc(1, 260, 260, 4);
    let pool = PoolOp::new(map, &Pool::new(Pooling::Average, [260, 260]), F32);
    let problems: [Problem; 10] = [
        lowered(&cumsum, &[(Operand::Src, &[terms, 2])], F32),
        Arc::new(reduce(&[1, terms], &[1], Reduction::Sum)),
        Arc::new(reduce(&[1, 257, 257, 4], &[1, 2], Reduction::Max)),
        Arc::new(softmax.expect("a valid op")),
        Arc::new(ArgOp::new(dims(&[1, terms]), &arg).expect("a valid op")),
        Arc::new(odd.expect("a valid op")),
        Arc::new(wide.expect("a valid op")),
        Arc::new(pointwise.expect("a valid op")),
        Arc::new(conv2d.expect("a valid op")),
        Arc::new(pool.expect("a valid op")),
    ];
    let limited = devices.iter().any(is_limited);
    let (mut failures, mut copied) = (Vec::new(), 0);
    for problem in problems {
        let before = copied;
        let is_long = &mut |launched: &Launch| {
            // Kernels of one op are long to compile, and their loops are of one kind.
            let is_wanted = launched.spec.copies.is_some() && (full || copied - before < FEW);
            copied += usize::from(is_wanted);
            full || is_wanted
        };
        failures.extend(every_kernel(&devices, &problem, true, None, is_long).await);
        println!("{}: {} kernels with copies", problem.problem_key(), copied - before);
    }
    assert!(!limited || copied >= 8, "{copied} kernels with copies of their loops");
    failures
}

/// The kernels of `problem` whose launch is `wanted`, of which each API that has such a limit must have one: `all` choices
/// of each, or the one of the fewest invocations. `most`: planned for a device that launches no more work-groups along an axis.
async fn every_kernel(
    devices: &[Arc<dyn Device>],
    problem: &Problem,
    all: bool,
    most: Option<u32>,
    wanted: &mut dyn FnMut(&Launch) -> bool,
) -> Vec<String> {
    let operands = operands(&**problem);
    let expected = expected(&**problem, &operands);
    let name = format!("{} {}", problem.name(), problem.problem_key());
    let case = Case { number: 0, name: name.clone(), problem: Arc::clone(problem), breadth: Breadth::Tiles };
    let mut failures = Vec::new();
    for device in devices {
        let mut limits = device.info().limits.clone();
        if let Some(most) = most {
            limits.max_groups = [most; 3];
        }
        let limits = &limits;
        let mut choices: Vec<(Choice, u64)> = Vec::new();
        for choice in case.choices(limits) {
            let Ok(launched) = problem.plan(&choice, limits) else { continue };
            if !wanted(&launched) {
                continue;
            }
            // Drivers that run on the CPU take the longer the more invocations there are, idle ones too.
            let counts = launched.groups().into_iter().chain(choice.work_group);
            let invocations = counts.map(u64::from).product();
            match choices.iter_mut().find(|(other, _)| !all && other.variant == choice.variant) {
                Some(other) if other.1 <= invocations => {}
                Some(other) => *other = (choice, invocations),
                None => choices.push((choice, invocations)),
            }
        }
        for (choice, _) in &choices {
            let outcome =
                gpu::check_within(&**device, limits, &**problem, &operands, &expected, choice).await;
            failures.extend(
                outcome.err().map(|failure| format!("{name} [{choice}] on {}: {failure}", device.info())),
            );
        }
        assert!(
            !choices.is_empty() || limits.max_groups == [u32::MAX; 3],
            "{name}: no kernel on {}",
            device.info()
        );
    }
    failures
}
