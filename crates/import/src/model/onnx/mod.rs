//! ONNX files to graphs.
//!
//! Values are f32 on a device, whatever the file says of them: floats of other widths are rounded, integers are the
//! floats of their value (exact to 2^24; a constant that is not is refused; those of at most 16 bits wrap, `build/casts.rs`), and
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
//! loops whose turns are counted at each run, `runtime_loops.rs`, and long sequences of recurrent layers, `build/chunks.rs`).
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

mod attention;
mod bits;

mod cached;
mod columns;
mod contributed;
mod control;
mod convolution;
mod decode;
mod division;
mod einsum;
mod elementwise;
mod evaluate;
mod filter;
mod functions;
mod fused_attention;
mod grids;
mod grouped_attention;
mod hosted;
mod import;
mod indexing;
mod integer_matrices;
mod integer_products;
mod load;
mod moves;
mod norms;
mod operands;
mod operators;
mod packed;
mod pixels;
mod pooling;
mod ports;
mod products;
mod quantised;
mod random;
mod recurrent;
mod reductions;
mod regions;
mod resize;
mod rotary;
mod rounded_values;
mod runtime_loops;
mod schema;
mod sequences;
mod shapes;
mod small_elements;
mod sorted;
mod source;
mod spectra;
mod states;
mod suppression;
mod survey;
mod tensors;
#[cfg(test)]
mod tests;
mod transposed;
mod unpool;
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
mod weights;
mod wire;

#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
pub(super) use weights::weights;

use super::{LoadOptions, Loaded};
use crate::compute::Prepare;
use crate::error::Result;
use std::path::Path;

pub(super) use operators::names as operators;
pub use source::OnnxSource;

/// Reads a file.
///
/// # Errors
/// If it is not a valid file, or needs what is not supported.
pub fn parse(
    file: &str,
    bytes: &[u8],
    path: Option<&Path>,
    options: &LoadOptions,
    prepare: Prepare,
) -> Result<Loaded> {
    load::load(file, bytes, path, options, prepare)
}
