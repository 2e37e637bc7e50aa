//! The conformance table on the CPU backend: the modules of `tests/conformance`, in a program that an emulator runs.
//!
//!     diptych-arm [OP...]
//!
//! `scripts/arm kernels` runs it. An OP is a name or the beginning of one. On other machines there is nothing: `cargo test` does
//! the same.
#![cfg_attr(not(target_arch = "aarch64"), no_main)]
#![cfg(target_arch = "aarch64")]
#![expect(
    dead_code,
    unused_imports,
    reason = "the modules have tests of their own, and what runs kernels on a GPU"
)]

#[path = "../../../tests/conformance/attention.rs"]
mod attention;
#[path = "../../../tests/conformance/cases.rs"]
mod cases;
#[path = "../../../tests/conformance/composed.rs"]
mod composed;
#[path = "../../../tests/conformance/cover.rs"]
mod cover;
#[path = "../../../tests/conformance/cpu.rs"]
mod cpu;
#[path = "../../../tests/conformance/dynamic.rs"]
mod dynamic;
#[path = "../../../tests/conformance/edges.rs"]
mod edges;
#[path = "../../../tests/conformance/elementwise.rs"]
mod elementwise;
#[path = "../../../tests/conformance/gates.rs"]
mod gates;
#[path = "../../../tests/conformance/gpu.rs"]
mod gpu;
#[path = "../../../tests/conformance/loops.rs"]
mod loops;
#[path = "../../../tests/conformance/mlps.rs"]
mod mlps;
#[path = "../../../tests/conformance/moves.rs"]
mod moves;
#[path = "../../../tests/conformance/packed.rs"]
mod packed;
#[path = "../../../tests/conformance/planted.rs"]
mod planted;
#[path = "../../../tests/conformance/problem.rs"]
mod problem;
#[path = "../../../tests/conformance/quantized.rs"]
mod quantized;
#[path = "../../../tests/conformance/reductions.rs"]
mod reductions;
#[path = "../../../tests/conformance/rows.rs"]
mod rows;
#[path = "../../../tests/conformance/squeezes.rs"]
mod squeezes;

use diptych::Precision;
use diptych_kernels::ops::Purpose;
use std::process::ExitCode;

/// What is asked for, in the words of `DIPTYCH_CONFORMANCE`: nothing.
fn asked() -> String {
    String::new()
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let (mut runs, mut failures) = (0, 0);
    for case in cases::full_table() {
        let op = &*case.problem;
        let is_wanted =
            wanted.is_empty() || wanted.iter().any(|wanted| op.name().starts_with(wanted.as_str()));
        // The backend computes in f32 whatever the op says.
        if !is_wanted || op.precision() != Precision::F32 || op.obstacle(Purpose::Cpu).is_some() {
            continue;
        }
        runs += 1;
        let operands = problem::operands(op);
        let found = cpu::run(op, &operands);
        let outcome = found.and_then(|found| problem::compare(op, &problem::expected(op, &operands), &found));
        if let Err(failure) = outcome {
            failures += 1;
            println!("{}: {failure}", case.name);
        }
    }
    println!("{runs} runs on the CPU, {failures} failed");
    // A table without rows would be no test.
    if runs > 0 && failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
