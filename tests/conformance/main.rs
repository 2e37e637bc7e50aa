//! Every backend against the naive f64 oracles.
//!
//! `cases` is the table of problems, `problem` gives each its operands and its expected result,
//! `gpu` runs one kernel between canaries, `planted` proves that a wrong kernel is caught, `cpu`
//! holds the CPU backend against the same table.
//!
//! | variable | effect |
//! |---|---|
//! | `DIPTYCH_REQUIRE_DEVICES=1` | a missing device fails instead of being skipped |
//! | `DIPTYCH_CONFORMANCE=small` | a fifth of the table, and what it takes to meet every kernel in every precision |
//! | `DIPTYCH_CONFORMANCE=gemm` | the rows of one op |
//! | `DIPTYCH_CONFORMANCE=gemm_wgmma` | of these, and of the planted mistakes, the kernels whose name begins so |

mod cases;
mod cpu;
mod gpu;
mod planted;
mod problem;

use cases::{Breadth, Case};
use diptych::device::Device;
use diptych::emit::Operand;
use diptych::ops::Choice;
use diptych::ops::conv2d::Conv2dOp;
use diptych::ops::depthwise::DepthwiseOp;
use diptych::ops::gemm::GemmOp;
use diptych::{Activation, Conv2d, Depthwise, Gemm, Layout, Padding, Precision, Shape};
use problem::{Problem, compare, expected, operands};
use std::sync::Arc;
use std::time::Instant;

/// The devices of this machine; a missing one is printed, or fails if devices are required.
fn devices() -> Vec<Box<dyn Device>> {
    let opened: Vec<(&str, diptych::Result<Box<dyn Device>>)> = vec![
        #[cfg(feature = "wgpu")]
        ("wgpu", diptych::device::wgpu::WgpuDevice::open(None).map(|device| Box::new(device) as _)),
        #[cfg(feature = "opencl")]
        ("OpenCL", diptych::device::opencl::OpenClDevice::open(None).map(|device| Box::new(device) as _)),
    ];
    let required = std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1");
    let mut devices = Vec::new();
    for (api, result) in opened {
        match result {
            Ok(device) => devices.push(device),
            Err(error) if required => panic!("{api} is required: {error}"),
            Err(error) => println!("skipping {api}: {error}"),
        }
    }
    devices
}

/// What one device made of the table.
#[derive(Default)]
struct Tally {
    runs: usize,
    /// Of these, how many had their feature maps in images.
    images: usize,
    failures: Vec<String>,
}

#[test]
fn every_kernel_agrees_with_its_oracle_on_every_device() {
    let cases = cases::table();
    let devices = devices();
    let tallies: Vec<(String, Tally)> = std::thread::scope(|scope| {
        let runs = devices.iter().map(|device| {
            let cases = &cases;
            scope.spawn(move || {
                let start = Instant::now();
                let mut tally = Tally::default();
                for case in cases {
                    run_case(device.as_ref(), case, &mut tally);
                }
                let info = device.info();
                println!(
                    "{info}: {} cases, {} runs, {} of them with maps in images, {} failures, {:.1} s",
                    cases.len(),
                    tally.runs,
                    tally.images,
                    tally.failures.len(),
                    start.elapsed().as_secs_f64()
                );
                (info.to_string(), tally)
            })
        });
        let runs: Vec<_> = runs.collect();
        runs.into_iter().map(|run| run.join().expect("no panic in a case")).collect()
    });
    let mut report = Vec::new();
    for (device, tally) in &tallies {
        report.extend(tally.failures.iter().map(|failure| format!("{device}: {failure}")));
    }
    assert!(report.is_empty(), "{} failing rows:\n{}", report.len(), report.join("\n"));
}

/// Runs every kernel of `case` that fits the device.
fn run_case(device: &dyn Device, case: &Case, tally: &mut Tally) {
    let limits = &device.info().limits;
    let operands = operands(&*case.problem);
    let expected = expected(&*case.problem, &operands);
    for choice in case.choices(limits) {
        let asked_for = cases::is_asked_for(case.problem.name(), choice.variant);
        if !asked_for || case.problem.fits(&choice, limits).is_err() {
            continue;
        }
        tally.runs += 1;
        tally.images += usize::from(choice.layout == Layout::Image2d);
        if let Err(failure) = gpu::check(device, &*case.problem, &operands, &expected, &choice, &|_| {}) {
            tally.failures.push(format!("{} [{choice}]: {failure}", case.name));
        }
    }
}

