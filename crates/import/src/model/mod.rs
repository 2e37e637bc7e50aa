//! Model files to graphs.

#[macro_use]
mod reason;
mod budget;
#[cfg_attr(
    not(all(feature = "onnx", feature = "tflite")),
    expect(unused, reason = "some of it serves one format alone")
)]
mod build;
mod constant;
mod constant_cache;
#[cfg(test)]
mod corpus;
mod fold;
mod gathered_constants;
mod input_dependence;
mod narrow_integers;
mod numbers;
#[cfg(feature = "onnx")]
pub mod onnx;
pub mod operators;
mod pixels;
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
mod spans;
#[cfg(feature = "tflite")]
pub mod tflite;
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
mod weights;

#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
pub use weights::with_random_weights;

pub use pixels::Pixels;

use crate::compute::Prepare;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::parallel;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 33;

/// What a file leaves open.
#[derive(Clone, Default, PartialEq)]
pub struct LoadOptions {
    /// Extents that the file leaves open, by name. An ONNX file has names of its own for them. In a TensorFlow Lite file
    /// the outermost extent of the inputs is `batch`, which is also a dimension of the graph ([`Graph::dimensions`]).
    /// An extent without a name is named after the input and the axis, as in `image.1`. An outermost extent that is not
    /// given is 1; another one that is missing is an error.
    pub dimensions: BTreeMap<String, usize>,
    /// Inputs that are known while the file is read, by name: they become constants, and are no inputs of the
    /// graph. A file that computes shapes or branches from an input wants it here.
    pub values: BTreeMap<String, HostTensor>,
    /// Inputs of the graph that would else be constants: an ONNX file may give an input a value of its own, by an
    /// initializer of the same name. Unless such an input is named here, it is a constant: of the value in
    /// [`LoadOptions::values`], or else of the file's.
    pub inputs: BTreeSet<String>,
    /// The signature of the network to read in a TensorFlow Lite file. Without it, the first network of the file is read.
    pub signature: Option<String>,
    /// Whether quantized operators are computed on the floats that their 8-bit integers stand for, and rounded, by every session
    /// ([`SessionOptions::dequantize`](struct.SessionOptions.html#structfield.dequantize) asks for it by one session). Floats
    /// that are multiplied with weights of 8 bits are then not rounded at each run. Without it operators are computed on the
    /// integers, which is faster and as exact as other engines are; what has no kernel for integers is computed on floats in
    /// any case.
    pub dequantize: bool,
    /// The outputs of the network, by name; all of them if there are none here. What the others alone need is neither read
    /// nor computed. They keep the order of the file. A name that is no output of the file is an error.
    pub outputs: BTreeSet<String>,
    /// How many threads read the file at most, the caller's included: all of rayon's pool, unless set.
    /// [`SessionOptions::cpu_threads`](struct.SessionOptions.html#structfield.cpu_threads) is for the session.
    pub threads: Option<NonZeroUsize>,
    /// Files that hold weights of an ONNX model, by the names that it has for them, for a model in memory. One that is loaded
    /// by its path reads those beside it that are not here.
    pub files: BTreeMap<String, Arc<[u8]>>,
}

/// Files are shown by their names and lengths.
impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadOptions { dimensions, values, inputs, signature, dequantize, outputs, threads, files } = self;
        let lengths: BTreeMap<&str, String> =
            files.iter().map(|(name, bytes)| (name.as_str(), format!("{} bytes", bytes.len()))).collect();
        f.debug_struct("LoadOptions")
            .field("dimensions", dimensions)
            .field("values", values)
            .field("inputs", inputs)
            .field("signature", signature)
            .field("dequantize", dequantize)
            .field("outputs", outputs)
            .field("threads", threads)
            .field("files", &lengths)
            .finish()
    }
}

/// What a model's file says of it.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The model's name; empty where the file has none.
    pub name: String,
    /// What it is and does; empty where the file does not say so.
    pub description: String,
    /// The program that wrote an ONNX file; empty where the file does not say so, and for TensorFlow Lite.
    pub producer: String,
    /// The domain of an ONNX file, as in `ai.example`; empty where the file has none, and for TensorFlow Lite.
    pub domain: String,
    /// The version of an ONNX file's model; 0 where the file has none, and for TensorFlow Lite.
    pub version: i64,
    /// The properties of an ONNX file (`metadata_props`): whatever its author wrote, by key.
    pub properties: BTreeMap<String, String>,
    /// The inputs, in the file's order, as many as the metadata describe.
    pub inputs: Vec<TensorInfo>,
    /// Descriptions of the outputs, in the metadata's order. It need not be that of the network's outputs:
    /// MediaPipe's files have them by the number of the tensor.
    pub outputs: Vec<TensorInfo>,
    /// The inputs that a TensorFlow Lite file keeps as integers, by name. A run is given the floats that these stand for.
    pub quantised: BTreeMap<String, Quantised>,
    /// How many nodes only change the order in which a value's axes are stored, because what reads it wants the
    /// file's: those of an ONNX file, which has channels first.
    pub transposes: usize,
}

