//! What runs a session: a device, or the CPU. Everything that a session does goes through [`Run`].

use super::cpu::CpuSession;
use super::device::DeviceSession;
use super::flight::{Launched, Layout};
use super::input::Input;
use super::profile::{MemoryUse, Profile, StageTimes, Step};
use super::shared::Shared;
use crate::device::{Readback, Wait};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Key;
use crate::task::Awaited;
use std::ops::Range;

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

/// Where a session runs.
#[derive(Debug)]
pub(super) enum Runner {
    Device(Box<DeviceSession>),
    Cpu(CpuSession),
    Idle(Idle),
}

/// What has nothing to compute: no run decided the extents yet, or all outputs are known.
#[derive(Debug, Default)]
pub(super) struct Idle(Layout);

impl Run for Idle {
    fn steps(&self) -> Vec<Step> {
        Vec::new()
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    fn reset(&self) -> Result<()> {
        Ok(())
    }

    fn layout(&self) -> &Layout {
        &self.0
    }

    fn launch(&self, _: &[Input<'_>], _: Next) -> Result<Launched> {
        Ok(Launched::Done(Box::new(Vec::<Vec<u8>>::new())))
    }

    fn launch_async<'a>(&'a self, inputs: &'a [Input<'a>]) -> Awaited<'a, Result<Launched>> {
        Box::pin(async { self.launch(inputs, Next::GoesOn) })
    }

    fn stages<'a>(
        &'a self,
        _: &'a [Input<'a>],
        _: Wait,
    ) -> Awaited<'a, Result<(Box<dyn Readback>, StageTimes)>> {
        Box::pin(async { Ok((Box::new(Vec::<Vec<u8>>::new()) as Box<dyn Readback>, StageTimes::default())) })
    }

    fn profile<'a>(&'a self, _: &'a [Input<'a>], _: Wait) -> Awaited<'a, Result<Profile>> {
        Box::pin(async { Ok(Profile { clock: "host clock", steps: Vec::new() }) })
    }
}

impl std::ops::Deref for Runner {
    type Target = dyn Run;

    fn deref(&self) -> &(dyn Run + 'static) {
        match self {
            Runner::Device(session) => &**session,
            Runner::Cpu(session) => session,
            Runner::Idle(idle) => idle,
        }
    }
}

impl Runner {
    /// The type of the words in which it keeps elements of a type.
    pub(super) fn word(&self, dtype: DType) -> DType {
        match self {
            Runner::Device(_) => dtype.device_word(),
            Runner::Cpu(_) | Runner::Idle(_) => dtype.word(),
        }
    }

    /// Takes the states of what ran before it, for other extents of the same network.
    pub(super) async fn follow(&self, before: &Runner, wait: Wait) -> Result<()> {
        match (self, before) {
            (Runner::Device(own), Runner::Device(before)) => own.follow(before, wait).await,
            (Runner::Cpu(own), Runner::Cpu(before)) => {
                own.follow(before);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes zeros to some places of each cache of `whole` places.
    pub(super) fn clear_places(&self, whole: usize, places: Range<usize>) -> Result<()> {
        match self {
            Runner::Device(session) => session.clear_places(whole, &places),
            Runner::Cpu(session) => {
                session.clear_places(whole, &places);
                Ok(())
            }
            Runner::Idle(_) => Ok(()),
        }
    }

    /// Draws the random numbers of this key in the next run, if there are any.
    pub(super) fn draw_by(&self, key: Key) -> Result<()> {
        match self {
            Runner::Device(session) => session.draw_by(key),
            Runner::Cpu(session) => {
                session.draw_by(key);
                Ok(())
            }
            Runner::Idle(_) => Ok(()),
        }
    }

    /// Takes the buffers for values that it shares with sessions for other extents, if it let go of them.
    pub(super) fn take_buffers(&mut self, shared: &Shared) -> Result<()> {
        match self {
            Runner::Device(session) => session.take_buffers(shared),
            Runner::Cpu(_) | Runner::Idle(_) => Ok(()),
        }
    }

    /// Lets go of buffers for values in whose place others are given now.
    pub(super) fn leave_buffers(&mut self, shared: &Shared) {
        if let Runner::Device(session) = self {
            session.leave_buffers(shared);
        }
    }

    /// The session on a device, for what only a device does.
    #[cfg(any(feature = "wgpu", feature = "opencl"))]
    pub(super) fn device(&self, what: &str) -> Result<&DeviceSession> {
        let Runner::Device(session) = self else { return Err(self.on_cpu(what)) };
        Ok(session)
    }

    /// [`Runner::device`], to change.
    pub(super) fn device_mut(&mut self, what: &str) -> Result<&mut DeviceSession> {
        match self {
            Runner::Device(session) => Ok(session),
            other => Err(other.on_cpu(what)),
        }
    }

    fn on_cpu(&self, what: &str) -> Error {
        match self {
            Runner::Idle(_) => Error::unsupported(what, "no run has decided the session's extents yet"),
            _ => Error::unsupported(what, "the session runs on the CPU"),
        }
    }
}
