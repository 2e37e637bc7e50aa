//! PoseNet on a picture: finds people, and draws their skeletons.
//!
//! ```text
//! cargo run --release --example posenet
//! cargo run --release --example posenet -- --model posenet.tflite --image photo.jpg
//! ```
//!
//! | file | does |
//! |---|---|
//! | `options.rs` | the command line |
//! | `model.rs` | a network as a PoseNet; the bundled one |
//! | `picture.rs` | picture to network input |
//! | `heads.rs` | which output is which |
//! | `decode.rs`, `multi.rs` | outputs to one pose, or to several |
//! | `skeleton.rs` | names of the parts, and how they hang together |
//! | `tuning.rs` | where the kernels come from |
//! | `draw.rs` | poses onto the picture |
//! | `film.rs` | many pictures to an animation |
//! | `compare.rs` | two backends side by side |
//! | `evaluate.rs` | the share of parts found in pictures whose truth is known |
//! | `report.rs`, `progress.rs` | what is told afterwards, and meanwhile |
//! | `data/`, `train/` | the bundled network and picture; how both were made |

mod compare;
mod decode;
mod draw;
mod evaluate;
mod film;
mod heads;
mod model;
mod multi;
mod options;
mod picture;
mod progress;
mod report;
mod skeleton;
mod tuning;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser as _;
use diptych::HostTensor;
use model::{Model, Network};
use options::Options;
use picture::Picture;
use report::{Latency, NodeRow, Report};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The picture that is looked at where none is named, made by `train/figures.py`.
const PEOPLE: &[u8] = include_bytes!("data/people.png");
const PEOPLE_NAME: &str = "examples/posenet/data/people.png";

/// How often, and for how long at most, the network is run again to tell its time.
const FOLLOWING: (u32, Duration) = (20, Duration::from_secs(2));

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("posenet: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, leaving out causes that were told already.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
    }
    text
}

fn run(options: &Options) -> Result<()> {
    let start = Instant::now();
    check_output(options)?;
    let (name, graph) = model::graph(options)?;
    let model = Model::of(&graph).with_context(|| format!("{}", name.display()))?;
    if let Some(folder) = &options.evaluate {
        let mut network = Network::new(options, options.backend, &model, &graph)?;
        return told(&evaluate::evaluate(options, folder, &name, &mut network)?);
    }
    if let Some(frames) = &options.video {
        let mut network = Network::new(options, options.backend, &model, &graph)?;
        return told(&film::film(options, frames, &name, &mut network)?);
    }
    let (image, picture) = match &options.image {
        Some(path) => (path.clone(), Picture::open(path)?),
        None => (PathBuf::from(PEOPLE_NAME), Picture::read(PEOPLE_NAME, std::io::Cursor::new(PEOPLE))?),
    };
    if let &[left, right] = &options.compare[..] {
        let mut pair = Vec::new();
        for backend in [left, right] {
            pair.push((backend, Network::new(options, backend, &model, &graph)?));
        }
        return told(&compare::compare(options, &picture, &mut pair)?);
    }
    let mut network = Network::new(options, options.backend, &model, &graph)?;
    one(options, (&name, &image), &picture, &mut network, start)
}

/// One picture: its people, the drawing, and the times, from the program's `start` on.
fn one(
    options: &Options,
    (model, image): (&Path, &Path),
    picture: &Picture,
    network: &mut Network,
    start: Instant,
) -> Result<()> {
    let input = network.model.input(picture)?;
    // The first run warms the device up; its outputs are as good as any.
    let (heads, first) = progress::spinner("running the network", || network.run(&input))?;
    eprintln!("posenet: first result after {:.2} s", start.elapsed().as_secs_f64());
    let several = options.several();
    let poses = model::poses(&heads, &network.model, picture, several)?;
    let output = options.output();
    draw::write(&draw::draw(&picture.pixels, &poses, options.min_score)?, &output)?;
    let latency = latency(network, &input, options)?;
    let profile = if options.profile { Some(profile(network, &input)?) } else { None };
    let report = Report {
        model,
        image,
        image_size: picture.pixels.dimensions(),
        input_size: network.model.size,
        device: network.device.clone(),
        multi: several.is_some(),
        poses: &poses,
        prepared: network.prepared,
        first,
        latency,
        profile: profile.as_deref(),
        output: &output,
    };
    told(&if options.json { format!("{:#}\n", report.json()) } else { report.text() })
}

fn told(text: &str) -> Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("writing to standard output")
}

/// Looks before the long work whether the drawing has a place, and not that of what it is made from.
fn check_output(options: &Options) -> Result<()> {
    ensure!(
        options.compare.is_empty() || options.compare.len() == 2,
        "--compare: found {} backends, wanted two, such as wgpu,cpu",
        options.compare.len()
    );
    let output = options.output();
    if let Some(folder) = output.parent()
        && !folder.as_os_str().is_empty()
    {
        ensure!(folder.is_dir(), "--output: there is no folder {}", folder.display());
    }
    let Ok(output) = output.canonicalize() else {
        return Ok(()); // It does not exist yet.
    };
    for source in [&options.image, &options.model, &options.video].into_iter().flatten() {
        if source.canonicalize().is_ok_and(|source| source == output) {
            bail!("--output would overwrite {}", source.display());
        }
    }
    Ok(())
}

/// The times of the runs after the first: as many as asked for, else a few.
fn latency(network: &mut Network, input: &HostTensor, options: &Options) -> Result<Option<Latency>> {
    let (runs, most) = match options.runs {
        Some(runs) => (runs.get(), Duration::MAX),
        None => FOLLOWING,
    };
    let bar = progress::bar("measuring", runs.into());
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < runs as usize && (times.is_empty() || start.elapsed() < most) {
        times.push(network.run(input)?.1);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Latency::of(&times))
}

fn profile(network: &mut Network, input: &HostTensor) -> Result<Vec<NodeRow>> {
    let profile = progress::spinner("profiling", || network.profile(input))?;
    let rows = profile.nodes.iter().map(|node| NodeRow {
        name: node.name.clone(),
        op: node.op.to_owned(),
        kernel: node.kernel.clone(),
        work_group: node.work_group,
        ms: report::milliseconds(node.time),
    });
    Ok(rows.collect())
}
