//! What a network that is ready to run does, whatever runs it.

use super::flight::{Launched, Layout};
use super::input::Input;
use super::profile::{MemoryUse, Profile, StageTimes, Step};
use crate::device::{Readback, Wait};
use crate::error::Result;
use crate::task::Awaited;

/// What the caller does once a run is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing else than wait: the run is over when it was launched, and the caller's thread may do its work.
    Waits,
    /// Something else.
    GoesOn,
}

/// A network that is ready to run.
pub(super) trait Run {
    /// The kernel of each step.
    fn steps(&self) -> Vec<Step>;

    /// Bytes of memory.
    fn memory(&self) -> MemoryUse;

    /// Places and bytes of the constants among them that sessions for other extents may have, too.
    fn constants(&self) -> &[(usize, u64)] {
        &[]
    }

    /// Bytes of the buffers for values that sessions for other extents use, too, the largest first. They are no part of
    /// [`Run::memory`].
    fn shared_values(&self) -> &[u64] {
        &[]
    }

    /// Gives the states what they are in the first run.
    fn reset(&self) -> Result<()>;

    /// Where the outputs lie in what a run reads.
    fn layout(&self) -> &Layout;

    /// Begins a run. What the CPU computes before a device's last submission is computed before this returns.
    fn launch(&self, inputs: &[Input<'_>], next: Next) -> Result<Launched>;

    /// [`Run::launch`] without blocking.
    fn launch_async<'a>(&'a self, inputs: &'a [Input<'a>]) -> Awaited<'a, Result<Launched>>;

    /// A run with a wait after each of its stages.
    fn stages<'a>(
        &'a self,
        inputs: &'a [Input<'a>],
        wait: Wait,
    ) -> Awaited<'a, Result<(Box<dyn Readback>, StageTimes)>>;

    /// A run with the time of each step.
    fn profile<'a>(&'a self, inputs: &'a [Input<'a>], wait: Wait) -> Awaited<'a, Result<Profile>>;
}
