//! The tuner on the devices of this machine.

use crate::machine::gpus;
use diptych::internals::tune::work_group::layouts;
use diptych::internals::tune::{Bench, Check, OpBench, Outcome, Progress, Search, TuneOptions, TuningRun};
use diptych::{
    Activation, Bits, Choice, Context, Conv2d, Depthwise, Gemm, Layout, Padding, Pointwise, Precision, Shape,
};
use diptych_device::device::Device;
use diptych_kernels::ops::Op;
use diptych_kernels::ops::conv2d::Conv2dOp;
use diptych_kernels::ops::convert::ConvertOp;
use diptych_kernels::ops::depthwise::DepthwiseOp;
use diptych_kernels::ops::gemm::GemmOp;
use diptych_kernels::ops::pointwise::PointwiseOp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn devices() -> Vec<Arc<dyn Device>> {
    gpus().iter().filter_map(Context::shared_device).collect()
}

fn pointwise(shape: [usize; 4], outputs: usize, precision: Precision) -> Arc<dyn Op> {
    let [n, h, w, c] = shape;
    let options = Pointwise { activation: Activation::Relu6 };
    let op = PointwiseOp::new(
        Shape::nhwc(n, h, w, c),
        Shape::nhwc(outputs, 1, 1, c),
        &options,
        true,
        false,
        precision,
    );
    Arc::new(op.expect("a pointwise"))
}

#[test]
fn a_run_in_a_chain_takes_time_and_leaves_the_result() {
    for device in devices() {
        let problem = pointwise([1, 9, 9, 64], 64, Precision::F32);
        let mut bench = OpBench::new(Arc::clone(&device), Arc::clone(&problem)).expect("a bench");
        let choice = bench.default_choice().expect("a choice");
        assert!(bench.chained(&choice, 4).is_err(), "it is not compiled");
        bench.prepare(&choice).expect("it compiles");
        // A busy machine may take longer for the short chain once, not always.
        let times: Vec<Duration> = (0..9).map(|_| bench.chained(&choice, 16).expect("a time")).collect();
        assert!(times.iter().any(|time| !time.is_zero()), "{times:?}");
        assert_eq!(bench.check(&choice).expect("a check"), Check::Correct);
    }
}

#[test]
fn a_small_op_is_tuned_from_end_to_end_within_its_budget() {
    for device in devices() {
        let problem = pointwise([1, 9, 9, 64], 64, Precision::F32);
        let mut bench = OpBench::new(Arc::clone(&device), Arc::clone(&problem)).expect("a bench");
        let budget = Duration::from_millis(1500);
        let options = TuneOptions { search: Search::Budget(budget), ..Default::default() };
        let mut tuning = TuningRun::new(&bench, options).expect("a default");
        let mut steps = 1;
        while tuning.step(&mut bench, Duration::from_millis(20)).expect("a step") != Progress::Finished {
            steps += 1;
        }
        let verdict = tuning.verdict().expect("a verdict");
        println!(
            "{}: {} ({}), {:?} instead of {:?}: {:.2} times faster; {} candidates in {steps} steps, {:.2?}",
            device.info(),
            verdict.choice.expect("a choice"),
            bench.clock().kind(),
            verdict.winner().and_then(|trial| trial.median),
            verdict.trials[0].median,
            verdict.speed_up,
            verdict.trials.len(),
            verdict.spent,
        );
        for trial in &verdict.trials {
            let fine =
                matches!(trial.outcome, Outcome::Winner | Outcome::Loser { .. } | Outcome::Rejected { .. });
            assert!(fine || verdict.cut_short, "{}: {}", trial.choice, trial.outcome);
            assert!(!matches!(trial.outcome, Outcome::Wrong { .. }), "{}: {}", trial.choice, trial.outcome);
        }
        problem.fits(&verdict.choice.expect("a choice"), &device.info().limits).expect("a usable choice");
    }
}

#[test]
fn what_takes_longer_than_the_limit_and_the_default_is_timed_out() {
    // The tuner is the same for both APIs, and OpenCL's driver for the CPU compiles faster.
    if let Some(device) = devices().pop() {
        let (input, weights) = (Shape::nhwc(1, 32, 32, 64), Shape::nhwc(1, 3, 3, 64));
        let op = DepthwiseOp::new(input, weights, &Depthwise::default(), true, false, Precision::F32);
        let problem: Arc<dyn Op> = Arc::new(op.expect("a depthwise"));
        for (limit, wanted) in [(Duration::ZERO, true), (Duration::from_secs(60), false)] {
            let mut bench = OpBench::new(Arc::clone(&device), Arc::clone(&problem)).expect("a bench");
            // Work-groups of one invocation leave most lanes of any device idle.
            let options = TuneOptions { fast: |_, _| vec![[1; 3]], limit, ..Default::default() };
            let mut tuning = TuningRun::new(&bench, options).expect("a default");
            while tuning.step(&mut bench, Duration::from_secs(1)).expect("a step") != Progress::Finished {}
            let verdict = tuning.verdict().expect("a verdict");
            let out: Vec<_> = verdict
                .trials
                .iter()
                .filter(|trial| matches!(trial.outcome, Outcome::TimedOut { .. }))
                .map(|trial| trial.choice)
                .collect();
            println!("{}: {} of {} timed out", device.info(), out.len(), verdict.trials.len());
            assert_eq!(!out.is_empty(), wanted, "{}: {:?}", device.info(), verdict.trials);
            let chosen = verdict.choice.expect("a choice");
            assert!(!out.contains(&verdict.default) && !out.contains(&chosen), "{}: {out:?}", device.info());
        }
    }
}

