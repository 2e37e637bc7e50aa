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
//!
//! `scripts/graphs` runs several processes of it.

mod carry;
mod draw;
mod generate;
mod motifs;
mod oracle;
mod planted;
mod print;
mod random;
mod recipe;
mod run;
mod session;
mod shrink;

/// Graphs of a short run.
const FEW: usize = 12;

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_graphs_agree_with_the_oracles() {
    let count = number("DIPTYCH_GRAPHS").unwrap_or(FEW);
    let first = number("DIPTYCH_GRAPHS_SEED").unwrap_or(0);
    let seconds = number("DIPTYCH_GRAPHS_SECONDS").unwrap_or(usize::MAX);
    // Drivers that compile on the CPU, and code that is not optimised, want more than a test's thread has.
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let thread = thread.spawn(move || session::run(first, count, seconds)).expect("a thread");
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
