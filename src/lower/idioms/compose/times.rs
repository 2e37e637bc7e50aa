//! How long nests take, by the device that runs them.

use crate::dtype::Precision;
use crate::limits::machine::Machine;
use crate::ops::loops::{CPU_STEP, Nest};

/// What says how long nests take: the estimate for a GPU, in clocks, or for the CPU, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Times {
    Gpu(Machine),
    Cpu,
}

impl Times {
    /// How long a nest takes.
    pub(super) fn of(self, nest: &Nest, precision: Precision) -> f64 {
        match self {
            Times::Gpu(machine) => nest.clocks(&machine, precision.storage().bytes()),
            Times::Cpu => nest.nanoseconds(),
        }
    }

    /// The nest as it runs there.
    pub(super) fn simplified(self, nest: Nest) -> Nest {
        match self {
            Times::Gpu(_) => nest.rolled(),
            Times::Cpu => nest,
        }
    }

    /// How long a step takes that computes nothing.
    pub(super) fn launch(self) -> f64 {
        match self {
            Times::Gpu(machine) => machine.launch,
            Times::Cpu => CPU_STEP,
        }
    }

    /// Whether a nest runs as one step there without taking longer than the ops that it is made of: on the CPU, integers and
    /// gathers have no vectors in a nest, and running sums would be added up one by one.
    pub(super) fn runs(self, nest: &Nest) -> bool {
        match self {
            Times::Gpu(_) => true,
            Times::Cpu => !nest.has_integers() && !nest.leaves_out_terms(),
        }
    }
}