fn problems() -> Vec<Arc<dyn Op>> {
    let input = Shape::nhwc(1, 9, 11, 6);
    let conv = Conv2d {
        stride: [2, 2],
        padding: Padding::Same,
        activation: Activation::PRelu,
        ..Default::default()
    };
    let depth = Depthwise { padding: Padding::Same, ..Default::default() };
    let product = Gemm { alpha: Bits(0.5), beta: Bits(2.0), ldc: Some(36), ..Default::default() };
    let mut problems: Vec<Arc<dyn Op>> = vec![
        Arc::new(GemmOp::new(33, 32, 16, 2, &product, true, true, Precision::F32).expect("a product")),
        Arc::new(
            GemmOp::new(7, 31, 5, 1, &Gemm::default(), false, false, Precision::F32).expect("a product"),
        ),
    ];
    for precision in [Precision::F32, Precision::F16Storage] {
        problems.push(pointwise([1, 5, 7, 18], 13, precision));
        problems.push(Arc::new(
            Conv2dOp::new(input, Shape::nhwc(9, 3, 3, 6), &conv, true, true, precision)
                .expect("a convolution"),
        ));
        problems.push(Arc::new(
            DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 12), &depth, true, true, precision)
                .expect("a depthwise"),
        ));
        for (from, to) in [(Layout::Nhwc, Layout::C4), (Layout::C4, Layout::Nchw)] {
            problems.push(Arc::new(ConvertOp::new(input, from, to, precision).expect("a conversion")));
        }
        // Extents of ops that compute in several layouts, as their numbers have them.
        for (name, extents) in [
            ("elementwise", &[1, 5, 7, 12][..]),
            ("remap", &[1, 5, 7, 12]),
            ("resize", &[1, 5, 7, 12, 9, 4]),
            ("reduce", &[1, 9, 7, 12]),
            ("normalize", &[1, 9, 7, 12]),
            ("softmax", &[5, 70, 1]),
            ("softmax", &[1, 3000, 1]),
        ] {
            let entry = diptych_kernels::ops::all().iter().find(|entry| entry.name == name).expect("an op");
            problems.push((entry.numbers.op)(extents, None, precision).expect("valid extents"));
        }
    }
    problems
}

/// A tile of each kernel: the conformance tests compare every tile with the oracle, this is about the
/// tuner's way of compiling, checking and timing one. All tiles with `DIPTYCH_CONFORMANCE=full`.
fn candidates_are_checked_and_timed(device: &Arc<dyn Device>) {
    let every_tile = std::env::var("DIPTYCH_CONFORMANCE").is_ok_and(|asked| asked == "full");
    let limits = &device.info().limits;
    let (mut checked, mut failures) = (0, Vec::new());
    let each = problems().into_iter().flat_map(|problem| {
        let layouts = layouts(&*problem, limits);
        layouts.into_iter().map(move |layout| (Arc::clone(&problem), layout))
    });
    for (problem, layout) in each {
        let bench = OpBench::new(Arc::clone(device), Arc::clone(&problem)).expect("a bench");
        let mut bench = bench.in_layout(layout);
        let mut met = BTreeSet::new();
        for (variant, tile) in bench.space() {
            let choice = Choice::new(variant, tile, bench.table(variant, tile)).with_layout(layout);
            if problem.fits(&choice, limits).is_err() || !(met.insert(variant) || every_tile) {
                continue;
            }
            checked += 1;
            let outcome = bench.prepare(&choice).and_then(|()| bench.check(&choice));
            let time = bench.sample(&choice, 3);
            if !matches!(outcome, Ok(Check::Correct)) || time.as_ref().is_ok_and(Duration::is_zero) {
                failures.push(format!("{problem:?} [{choice}]: {outcome:?}, {time:?}"));
            }
            if let Err(error) = time {
                failures.push(format!("{problem:?} [{choice}]: {error}"));
            }
        }
        assert!(!met.is_empty(), "{}: no kernel for {problem:?}", device.info());
        bench.finish().expect("finished");
    }
    println!("{}: {checked} candidates", device.info());
    assert!(failures.is_empty(), "{}: {}", device.info(), failures.join("\n"));
}

mod every_kernel_is_checked_and_timed {
    use crate::machine::contexts;
    use diptych::{Backend, Context};

    fn on(backend: Backend) {
        let contexts = contexts(&[backend]);
        contexts
            .iter()
            .filter_map(Context::shared_device)
            .for_each(|device| super::candidates_are_checked_and_timed(&device));
    }

    #[test]
    fn wgpu() {
        on(Backend::Wgpu)
    }

    #[test]
    fn opencl() {
        on(Backend::OpenCl)
    }
}
