//! The networks that queries may name.

use crate::columns;
use anyhow::Context as _;
use datafusion::error::{DataFusionError, Result};
use diptych::{Graph, HostTensor, LoadOptions, Value};
use diptych_decode::picture::Picture;
use diptych_decode::posenet::{PictureInput, PoseNet, Settings};
use diptych_decode::{Output, Port, Pose};
use std::path::PathBuf;

/// The bundled PoseNet.
const FIGURES: &[u8] = include_bytes!("../../../examples/posenet/data/posenet_figures.tflite");

/// A network under the name by which queries call it. They reach no file but those that are given here.
#[derive(Debug, Clone)]
pub struct Network {
    pub(crate) name: String,
    source: Source,
    normalisation: Normalisation,
}

#[derive(Debug, Clone)]
enum Source {
    Figures,
    File(PathBuf),
}

/// How a network takes colours: `(v - mean) / deviation` for the values 0 to 255 of red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalisation {
    /// What is subtracted.
    pub mean: [f32; 3],
    /// What is divided by.
    pub deviation: [f32; 3],
}

impl Default for Normalisation {
    /// From -1 to 1.
    fn default() -> Self {
        Normalisation { mean: [127.5; 3], deviation: [127.5; 3] }
    }
}

impl Network {
    /// A TensorFlow Lite or ONNX file.
    pub fn file(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Network {
            name: name.into(),
            source: Source::File(path.into()),
            normalisation: Normalisation::default(),
        }
    }

    /// The bundled PoseNet, which finds drawn people.
    pub fn figures(name: impl Into<String>) -> Self {
        Network { name: name.into(), source: Source::Figures, normalisation: Normalisation::default() }
    }

    /// Another normalisation than from -1 to 1.
    #[must_use]
    pub fn normalisation(self, normalisation: Normalisation) -> Self {
        Network { normalisation, ..self }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it is no model, or one that takes something else than a picture; with what was found.
    pub(crate) fn load(self) -> Result<Loaded> {
        let refused =
            |error: String| DataFusionError::Configuration(format!("network {:?}: {error}", self.name));
        let graph = match &self.source {
            Source::Figures => diptych::tflite::from_bytes(FIGURES),
            Source::File(path) => {
                diptych::Model::load(path, &LoadOptions::default()).map(|model| model.graph)
            }
        };
        // What would help is an option of Rust's programs.
        let graph = graph.map_err(|error| refused(error.told(&|_| None)))?;
        let ports = |values: &[Value]| {
            let ports =
                values.iter().map(|&value| port(&graph, value)).collect::<diptych::Result<Vec<Port>>>();
            ports.map_err(|error| refused(error.to_string()))
        };
        let (inputs, outputs) = (ports(graph.inputs())?, ports(graph.outputs())?);
        let input = PictureInput::find(&inputs).map_err(|error| refused(error.to_string()))?;
        if self.normalisation.deviation.iter().any(|deviation| !deviation.is_normal()) {
            return Err(refused(format!("found the deviation {:?}", self.normalisation.deviation)));
        }
        let posenet = PoseNet::new(input.clone(), &outputs).map_err(|error| error.to_string());
        Ok(Loaded { name: self.name, graph, input, posenet, normalisation: self.normalisation })
    }
}

/// Name and extents of an input or output.
fn port(graph: &Graph, value: Value) -> diptych::Result<Port> {
    let (name, dims) = (graph.name(value)?.to_owned(), graph.dims(value)?);
    Ok(Port { name, extents: dims.extents().to_vec() })
}

/// A network that was read.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) graph: Graph,
    pub(crate) input: PictureInput,
    /// The network as a PoseNet, or why it is none.
    pub(crate) posenet: std::result::Result<PoseNet, String>,
    normalisation: Normalisation,
}

impl Loaded {
    /// The input that an encoded picture makes, and the picture's width and height.
    pub(crate) fn prepare(&self, encoded: &[u8]) -> anyhow::Result<(HostTensor, (u32, u32))> {
        let picture = Picture::read("the picture", std::io::Cursor::new(encoded))?;
        let size = picture.pixels.dimensions();
        anyhow::ensure!(size.0 > 0 && size.1 > 0, "the picture is {} x {} pixels", size.0, size.1);
        let Normalisation { mean, deviation } = self.normalisation;
        let mut pixels = picture.input(self.input.size).context("the picture")?;
        if self.normalisation != Normalisation::default() {
            for (place, value) in pixels.iter_mut().enumerate() {
                // Each value is a byte's.
                let byte = (*value * 127.5 + 127.5).round();
                *value = (byte - mean[place % 3]) / deviation[place % 3];
            }
        }
        let input = *self.graph.inputs().first().context("a network without input")?;
        let tensor = HostTensor::new(self.graph.dims(input)?, self.input.arrange(pixels));
        Ok((tensor.context("the picture")?, size))
    }

    /// The people that a run's outputs show, in pixels of a picture of this size.
    pub(crate) fn poses(&self, outputs: &[HostTensor], size: (u32, u32)) -> anyhow::Result<Vec<Pose>> {
        let posenet = self.posenet.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        let named = self.graph.outputs().iter().zip(outputs);
        let outputs = named.map(|(&output, tensor)| {
            let name = self.graph.name(output)?;
            Ok(Output::new(name, tensor.dims().extents(), tensor.to_nhwc()))
        });
        let heads = posenet.heads(&outputs.collect::<diptych::Result<Vec<_>>>()?)?.finite()?;
        let several = heads.has_displacements().then(Settings::default);
        Ok(posenet.poses(&heads, size, several.as_ref())?)
    }

    /// A run's outputs by their names.
    pub(crate) fn outputs(&self, outputs: Vec<HostTensor>) -> anyhow::Result<Vec<columns::Output>> {
        let names = self.graph.outputs().iter().map(|&output| self.graph.name(output));
        names
            .zip(outputs)
            .map(|(name, values)| Ok(columns::Output { name: name?.to_owned(), values }))
            .collect()
    }
}
