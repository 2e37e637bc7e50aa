//! What a program is made of: stored values and the kernels that run on them.

use crate::dtype::DType;
use crate::host::HostTensor;
use crate::ops::Launch;

/// A stored value: an index into [`Program::stored`](super::Program::stored).
pub(crate) type Stored = usize;

/// A buffer or an image for a value.
#[derive(Debug, Clone)]
pub(crate) struct StoredValue {
    pub(crate) bytes: u64,
    /// Inputs, outputs and constants keep a buffer of their own.
    pub(crate) pinned: bool,
    /// Width, height and channels' type, for an image.
    pub(crate) image: Option<([usize; 2], DType)>,
    /// The rows of a constant, written when the session is built.
    pub(crate) constant: Option<HostTensor>,
}

/// A part of a stored value, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) stored: Stored,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What an operand is bound to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Stored(Part),
    /// A constant, by its place in [`Program::constants`](super::Program::constants).
    Constant(usize),
}

/// One kernel of a run.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) op: &'static str,
    pub(crate) flops: u64,
    /// Whether it only moves a value, and is no node of the graph.
    pub(crate) inserted: bool,
    /// Where the choice came from.
    pub(crate) from: String,
    pub(crate) launch: Launch,
    pub(crate) sources: Vec<Source>,
}
