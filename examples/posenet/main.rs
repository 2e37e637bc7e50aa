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
//! | `model.rs` | the bundled network; a graph as a PoseNet |
//! | `network.rs` | a session that runs it |
//! | `tuning.rs` | where the kernels come from |
//! | `draw.rs` | poses onto the picture |
//! | `film.rs` | many pictures to an animation |
//! | `compare.rs` | two backends side by side |
//! | `evaluate.rs` | the share of parts found in pictures whose truth is known |
//! | `report.rs` | the report |
//! | `../shared/` | frames, drawing, progress and tables, for several examples |
//! | the crate `diptych-decode` | pictures to inputs, outputs to one pose or to several, and the names of the parts |
//! | `data/`, `train/` | the bundled network and picture; how both were made |

mod compare;
mod draw;
mod evaluate;
mod film;
mod model;
mod network;
mod options;
mod report;
mod tuning;

#[path = "../shared/canvas.rs"]
mod canvas;
#[path = "../shared/frames.rs"]
mod frames;
#[path = "../shared/print.rs"]
mod print;
#[path = "../shared/progress.rs"]
mod progress;
#[path = "../shared/tables.rs"]
mod tables;

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use diptych::{HostTensor, TimedStep};
use diptych_decode::picture::Picture;
use model::Model;
use network::Network;
use options::Options;
use report::{NodeRow, Report};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tables::Latency;

/// The picture that is looked at where none is named, made by `train/figures.py`.
const PEOPLE: &[u8] = include_bytes!("data/people.png");
const PEOPLE_NAME: &str = "examples/posenet/data/people.png";

/// How often, and for how long at most, the network is run again to measure its time.
const FOLLOWING: (u32, Duration) = (20, Duration::from_secs(2));

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("posenet: {}", print::sentence(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let start = Instant::now();
    let compared = options.compare.len();
    ensure!(matches!(compared, 0 | 2), "--compare: found {compared} backends, wanted two, such as wgpu,cpu");
    print::check_output(&options.output(), &[&options.image, &options.model, &options.video])?;
    let (name, graph) = network::graph(options)?;
    let model = Model::of(&graph).with_context(|| format!("{}", name.display()))?;
    if let Some(folder) = &options.evaluate {
        let mut network = Network::new(options, options.backend, &model, &graph)?;
        return print::text(&evaluate::evaluate(options, folder, &name, &mut network)?);
    }
    if let Some(frames) = &options.video {
        let mut network = Network::new(options, options.backend, &model, &graph)?;
        return print::text(&film::film(options, frames, &name, &mut network)?);
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
        return print::text(&compare::compare(options, &picture, &mut pair)?);
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
    let poses = model::poses(&heads, &network.model, picture.pixels.dimensions(), several)?;
    let output = options.output();
    canvas::write(&draw::draw(&picture.pixels, &poses, options.min_score)?, &output)?;
    let latency = latency(network, &input, options)?;
    let profile = if options.profile { Some(profile(network, &input)?) } else { None };
    let report = Report {
        model,
        image,
        image_size: picture.pixels.dimensions(),
        input_size: network.model.input.size,
        device: network.device.clone(),
        multi: several.is_some(),
        poses: &poses,
        prepared: network.prepared,
        first,
        latency,
        profile: profile.as_deref(),
        output: &output,
    };
    print::text(&if options.json { format!("{:#}\n", report.json()) } else { report.text() })
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
    let rows = profile.steps.into_iter().map(|TimedStep { step, time }| NodeRow {
        name: step.name,
        op: step.op.to_owned(),
        kernel: step.kernel,
        work_group: step.work_group,
        ms: tables::milliseconds(time),
    });
    Ok(rows.collect())
}
