//! Every backend against the naive f64 oracles.
//!
//! `cases` is the table of problems, `problem` gives each its operands and its expected result,
//! `gpu` runs one kernel between canaries, `rows` those of an op's part of the table, `edges` those of
//! operands that are not in it, `planted` proves that a wrong kernel is caught, `cpu` holds the CPU
//! backend against the same table, `order` compares choices that are to give the same bits,
//! `idle` sees that no work-group is launched for nothing. `bindings/web/dawn` runs all but the last in WebAssembly, on a browser's WebGPU.
//!
//! | variable | effect |
//! |---|---|
//! | `DIPTYCH_REQUIRE_DEVICES=1` | a missing device fails instead of being skipped |
//! | `DIPTYCH_CONFORMANCE=full` | every kernel of every row; else those of a few texts (`cover`) |
//! | `DIPTYCH_CONFORMANCE=small` | a fifth of the table, and what it takes to meet every kernel in every precision |
//! | `DIPTYCH_CONFORMANCE=gemm` | every kernel of the rows of one op |
//! | `DIPTYCH_CONFORMANCE=gemm_wgmma` | of these, and of the planted mistakes, the kernels whose name begins so |

mod attention;
mod cases;
mod composed;
mod cover;
mod cpu;
mod dynamic;
mod edges;
mod elementwise;
mod ends;
mod gates;
mod gpu;
mod idle;
mod large;
mod loops;
mod mlps;
mod moves;
mod order;
mod packed;
mod planted;
mod problem;
mod quantized;
mod reductions;
mod rows;
mod squeezes;

use cases::{Breadth, Case};
use cover::Turn;
use diptych::{Backend, Context};
use diptych_device::device::Device;
use pollster::block_on;
use rows::Tally;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// What `DIPTYCH_CONFORMANCE` asks for.
fn asked() -> String {
    std::env::var("DIPTYCH_CONFORMANCE").unwrap_or_default()
}

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
    attention attention_join conv2d depthwise pointwise pool transposed_conv2d gemm gemm_rows convert copy remap concat gather
    one_hot random integer loops cumsum top_k suppress elementwise resize reduce arg softmax mlp normalize gate glu squeeze
    update_slice
    dynamic_conv2d dynamic_quantize dynamic_range quantize dequantize quantized_binary quantized_conv2d quantized_depthwise quantized_lookup quantized_pool
    quantized_gemm
);

fn every_kernel_agrees(op: &str, api: &str) {
    let Some(device) = device(api) else { return };
    let start = Instant::now();
    let other = if cases::in_turns() { self::device(other(api)) } else { None };
    let limits = other.as_ref().map(|other| &other.info().limits);
    let tally =
        block_on(rows::every_kernel(op, limits, &mut async |_| Ok(Arc::clone(&device)))).expect("a device");
    println!(
        "{tally}, {:.1} s{}",
        start.elapsed().as_secs_f64(),
        peak_memory().map(|bytes| format!(", {} MiB at most", bytes >> 20)).unwrap_or_default()
    );
    let Tally { failures, missed, .. } = tally;
    assert!(failures.is_empty(), "{} failing rows:\n{}", failures.len(), failures.join("\n"));
    assert!(missed.is_empty(), "kernels and tiles that no run met: {missed:?}");
    // Elsewhere several tests share a process.
    if std::env::var_os("NEXTEST").is_some()
        && let Some(bytes) = peak_memory()
    {
        assert!(bytes <= MOST_MEMORY, "{bytes} bytes of memory, wanted at most {MOST_MEMORY}");
    }
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
    nothing_fails(edges::infinity_in_a_group(&devices()));
}

#[test]
fn lanes_beyond_the_channels_are_zero_for_infinite_inputs() {
    nothing_fails(edges::lanes_beyond_the_channels(&devices()));
}

#[test]
fn activations_are_right_at_the_edges_of_f32() {
    nothing_fails(edges::activations(&devices()));
}

#[test]
fn means_much_larger_than_the_deviation_take_no_bits_of_it() {
    nothing_fails(edges::large_means(&devices()));
}

#[test]
fn more_images_than_an_axis_has_work_groups_are_served() {
    nothing_fails(large::many_images(&devices(), asked() == "full"));
}

#[test]
fn sums_of_more_turns_than_a_driver_takes_are_whole() {
    nothing_fails(large::long_sums(&devices(), asked() == "full"));
}

#[test]
fn what_is_no_number_reaches_what_it_should_in_every_op() {
    nothing_fails(ends::every_op(&devices()));
}

#[test]
fn functions_are_right_at_their_ends() {
    nothing_fails(elementwise::ends(&devices()));
}

