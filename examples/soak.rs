//! A network run again and again on one device: memory, open files, threads and latency from beginning to end, and
//! whether the outputs stay the same to the bit.
//!
//! `cargo run --release --example soak -- --backend wgpu --runs 1000000`
//!
//! Between the parts of the runs, sessions of other batches and precisions are made, run in every way and dropped.

#[path = "shared/held.rs"]
mod held;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use diptych::{
    Backend, Context, DeviceSelector, Graph, HostTensor, Model, Precision, Session, SessionOptions,
};
use held::Held;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::pin::pin;
use std::task::Waker;
use std::time::{Duration, Instant};

/// The bundled network.
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/posenet/data/posenet_figures.tflite");

/// Kinds of other sessions.
const KINDS: usize = 6;

/// Bytes by which the process may grow after each kind of session was made: caches of drivers that fill slowly.
const ALLOWED_GROWTH: u64 = 16 << 20;

/// A network run again and again
#[derive(Debug, Parser)]
struct Options {
    /// A TensorFlow Lite or ONNX model
    #[arg(long, value_name = "FILE", default_value = MODEL)]
    model: PathBuf,

    /// The API, or cpu
    #[arg(long, default_value = "auto")]
    backend: Backend,

    /// The device instead
    #[arg(long, value_name = "DEVICE", conflicts_with = "backend")]
    device: Option<DeviceSelector>,

    /// Runs in all
    #[arg(long, default_value_t = 10_000)]
    runs: u64,

    /// Seconds at most
    #[arg(long, default_value_t = 3600.0)]
    seconds: f64,

    /// Parts, each a line of the chart
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(8..))]
    parts: u64,
}

/// A part of the runs.
#[derive(Debug)]
struct Part {
    runs: u64,
    median: Duration,
    slowest: Duration,
    held: Held,
}

/// Values in [0, 1), the same for each seed.
fn noise(graph: &Graph, seed: u64) -> Result<Vec<(String, HostTensor)>> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let mut tensor = |&input| {
        let dims = graph.dims(input)?;
        let values: Vec<f32> = (0..dims.elements()).map(|_| next()).collect();
        Ok((graph.name(input)?.to_owned(), HostTensor::new(dims, values)?))
    };
    graph.inputs().iter().map(&mut tensor).collect()
}

fn named(tensors: &[(String, HostTensor)]) -> Vec<(&str, &HostTensor)> {
    tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect()
}

fn bits(outputs: &[HostTensor]) -> Vec<u32> {
    outputs
        .iter()
        .flat_map(|output| output.to_f32().iter().map(|value| value.to_bits()).collect::<Vec<_>>())
        .collect()
}

/// A session of another kind, run in every way and dropped.
fn other_session(context: &Context, graph: &Graph, turn: u64) -> Result<()> {
    let precision = if turn.is_multiple_of(2) { Precision::F32 } else { Precision::F16Storage };
    let graph = graph.with_batch(1 + (turn % 3) as usize)?;
    let tensors = noise(&graph, turn)?;
    let mut session = Session::new(context, &graph, SessionOptions { precision, ..Default::default() })?;
    let first = bits(&session.run(&named(&tensors))?);
    ensure!(first == bits(&pollster::block_on(session.run_async(&named(&tensors)))?), "run_async differs");
    // A run that is begun, and dropped before it is over.
    drop_midway(session.run_async(&named(&tensors)));
    let (outputs, _) = session.run_in_stages(&named(&tensors))?;
    ensure!(first == bits(&outputs), "run_in_stages differs");
    session.profile(&named(&tensors))?;
    Ok(())
}

fn drop_midway<T>(run: impl Future<Output = T>) {
    let run = pin!(run);
    let begun = run.poll(&mut std::task::Context::from_waker(Waker::noop()));
    drop(begun);
}

/// A bar as long as `value` is large.
fn bar(value: f64, most: f64) -> String {
    "#".repeat((20.0 * value / most.max(f64::MIN_POSITIVE)).round() as usize)
}

fn chart(parts: &[Part]) -> String {
    let most = |of: &dyn Fn(&Part) -> f64| parts.iter().map(of).fold(0.0, f64::max);
    let micros = |part: &Part| 1e6 * part.median.as_secs_f64();
    let megabytes = |part: &Part| part.held.bytes as f64 / 1e6;
    let (slowest, largest) = (most(&micros), most(&megabytes));
    let mut text = "      runs  median us  slowest us  MB process  files  threads\n".to_owned();
    for part in parts {
        let Held { files, threads, .. } = part.held;
        let (time, bytes) = (micros(part), megabytes(part));
        let worst = 1e6 * part.slowest.as_secs_f64();
        let runs = part.runs;
        let bars = format!("{:20} {:20}", bar(time, slowest), bar(bytes, largest));
        let line =
            format!("{runs:>10} {time:>10.1} {worst:>11.1} {bytes:>11.1} {files:>6} {threads:>8}  {bars}");
        // Writing to a text does not fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn main() -> Result<()> {
    let options = Options::parse();
    let model = Model::load(&options.model, &Default::default())?;
    let builder = Context::builder().backend(options.backend);
    let context = match &options.device {
        Some(device) => builder.device(device.clone()).open()?,
        None => builder.open()?,
    };
    println!("{}", context.info());
    let mut session = Session::new(&context, &model.graph, SessionOptions::default())?;
    let tensors = noise(&model.graph, 0)?;
    let feeds = named(&tensors);
    let wanted = bits(&session.run(&feeds)?);
    let begun = Instant::now();
    let mut parts: Vec<Part> = Vec::new();
    let each = options.runs.div_ceil(options.parts).max(1);
    let mut done = 0;
    while done < options.runs && begun.elapsed().as_secs_f64() < options.seconds {
        let share = options.seconds * (parts.len() + 1) as f64 / options.parts as f64;
        let mut times = Vec::with_capacity(each as usize);
        while times.len() < each as usize && begun.elapsed().as_secs_f64() < share {
            let start = Instant::now();
            let outputs = session.run(&feeds)?;
            times.push(start.elapsed());
            ensure!(
                bits(&outputs) == wanted,
                "run {}: other outputs than the first",
                done + times.len() as u64
            );
        }
        done += times.len() as u64;
        other_session(&context, &model.graph, parts.len() as u64)?;
        times.sort_unstable();
        if let (Some(&median), Some(&slowest)) = (times.get(times.len() / 2), times.last()) {
            parts.push(Part { runs: done, median, slowest, held: Held::now() });
        }
    }
    print!("{}", chart(&parts));
    println!("{done} runs in {:.1} s", begun.elapsed().as_secs_f64());
    let last = parts.last().context("no runs")?.held;
    // Each kind of session was made once by then.
    let settled =
        parts.get((parts.len() / 10).max(KINDS)).context("fewer parts than kinds of sessions")?.held;
    ensure!(
        last.bytes <= settled.bytes + ALLOWED_GROWTH,
        "the process grew from {} to {} bytes",
        settled.bytes,
        last.bytes
    );
    ensure!(last.files <= settled.files, "open files grew from {} to {}", settled.files, last.files);
    ensure!(last.threads <= settled.threads, "threads grew from {} to {}", settled.threads, last.threads);
    Ok(())
}
