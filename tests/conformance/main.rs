//! Every backend against the naive f64 oracles.
//!
//! `cases` is the table of problems, `problem` gives each its operands and its expected result,
//! `gpu` runs one kernel between canaries, `planted` proves that a wrong kernel is caught, `cpu`
//! holds the CPU backend against the same table.
//!
//! | variable | effect |
//! |---|---|
//! | `DIPTYCH_REQUIRE_DEVICES=1` | a missing device fails instead of being skipped |
//! | `DIPTYCH_CONFORMANCE=full` | every kernel of every row; else those of a few texts (`cover`) |
//! | `DIPTYCH_CONFORMANCE=small` | a fifth of the table, and what it takes to meet every kernel in every precision |
//! | `DIPTYCH_CONFORMANCE=gemm` | every kernel of the rows of one op |
//! | `DIPTYCH_CONFORMANCE=gemm_wgmma` | of these, and of the planted mistakes, the kernels whose name begins so |

mod cases;
mod cover;
mod cpu;
mod elementwise;
mod gates;
mod gpu;
mod moves;
mod planted;
mod problem;
mod reductions;

use cases::{Breadth, Case};
use cover::Turn;
use diptych::device::Device;
use diptych::emit::Operand;
use diptych::ops::Choice;
use diptych::ops::conv2d::Conv2dOp;
use diptych::ops::depthwise::DepthwiseOp;
use diptych::ops::gemm::GemmOp;
use diptych::ops::pointwise::PointwiseOp;
use diptych::ops::separable::SeparableOp;
use diptych::ops::transposed_conv2d::TransposedConv2dOp;
use diptych::ops::{Operands, Reference};
use diptych::{
    Activation, Backend, Context, Conv2d, Depthwise, Gemm, Layout, Padding, Pointwise, Precision, Shape,
    TransposedConv2d,
};
use problem::{Problem, compare, expected, operands};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// The device of an API; a missing one is printed, or fails if devices are required. Nothing is compiled
/// twice here, and to keep a kernel costs PoCL another compilation.
fn device(api: &str) -> Option<Arc<dyn Device>> {
    let backend = match api {
        "wgpu" if cfg!(feature = "wgpu") => Backend::Wgpu,
        "opencl" if cfg!(feature = "opencl") => Backend::OpenCl,
        _ => return None,
    };
    let required = std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1");
    match Context::builder().backend(backend).without_kernel_cache().open() {
        Ok(context) => context.shared_device(),
        Err(error) if required => panic!("{api} is required: {error}"),
        Err(error) => {
            println!("skipping {api}: {error}");
            None
        }
    }
}

fn other(api: &str) -> &'static str {
    if api == "wgpu" { "opencl" } else { "wgpu" }
}

fn devices() -> Vec<Arc<dyn Device>> {
    ["wgpu", "opencl"].into_iter().filter_map(device).collect()
}

