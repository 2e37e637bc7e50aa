//! The memory of the plans of a session.

use super::Session;
use super::extents::Extents;
use super::input::{FedInput, RunInput};
use super::plan::Plan;
use super::plans::{FIRST, Plans};
use super::ports::unknown;
use super::profile::MemoryUse;
use crate::dims::Dims;
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Session {
    /// The memory of the plan for a run whose inputs have these dimensions. The network is read for them and its memory is planned;
    /// nothing is allocated or compiled. [`Session::plan_memory`] says how it is measured.
    ///
    /// Plans of a session share weights and buffers: [`Session::memory`] grows by this at most, but for the alignment of each buffer.
    ///
    /// ```
    /// use diptych::{Backend, Context, Dims, LoadOptions, ModelFile, SessionOptions};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// let session = file.session(&Context::new(Backend::Cpu)?, SessionOptions::default())?;
    /// let (name, dims) = (session.inputs()[0].name.clone(), session.inputs()[0].dims);
    /// let memory = session.plan_memory_for(&[(&name, dims)])?;
    /// assert!(memory.planned > 0);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an input is missing, unknown or cannot have these dimensions; if the extents of results depend on the values of inputs
    /// or of results, or the session keeps caches, so that a plan is made only in a run; and those of [`Session::plan_memory`].
    pub fn plan_memory_for(&self, inputs: &[(&str, Dims)]) -> Result<MemoryUse> {
        match &self.extents {
            Extents::Fixed(plan) => {
                for (name, dims) in inputs {
                    let port = plan.inputs.iter().find(|port| port.name == *name);
                    port.ok_or_else(|| unknown("input", name, &plan.inputs))?.takes_dims(*dims)?;
                }
                Ok(self.memory())
            }
            Extents::Open(plans) => plans.memory_for(inputs),
        }
    }
}

impl Plans {
    fn memory_for(&self, inputs: &[(&str, Dims)]) -> Result<MemoryUse> {
        let unknown_before = |why: &str| Err(Error::unsupported("the memory of a plan before its run", why));
        if self.cached.is_some() {
            return unknown_before("the session keeps caches, which decide what is planned");
        }
        let inputs = inputs.iter().map(|(name, dims)| (*name, RunInput::from((*dims, &[][..])))).collect();
        let given: Vec<FedInput<'_>> =
            self.given(inputs)?.into_iter().map(|own| FedInput { input: None, ..own }).collect();
        let first = self.stage(FIRST)?;
        let part = self.part_of(&first.place, &given, &first.by_value, None)?;
        if part.next.is_some() || !part.by_value.is_empty() {
            return unknown_before("extents of the network depend on values that only a run has");
        }
        Session::plan_memory(&self.context, &part.graph, &self.options_of(FIRST, &part))
    }

    /// Bytes of the buffers that all plans use, of which each is as large as one wants it.
    pub(super) fn wanted(&self) -> Vec<u64> {
        let mut most: Vec<u64> = Vec::new();
        for Plan { runner, .. } in self.all() {
            let own = runner.shared_values();
            most.resize(most.len().max(own.len()), 0);
            most.iter_mut().zip(own).for_each(|(most, own)| *most = (*most).max(*own));
        }
        most
    }

    /// Has plans let go of buffers that were too small for the last one, and frees what no plan wants any more.
    pub(super) fn tidy(&mut self) {
        self.shared.sweep(&self.wanted());
        let (shared, current) = (Arc::clone(&self.shared), self.current);
        let others = self.parts.iter_mut().filter(|(number, _)| Some(**number) != current);
        others.for_each(|(_, other)| other.plan.runner.leave_buffers(&shared));
    }

    /// What all plans take together. What they share counts once.
    pub(super) fn memory(&self) -> MemoryUse {
        let mut counted = BTreeSet::new();
        let planned = self.shared.bytes(&self.wanted()) + self.shared.state_bytes();
        let mut sum = MemoryUse { planned, ..MemoryUse::default() };
        for Plan { runner, .. } in self.all() {
            let twice = runner.constants().iter().filter(|(place, _)| !counted.insert(*place));
            let twice: u64 = twice.map(|(_, bytes)| bytes).sum();
            let own = runner.memory();
            let constants = own.constants.saturating_sub(twice);
            // One plan runs at a time.
            sum = MemoryUse { least: sum.least.max(own.least), ..sum.and(MemoryUse { constants, ..own }) };
        }
        sum
    }
}
