//! What a program is made of: stored values and the kernels that run on them.

use crate::cpu::CpuKernel;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::host::HostTensor;
use crate::ops::Launch;
use std::sync::Arc;

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
    /// Whether it is the same at each run: a constant, in whatever form.
    pub(crate) is_constant: bool,
    /// The rows of a constant, written when the session is built.
    pub(crate) constant: Option<HostTensor>,
    /// Whether these are rows of halves.
    pub(crate) halves: bool,
    /// Whether it is what work-groups tell each other something in: zero before the first run and behind each.
    pub(crate) scratch: bool,
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
    pub(crate) work: Work,
}

/// What computes a step.
#[derive(Debug)]
pub(crate) enum Work {
    /// A kernel of the device, and what it is given.
    Device { launch: Box<Launch>, sources: Vec<Source> },
    /// A kernel of the CPU, between two recordings.
    Host { kernel: Arc<dyn CpuKernel>, reads: Vec<(Operand, HostSource)>, writes: Vec<(Operand, Part)> },
}

/// What a kernel of the CPU reads.
#[derive(Debug, Clone)]
pub(crate) enum HostSource {
    Stored(Part),
    Constant(Arc<[f32]>),
}

impl Step {
    /// The parts of stored values that it reads or writes.
    pub(crate) fn parts(&self) -> Vec<Part> {
        match &self.work {
            Work::Device { sources, .. } => {
                let stored = sources.iter().filter_map(|source| match source {
                    Source::Stored(part) => Some(*part),
                    Source::Constant(_) => None,
                });
                stored.collect()
            }
            Work::Host { reads, writes, .. } => {
                let read = reads.iter().filter_map(|(_, source)| match source {
                    HostSource::Stored(part) => Some(*part),
                    HostSource::Constant(_) => None,
                });
                read.chain(writes.iter().map(|(_, part)| *part)).collect()
            }
        }
    }
}
