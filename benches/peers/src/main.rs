//! Diptych's matrix products and convolutions beside Burn's, whose kernels are CubeCL's, on the same
//! GPU through Vulkan.
//!
//! ```sh
//! cd benches/peers && cargo run --release -- --out peers.jsonl
//! diptych bench --draw --include peers.jsonl --report DIR
//! ```
//!
//! Both do the same work on the same numbers, in interleaved rounds and f32, and both are checked
//! first: Burn against Diptych's CPU backend, Diptych as its tuner does. Both are timed alike, by
//! the host's clock around many launches and one wait: Burn offers no device time through its
//! tensors, so Diptych's device is opened without any. Burn autotunes while it warms up; Diptych
//! runs untuned. Feature maps are NCHW for Burn, as its tensors are, and C4 for Diptych.
//!
//! On lavapipe (Mesa 22.3.6) Burn's matrix product ends the process with a segmentation fault. So
//! products are left out on drivers that run on the CPU, unless `--case` asks for them.

mod burn_op;
#[path = "../../../crates/cli/src/bench/cpu.rs"]
mod cpu;
mod host_clock;
#[path = "../../../crates/cli/src/bench/machine.rs"]
mod machine;
mod ours;
#[path = "../../../crates/cli/src/bench/rounds.rs"]
mod rounds;
#[path = "../../../crates/cli/src/bench/row.rs"]
#[expect(dead_code, reason = "rows are only written here")]
mod row;
#[path = "../../../crates/cli/src/bench/subject.rs"]
#[expect(dead_code, reason = "there are no baselines here")]
mod subject;
#[path = "../../../crates/cli/src/bench/suites.rs"]
mod suites;

use anyhow::{Context as _, Result};
use clap::Parser;
use diptych_kernels::ops::Op;
use diptych_kernels::ops::conv2d::Conv2dOp;
use diptych_kernels::ops::depthwise::DepthwiseOp;
use diptych_kernels::ops::pointwise::PointwiseOp;
use diptych::{Backend, Context, Precision};
use row::{Note, Record};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use subject::{Subject, Target};

/// Measure Diptych beside Burn and write the rows as JSON lines.
#[derive(Debug, Parser)]
struct Arguments {
    /// Write the rows to this file.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Only cases whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    case: String,

    /// Samples of each row.
    #[arg(long, default_value_t = 30)]
    rounds: u32,

    /// Leave out products of more than this many GFLOP.
    #[arg(long, default_value_t = 200.0)]
    largest: f64,
}

/// The suites' problems in f32, without an activation: in Burn it would be a kernel of its own.
fn problems() -> Result<Vec<Arc<dyn Op>>> {
    let problems = suites::products()?.into_iter().chain(suites::layers()?);
    Ok(problems.filter(|op| op.precision() == Precision::F32).map(plain).collect())
}

/// `op` without its activation if it is a convolution; other ops are returned as they are.
fn plain(op: Arc<dyn Op>) -> Arc<dyn Op> {
    let any = op.as_any();
    if let Some(op) = any.downcast_ref::<Conv2dOp>() {
        return Arc::new(op.plain());
    }
    if let Some(op) = any.downcast_ref::<DepthwiseOp>() {
        return Arc::new(op.plain());
    }
    if let Some(op) = any.downcast_ref::<PointwiseOp>() {
        return Arc::new(op.plain());
    }
    op
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let machine = machine::here();
    let context = Context::new(Backend::Wgpu)?;
    eprintln!("{}", context.info());
    let who = machine::device(&context);
    let target =
        Target { context, who, machine: machine.clone(), database: None, peak: None, multiply_add: None };
    let burn = burn_op::device();
    let mut record = Record { machines: vec![machine], ..Default::default() };
    for problem in problems()? {
        let case = suites::name(&*problem);
        if !case.contains(&arguments.case) || problem.flops() as f64 > arguments.largest * 1e9 {
            continue;
        }
        if target.who.is_cpu && arguments.case.is_empty() && problem.name() == "gemm" {
            let text = "left out: Burn's product crashes some drivers that run on the CPU".to_owned();
            let (suite, backend) = ("peers".to_owned(), "burn".to_owned());
            record.notes.push(Note { suite, case, backend, text, failure: false });
            continue;
        }
        eprintln!("{case}");
        let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
        let made: [(&str, Result<Box<dyn Subject>>); 2] = [
            ("diptych", ours::Ours::new(&target, Arc::clone(&problem)).map(|ours| Box::new(ours) as _)),
            ("burn", burn_op::BurnOp::new(&target, &burn, problem).map(|burn| Box::new(burn) as _)),
        ];
        for (engine, made) in made {
            match made {
                Ok(subject) => subjects.push(subject),
                Err(error) => {
                    eprintln!("{engine}: {error:#}");
                    let (suite, backend) = ("peers".to_owned(), engine.to_owned());
                    let text = format!("{error:#}");
                    record.notes.push(Note { suite, case: case.clone(), backend, text, failure: true });
                }
            }
        }
        let effort = rounds::Effort { rounds: arguments.rounds, each: Duration::from_secs(5) };
        let (rows, notes) = rounds::run(subjects, effort, |_| {});
        for row in &rows {
            eprintln!("  {:40} {:10.1} us ({:.1}-{:.1})", row.engine, row.median, row.p10, row.p90);
        }
        record.rows.extend(rows);
        record.notes.extend(notes);
        // After each case: a driver that takes the process with it leaves what was measured.
        let path = &arguments.out;
        std::fs::write(path, record.to_text()?).with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}
