//! The steps of a run before anything is allocated or compiled: which kernels, on which values, in which
//! form.

use super::constants::Constant;
use super::memory::Lifetime;
use super::step::{Part, Step, Stored, StoredValue};
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::stored_as::Forms;
use crate::dtype::DType;
use crate::host::HostTensor;
use crate::limits::Limits;

/// A run before anything is allocated or compiled.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) limits: Limits,
    pub(crate) stored: Vec<StoredValue>,
    pub(crate) steps: Vec<Step>,
    /// Steps that run once, when the session is built.
    pub(crate) setup: Vec<Step>,
    pub(crate) constants: Vec<Constant>,
    /// Where the graph's inputs and outputs are stored, in its order.
    pub(crate) inputs: Vec<Part>,
    pub(crate) outputs: Vec<Part>,
    /// The types of the outputs' words.
    pub(crate) output_words: Vec<DType>,
    /// All forms of the inputs and of the outputs.
    #[cfg(any(feature = "wgpu", feature = "opencl"))]
    pub(super) forms: [Vec<Forms>; 2],
    /// Where the graph's states are stored, and what they are at first.
    pub(crate) states: Vec<(Part, HostTensor)>,
    /// Which of them is the key of random numbers.
    pub(crate) key: Option<usize>,
}

impl Program {
    /// A program of no steps.
    pub(super) fn new(limits: &Limits) -> Self {
        Program {
            limits: limits.clone(),
            stored: Vec::new(),
            steps: Vec::new(),
            setup: Vec::new(),
            constants: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            output_words: Vec::new(),
            #[cfg(any(feature = "wgpu", feature = "opencl"))]
            forms: Default::default(),
            states: Vec::new(),
            key: None,
        }
    }

    /// Memory for one value more.
    pub(super) fn store(&mut self, value: StoredValue) -> Part {
        self.stored.push(value);
        self.whole(self.stored.len() - 1)
    }

    /// So many bytes of scratch memory. All steps have the same: each leaves it as it was, and one runs after the other.
    pub(super) fn scratch(&mut self, bytes: u64) -> Part {
        let known = self.stored.iter().position(|value| value.scratch);
        let stored = known.unwrap_or_else(|| self.store(StoredValue::buffer(0, true)).stored);
        if let Some(value) = self.stored.get_mut(stored) {
            (value.scratch, value.bytes) = (true, value.bytes.max(bytes.next_multiple_of(16)));
        }
        Part { stored, offset: 0, bytes }
    }

    /// When each stored value is written first and used last.
    pub(crate) fn lifetimes(&self) -> Vec<Lifetime> {
        let mut uses: Vec<Option<(usize, usize)>> = vec![None; self.stored.len()];
        for (index, step) in self.steps.iter().enumerate() {
            for part in step.parts() {
                let (first, _) = uses[part.stored].unwrap_or((index, index));
                uses[part.stored] = Some((first, index));
            }
        }
        let lifetime = |(value, used): (&StoredValue, Option<(usize, usize)>)| {
            let (first, last) = used.unwrap_or((0, 0));
            Lifetime { bytes: value.bytes, first, last }
        };
        self.stored.iter().zip(uses).map(lifetime).collect()
    }

    /// Lets go of the constants, which are on the device.
    pub(crate) fn let_go_of_constants(&mut self) {
        self.constants.clear();
        self.setup.clear();
        self.stored.iter_mut().for_each(|value| value.constant = None);
    }

    /// What the packed constants begin at multiples of, in bytes.
    pub(crate) fn constant_alignment(&self) -> u64 {
        self.limits.binding_alignment.max(256)
    }

    /// All of a stored value.
    pub(crate) fn whole(&self, stored: Stored) -> Part {
        Part { stored, offset: 0, bytes: self.stored[stored].bytes }
    }
}
