//! The networks that queries may name.

use crate::columns::Output;
use crate::model::{self, Input};
use crate::picture::Picture;
use anyhow::Context as _;
use datafusion::error::{DataFusionError, Result};
use diptych::{Graph, HostTensor, LoadOptions};
use std::path::PathBuf;

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
            Source::Figures => diptych::tflite::from_bytes(model::FIGURES),
            Source::File(path) => {
                diptych::Model::load(path, &LoadOptions::default()).map(|model| model.graph)
            }
        };
        // What would help is an option of Rust's programs.
        let graph = graph.map_err(|error| refused(error.told(&|_| None)))?;
        let input = Input::of(&graph).map_err(|error| refused(format!("{error:#}")))?;
        if self.normalisation.deviation.iter().any(|deviation| !deviation.is_normal()) {
            return Err(refused(format!("found the deviation {:?}", self.normalisation.deviation)));
        }
        let posenet = model::Model::of(&graph).map_err(|error| format!("{error:#}"));
        Ok(Loaded { name: self.name, graph, input, posenet, normalisation: self.normalisation })
    }
}

/// A network that was read.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) graph: Graph,
    pub(crate) input: Input,
    /// The network as a PoseNet, or why it is none.
    pub(crate) posenet: std::result::Result<model::Model, String>,
    normalisation: Normalisation,
}

impl Loaded {
    /// The input that an encoded picture makes, and the picture's width and height.
    pub(crate) fn prepare(&self, encoded: &[u8]) -> anyhow::Result<(HostTensor, (u32, u32))> {
        let picture = Picture::read("the picture", std::io::Cursor::new(encoded))?;
        let size = picture.pixels.dimensions();
        anyhow::ensure!(size.0 > 0 && size.1 > 0, "the picture is {} x {} pixels", size.0, size.1);
        let Normalisation { mean, deviation } = self.normalisation;
        let tensor = if self.normalisation == Normalisation::default() {
            self.input.tensor(&picture, |_, value| value)
        } else {
            // Each value is a byte's.
            let byte = |value: f32| (value * 127.5 + 127.5).round();
            self.input.tensor(&picture, |colour, value| (byte(value) - mean[colour]) / deviation[colour])
        };
        Ok((tensor.context("the picture")?, size))
    }

    /// The people that a run's outputs show, in pixels of a picture of this size.
    pub(crate) fn poses(
        &self,
        outputs: &[HostTensor],
        size: (u32, u32),
    ) -> anyhow::Result<Vec<crate::decode::Pose>> {
        let posenet = self.posenet.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        let heads = posenet.heads(outputs)?;
        let several = heads.displacements.is_some().then(crate::multi::Settings::default);
        model::poses(&heads, posenet, size, several)
    }

    /// A run's outputs by their names.
    pub(crate) fn outputs(&self, outputs: Vec<HostTensor>) -> anyhow::Result<Vec<Output>> {
        let names = self.graph.outputs().iter().map(|&output| self.graph.name(output));
        names.zip(outputs).map(|(name, values)| Ok(Output { name: name?.to_owned(), values })).collect()
    }
}
