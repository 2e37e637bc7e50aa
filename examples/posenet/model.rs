//! A network as a PoseNet: its input, its heads, and what they show.

use crate::decode::{self, Pose};
use crate::heads::{self, Heads, Map, Roles};
use crate::input::position;
use crate::multi::{self, Settings};
use crate::picture::Picture;
use anyhow::{Context as _, Result, bail, ensure};
use diptych::{Dims, Graph, HostTensor, Shape};

/// The default network, ours: MobileNetV1 0.35 at 257 x 257, stride 16, trained on drawn figures only
/// (`train/`).
pub const FIGURES: &[u8] = include_bytes!("data/posenet_figures.tflite");

/// The one picture that a network takes.
#[derive(Debug, Clone)]
pub struct Input {
    pub name: String,
    dims: Dims,
    /// Whether channels come before height and width, as in ONNX files.
    planar: bool,
    /// Height and width.
    pub size: [usize; 2],
}

impl Input {
    /// Finds the input.
    ///
    /// # Errors
    /// If the network takes no picture of three channels, or something else besides; with what was found.
    pub fn of(graph: &Graph) -> Result<Self> {
        let &[input] = graph.inputs() else {
            bail!("found {} inputs, wanted one picture", graph.inputs().len());
        };
        let (shape, dims) = (graph.shape(input)?, graph.dims(input)?);
        let name = graph.name(input)?.to_owned();
        let planar = shape.c != 3 && shape.h == 3;
        let [n, h, w, c] = extents(shape, planar);
        ensure!(n == 1 && c == 3, "input {name:?} is {shape}, wanted 1xHxWx3 or 1x3xHxW");
        Ok(Input { name, dims, planar, size: [h, w] })
    }

    /// A picture as the network takes it; `value` is given each value, which [`Picture::input`] normalised.
    pub fn tensor(&self, picture: &Picture, value: impl Fn(usize, f32) -> f32) -> Result<HostTensor> {
        let mut pixels = picture.input(self.size)?;
        for (at, pixel) in pixels.iter_mut().enumerate() {
            *pixel = value(at % 3, *pixel);
        }
        let values = if self.planar { turned(&pixels, pixels.len() / 3, 3) } else { pixels };
        Ok(HostTensor::new(self.dims, values)?)
    }
}

/// How a graph is used as a PoseNet.
#[derive(Debug, Clone)]
pub struct Model {
    pub input: Input,
    roles: Roles,
}

impl Model {
    /// Finds the input and the heads.
    ///
    /// # Errors
    /// If the graph is no PoseNet; with what was found.
    pub fn of(graph: &Graph) -> Result<Self> {
        let input = Input::of(graph).context("not a PoseNet")?;
        let mut outputs = Vec::new();
        for &output in graph.outputs() {
            outputs.push((graph.name(output)?.to_owned(), extents(graph.shape(output)?, input.planar)));
        }
        let roles = Roles::find(&outputs)?;
        let [_, h, w, _] = outputs[roles.heatmap].1;
        heads::output_stride(input.size, [h, w])?;
        Ok(Model { input, roles })
    }

    /// A picture as the network's input.
    pub fn input(&self, picture: &Picture) -> Result<HostTensor> {
        self.input.tensor(picture, |_, value| value)
    }

    /// The heads among the outputs of a run.
    pub fn heads(&self, outputs: &[HostTensor]) -> Result<Heads> {
        let map = |what: &str, index: usize| {
            let tensor = outputs.get(index).with_context(|| format!("the run returned no {what}"))?;
            let [n, h, w, c] = extents(tensor.shape(), self.input.planar);
            let values = tensor.to_nhwc();
            let values = if self.input.planar { turned(&values, c, h * w) } else { values.into_owned() };
            Map::new(what, [n, h, w, c], values)
        };
        let displacements = match self.roles.displacements {
            Some([forward, backward]) => {
                Some([map("displacement_fwd", forward)?, map("displacement_bwd", backward)?])
            }
            None => None,
        };
        Heads::new(
            self.input.size,
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

/// The people that the heads show, in pixels of the picture of this size (width, height).
pub fn poses(heads: &Heads, model: &Model, size: (u32, u32), several: Option<Settings>) -> Result<Vec<Pose>> {
    let poses = match several {
        Some(settings) => multi::multi(heads, &settings)?,
        None => vec![decode::single(heads)],
    };
    Ok(poses.iter().map(|pose| pose.map(|at| position(size, model.input.size, at))).collect())
}
