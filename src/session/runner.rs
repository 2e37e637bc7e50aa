//! What runs a plan: a device, or the CPU. Everything that a session does goes through [`Run`].

use super::cpu::CpuSession;
use super::device::DeviceSession;
use super::flight::{Launched, Layout};
use super::input::Input;
use super::profile::{MemoryUse, Profile, StageTimes, Step};
use super::run::{Next, Run};
use super::shared::Shared;
use crate::device::{Readback, Wait};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Key;
use crate::task::Awaited;
use std::ops::Range;

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

    /// Writes zeros to some places of each cache of `whole` places. The last `others` states are no caches.
    pub(super) fn clear_places(&self, whole: usize, places: Range<usize>, others: usize) -> Result<()> {
        match self {
            Runner::Device(session) => session.clear_places(whole, &places, others),
            Runner::Cpu(session) => {
                session.clear_places(whole, &places, others);
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
