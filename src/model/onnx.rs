//! ONNX files to graphs.
//!
//! Values are f32 on a device, whatever the file says of them: floats of other widths are rounded, integers are the
//! floats of their value (exact to 2^24; a constant that is not is refused; those of at most 16 bits wrap, `casts.rs`), and
//! booleans are 0 and 1. Arithmetic on
//! shapes is done while the file is read; so are branches and loops whose conditions are known then. What an input
//! leaves open is given by [`LoadOptions`]. What cannot run is listed all at once. Operators of constants alone run on the
//! CPU meanwhile (`evaluate.rs`), and sequences are lists that the loader keeps (`sequences.rs`).
//!
//! An output's extents do not depend on values: `NonMaxSuppression` of boxes that are computed at each run has as many
//! rows as could be chosen, those of chosen boxes first and -1 in the rest. `Unique` and `NonZero` of such values leave
//! the network alone, with -1 in indices and 0 in counts behind what was found.
//!
//! What a GPU does not pay for is a function of the CPU, in a session on a GPU too (`hosted.rs`, `build/scatter.rs`,
//! loops whose turns are counted at each run, `turns.rs`, and long sequences of recurrent layers, `build/chunks.rs`).
//!
//! ONNX has channels before height and width, our maps have them last. A value carries the order in which its axes are
//! stored (`build/operand.rs`), so that only what needs the order of the file moves elements.
//!
//! `operators.rs` lists the operators, each with the function that adds it to the graph; versions 1 to 28 are read, those before 7 where numpy's rule of broadcasting is all they need.
//!
//! The file may be hostile: lengths are checked before memory is allocated, the work is bounded by the file's length,
//! and data in other files are read from the model's folder alone, or through the links of the Hugging Face hub's cache
//! (`tensors.rs`). Nodes may lie in any order (`sorted.rs`).
//!
//! Source: the published schema and operators of ONNX, <https://onnx.ai/onnx/operators/>.

pub use super::Model;
#[expect(deprecated, reason = "programs of the last version name it")]
pub use super::ModelPort;
#[doc(no_inline)]
pub use diptych_import::model::{LoadOptions, ModelInfo, TensorInfo};

use crate::error::Result;
use crate::graph::Graph;
use crate::session::Session;
use diptych_import::model::onnx::parse;
use std::path::Path;

/// Reads an ONNX file whose inputs leave nothing open.
///
/// ```no_run
/// let graph = diptych::onnx::load("mnist.onnx")?;
/// println!("{} nodes", graph.nodes().len());
/// # Ok::<(), diptych::Error>(())
/// ```
///
/// # Errors
/// Those of [`Model::load`].
pub fn load(path: impl AsRef<Path>) -> Result<Graph> {
    Model::load(path, &LoadOptions::default()).map(|model| model.graph)
}

/// Reads an ONNX file that is in memory already.
///
/// ```
/// let error = diptych::onnx::from_bytes(b"no model").unwrap_err();
/// assert!(matches!(error, diptych::Error::Model { .. }));
/// ```
///
/// # Errors
/// [`crate::Error::Model`] if the bytes are not a valid file, or need something that is not supported.
pub fn from_bytes(bytes: &[u8]) -> Result<Graph> {
    parse("model", bytes, None, &LoadOptions::default(), Session::prepare).map(|loaded| loaded.graph)
}
