//! TensorFlow Lite files to graphs.
//!
//! Inputs and outputs are f32, whatever the file says of them: integers are the floats of their value, or with
//! scales the floats that they stand for, to which values are rounded, and booleans are 0 and 1. Shapes are inferred; the
//! file's are taken for inputs alone. A node has the name of the tensor that it writes. The error of a file that cannot run lists
//! all of its operators that are not supported.
//!
//! Variables are states of the graph ([`Graph::state`]), and so is what a recurrent layer of one step remembers; one of
//! several steps begins each run with zeros.
//!
//! The file may be hostile: it is verified before it is read, and its length bounds memory and work.
//!
//! Source: the published schema of TensorFlow Lite, version 3.

pub use super::Model;
#[expect(deprecated, reason = "programs of the last version name it")]
pub use super::ModelPort;
#[doc(no_inline)]
pub use diptych_import::model::{LoadOptions, ModelInfo, TensorInfo};

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::session::Session;
use diptych_import::model::tflite::{MAX_FILE_BYTES, parse};
use std::path::Path;

/// Reads a TensorFlow Lite file.
///
/// ```no_run
/// let graph = diptych::tflite::load("posenet.tflite")?;
/// println!("{} nodes", graph.nodes().len());
/// # Ok::<(), diptych::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] if the file cannot be read or is no regular file, and those of [`from_bytes`], which
/// name the file.
pub fn load(path: impl AsRef<Path>) -> Result<Graph> {
    let (name, bytes) = read(path.as_ref())?;
    Ok(parse(&name, &bytes, &LoadOptions::default(), Session::prepare)?.graph)
}

/// Reads a TensorFlow Lite file that is in memory already.
///
/// ```
/// let bytes = std::fs::read("examples/posenet/data/posenet_figures.tflite")?;
/// let graph = diptych::tflite::from_bytes(&bytes)?;
/// assert_eq!(graph.inputs().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Model`] if the bytes are not a valid file of version 3, or need something that is not
/// supported; it names every operator that is not, or the one whose options or shapes are not.
pub fn from_bytes(bytes: &[u8]) -> Result<Graph> {
    Ok(parse("model", bytes, &LoadOptions::default(), Session::prepare)?.graph)
}

fn read(path: &Path) -> Result<(String, Vec<u8>)> {
    let name = path.display().to_string();
    let bytes =
        crate::file::read(path, MAX_FILE_BYTES).map_err(|source| Error::Io { path: name.clone(), source })?;
    Ok((name, bytes))
}
