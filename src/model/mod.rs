//! Files of networks as models: a graph, or a session whose runs decide its extents.

mod file;
mod head;
#[cfg(feature = "onnx")]
pub mod onnx;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod package;
#[cfg(feature = "tflite")]
pub mod tflite;

pub use file::{FileInput, ModelFile};

#[cfg(all(feature = "hub", not(target_family = "wasm")))]
use crate::error::Error;
use crate::error::Result;
use crate::graph::Graph;
use crate::session::Session;
use crate::source::Port;
use diptych_import::model::{LoadOptions, ModelInfo};
use diptych_import::model::{Loaded, Read, parse};
use std::path::Path;

/// The former name of [`Port`], by which a [`Model`] has its inputs and outputs.
#[deprecated(
    since = "0.2.0",
    note = "a model's inputs and outputs are of the type `Port`, as those of sessions are"
)]
pub type ModelPort = Port;

/// A network with what its file says of it.
///
/// ```
/// use diptych::tflite::{LoadOptions, Model};
///
/// let model = Model::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
/// for port in &model.inputs {
///     println!("{} {}", port.name, port.dims);
/// }
/// assert_eq!(model.outputs.len(), model.graph.outputs().len());
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Model {
    /// The network.
    pub graph: Graph,
    /// The inputs, in the order of the file. Their names are those of the file's signature, or else of the tensors. The type of
    /// elements is the file's; f32 for quantised ones, which stand for floats. No axis is open.
    pub inputs: Vec<Port>,
    /// The outputs, in the order of the file, named and typed as the inputs are.
    pub outputs: Vec<Port>,
    /// The description, labels and normalisation, as far as the file has them.
    pub info: ModelInfo,
}

impl Model {
    /// Reads a TensorFlow Lite or an ONNX file; its contents say which it is. Weights that an ONNX file has in other
    /// files are read from its folder; where that is one of the Hugging Face hub's cache, they may be links, as the file
    /// itself is.
    ///
    /// ```
    /// use diptych::{LoadOptions, Model};
    ///
    /// let model = Model::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// assert_eq!(model.inputs[0].dims.extents()[3], 3); // a picture of three channels
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read or is no regular file, and those of [`Model::from_bytes`], which name
    /// the file.
    pub fn load(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self> {
        let path = path.as_ref();
        let Read { name, bytes, named_onnx } = Read::file(path)?;
        Model::of(parse(&name, &bytes, Some(path), named_onnx, options, Session::prepare)?)
    }

    /// Reads a model of the Hugging Face hub by its name, as the crate `diptych-hub` takes it: `OWNER/NAME:FILE`, or
    /// `OWNER/NAME` where the repository has one .tflite or .onnx file. It is fetched unless it is in the hub's cache.
    ///
    /// ```no_run
    /// use diptych::{LoadOptions, Model};
    ///
    /// let model = Model::from_hub("onnx-community/silero-vad:onnx/model.onnx", &LoadOptions::default())?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be had, and those of [`Model::load`].
    #[cfg(all(feature = "hub", not(target_family = "wasm")))]
    pub fn from_hub(name: &str, options: &LoadOptions) -> Result<Self> {
        Model::load(fetched(name)?, options)
    }

    /// Reads a TensorFlow Lite or an ONNX file that is in memory already.
    ///
    /// ```
    /// use diptych::{LoadOptions, Model};
    ///
    /// let bytes = std::fs::read("examples/posenet/data/posenet_figures.tflite")?;
    /// let model = Model::from_bytes(&bytes, &LoadOptions::default())?;
    /// assert!(model.graph.flops()? > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Model`](crate::Error::Model) if the bytes are not a valid file, or need something that is not supported; it names every
    /// operator that is not, or the one whose options or shapes are not. Also if an extent is open and not given, or
    /// given and not open.
    pub fn from_bytes(bytes: &[u8], options: &LoadOptions) -> Result<Self> {
        Model::of(parse("model", bytes, None, false, options, Session::prepare)?)
    }

    fn of(loaded: Loaded) -> Result<Self> {
        Model::with_heads(loaded, &[])
    }

    /// The network with these heads, one after the other.
    fn with_heads(Loaded { mut graph, info }: Loaded, heads: &[head::Head]) -> Result<Self> {
        for head in heads {
            let ports = Port::all(&graph, graph.outputs())?;
            head.extend(&mut graph, &ports)?;
        }
        let inputs = Port::all(&graph, graph.inputs())?;
        let outputs = Port::all(&graph, graph.outputs())?;
        Ok(Model { graph, inputs, outputs, info })
    }
}

/// The path of a model of the hub.
#[cfg(all(feature = "hub", not(target_family = "wasm")))]
fn fetched(name: &str) -> Result<std::path::PathBuf> {
    let path = diptych_hub::Hub::from_env().and_then(|hub| hub.fetch(name));
    path.map_err(|error| Error::Io { path: format!("hf:{name}"), source: std::io::Error::other(error) })
}
