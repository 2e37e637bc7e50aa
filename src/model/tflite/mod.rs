//! TensorFlow Lite files to graphs.
//!
//! | operator | becomes |
//! |---|---|
//! | `CONV_2D` of one tap and stride 1 | a pointwise node |
//! | `CONV_2D` otherwise | a conv2d node; its groups follow from the weights' channels |
//! | `DEPTHWISE_CONV_2D` | a depthwise node |
//! | `RELU`, `RELU6`, `TANH`, `LOGISTIC`, `LEAKY_RELU`, `HARD_SWISH` | the activation of the convolution before it, which nothing else may read |
//! | `DEQUANTIZE` of a float16 constant | the constant |
//!
//! Feature maps are float32 of rank 4 and of fixed shape; constants are float32 or float16. A node
//! has the name of the tensor it writes. Everything else in a file is an error that names it.
//!
//! The file may be hostile: it is verified before it is read, lengths are checked before memory is
//! allocated, and the work is bounded by the file's length.
//!
//! Source: the published schema of TensorFlow Lite, version 3.

mod convolution;
mod import;
mod names;
mod schema;
mod tensors;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::graph::Graph;
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
    let path = path.as_ref();
    let name = path.display().to_string();
    let bytes =
        crate::file::read(path, MAX_FILE_BYTES).map_err(|source| Error::Io { path: name.clone(), source })?;
    parse(&name, &bytes)
}

/// Reads a TensorFlow Lite file that is in memory already.
///
/// # Errors
/// [`Error::Model`] if the bytes are not a valid file of version 3, or need something that is not
/// supported; it names the operator where there is one.
pub fn from_bytes(bytes: &[u8]) -> Result<Graph> {
    parse("model", bytes)
}

fn parse(file: &str, bytes: &[u8]) -> Result<Graph> {
    let fail = |message: String| Error::Model { file: file.to_owned(), op: None, message };
    check_length(file, bytes.len() as u64)?;
    match bytes.get(4..8) {
        Some(b"TFL3") => (),
        Some(found) => {
            return Err(fail(format!(
                "found file identifier \"{}\", wanted \"TFL3\": this is not a TensorFlow Lite model",
                found.escape_ascii()
            )));
        }
        None => return Err(fail(format!("found {} bytes, wanted a file of at least 8", bytes.len()))),
    }
    let model = schema::root(bytes).map_err(|error| {
        let text = error.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        fail(format!("the file is damaged or cut short: {}", lines.join(" ")))
    })?;
    if model.version() != 3 {
        return Err(fail(format!("found schema version {}, wanted 3", model.version())));
    }
    import::import(file, &model, bytes.len())
}

fn check_length(file: &str, length: u64) -> Result<()> {
    if length > MAX_FILE_BYTES {
        return Err(Error::Model {
            file: file.to_owned(),
            op: None,
            message: format!(
                "found {length} bytes, wanted at most {MAX_FILE_BYTES}, the most a FlatBuffer holds"
            ),
        });
    }
    Ok(())
}
