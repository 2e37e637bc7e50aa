//! A Ballista cluster that finds people in pictures: its scheduler, its executors, and what to try them with.

#![forbid(unsafe_code)]
#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod demo;
mod device;
mod executor;
#[expect(dead_code, reason = "tests kill executors")]
mod local;
mod measure;
mod pictures;
mod scheduler;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Networks on pictures in Apache DataFusion and Ballista.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Plans queries and gives executors their tasks.
    Scheduler(scheduler::Arguments),
    /// Runs tasks on one device.
    Executor(executor::Arguments),
    /// Writes a Parquet file of drawn people.
    Pictures(pictures::Arguments),
    /// Starts a scheduler and two executors on this machine, and finds the people in a Parquet file of pictures.
    Demo(demo::Arguments),
    /// Measures pictures a second: a plain loop, DataFusion, and a cluster on this machine.
    Measure(measure::Arguments),
}

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    match run(Arguments::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("diptych-ballista: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    // Plans are walked recursively: Ballista's own programs have stacks of this size.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(32 << 20)
        .build()
        .context("no threads")?;
    let task = runtime.spawn(async move {
        match verb {
            Verb::Scheduler(arguments) => scheduler::run(arguments).await,
            Verb::Executor(arguments) => executor::run(arguments).await,
            Verb::Pictures(arguments) => pictures::run(&arguments),
            Verb::Demo(arguments) => demo::run(arguments).await,
            Verb::Measure(arguments) => measure::run(arguments).await,
        }
    });
    let done = runtime.block_on(task);
    // A picture that is being decoded is not waited for.
    runtime.shutdown_background();
    done.context("the program's task")?
}