#[test]
fn subgroups_of_which_lanes_are_missing_read_for_themselves() {
    nothing_fails(edges::missing_lanes(&devices()));
}

mod choices_that_compute_alike_give_the_same_bits {
    #[test]
    fn wgpu() {
        super::choices_that_compute_alike("wgpu")
    }

    #[test]
    fn opencl() {
        super::choices_that_compute_alike("opencl")
    }
}

fn choices_that_compute_alike(api: &str) {
    if let Some(device) = device(api) {
        // Each kernel through one of the APIs: one in three in WGSL, as lavapipe takes longer to compile than PoCL.
        let turn: fn(usize) -> bool = match api {
            "wgpu" => |number| number.is_multiple_of(3),
            _ => |number| !number.is_multiple_of(3),
        };
        let (kernels, failures) = block_on(order::alike_to_the_bit(&*device, turn));
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(kernels >= 10, "{kernels} kernels have choices that compute alike");
    }
}

mod every_work_group_has_work {
    #[test]
    fn wgpu() {
        super::every_work_group_has_work("wgpu")
    }

    #[test]
    fn opencl() {
        super::every_work_group_has_work("opencl")
    }
}

fn every_work_group_has_work(api: &str) {
    if let Some(device) = device(api) {
        let (launches, failures) = block_on(idle::every_group_has_work(&*device));
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(launches >= 100, "{launches} launches have several work-groups");
    }
}

fn nothing_fails(check: impl Future<Output = Vec<String>>) {
    let failures = block_on(check);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

mod a_wrong_kernel_is_refused {
    #[test]
    fn wgpu() {
        super::a_wrong_kernel_is_refused("wgpu")
    }

    #[test]
    fn opencl() {
        super::a_wrong_kernel_is_refused("opencl")
    }
}

fn a_wrong_kernel_is_refused(api: &str) {
    if let Some(device) = device(api) {
        // Each mistake in a kernel of both APIs is planted through one of them: one in four in WGSL, as lavapipe takes
        // longer to compile than PoCL.
        let turn: fn(usize) -> bool = match api {
            "wgpu" => |number| number.is_multiple_of(4),
            _ => |number| !number.is_multiple_of(4),
        };
        nothing_fails(async { planted::wrong_kernels(&*device, turn).await.0 });
    }
}

/// How many pairs of a kernel and a tile the table meets, on [`cases::widest_wgsl`] and on
/// [`cases::widest`], each through one of the APIs at least. A change that meets fewer is a mistake.
const PAIRS: &[(&str, [usize; 2])] = &[
    ("arg", [36, 36]),
    ("attention", [12, 12]),
    ("attention_join", [1, 1]),
    ("concat", [2, 2]),
    ("conv2d", [62, 69]),
    ("convert", [5, 9]),
    ("copy", [1, 1]),
    ("cumsum", [1, 1]),
    ("depthwise", [14, 15]),
    ("elementwise", [2, 2]),
    ("gather", [1, 1]),
    ("gate", [4, 4]),
    ("glu", [1, 1]),
    ("squeeze", [4, 4]),
    ("gemm", [60, 53]),
    ("gemm_rows", [24, 6]),
    ("integer", [1, 1]),
    ("loops", [28, 28]),
    ("one_hot", [1, 1]),
    ("mlp", [9, 9]),
    ("normalize", [113, 113]),
    ("pointwise", [58, 59]),
    ("pool", [1, 2]),
    ("dynamic_conv2d", [5, 5]),
    ("dynamic_quantize", [1, 1]),
    ("dynamic_range", [2, 2]),
    ("quantize", [1, 1]),
    ("dequantize", [1, 1]),
    ("quantized_binary", [1, 1]),
    ("quantized_conv2d", [11, 11]),
    ("quantized_depthwise", [3, 3]),
    ("quantized_lookup", [1, 1]),
    ("quantized_pool", [1, 1]),
    ("quantized_gemm", [10, 10]),
    ("random", [1, 1]),
    ("remap", [3, 3]),
    ("reduce", [103, 103]),
    ("resize", [1, 1]),
    ("top_k", [3, 3]),
    ("suppress", [1, 1]),
    ("softmax", [50, 50]),
    ("transposed_conv2d", [5, 5]),
    ("update_slice", [1, 1]),
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
            let kernels = case.problem.kernels();
            let tiles = kernels
                .space(limits)
                .into_iter()
                .map(|(kernel, tile)| cases::choice(&*case.problem, kernel.name(), tile, [8, 4, 1], limits));
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
            println!("{}: {op} {found}", limits.dialect);
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
    let registered: BTreeSet<&str> = diptych_kernels::ops::all()
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
