//! ONNX files to graphs.
//!
//! Values are f32 on a device, whatever the file says of them: floats of other widths are rounded, integers are the
//! floats of their value (exact to 2^24; a constant that is not is refused; those of at most 16 bits wrap), and booleans are 0
//! and 1. Arithmetic on shapes is done while the file is read; so are branches and loops whose conditions are known then.
//! [`LoadOptions`] give what an input leaves open. The error of a file that cannot run lists all of its operators that are not
//! supported.
//!
//! In a [`Model`] an output's extents do not depend on values: `NonMaxSuppression` of boxes that are computed at each run has
//! as many rows as could be chosen, those of chosen boxes first and -1 in the rest. `Unique` and `NonZero` of such values give
//! outputs of the network only, with -1 in indices and 0 in counts behind what was found.
//!
//! Versions 1 to 28 of the operators are read; of those before 7, what numpy's rule of broadcasting covers.
//!
//! The file may be hostile: lengths are checked before memory is allocated, the file's length bounds the work, and
//! data in other files are read from the model's folder alone, or through the links of the Hugging Face hub's cache.
//! Nodes may lie in any order.
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
