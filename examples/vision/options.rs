//! The command line.

use crate::fit::Part;
use clap::{Parser, ValueEnum};
use diptych::{Backend, Precision};
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Looks at a picture with a network that others trained, and draws what it found.
///
/// It needs a TensorFlow Lite or ONNX file for the task: --model names it, or --models the folder where files of the
/// usual names are. Without --image it looks at a picture that it draws itself.
#[derive(Debug, Clone, Parser)]
#[command(name = "vision")]
pub struct Options {
    /// What to look for
    #[arg(long, value_enum)]
    pub task: Task,

    /// The network: a TensorFlow Lite or ONNX file; without it, the task's own from --models
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// Where networks are looked for [default: models in $DIPTYCH_SHARED, or else in ../shared]
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,

    /// An extent that the model's file leaves open: `batch`, or `INPUT.AXIS` as in `image.1`
    #[arg(long, value_name = "NAME=EXTENT", value_parser = dimension)]
    pub dimension: Vec<(String, usize)>,

    /// The picture: jpg, png, bmp or gif; without it, a drawn person, or for hands a drawn hand
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,

    /// Look only at this part of the picture, in pixels; a hand or a face should fill it
    #[arg(long, value_name = "X,Y,W,H", value_parser = part)]
    pub crop: Option<Part>,

    /// Many pictures: a folder of frames, taken by name, or an animated GIF
    #[arg(long, value_name = "FRAMES", conflicts_with_all = ["image", "runs"])]
    pub video: Option<PathBuf>,

    /// Frames a second of the animation made from a folder
    #[arg(long, value_name = "N", default_value_t = 12.0, value_parser = rate, requires = "video")]
    pub fps: f32,

    /// Where the drawing is written: as PNG [default: vision.png]; with --video as GIF [default: vision.gif],
    /// or as numbered PNGs if this is a folder or has no ending
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The style for --task style: a picture, which needs a network that reads styles (--style-model), or a .json
    /// file with a list of numbers, as --json prints it; without it, a random style
    #[arg(long, value_name = "FILE")]
    pub style: Option<PathBuf>,

    /// The network that reads the style of a picture; without it, style_predict_f16_256.tflite from --models
    #[arg(long, value_name = "FILE", requires = "style")]
    pub style_model: Option<PathBuf>,

    /// What a random style is made of
    #[arg(long, default_value_t = 0, conflicts_with = "style")]
    pub seed: u64,

    /// Names of the classes, a line each, where the model's file has none
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,

    /// What black and white are in the input, if not what the model's file or its authors say
    #[arg(long, value_name = "LOW,HIGH", value_parser = range, allow_hyphen_values = true)]
    pub range: Option<(f32, f32)>,

    /// What is subtracted from red, green and blue (0 to 255), if not what the model's file or its authors say
    #[arg(long, value_name = "R,G,B", value_parser = means, requires = "deviation", conflicts_with = "range")]
    pub mean: Option<[f32; 3]>,

    /// What red, green and blue are divided by then
    #[arg(long, value_name = "R,G,B", value_parser = deviations, requires = "mean")]
    pub deviation: Option<[f32; 3]>,

    /// The least score of what counts as found, 0 to 1 [default: what the network's authors take]
    #[arg(long, value_name = "SCORE", value_parser = share)]
    pub min_score: Option<f32>,

    /// The picture is as a mirror shows it, like that of a front camera: left and right hand change places
    #[arg(long)]
    pub mirrored: bool,

    /// Where the network runs: auto, wgpu, opencl or cpu
    #[arg(long, default_value = "auto")]
    pub backend: Backend,

    /// How the network stores numbers and computes
    #[arg(long, value_enum, default_value_t = Numbers::F32)]
    pub precision: Numbers,

    /// Measure the latency of N runs, after the first
    #[arg(long, value_name = "N")]
    pub runs: Option<NonZeroU32>,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// What there is to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Task {
    /// Which pixels are a person's, or which of several classes: selfie segmentation, DeepLab
    Segment,
    /// The 21 joints of a hand that fills the picture, and which hand it is: MediaPipe's hand landmarks
    Hands,
    /// Faces, with eyes, nose, mouth and ears: MediaPipe's face detection, YuNet
    Faces,
    /// People, palms, or the objects of an SSD: MediaPipe's pose and palm detection, TFLite_Detection_PostProcess
    Detect,
    /// What the picture shows, the five best classes: MobileNet, and others that score classes
    Classify,
    /// The picture in another style: Magenta's style transfer
    Style,
}

impl Task {
    /// The file that is looked for where none is named.
    pub fn file(self) -> &'static str {
        match self {
            Task::Segment => "selfie_segmentation.tflite",
            Task::Hands => "hand_landmark_lite.tflite",
            Task::Faces => "face_detection_short_range.tflite",
            Task::Detect => "pose_detection.tflite",
            Task::Classify => "mobilenet_v1_0.25_224_keras_f32.tflite",
            Task::Style => "style_transfer_f16_384.tflite",
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_possible_value() {
            Some(value) => f.write_str(value.get_name()),
            None => Ok(()),
        }
    }
}

