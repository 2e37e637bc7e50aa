//! A model on a device, and what goes into it.

use crate::fit::{self, Part, Wanted, Window};
use crate::found::Found;
use crate::options::{Options, Task};
use crate::reader::{Look, Reader, is_planar, picture_input, picture_size};
use crate::{progress, style};
use anyhow::{Context as _, Result, ensure};
use diptych::tflite::{LoadOptions, Model, TensorInfo};
use diptych::{Context, Dims, HostTensor, Session, SessionOptions};
use image::RgbImage;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Classes that are reported.
const TOP: usize = 5;

/// The inputs of a run by their names.
pub type Inputs = Vec<(String, HostTensor)>;

/// What is done before and after the network.
#[derive(Debug)]
pub struct Work {
    pub reader: Reader,
    pub wanted: Wanted,
    /// Who says how values are normalised.
    pub normalised_by: &'static str,
    /// The name of the input that is a picture, its dimensions, and whether its channels come first.
    picture: (String, Dims, bool),
    /// The numbers of the style, and the name of their input.
    pub style: Option<(String, HostTensor)>,
    pub labels: Vec<String>,
    crop: Option<Part>,
    least: Option<f32>,
    mirrored: bool,
}

/// A model that is ready to run.
#[derive(Debug)]
pub struct Network {
    pub work: Work,
    pub session: Session,
    pub file: PathBuf,
    /// The device and why it was chosen.
    pub device: String,
    /// How long it took to find the device and to make the network ready for it.
    pub prepared: Duration,
}

/// The task's file: the one that is named, or that of the usual name.
fn file(options: &Options) -> Result<PathBuf> {
    if let Some(file) = &options.model {
        return Ok(file.clone());
    }
    let file = options.models().join(options.task.file());
    ensure!(
        file.exists(),
        "--task {} needs a network, and {} is not there; --model names a TensorFlow Lite or ONNX file, --models the \
         folder of {}",
        options.task,
        file.display(),
        options.task.file()
    );
    Ok(file)
}

/// The names of the classes in a file: one a line.
fn labels(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().map(|line| line.trim().to_owned()).collect())
}

/// The normalisation of each channel that a file's metadata say.
fn normalisation(info: Option<&TensorInfo>) -> Option<[(f32, f32); 3]> {
    let told = match *info?.normalisation.as_slice() {
        [all] => [all; 3],
        [red, green, blue] => [red, green, blue],
        _ => return None,
    };
    told.iter().all(|(mean, deviation)| mean.is_finite() && deviation.is_normal()).then_some(told)
}

impl Work {
    /// Finds out how a model is used for a task. The style's numbers are added later.
    pub fn of(options: &Options, model: &Model) -> Result<Self> {
        let reader = Reader::find(options.task, model)?;
        let picture = picture_input(model).context("no input is a picture")?;
        let input = &model.inputs[picture];
        let size = picture_size(input).context("no input is a picture")?;
        let (mut wanted, mut normalised_by) = reader.wanted(size);
        if let Some(found) = normalisation(model.info.inputs.get(picture)) {
            (wanted.normalise, normalised_by) = (found, "the model's metadata");
        }
        if let Some((low, high)) = options.range {
            (wanted.normalise, normalised_by) = (fit::range(low, high), "--range");
        }
        if let (Some(means), Some(deviations)) = (options.mean, options.deviation) {
            wanted.normalise = std::array::from_fn(|channel| (means[channel], deviations[channel]));
            normalised_by = "--mean and --deviation";
        }
        let labels = match &options.labels {
            Some(path) => labels(path)?,
            None => {
                // A hand's labels are those of its side.
                let told =
                    model.info.outputs.iter().map(|info| &info.labels).find(|labels| !labels.is_empty());
                let told = told.filter(|_| options.task != Task::Hands);
                told.cloned().unwrap_or_else(|| reader.labels())
            }
        };
        Ok(Work {
            reader,
            wanted,
            normalised_by,
            picture: (input.name.clone(), input.dims, is_planar(input)),
            style: None,
            labels,
            crop: options.crop,
            least: options.min_score,
            mirrored: options.mirrored,
        })
    }

    /// The part of a picture that is looked at, and how the input lies over it.
    fn window(&self, picture: &RgbImage) -> (Part, Window) {
        let part = self.crop.unwrap_or_else(|| Part::whole(picture));
        (part, Window::of(part, self.wanted.size, self.wanted.fit))
    }

    /// What the network is given of a picture.
    pub fn inputs(&self, picture: &RgbImage) -> Result<Inputs> {
        let (part, window) = self.window(picture);
        let (w, h) = picture.dimensions();
        let inside =
            part.x < w.into() && part.y < h.into() && part.x + part.width > 0.0 && part.y + part.height > 0.0;
        ensure!(inside, "--crop: nothing of the picture ({w}x{h}) is in that part");
        let values = fit::input(picture, &window, &self.wanted)?;
        let (name, dims, planar) = &self.picture;
        let values = if *planar { fit::planes(&values) } else { values };
        let mut inputs = vec![(name.clone(), HostTensor::new(*dims, values)?)];
        inputs.extend(self.style.clone());
        Ok(inputs)
    }

    /// What the network says of a picture.
    pub fn read(&self, outputs: &[HostTensor], picture: &RgbImage) -> Result<Found> {
        let (part, window) = self.window(picture);
        let (least, mirrored) = (self.least, self.mirrored);
        self.reader.read(outputs, &Look { picture, part, window, least, mirrored, top: TOP })
    }
}

impl Network {
    /// Makes the options' model ready.
    pub fn new(options: &Options) -> Result<Self> {
        let file = file(options)?;
        let open =
            LoadOptions { dimensions: options.dimension.iter().cloned().collect(), ..Default::default() };
        let model = Model::load(&file, &open)?;
        let mut work = Work::of(options, &model).with_context(|| format!("{}", file.display()))?;
        let start = Instant::now();
        let context = Context::new(options.backend)?;
        if let Reader::Style { numbers, .. } = work.reader {
            let port = model.inputs.iter().find(|port| port.name != work.picture.0);
            let port = port.context("no input for the style")?;
            let numbers = style::numbers(options, &context, numbers)?;
            work.style = Some((port.name.clone(), HostTensor::new(port.dims, numbers)?));
        }
        let settings = SessionOptions { precision: options.precision.precision(), ..Default::default() };
        let session =
            progress::spinner("preparing the network", || Session::new(&context, &model.graph, settings))?;
        let (device, prepared) = (context.info().to_string(), start.elapsed());
        Ok(Network { work, session, file, device, prepared })
    }

    /// Runs the network: its outputs, and the time from host to host.
    pub fn run(&mut self, inputs: &Inputs) -> Result<(Vec<HostTensor>, Duration)> {
        let inputs: Vec<(&str, &HostTensor)> =
            inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let start = Instant::now();
        let outputs = self.session.run(&inputs)?;
        Ok((outputs, start.elapsed()))
    }
}