/// A test for each op and API: each runs in a process of its own where the runner makes one for a test.
macro_rules! every_kernel {
    ($($op:ident)*) => {
        const OPS: &[&str] = &[$(stringify!($op)),*];

        mod every_kernel_agrees_with_its_oracle {
            mod wgpu {
                $(#[test] fn $op() { crate::every_kernel_agrees(stringify!($op), "wgpu") })*
            }
            mod opencl {
                $(#[test] fn $op() { crate::every_kernel_agrees(stringify!($op), "opencl") })*
            }
        }
    };
}

every_kernel!(
    conv2d depthwise pointwise pool separable transposed_conv2d gemm convert copy remap concat gather one_hot
    cumsum top_k suppress elementwise resize reduce arg softmax moments normalize gate
);

fn every_kernel_agrees(op: &str, api: &str) {
    let Some(device) = device(api) else { return };
    let (info, start) = (device.info(), Instant::now());
    let cases: Vec<Case> = cases::table().into_iter().filter(|case| case.problem.name() == op).collect();
    let every = cover::runs(&cases, &info.limits);
    let (all, offered) = (cover::texts(&every), pairs(every.iter()));
    let other = if cases::in_turns() { self::device(other(api)) } else { None };
    let turn = other.map(|other| Turn::between(&cases, &info.limits, &other.info().limits));
    let turn = turn.unwrap_or_else(Turn::every);
    let runs = if cases::wants_every_kernel() { every } else { cover::chosen(every, &turn) };
    let asked_for: Vec<_> = runs.iter().filter(|run| cases::is_asked_for(op, run.choice.variant)).collect();
    let mut failures = Vec::new();
    let mut images = 0;
    let mut row: Option<(usize, Operands<'static>, Reference)> = None;
    for run in &asked_for {
        let case = run.case;
        if row.as_ref().is_none_or(|(number, ..)| *number != case.number) {
            let operands = operands(&*case.problem);
            let expected = expected(&*case.problem, &operands);
            row = Some((case.number, operands, expected));
        }
        let Some((_, operands, expected)) = &row else { continue };
        images += usize::from(run.choice.layout == Layout::Image2d);
        let outcome = gpu::check(&*device, &*case.problem, operands, expected, &run.choice, &|_| {});
        if let Err(failure) = outcome {
            failures.push(format!("{info}: {} [{}]: {failure}", case.name, run.choice));
        }
    }
    let met = pairs(asked_for.iter().copied());
    println!(
        "{info}: {} cases of {op}, {} runs of {} of {all} texts, {images} of them with maps in images, {} \
         kernels and tiles, {} failures, {:.1} s{}",
        cases.len(),
        asked_for.len(),
        cover::texts(&runs),
        met.len(),
        failures.len(),
        start.elapsed().as_secs_f64(),
        peak_memory().map(|bytes| format!(", {} MiB at most", bytes >> 20)).unwrap_or_default()
    );
    assert!(failures.is_empty(), "{} failing rows:\n{}", failures.len(), failures.join("\n"));
    if asked_for.len() == runs.len() {
        let missed: Vec<_> = offered.difference(&met).filter(|pair| !turn.has(pair)).collect();
        assert!(missed.is_empty(), "kernels and tiles that no run met: {missed:?}");
    }
    // Elsewhere several tests share a process.
    if std::env::var_os("NEXTEST").is_some()
        && let Some(bytes) = peak_memory()
    {
        assert!(bytes <= MOST_MEMORY, "{bytes} bytes of memory, wanted at most {MOST_MEMORY}");
    }
}

/// The kernels and tiles of `runs`.
fn pairs<'r, 'c: 'r>(runs: impl Iterator<Item = &'r cover::Run<'c>>) -> BTreeSet<String> {
    runs.map(cover::Run::pair).collect()
}

/// What a process of this test may take, drivers' compilers included.
const MOST_MEMORY: u64 = 1 << 30;

/// The most memory that this process had at once, where the system says it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
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
            // Every tile with slices that are one group's alone, and with slices of two.
            let breadth = if inputs == 4 || inputs == 3 { Breadth::Tiles } else { Breadth::Variants };
            let case = Case { number: 0, name, problem: Arc::clone(&problem), breadth };
            let mut kernels = 0;
            for choice in case.choices(limits) {
                if problem.fits(&choice, limits).is_ok() {
                    kernels += 1;
                    let outcome = gpu::check(&*device, &*problem, &operands, &expected, &choice, &|_| {});
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
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Zero times an infinity is no number; the lanes beyond the channels are zero all the same, in every kernel
/// that sums over channels.
#[test]
fn lanes_beyond_the_channels_are_zero_for_infinite_inputs() {
    let (input, output, precision) = (Shape::nhwc(1, 6, 5, 5), 6, Precision::F32);
    let window = |size| Shape::nhwc(output, size, size, input.c);
    let same = Conv2d { padding: Padding::Same, ..Default::default() };
    let conv2d = Conv2dOp::new(input, window(3), &same, true, false, precision).expect("a valid op");
    let plain = Pointwise::default();
    let pointwise = PointwiseOp::new(input, window(1), &plain, true, false, precision).expect("a valid op");
    let transposed = TransposedConv2d { stride: [2, 2], ..Default::default() };
    let transposed = TransposedConv2dOp::new(input, window(2), &transposed, true, false, precision);
    let first = Depthwise { padding: Padding::Same, ..Default::default() };
    let first = DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, input.c), &first, true, false, precision);
    let separable = SeparableOp::new(first.expect("a valid op"), pointwise).expect("a valid op");
    let problems: [Problem; 4] = [
        Arc::new(conv2d),
        Arc::new(pointwise),
        Arc::new(transposed.expect("a valid op")),
        Arc::new(separable),
    ];
    let mut failures = Vec::new();
    for device in devices() {
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
                    let outcome = gpu::check(&*device, &**problem, &operands, &expected, &choice, &|_| {});
                    failures
                        .extend(outcome.err().map(|failure| format!("{} [{choice}]: {failure}", case.name)));
                }
            }
            assert!(kernels > 0, "{}: no kernel on {}", case.name, device.info());
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
        let case = Case { number: 0, name: format!("{activation:?}"), problem, breadth: Breadth::Variants };
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

/// How many pairs of a kernel and a tile the table meets, on [`cases::widest_wgsl`] and on
/// [`cases::widest`], each through one of the APIs at least. A change that meets fewer is a mistake.
const PAIRS: &[(&str, [usize; 2])] = &[
    ("arg", [3, 3]),
    ("concat", [2, 2]),
    ("conv2d", [62, 69]),
    ("convert", [4, 8]),
    ("copy", [1, 1]),
    ("cumsum", [1, 1]),
    ("depthwise", [14, 15]),
    ("elementwise", [3, 3]),
    ("gather", [1, 1]),
    ("gate", [4, 4]),
    ("gemm", [39, 53]),
    ("one_hot", [1, 1]),
    ("moments", [1, 1]),
    ("normalize", [13, 11]),
    ("pointwise", [58, 59]),
    ("pool", [1, 2]),
    ("remap", [4, 4]),
    ("reduce", [6, 6]),
    ("resize", [1, 1]),
    ("separable", [35, 35]),
    ("top_k", [1, 1]),
    ("suppress", [1, 1]),
    ("softmax", [4, 4]),
    ("transposed_conv2d", [5, 5]),
];

#[test]
fn few_texts_meet_every_tile_that_is_offered() {
    let cases = cases::full_table();
    let apis = [cases::widest_wgsl(), cases::widest()];
    let of = [0, 1].map(|at| {
        let limits = &apis[at];
        let every = cover::runs(&cases, limits);
        let (all, wanted) = (cover::texts(&every), cover::pairs(&every));
        let runs = cover::chosen(every, &Turn::between(&cases, limits, &apis[1 - at]));
        let texts = cover::texts(&runs);
        println!("{}: {} runs, {texts} of {all} texts", limits.dialect, runs.len());
        assert!(3 * texts < all, "{texts} of {all} texts");
        (wanted, cover::pairs(&runs))
    });
    for (at, limits) in apis.iter().enumerate() {
        let (wanted, met) = &of[at];
        let others = &of[1 - at].1;
        for (op, wanted) in wanted {
            let missed: Vec<_> = wanted
                .iter()
                .filter(|pair| !met[op].contains(*pair) && !others[op].contains(*pair))
                .collect();
            assert!(missed.is_empty(), "{}: {missed:?}", limits.dialect);
        }
        // The table offers each tile that the op does.
        let tiles = |case: &Case| {
            let tiles = case.problem.space(limits).into_iter();
            let tiles =
                tiles.map(|(variant, tile)| cases::choice(&*case.problem, variant, tile, [8, 4, 1], limits));
            let tiles = tiles.filter(|choice| case.problem.fits(choice, limits).is_ok());
            tiles.map(|choice| (case.problem.name(), choice.variant, choice.tile)).collect::<Vec<_>>()
        };
        let offered: BTreeSet<_> = cases.iter().flat_map(tiles).collect();
        let every = cover::runs(&cases, limits);
        let run: BTreeSet<_> =
            every.iter().map(|run| (run.case.problem.name(), run.choice.variant, run.choice.tile)).collect();
        let missed: Vec<_> = offered.difference(&run).collect();
        assert!(missed.is_empty(), "{}: {missed:?}", limits.dialect);
        for (op, least) in PAIRS {
            let found = wanted.get(op).map_or(0, BTreeSet::len);
            assert!(found >= least[at], "{op}: {found}, wanted {}", least[at]);
        }
    }
}

#[test]
fn the_small_table_leaves_no_kernel_out() {
    let limits = cases::widest();
    let kernels =
        |table: Vec<Case>| table.iter().flat_map(|case| case.kernels(&limits)).collect::<BTreeSet<_>>();
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
    let registered: BTreeSet<&str> = diptych::ops::all()
        .iter()
        .filter(|entry| !entry.variants().is_empty())
        .map(|entry| entry.name)
        .collect();
    assert_eq!(registered, OPS.iter().copied().collect(), "an op without its tests of every kernel");
    for op in OPS {
        let rows = full.iter().filter(|case| case.problem.name() == *op).count();
        assert!(rows >= 20, "{rows} cases of {op}");
    }
}