/// What the metadata say of an input or an output.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// A name for people; empty where the file has none.
    pub name: String,
    /// What it holds; empty where the file does not say so.
    pub description: String,
    /// The means and standard deviations that normalise it, one for all channels or one for each:
    /// `(x - mean) / deviation`. Empty where the file has none.
    pub normalisation: Vec<(f32, f32)>,
    /// The meaning of each index along the last axis, a line of the label file each.
    pub labels: Vec<String>,
}

/// Integers that stand for floats: `scale * (integer - zero)`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Quantised {
    /// What one of them is multiplied by.
    pub scale: f32,
    /// The integer that stands for 0.
    pub zero: i64,
}

impl Quantised {
    /// The floats that stored integers stand for: for whoever has what another engine's input is given.
    ///
    /// ```
    /// use diptych::{Dims, HostTensor, LoadOptions, ModelFile};
    ///
    /// # let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// // None in a file of floats.
    /// let stored = HostTensor::of(Dims::new(&[3])?, vec![0u8, 128, 255])?;
    /// if let Some(quantised) = file.info().quantised.get("image") {
    ///     println!("{:?}", quantised.floats(&stored)?.to_f32());
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn floats(&self, stored: &HostTensor) -> Result<HostTensor> {
        let float = |&integer: &f32| self.scale * (integer - self.zero as f32);
        HostTensor::new(stored.dims(), stored.to_nhwc().iter().map(float).collect::<Vec<_>>())
    }
}

/// The bytes of a file, and what its path says of it.
pub struct Read {
    pub name: String,
    pub bytes: Vec<u8>,
    pub named_onnx: bool,
}

impl Read {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, is no regular file or too large.
    pub fn file(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let bytes = crate::file::read(path, MAX_FILE_BYTES)
            .map_err(|source| Error::Io { path: name.clone(), source })?;
        let named_onnx = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("onnx"));
        Ok(Read { name, bytes, named_onnx })
    }
}

/// What is made of a file.
pub struct Loaded {
    pub graph: Graph,
    pub info: ModelInfo,
}

/// Why outputs cannot be chosen, if one of the names is none of those that there are.
fn check_outputs<'n>(
    options: &LoadOptions,
    names: impl Iterator<Item = &'n str> + Clone,
) -> std::result::Result<(), reason::Reason> {
    match options.outputs.iter().find(|wanted| names.clone().all(|name| name != wanted.as_str())) {
        Some(wanted) => {
            let names: Vec<&str> = names.take(64).collect();
            refused!("found no output {wanted:?}, wanted one of {names:?}")
        }
        None => Ok(()),
    }
}

/// Whether the bytes are more likely an ONNX file, which has no identifier: its first field is a version number.
pub fn is_onnx(bytes: &[u8]) -> bool {
    bytes.get(4..8) != Some(b"TFL3") && bytes.first() == Some(&0x08)
}

/// Reads a file.
///
/// # Errors
/// If it is not a valid file, or needs what is not supported.
pub fn parse(
    file: &str,
    bytes: &[u8],
    path: Option<&Path>,
    named_onnx: bool,
    options: &LoadOptions,
    prepare: Prepare,
) -> Result<Loaded> {
    let _limited = parallel::Limited::to(options.threads);
    if named_onnx || is_onnx(bytes) {
        #[cfg(feature = "onnx")]
        return onnx::parse(file, bytes, path, options, prepare);
        #[cfg(not(feature = "onnx"))]
        let _ = path;
    }
    #[cfg(feature = "tflite")]
    return tflite::parse(file, bytes, options, prepare);
    #[cfg(not(feature = "tflite"))]
    Err(unknown_format(file))
}

/// The error of a file that this build does not read.
#[cfg(not(feature = "tflite"))]
pub fn unknown_format(file: &str) -> Error {
    Error::Model {
        file: file.to_owned(),
        op: None,
        message: "found a file of another kind, wanted one of those that this build of the crate reads"
            .to_owned(),
    }
}

/// What the tests compute graphs with.
#[cfg(test)]
fn prepared(graph: &Graph) -> Result<Box<dyn crate::compute::Prepared>> {
    Ok(Box::new(diptych::Session::on_cpu(graph)?))
}