/// Storage and arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Numbers {
    /// f32 storage and arithmetic
    F32,
    /// f16 storage for each node whose result it does not harm beyond a bound, f32 for the others
    Auto,
    /// f16 storage, f32 arithmetic
    F16s,
    /// f16 storage and arithmetic
    F16,
}

impl Numbers {
    pub fn precision(self) -> Precision {
        match self {
            Numbers::F32 => Precision::F32,
            Numbers::Auto => Precision::Auto,
            Numbers::F16s => Precision::F16Storage,
            Numbers::F16 => Precision::F16,
        }
    }
}

impl Options {
    /// Where the drawing goes.
    pub fn output(&self) -> PathBuf {
        let default = if self.video.is_some() { "vision.gif" } else { "vision.png" };
        self.output.clone().unwrap_or_else(|| default.into())
    }

    /// The folder of the networks.
    pub fn models(&self) -> PathBuf {
        let shared = || std::env::var_os("DIPTYCH_SHARED").map_or_else(|| "../shared".into(), PathBuf::from);
        self.models.clone().unwrap_or_else(|| shared().join("models"))
    }
}

fn numbers<const N: usize>(text: &str) -> Option<[f64; N]> {
    let numbers: Option<Vec<f64>> =
        text.split(',').map(|number| number.trim().parse().ok().filter(|it: &f64| it.is_finite())).collect();
    numbers?.try_into().ok()
}

fn part(text: &str) -> Result<Part, String> {
    match numbers(text) {
        Some([x, y, width, height]) if width >= 1.0 && height >= 1.0 => Ok(Part { x, y, width, height }),
        _ => Err("wanted X,Y,W,H: left, top, width and height in pixels".to_owned()),
    }
}

fn dimension(text: &str) -> Result<(String, usize), String> {
    let (name, extent) = text.rsplit_once('=').ok_or("wanted NAME=EXTENT")?;
    match extent.parse() {
        Ok(extent) if extent > 0 && !name.is_empty() => Ok((name.to_owned(), extent)),
        _ => Err("wanted NAME=EXTENT, a whole number above 0".to_owned()),
    }
}

fn range(text: &str) -> Result<(f32, f32), String> {
    match numbers(text) {
        Some([low, high]) if low < high => Ok((low as f32, high as f32)),
        _ => Err("wanted LOW,HIGH: two numbers, such as 0,1 or -1,1".to_owned()),
    }
}

fn means(text: &str) -> Result<[f32; 3], String> {
    let numbers = numbers(text).map(|numbers: [f64; 3]| numbers.map(|number| number as f32));
    numbers.ok_or_else(|| "wanted R,G,B: three numbers, such as 123.7,116.3,103.5".to_owned())
}

fn deviations(text: &str) -> Result<[f32; 3], String> {
    let numbers = means(text)?;
    match numbers.iter().all(|number| *number > 0.0) {
        true => Ok(numbers),
        false => Err("wanted R,G,B: three numbers above 0, such as 58.4,57.1,57.4".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn wrong_usage_says_what_is_possible() {
        for (line, words) in [
            ("vision", "--task"),
            ("vision --task cats", "segment, hands, faces, detect, classify, style"),
            ("vision --task faces --crop 1,2,3", "X,Y,W,H"),
            ("vision --task faces --crop 1,2,3,0", "X,Y,W,H"),
            ("vision --task faces --range 1,0", "LOW,HIGH"),
            ("vision --task classify --mean 1,2,3", "--deviation"),
            ("vision --task classify --mean 1,2 --deviation 1,1,1", "R,G,B"),
            ("vision --task classify --mean 1,2,3 --deviation 1,0,1", "above 0"),
            ("vision --task faces --min-score 2", "from 0 to 1"),
            ("vision --task faces --dimension image.1", "NAME=EXTENT"),
            ("vision --task faces --dimension image.1=0", "above 0"),
            ("vision --task faces --video a --image b", "cannot be used with"),
            ("vision --task faces --fps 12", "--video"),
        ] {
            let error = Options::try_parse_from(line.split_whitespace()).expect_err(line).to_string();
            assert!(error.contains(words), "{line}: {error}");
        }
        let line = "vision --task classify --range -1,1 --crop 1,2,30,40.5";
        let options = Options::try_parse_from(line.split_whitespace()).expect("a valid line");
        assert_eq!(options.range, Some((-1.0, 1.0)));
        assert_eq!(options.crop, Some(Part { x: 1.0, y: 2.0, width: 30.0, height: 40.5 }));
        assert_eq!(options.task.to_string(), "classify");
    }
}
