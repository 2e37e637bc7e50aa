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
//! (`Graph::state`), and so is what a recurrent layer of one step remembers; one of several steps begins each
//! run with zeros.
//!
//! `operators.rs` lists the operators, each with the function that adds it to the graph.
//!
//! The file may be hostile: it is verified before it is read, lengths are checked before memory is
//! allocated, and the work is bounded by the file's length.
//!
//! Source: the published schema of TensorFlow Lite, version 3.

#[macro_use]
mod tables;
mod ahead;
mod at_run;
mod calls;
mod cells;
mod control;
mod convolution;
mod deconvolution;
mod detection;
mod elementwise;
mod ends;
mod flexbuffer;
mod frame;
mod import;
mod joins;
mod landmarks;
mod lists;
mod load;
mod metadata;
mod moves;
mod names;
mod norms;
mod open;
mod operands;
mod operators;
mod options;
mod packed;
mod pooling;
mod products;
mod random;
mod recurrent;
mod reductions;
mod rounding;
mod scatter;
mod schema;
mod shapes;
mod slices;
mod slots;
mod sparse;
mod spectra;
mod stored;
mod survey;
mod svdf;
mod tensors;
#[cfg(test)]
mod tests;
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
mod weights;
mod windows;

#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
pub(super) use weights::weights;

use super::{LoadOptions, Loaded, constant};
use crate::compute::Prepare;
use crate::error::{Error, Result};

/// The largest FlatBuffer: its offsets are signed 32-bit numbers.
pub const MAX_FILE_BYTES: u64 = i32::MAX as u64;

pub use open::TfliteSource;
pub(super) use operators::names as operators;

/// Reads a file.
///
/// # Errors
/// If it is not a valid file, or needs what is not supported.
pub fn parse(file: &str, bytes: &[u8], options: &LoadOptions, prepare: Prepare) -> Result<Loaded> {
    load::load(file, &model(file, bytes)?, bytes, options, prepare)
}

/// A file whose structure is verified.
fn model<'a>(file: &str, bytes: &'a [u8]) -> Result<schema::Model<'a>> {
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
    Ok(model)
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
