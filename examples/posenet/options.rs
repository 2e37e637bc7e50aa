//! The command line.

use crate::multi::Settings;
use clap::Parser;
use diptych::Backend;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Finds people in a photograph with PoseNet and draws their skeletons on it.
#[derive(Debug, Clone, Parser)]
#[command(name = "posenet")]
pub struct Options {
    /// The network: a TensorFlow Lite file of a float PoseNet
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,

    /// The photograph: jpg, png or bmp
    #[arg(long, value_name = "FILE")]
    pub image: PathBuf,

    /// Where the network runs: auto, wgpu, opencl or cpu
    #[arg(long, default_value = "auto")]
    pub backend: Backend,

    /// Where the photograph with the skeletons is written, as PNG
    #[arg(long, value_name = "FILE", default_value = "pose.png")]
    pub output: PathBuf,

    /// Look for several people; without it, for one
    #[arg(long)]
    pub multi: bool,

    /// At most this many people
    #[arg(long, value_name = "N", default_value_t = Settings::default().max_poses, requires = "multi")]
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
