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

mod cases;
mod cpu;
mod gpu;
mod planted;
mod problem;

use cases::{Breadth, Case};
use diptych::Layout;
use diptych::device::Device;
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
    let operands = case.problem.operands();
    let expected = case.problem.expected(&operands);
    for choice in case.choices(limits) {
        if case.problem.op().fits(&choice, limits).is_err() {
            continue;
        }
        tally.runs += 1;
        tally.images += usize::from(choice.layout == Layout::Image2d);
        if let Err(failure) = gpu::check(device, &case.problem, &operands, &expected, &choice, &|_| {}) {
            tally.failures.push(format!("{} [{choice}]: {failure}", case.name));
        }
    }
}

#[test]
fn every_tile_of_gemm_is_met_by_some_case() {
    let limits = cases::widest();
    let mut offered = std::collections::BTreeSet::new();
    let mut met = std::collections::BTreeSet::new();
    for case in cases::full_table() {
        let op = case.problem.op();
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
    for kernel in ["conv2d_direct image2d f16", "gemm_image2d c4 f32", "gemm_matrix_ptx c4 f16s"] {
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
    for op in ["conv2d", "depthwise", "pointwise", "separable", "gemm", "convert"] {
        let rows = full.iter().filter(|case| case.problem.op().name() == op).count();
        assert!(rows >= 20, "{rows} cases of {op}");
    }
}
