//! Networks that other people trained, at work on pictures: masks, hands, faces, people, classes, styles.
//!
//! ```text
//! cargo run --release --example vision -- --task faces --models DIR
//! cargo run --release --example vision -- --task hands --model hand_landmark_lite.tflite --image hand.jpg
//! cargo run --release --example vision -- --task segment --video FRAMES --output film.gif
//! ```
//!
//! What is done before and after each network is what its authors do. These modules are meant to be taken into
//! other programs, and the crate `diptych-decode` is for them too: it decodes boxes and scores of classes.
//!
//! | file | does |
//! |---|---|
//! | `fit.rs` | a picture as an input, and positions of the input in the picture |
//! | `detectors.rs` | detectors: their options |
//! | `hand.rs`, `segment.rs`, `style.rs` | joints of a hand; masks and classes; the numbers of a style |
//! | `reader.rs` | which outputs mean what |
//!
//! and these are the program:
//!
//! | file | does |
//! |---|---|
//! | `options.rs` | the command line |
//! | `network.rs` | a model on a device, what goes in and what comes out |
//! | `found.rs`, `draw.rs`, `ink.rs` | results in words, as JSON and on the picture |
//! | `film.rs` | many pictures to an animation |
//! | `../shared/` | frames, drawing, progress and tables, for several examples |

mod detectors;
mod draw;
mod film;
mod fit;
mod found;
mod hand;
mod ink;
mod network;
mod options;
mod reader;
mod segment;
mod style;

#[path = "../shared/canvas.rs"]
mod canvas;
#[path = "../shared/figures.rs"]
mod figures;
#[path = "../shared/frames.rs"]
mod frames;
#[path = "../shared/print.rs"]
mod print;
#[path = "../shared/progress.rs"]
mod progress;
#[path = "../shared/tables.rs"]
mod tables;

use anyhow::Result;
use clap::Parser as _;
use diptych_decode::picture::Picture;
use found::Found;
use image::RgbImage;
use ink::Ink;
use network::{Inputs, Network};
use options::{Options, Task};
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tables::{Latency, milliseconds, rounded};

/// How often, and for how long at most, the network is run again to measure its time.
const FOLLOWING: (u32, Duration) = (20, Duration::from_secs(2));

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vision: {}", print::sentence(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let sources = [&options.image, &options.model, &options.video, &options.style, &options.labels];
    print::check_output(&options.output(), &sources)?;
    let ink = Ink::new()?;
    let mut network = Network::new(options)?;
    if let Some(frames) = &options.video {
        return print::text(&film::film(options, frames, &mut network, &ink)?);
    }
    let (name, picture) = picture(options)?;
    let inputs = network.work.inputs(&picture)?;
    // The first run warms the device up; its outputs are as good as any.
    let (outputs, first) = progress::spinner("running the network", || network.run(&inputs))?;
    let found = network.work.read(&outputs, &picture)?;
    let output = options.output();
    canvas::write(&draw::draw(&picture, &found, &network.work.labels, &ink)?, &output)?;
    let latency = latency(&mut network, &inputs, options)?;
    let report =
        Report { options, name: &name, picture: &picture, network: &network, found: &found, first, latency };
    print::text(&if options.json { report.json() } else { report.text() })
}

/// The picture that is looked at, and its name.
fn picture(options: &Options) -> Result<(String, RgbImage)> {
    match &options.image {
        Some(path) => Ok((path.display().to_string(), Picture::open(path)?.pixels)),
        None if options.task == Task::Hands => Ok(("a drawn hand".to_owned(), figures::hand()?)),
        None => Ok(("a drawn person".to_owned(), figures::person()?)),
    }
}

/// The times of the runs after the first: as many as asked for, else a few.
fn latency(network: &mut Network, inputs: &Inputs, options: &Options) -> Result<Option<Latency>> {
    let (runs, most) = match options.runs {
        Some(runs) => (runs.get(), Duration::MAX),
        None => FOLLOWING,
    };
    let bar = progress::bar("measuring", runs.into());
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < runs as usize && (times.is_empty() || start.elapsed() < most) {
        times.push(network.run(inputs)?.1);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Latency::of(&times))
}

/// The report on one picture.
struct Report<'a> {
    options: &'a Options,
    name: &'a str,
    picture: &'a RgbImage,
    network: &'a Network,
    found: &'a Found,
    first: Duration,
    latency: Option<Latency>,
}

impl Report<'_> {
    /// `(v - mean) / deviation` of the input's channels.
    fn normalisation(&self) -> String {
        let report = self.network.work.wanted.normalise;
        let one = |(mean, deviation): (f32, f32)| format!("(v - {mean}) / {deviation}");
        let all: Vec<String> = report.iter().map(|&pair| one(pair)).collect();
        if all.iter().all(|text| *text == all[0]) { all[0].clone() } else { all.join(", ") }
    }

    fn json(&self) -> String {
        let work = &self.network.work;
        let mut object = json!({
            "task": self.options.task.to_string(),
            "model": self.network.file.display().to_string(),
            "image": { "name": self.name, "width": self.picture.width(), "height": self.picture.height() },
            "input": { "height": work.wanted.size[0], "width": work.wanted.size[1] },
            "normalisation": self.normalisation(),
            "device": self.network.device,
            "output": self.options.output().display().to_string(),
            "prepared_ms": rounded(milliseconds(self.network.prepared), 3),
            "first_run_ms": rounded(milliseconds(self.first), 4),
            "latency": self.latency.map(|latency| json!({
                "runs": latency.runs,
                "min_ms": rounded(latency.min_ms, 4),
                "median_ms": rounded(latency.median_ms, 4),
                "p90_ms": rounded(latency.p90_ms, 4),
            })),
            "style": work.style.as_ref().map(|(_, numbers)| numbers.to_nhwc().into_owned()),
            "found": self.found.json(&work.labels),
        });
        if work.style.is_none()
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("style");
        }
        format!("{object:#}\n")
    }

    fn text(&self) -> String {
        let Report { network, picture, .. } = self;
        let [height, width] = network.work.wanted.size;
        let mut out = format!(
            "model    {} (input {width}x{height}, {} as {})\nimage    {} ({}x{})\ndevice   {}\n\n{}\n\n",
            network.file.display(),
            self.normalisation(),
            network.work.normalised_by,
            self.name,
            picture.width(),
            picture.height(),
            network.device,
            self.found.text(&network.work.labels),
        );
        out += &format!(
            "ready    after {:.0} ms\nfirst    run {:.3} ms, host to host\n",
            milliseconds(network.prepared),
            milliseconds(self.first)
        );
        if let Some(latency) = self.latency {
            out += &format!(
                "then     {} runs: median {:.3} ms, p90 {:.3} ms, min {:.3} ms\n",
                latency.runs, latency.median_ms, latency.p90_ms, latency.min_ms
            );
        }
        out + &format!("drawing  {}\n", self.options.output().display())
    }
}
