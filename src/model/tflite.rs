//! TensorFlow Lite files to graphs.
//!
//! Inputs and outputs are f32, whatever the file says of them: integers are the floats of their value, or with
//! scales the floats that they stand for, to which values are rounded, and booleans are 0 and 1. Constants are
//! floats, halves, or integers with scales, which become floats here.
//! Arithmetic on shapes is done while the file is read. Shapes are inferred, not believed, but for those of
//! inputs. A node has the name of the tensor it writes. What cannot run is listed all at once.
//!
//! Networks that others call are put in the place of the call: the passes of a loop, whose number must be known, the
//! branch of a condition, or both where it is computed, and decompositions. Variables are states of the graph
//! ([`Graph::state`]), and so is what a recurrent layer of one step remembers; one of several steps begins each
//! run with zeros.
//!
//! `operators.rs` lists the operators, each with the function that adds it to the graph.
//!
//! The file may be hostile: it is verified before it is read, lengths are checked before memory is
//! allocated, and the work is bounded by the file's length.
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
use diptych_import::model::tflite::parse;
use std::path::Path;

/// The largest FlatBuffer: its offsets are signed 32-bit numbers.
const MAX_FILE_BYTES: u64 = i32::MAX as u64;

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
/// let bytes = std::fs::read("examples/posenet/data/posenet_figures.tflite").unwrap();
/// let graph = diptych::tflite::from_bytes(&bytes)?;
/// assert_eq!(graph.inputs().len(), 1);
/// # Ok::<(), diptych::Error>(())
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
