//! What a program is made of: stored values and the kernels that run on them.

use super::by::By;
use crate::cpu::CpuKernel;
use crate::device::Memory;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::host::HostTensor;
use crate::ops::{Choice, Launch, Op};
use std::sync::Arc;

/// What lies between the names of nodes that run as one.
pub(super) const TOGETHER: &str = " + ";

/// What lies behind the name of a node whose result is computed on bytes, and of one whose numbers are made of bytes.
pub(super) const ON_BYTES: &str = "/bytes";
pub(super) const OF_BYTES: &str = "/numbers";

/// Whether `name` can be that of a step: of a node, of nodes that run as one, or of a node on bytes, perhaps with a part of it
/// behind that.
pub(crate) fn can_be_a_step(name: &str, is_node: &dyn Fn(&str) -> bool) -> bool {
    let is_step = |name: &str| {
        let cut = |of: &'static str| name.match_indices(of).map(move |(at, _)| (at, at + of.len()));
        let is_on_bytes = |(at, end): (usize, usize)| {
            let (node, part) = (name.get(..at), name.get(end..).unwrap_or_default());
            node.is_some_and(is_node) && (part.is_empty() || part.starts_with('/'))
        };
        is_node(name) || cut(ON_BYTES).chain(cut(OF_BYTES)).any(is_on_bytes)
    };
    is_step(name) || name.contains(TOGETHER) && name.split(TOGETHER).all(is_step)
}

/// A stored value: an index into [`Program::stored`](super::Program::stored).
pub(crate) type Stored = usize;

/// A buffer or an image for a value.
#[derive(Debug, Clone)]
pub(crate) struct StoredValue {
    pub(crate) bytes: u64,
    /// Inputs, outputs and constants keep a buffer of their own.
    pub(crate) pinned: bool,
    /// The memory of a buffer of its own.
    pub(crate) memory: Memory,
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

impl StoredValue {
    /// So many bytes of the device's memory.
    pub(super) const fn buffer(bytes: u64, pinned: bool) -> Self {
        StoredValue {
            bytes,
            pinned,
            memory: Memory::Device,
            image: None,
            is_constant: false,
            constant: None,
            halves: false,
            scratch: false,
        }
    }
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
pub(crate) enum OperandMemory {
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
    /// What decided on the kernel.
    #[cfg_attr(
        all(target_family = "wasm", feature = "wgpu"),
        expect(dead_code, reason = "planned steps are not of pages")
    )]
    pub(crate) by: By,
    /// What decided on the kernel, in words, and why the unit is stored as it is.
    pub(crate) from: String,
    /// The kernel, tile and work-group of a device.
    pub(crate) choice: Option<Choice>,
    /// What it computes, if it is of a node that a device computes.
    #[cfg_attr(
        all(target_family = "wasm", feature = "wgpu"),
        expect(dead_code, reason = "planned steps are not of pages")
    )]
    pub(crate) unit: Option<Arc<dyn Op>>,
    pub(crate) work: Work,
}

/// What computes a step.
#[derive(Debug)]
pub(crate) enum Work {
    /// A kernel of the device, and what it is given.
    Device { launch: Box<Launch>, sources: Vec<OperandMemory> },
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
                    OperandMemory::Stored(part) => Some(*part),
                    OperandMemory::Constant(_) => None,
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
