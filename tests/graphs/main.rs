//! Random graphs on every backend against the oracles: each output of each run within the bound that follows from the
//! graph (`oracle.rs`). What fails is made smaller (`shrink.rs`) and printed as a test (`print.rs`).
//!
//! | variable | |
//! |---|---|
//! | `DIPTYCH_GRAPHS` | how many graphs; a few without it |
//! | `DIPTYCH_GRAPHS_SEED` | the first graph's number; 0 without it |
//! | `DIPTYCH_GRAPHS_SECONDS` | when to stop |
//! | `DIPTYCH_GRAPHS_BACKENDS` | which backends, of `cpu,opencl,wgpu` |
//! | `DIPTYCH_GRAPHS_OUT` | a folder for the tests of what fails |
//! | `DIPTYCH_GRAPHS_WRITE` | if set, every graph is written there |
//! | `DIPTYCH_GRAPHS_CHART` | after so many graphs the contexts are dropped, what the process holds is printed, and contexts are opened again |
//!
//! `scripts/graphs` runs several processes of it.

mod carry;
mod draw;
mod fault;
mod generate;
#[path = "../../examples/shared/held.rs"]
mod held;
mod motifs;
#[cfg(not(target_family = "wasm"))]
mod open;
mod oracle;
#[cfg(not(target_family = "wasm"))]
mod patterns;
mod planted;
mod print;
mod random;
#[cfg(not(target_family = "wasm"))]
mod reach;
mod recipe;
#[cfg(not(target_family = "wasm"))]
mod rewrites;
mod run;
#[cfg(not(target_family = "wasm"))]
mod samples;
mod session;
mod shrink;
mod ways;

use diptych::{Backend, Context};
use held::Held;
use std::time::Instant;

/// Graphs of a short run.
const FEW: usize = 12;

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// The backends that are asked for; one that is missing fails where devices are required.
fn contexts() -> Vec<(Backend, Context)> {
    let asked = std::env::var("DIPTYCH_GRAPHS_BACKENDS").unwrap_or("cpu,opencl,wgpu".to_owned());
    let required = std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1");
    let mut contexts = Vec::new();
    for word in asked.split(',') {
        let backend = match word {
            "cpu" => Backend::Cpu,
            "opencl" => Backend::OpenCl,
            "wgpu" => Backend::Wgpu,
            other => panic!("DIPTYCH_GRAPHS_BACKENDS names {other:?}, wanted cpu, opencl or wgpu"),
        };
        match Context::builder().backend(backend).without_kernel_cache().open() {
            Ok(context) => contexts.push((backend, context)),
            Err(error) if required => panic!("{backend} is required: {error}"),
            Err(error) => println!("skipping {backend}: {error}"),
        }
    }
    contexts
}

/// After so many, contexts are opened again.
const GRAPHS_OF_A_CONTEXT: usize = 1000;

/// What the process may grow by after the first quarter of a chart: memory that the allocator keeps in pieces.
const ALLOWED_GROWTH: u64 = 64 << 20;

/// Threads that may come after it: Mesa's cache on the disk takes up to four, when it has much to write.
const ALLOWED_THREADS: usize = 4;

/// Runs graphs `first..first + count` until the time is over.
fn run(first: usize, count: usize, seconds: usize) -> session::Report {
    let charted = number("DIPTYCH_GRAPHS_CHART");
    let (begin, mut open, mut rows) = (Instant::now(), Vec::new(), Vec::new());
    let mut contexts_for = async |graphs: usize| {
        // A context keeps its kernels.
        if graphs.is_multiple_of(charted.unwrap_or(GRAPHS_OF_A_CONTEXT)) {
            open.clear();
            if charted.is_some() {
                let held @ Held { bytes, files, threads } = Held::now();
                let (seconds, megabytes) = (begin.elapsed().as_secs(), bytes / 1_000_000);
                println!("{graphs} graphs, {seconds} s: {megabytes} MB, {files} files, {threads} threads");
                rows.push(held);
            }
            open = contexts();
        }
        Ok(open.clone())
    };
    let report =
        pollster::block_on(session::run(first, count, seconds, &mut contexts_for)).expect("contexts");
    let settled = rows.get(rows.len().div_ceil(4)..).and_then(<[Held]>::split_first);
    if let Some((first, [.., last])) = settled {
        assert!(last.bytes <= first.bytes + ALLOWED_GROWTH, "the process grew: {first:?}, {last:?}");
        assert!(last.files <= first.files, "open files grew: {first:?}, {last:?}");
        assert!(last.threads <= first.threads + ALLOWED_THREADS, "threads grew: {first:?}, {last:?}");
    }
    report
}

/// Says what failed, when it does.
fn say(text: &str) {
    println!("{text}");
}

#[test]
fn random_graphs_agree_with_the_oracles() {
    let count = number("DIPTYCH_GRAPHS").unwrap_or(FEW);
    let first = number("DIPTYCH_GRAPHS_SEED").unwrap_or(0);
    let seconds = number("DIPTYCH_GRAPHS_SECONDS").unwrap_or(usize::MAX);
    // Drivers that compile on the CPU, and code that is not optimised, want more than a test's thread has.
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let thread = thread.spawn(move || run(first, count, seconds)).expect("a thread");
    let report = thread.join().expect("a report");
    println!("{}", report.line());
    assert!(report.failures.is_empty(), "{} of {} graphs differ", report.failures.len(), report.graphs);
}

/// What the methods of a graph make.
const MADE: &str = "Arg BatchToSpace BroadcastTo Concat Conv2d CumSum Custom DepthToSpace Depthwise Elementwise Gather \
                    GatherNd Gemm Normalize OneHot Pad Pointwise Pool Reduce Reshape Resize Reverse Slice Softmax \
                    SpaceToBatch SpaceToDepth Split Stack StridedSlice Suppress Tile TopK TransposedConv2d Transpose";

#[test]
fn every_operator_and_every_origin_is_drawn() {
    let recipes: Vec<_> = (0..250).map(generate::recipe).collect();
    let drawn = |word: &str| {
        let made = |step: &recipe::Step| {
            let text = format!("{:?}", step.make);
            text.split(|letter: char| !letter.is_alphanumeric()).next() == Some(word)
        };
        recipes.iter().any(|recipe| recipe.steps.iter().any(made))
    };
    let absent: Vec<&str> = MADE.split_whitespace().filter(|word| !drawn(word)).collect();
    assert!(absent.is_empty(), "{absent:?}");
    let sources = || recipes.iter().flat_map(|recipe| &recipe.sources);
    let ranks: std::collections::BTreeSet<usize> = sources().map(|source| source.tensor.dims.len()).collect();
    assert!((0..=6).all(|rank| ranks.contains(&rank)), "{ranks:?}");
    for origin in [recipe::Origin::Input, recipe::Origin::Constant] {
        assert!(sources().any(|source| source.origin == origin), "{origin:?}");
    }
    assert!(
        sources().any(|source| matches!(source.origin, recipe::Origin::State(Some(_)))),
        "no state is updated"
    );
    assert!(recipes.iter().any(|recipe| recipe.outputs.len() > 1), "one output each");
}