#[test]
fn an_infinity_stays_in_its_group() {
    let mut failures = Vec::new();
    for device in devices() {
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
            let case = Case { name, problem: Arc::clone(&problem), breadth: Breadth::Tiles };
            let mut kernels = 0;
            for choice in case.choices(limits) {
                if problem.fits(&choice, limits).is_ok() {
                    kernels += 1;
                    let outcome = gpu::check(&*device, &*problem, &operands, &expected, &choice, &|_| {});
                    failures
                        .extend(outcome.err().map(|failure| format!("{} [{choice}]: {failure}", case.name)));
                }
            }
            assert!(kernels >= 3, "{}: {kernels} kernels", case.name);
            let value = expected.value();
            let infinite = value.iter().filter(|value| !value.is_finite()).count();
            assert_eq!(3 * infinite, value.len(), "the oracle keeps the groups apart");
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What is no number stays none, and what is large does not overflow on its way, on every backend.
#[test]
fn activations_are_right_at_the_edges_of_f32() {
    let edges = [f32::NAN, f32::MAX, -f32::MAX, 1e30, 12.0, -12.0, 3.0, -3.0, 0.0, -1e-3];
    let mut failures = Vec::new();
    let devices = devices();
    for activation in [Activation::None, Activation::Sigmoid, Activation::Tanh, Activation::HardSwish] {
        // Windows of one pixel: each value is alone in its sum.
        let (input, weights) = (Shape::nhwc(1, 3, 5, 4), Shape::nhwc(1, 1, 1, 4));
        let options = Depthwise { activation, ..Default::default() };
        let op = DepthwiseOp::new(input, weights, &options, false, false, Precision::F32);
        let problem: Problem = Arc::new(op.expect("a valid op"));
        let mut operands = operands(&*problem);
        operands.insert(Operand::Weights, vec![1.0; 4].into());
        operands.insert(Operand::Src, edges.iter().copied().cycle().take(input.elements()).collect());
        let expected = expected(&*problem, &operands);
        let case = Case { name: format!("{activation:?}"), problem, breadth: Breadth::Tiles };
        for device in &devices {
            let limits = &device.info().limits;
            for choice in case.choices(limits) {
                if case.problem.fits(&choice, limits).is_ok() {
                    let outcome =
                        gpu::check(&**device, &*case.problem, &operands, &expected, &choice, &|_| {});
                    let name = format!("{} [{choice}] on {}", case.name, device.info());
                    failures.extend(outcome.err().map(|failure| format!("{name}: {failure}")));
                }
            }
        }
        let result = cpu::run(&*case.problem, &operands).expect("a run");
        let outcome = compare(case.problem.precision(), &expected, &result);
        failures.extend(outcome.err().map(|failure| format!("{} on the CPU: {failure}", case.name)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Subgroups of which lanes are missing, as the last one of these work-groups is wherever subgroups are larger.
#[test]
fn subgroups_of_which_lanes_are_missing_read_for_themselves() {
    let mut failures = Vec::new();
    for device in devices() {
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
                    let outcome = gpu::check(&*device, &*problem, &operands, &expected, &choice, &|_| {});
                    failures.extend(outcome.err().map(|failure| format!("{precision} {choice}: {failure}")));
                } else {
                    let error = problem.fits(&choice, limits).expect_err("no subgroups").to_string();
                    assert!(error.contains("does not offer subgroups"), "{error}");
                }
            }
            // Three lanes are never a whole subgroup: a mistake in what they do then must be seen.
            let few = Choice::new("subgroup", [1, 4, 1], [3, 1, 1]);
            if limits.subgroup.is_some() {
                let outcome = gpu::check(&*device, &*problem, &operands, &expected, &few, &|source| {
                    let (right, wrong) = ("term4 < params.k4", "term4 + 1u < params.k4");
                    assert!(source.text.contains(right), "{}", source.text);
                    source.text = source.text.replace(right, wrong);
                });
                let failure = outcome.expect_err("a term is dropped");
                assert!(failure.contains("element"), "{failure}");
            }
            let square = Choice::new("subgroup", [1, 4, 1], [8, 4, 1]);
            assert!(problem.fits(&square, limits).is_err(), "a row of invocations is wanted");
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_tile_of_gemm_is_met_by_some_case() {
    let limits = cases::widest();
    let mut offered = std::collections::BTreeSet::new();
    let mut met = std::collections::BTreeSet::new();
    for case in cases::full_table() {
        let op = &*case.problem;
        offered.extend(op.space(&limits).into_iter().map(|(variant, tile)| (op.name(), variant, tile)));
        met.extend(case.choices(&limits).into_iter().map(|choice| (op.name(), choice.variant, choice.tile)));
    }
    let missed: Vec<_> = offered.difference(&met).filter(|(op, ..)| *op == "gemm").collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn the_small_table_leaves_no_kernel_out() {
    let limits = cases::widest();
    let kernels = |table: Vec<Case>| {
        table.iter().flat_map(|case| case.kernels(&limits)).collect::<std::collections::BTreeSet<_>>()
    };
    let (full, small) = (cases::full_table(), cases::small_table());
    println!("{} of {} cases", small.len(), full.len());
    assert!(3 * small.len() < full.len(), "{} of {} cases", small.len(), full.len());
    let (full, small) = (kernels(full), kernels(small));
    let missed: Vec<_> = full.difference(&small).collect();
    assert!(missed.is_empty(), "{missed:?}");
    // Images and matrix instructions are among them.
    for kernel in [
        "conv2d_direct image2d f16",
        "gemm_image2d c4 f32",
        "gemm_matrix_ptx c4 f16s",
        "gemm_wgmma c4 f16s",
        "gemm_wgmma_tf32 c4 tf32",
    ] {
        assert!(small.contains(kernel), "no {kernel} in {small:?}");
    }
}

#[test]
fn the_table_is_large_and_varied() {
    let full = cases::full_table();
    assert!(full.len() >= 200, "{} cases", full.len());
    let mut names: Vec<&str> = full.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), full.len(), "two cases share a name");
    let count = |breadth| full.iter().filter(|case| case.breadth == breadth).count();
    println!("{} cases: {} tiles, {} groups", full.len(), count(Breadth::Tiles), count(Breadth::Groups));
    for op in ["conv2d", "depthwise", "pointwise", "separable", "pool", "gemm", "convert"] {
        let rows = full.iter().filter(|case| case.problem.name() == op).count();
        assert!(rows >= 20, "{rows} cases of {op}");
    }
}
