//! The bundled network, and a graph as a PoseNet.

use anyhow::{Context as _, Result};
use diptych::{Dims, Graph, HostTensor, Value};
use diptych_decode::picture::Picture;
use diptych_decode::posenet::{Heads, PictureInput, PoseNet, Settings};
use diptych_decode::{Output, Port, Pose};

/// The default network, ours: MobileNetV1 0.35 at 257 x 257, stride 16, trained on drawn figures only
/// (`train/`).
pub const FIGURES: &[u8] = include_bytes!("data/posenet_figures.tflite");

/// How a graph is used as a PoseNet.
#[derive(Debug, Clone)]
pub struct Model {
    pub input: PictureInput,
    dims: Dims,
    outputs: Vec<Port>,
    posenet: PoseNet,
}

impl Model {
    /// Finds the input and the heads.
    ///
    /// # Errors
    /// If the graph is no PoseNet; with what was found.
    pub fn of(graph: &Graph) -> Result<Self> {
        let input = PictureInput::find(&ports(graph, graph.inputs())?).context("not a PoseNet")?;
        let dims = graph.dims(*graph.inputs().first().context("no input")?)?;
        let outputs = ports(graph, graph.outputs())?;
        let posenet = PoseNet::new(input.clone(), &outputs)?;
        Ok(Model { input, dims, outputs, posenet })
    }

    /// A picture as the network's input.
    pub fn input(&self, picture: &Picture) -> Result<HostTensor> {
        Ok(HostTensor::new(self.dims, self.input.arrange(picture.input(self.input.size)?))?)
    }

    /// The heads among the outputs of a run.
    pub fn heads(&self, outputs: &[HostTensor]) -> Result<Heads<'static>> {
        let named = self.outputs.iter().zip(outputs);
        let outputs: Vec<Output<'_>> = named
            .map(|(port, tensor)| Output::new(&port.name, tensor.dims().extents(), tensor.to_nhwc()))
            .collect();
        Ok(self.posenet.heads(&outputs)?.finite()?.into_owned())
    }
}

/// Names and extents of inputs or outputs.
fn ports(graph: &Graph, values: &[Value]) -> Result<Vec<Port>> {
    let port = |&value: &Value| {
        let (name, dims) = (graph.name(value)?.to_owned(), graph.dims(value)?);
        Ok(Port { name, extents: dims.extents().to_vec() })
    };
    values.iter().map(port).collect()
}

/// The people that the heads show, in pixels of the picture of this size (width, height).
pub fn poses(
    heads: &Heads<'_>,
    model: &Model,
    size: (u32, u32),
    several: Option<Settings>,
) -> Result<Vec<Pose>> {
    Ok(model.posenet.poses(heads, size, several.as_ref())?)
}
