//! The plan of a part of a network.

use super::input::FedInput;
use super::plan::Plan;
use crate::dims::Dims;
use crate::error::Result;
use crate::host::HostTensor;
use crate::source::PartResult;

/// The plan of a part of a network, for certain extents and values.
#[derive(Debug)]
pub(super) struct PartPlan {
    pub(super) extents: Vec<(String, Dims)>,
    pub(super) values: Vec<(String, HostTensor)>,
    pub(super) used: u64,
    pub(super) plan: Plan,
    pub(super) results: Vec<(String, PartResult)>,
    pub(super) next: Option<u64>,
    /// How many places it adds to each cache.
    pub(super) adds: usize,
    /// Whether it has these behind all others.
    pub(super) apart: bool,
}

/// Whether two tensors are equal, NaN included.
fn same(a: &HostTensor, b: &HostTensor) -> bool {
    a.dims() == b.dims() && a.dtype() == b.dtype() && a.layout() == b.layout() && a.bytes() == b.bytes()
}

impl PartPlan {
    /// Whether it is for these extents and values.
    pub(super) fn fits(&self, given: &[FedInput<'_>]) -> Result<bool> {
        let same_extents = self.extents.len() == given.len()
            && self
                .extents
                .iter()
                .zip(given)
                .all(|((name, dims), given)| *name == given.name && *dims == given.dims);
        if !same_extents {
            return Ok(false);
        }
        for (name, value) in &self.values {
            let own =
                given.iter().find(|given| given.name == *name).map(FedInput::value).transpose()?.flatten();
            if !own.is_some_and(|own| same(&own, value)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
