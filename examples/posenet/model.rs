//! A network as a PoseNet: its input, its heads, and a session that runs it.

use crate::decode::{self, Pose};
use crate::heads::{self, Heads, Map, Roles};
use crate::multi::{self, Settings};
use crate::options::Options;
use crate::picture::Picture;
use crate::{progress, tuning};
use anyhow::{Context as _, Result, bail, ensure};
use diptych::{
    Backend, Context, Dims, Graph, HostTensor, LoadOptions, Session, SessionOptions, Shape, StageTimes,
    Tuning, tflite,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The default network, ours: MobileNetV1 0.35 at 257 x 257, stride 16, trained on drawn figures only
/// (`train/`).
pub const FIGURES: &[u8] = include_bytes!("data/posenet_figures.tflite");

/// What the default network is called in reports.
pub const FIGURES_NAME: &str = "examples/posenet/data/posenet_figures.tflite";

/// The network that the options name, and its name.
pub fn graph(options: &Options) -> Result<(PathBuf, Graph)> {
    match &options.model {
        Some(path) => {
            let model = diptych::Model::load(path, &LoadOptions::default())?;
            Ok((path.clone(), model.graph))
        }
        None => Ok((FIGURES_NAME.into(), tflite::from_bytes(FIGURES)?)),
    }
}

/// How a graph is used as a PoseNet.
#[derive(Debug, Clone)]
pub struct Model {
    input: String,
    dims: Dims,
    /// Whether channels come before height and width, as in ONNX files.
    planar: bool,
    /// Height and width of the input.
    pub size: [usize; 2],
    roles: Roles,
}

impl Model {
    /// Finds the input and the heads.
    ///
    /// # Errors
    /// If the graph is no PoseNet; with what was found.
    pub fn of(graph: &Graph) -> Result<Self> {
        let &[input] = graph.inputs() else {
            bail!("not a PoseNet: found {} inputs, wanted one", graph.inputs().len());
        };
        let (shape, dims) = (graph.shape(input)?, graph.dims(input)?);
        let name = graph.name(input)?.to_owned();
        let planar = shape.c != 3 && shape.h == 3;
        let [n, h, w, c] = extents(shape, planar);
        ensure!(n == 1 && c == 3, "not a PoseNet: input {name:?} is {shape}, wanted 1xHxWx3 or 1x3xHxW");
        let size = [h, w];
        let mut outputs = Vec::new();
        for &output in graph.outputs() {
            outputs.push((graph.name(output)?.to_owned(), extents(graph.shape(output)?, planar)));
        }
        let roles = Roles::find(&outputs)?;
        let [_, h, w, _] = outputs[roles.heatmap].1;
        heads::output_stride(size, [h, w])?;
        Ok(Model { input: name, dims, planar, size, roles })
    }

    /// A picture as the network's input.
    pub fn input(&self, picture: &Picture) -> Result<HostTensor> {
        let pixels = picture.input(self.size)?;
        let values = if self.planar { turned(&pixels, pixels.len() / 3, 3) } else { pixels };
        Ok(HostTensor::new(self.dims, values)?)
    }

    /// The heads among the outputs of a run.
    pub fn heads(&self, outputs: &[HostTensor]) -> Result<Heads> {
        let map = |what: &str, index: usize| {
            let tensor = outputs.get(index).with_context(|| format!("the run returned no {what}"))?;
            let [n, h, w, c] = extents(tensor.shape(), self.planar);
            let values = tensor.to_nhwc();
            let values = if self.planar { turned(&values, c, h * w) } else { values.into_owned() };
            Map::new(what, [n, h, w, c], values)
        };
        let displacements = match self.roles.displacements {
            Some([forward, backward]) => {
                Some([map("displacement_fwd", forward)?, map("displacement_bwd", backward)?])
            }
            None => None,
        };
        Heads::new(
            self.size,
            map("heatmap", self.roles.heatmap)?,
            map("offset", self.roles.offset)?,
            displacements,
        )
    }
}

/// Batch, height, width and channels; of a `planar` one the channels come second.
fn extents(shape: Shape, planar: bool) -> [usize; 4] {
    match planar {
        true => [shape.n, shape.w, shape.c, shape.h],
        false => [shape.n, shape.h, shape.w, shape.c],
    }
}

/// `rows` of `columns` numbers with rows and columns in each other's place.
fn turned(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| values[row * columns + column])).collect()
}

/// A PoseNet on a device.
#[derive(Debug)]
pub struct Network {
    pub model: Model,
    pub session: Session,
    /// The device and why it was chosen.
    pub device: String,
    /// How long it took to find the device and to make the network ready for it.
    pub prepared: Duration,
}

impl Network {
    /// Makes the network ready on a backend.
    pub fn new(options: &Options, backend: Backend, model: &Model, graph: &Graph) -> Result<Self> {
        let start = Instant::now();
        let context = Context::new(backend)?;
        let opened = start.elapsed();
        let tuning = tuning::tuning(options, &context, graph)?;
        let by_record = !matches!(tuning, Tuning::Default);
        let start = Instant::now();
        let session = progress::spinner("preparing the network", || {
            Session::new(&context, graph, SessionOptions { tuning, ..Default::default() })
        })?;
        let prepared = opened + start.elapsed();
        if by_record {
            eprintln!("posenet: {}", tuning::describe(&session));
        }
        Ok(Network { model: model.clone(), session, device: context.info().to_string(), prepared })
    }

    /// Runs the network: the heads, and the time from host to host.
    pub fn run(&mut self, input: &HostTensor) -> Result<(Heads, Duration)> {
        let start = Instant::now();
        let outputs = self.session.run(&[(self.model.input.as_str(), input)])?;
        let time = start.elapsed();
        Ok((self.model.heads(&outputs)?, time))
    }

    /// Runs the network with a wait after each stage: the heads, and the time of each stage.
    pub fn run_in_stages(&mut self, input: &HostTensor) -> Result<(Heads, StageTimes)> {
        let (outputs, times) = self.session.run_in_stages(&[(self.model.input.as_str(), input)])?;
        Ok((self.model.heads(&outputs)?, times))
    }

    /// The time of each step on the device.
    pub fn profile(&mut self, input: &HostTensor) -> Result<diptych::Profile> {
        Ok(self.session.profile(&[(self.model.input.as_str(), input)])?)
    }
}

/// The people that the heads show, in pixels of the picture.
pub fn poses(
    heads: &Heads,
    model: &Model,
    picture: &Picture,
    several: Option<Settings>,
) -> Result<Vec<Pose>> {
    let poses = match several {
        Some(settings) => multi::multi(heads, &settings)?,
        None => vec![decode::single(heads)],
    };
    Ok(poses.iter().map(|pose| pose.map(|at| picture.position(model.size, at))).collect())
}
