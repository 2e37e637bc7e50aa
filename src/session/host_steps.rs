//! Steps of a run on a device that the CPU computes.

use crate::alloc;
use crate::cpu::CpuKernel;
use crate::emit::Operand;
use crate::error::{Error, Result};
use std::borrow::Cow;
use std::sync::Arc;

/// What a step on the CPU reads.
#[derive(Debug)]
pub(super) enum ReadFrom {
    /// The elements of a constant.
    Constant(Arc<[f32]>),
    /// An input of the network, from an element on.
    Input(usize, usize),
    /// A result of a step on the CPU, from an element on.
    Result(usize, usize),
    /// One of the segment's downloads.
    Download(usize),
}

/// A step on the CPU.
#[derive(Debug)]
pub(super) struct HostStep {
    pub(super) name: String,
    pub(super) kernel: Arc<dyn CpuKernel>,
    /// With how many elements of each.
    pub(super) reads: Vec<(Operand, ReadFrom, usize)>,
    pub(super) writes: Vec<(Operand, usize)>,
}

/// Steps on the CPU, one behind the other.
#[derive(Debug, Default)]
pub(super) struct HostSteps(pub(super) Vec<HostStep>);

impl HostSteps {
    /// Computes the steps and appends their results.
    pub(super) fn run(
        &self,
        inputs: &[Cow<'_, [f32]>],
        read: &[&[u8]],
        results: &mut Vec<Vec<f32>>,
    ) -> Result<()> {
        let downloads: Vec<Cow<'_, [f32]>> = read.iter().map(|bytes| elements(bytes)).collect();
        self.0.iter().try_for_each(|step| step.run(inputs, &downloads, results))
    }
}

/// The elements that `bytes` are.
pub(super) fn elements(bytes: &[u8]) -> Cow<'_, [f32]> {
    match bytemuck::try_cast_slice(bytes) {
        Ok(elements) => Cow::Borrowed(elements),
        Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(bytes)),
    }
}

impl HostStep {
    /// Computes the step and appends its results.
    pub(super) fn run(
        &self,
        inputs: &[Cow<'_, [f32]>],
        downloads: &[Cow<'_, [f32]>],
        results: &mut Vec<Vec<f32>>,
    ) -> Result<()> {
        let zeros = |(_, elements): &(Operand, usize)| alloc::zeros(*elements, "what the CPU computes");
        let mut written = self.writes.iter().map(zeros).collect::<Result<Vec<Vec<f32>>>>()?;
        let mut slots: Vec<(Operand, &mut [f32])> = self
            .writes
            .iter()
            .zip(&mut written)
            .map(|((operand, _), values)| (*operand, values.as_mut_slice()))
            .collect();
        let read = self.reads.iter().map(|(operand, source, elements)| {
            let (all, first) = match source {
                ReadFrom::Constant(values) => (Some(&**values), 0),
                ReadFrom::Input(index, first) => (inputs.get(*index).map(|values| &**values), *first),
                ReadFrom::Result(index, first) => (results.get(*index).map(Vec::as_slice), *first),
                ReadFrom::Download(index) => (downloads.get(*index).map(|values| &**values), 0),
            };
            let found = all.and_then(|all| all.get(first..first.checked_add(*elements)?));
            let missing = || Error::Internal(format!("{elements} elements from {first} of {source:?}"));
            Ok((*operand, found.ok_or_else(missing)?))
        });
        let read = read.collect::<Result<Vec<_>>>();
        let ran = read.and_then(|read| self.kernel.run(&read, &mut slots));
        ran.map_err(|error| error.at_node(&self.name))?;
        results.extend(written);
        Ok(())
    }
}
