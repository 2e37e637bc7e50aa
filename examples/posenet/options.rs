//! The command line.

use clap::Parser;
use diptych::Backend;
use diptych_decode::posenet::Settings;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Finds people in a picture with PoseNet and draws their skeletons on it.
///
/// Without arguments: the bundled network, which knows drawn figures only, on a bundled picture.
#[derive(Debug, Clone, Parser)]
#[command(name = "posenet")]
pub struct Options {
    /// The network: a TensorFlow Lite or ONNX file of a float PoseNet; without it, the bundled one
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// The picture: jpg, png, bmp or gif; without it, a bundled one with several people
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,

    /// Many pictures to one animation: a folder of frames, taken by name, or an animated GIF
    #[arg(long, value_name = "FRAMES", conflicts_with_all = ["image", "runs", "profile"])]
    pub video: Option<PathBuf>,

    /// Frames a second of the animation made from a folder
    #[arg(long, value_name = "N", default_value_t = 12.0, value_parser = rate, requires = "video")]
    pub fps: f32,

    /// Runs on two backends: both drawings side by side, and where their heatmaps differ
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1, conflicts_with_all = ["video", "runs", "profile", "backend"])]
    pub compare: Vec<Backend>,

    /// Measures the share of parts found (PCK@0.1) on the pictures of a folder with a truth.json
    #[arg(long, value_name = "DIR", conflicts_with_all = ["image", "video", "compare", "runs", "profile", "output"])]
    pub evaluate: Option<PathBuf>,

    /// Where the network runs: auto, wgpu, opencl or cpu
    #[arg(long, default_value = "auto")]
    pub backend: Backend,

    /// Where the drawing is written, as PNG (pose.png), or with --video as GIF (pose.gif), or as numbered PNGs if it
    /// is a folder or has no ending
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Look for several people; without it, for one. The bundled picture is always looked at so
    #[arg(long)]
    pub multi: bool,

    /// At most this many people
    #[arg(long, value_name = "N", default_value_t = Settings::default().max_poses)]
    pub max_poses: usize,

    /// Do not draw parts that score below this, 0 to 1
    #[arg(long, value_name = "SCORE", default_value_t = 0.3, value_parser = share)]
    pub min_score: f32,

    /// Run the kernels that the tuner's record says; without DIR, the user's own record
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    pub db: Option<Option<PathBuf>>,

    /// First tune what the record does not know yet, for at most this long
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub tune: Option<Duration>,

    /// Measure the latency of N runs, after the first
    #[arg(long, value_name = "N")]
    pub runs: Option<NonZeroU32>,

    /// Show the time of each node on the device
    #[arg(long)]
    pub profile: bool,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// Where the drawing goes.
    pub fn output(&self) -> PathBuf {
        let default = if self.video.is_some() { "pose.gif" } else { "pose.png" };
        self.output.clone().unwrap_or_else(|| default.into())
    }

    /// How several people are distinguished, where they are looked for.
    pub fn several(&self) -> Option<Settings> {
        let bundled = self.image.is_none() && self.video.is_none() && self.evaluate.is_none();
        let settings = Settings { max_poses: self.max_poses, ..Default::default() };
        (self.multi || bundled).then_some(settings)
    }
}

fn rate(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if (0.1..=100.0).contains(&value) => Ok(value),
        _ => Err("wanted a number from 0.1 to 100".to_owned()),
    }
}

fn share(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("wanted a number from 0 to 1".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|error| format!("wanted a number of seconds: {error}"))?;
    Duration::try_from_secs_f64(number).map_err(|error| format!("wanted a number of seconds: {error}"))
}
