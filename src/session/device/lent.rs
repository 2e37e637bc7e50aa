//! A session's runs with an application's buffers, pictures and frames.

use super::DeviceSession;
use crate::context::Engine;
use crate::device::Recording;
use crate::error::{Error, Result};
use crate::session::bound::{Bindings, Bound, PortBuffer};
use crate::session::input::Input;
use crate::session::picture::ShownPictures;
use crate::source::Port;
use std::sync::Arc;

impl DeviceSession {
    pub(in crate::session) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What a binding's offset must be a multiple of.
    pub(in crate::session) fn alignment(&self) -> Result<u64> {
        Ok(self.engine.device()?.info().limits.binding_alignment.max(4))
    }

    /// What an application's buffers are bound by.
    pub(in crate::session) fn bindings(&self, what: &str) -> Result<&Bindings> {
        let ready = self.ready()?;
        let on_cpu = || ready.segments.on_cpu().unwrap_or_default();
        let reason =
            || format!("the CPU computes {}, which an application's queue cannot wait for", on_cpu());
        ready.bindings.as_ref().ok_or_else(|| Error::unsupported(what, reason()))
    }

    /// The run with these buffers.
    pub(in crate::session) async fn bound(&mut self, buffers: Vec<PortBuffer>) -> Result<Arc<Bound>> {
        let missing = || Error::Internal("a session that binds no buffers".to_owned());
        let bindings = self.ready.as_mut().and_then(|ready| ready.bindings.as_mut()).ok_or_else(missing)?;
        bindings.bound(self.engine.device()?, buffers).await
    }

    /// The buffer of an input that is pictures, and the recording that fills it.
    pub(in crate::session) async fn pictures(
        &mut self,
        index: usize,
        port: &Port,
        shown: ShownPictures,
    ) -> Result<(PortBuffer, Arc<Recording>)> {
        let missing = || Error::Internal("a session that binds no buffers".to_owned());
        let bindings = self.ready.as_mut().and_then(|ready| ready.bindings.as_mut()).ok_or_else(missing)?;
        bindings.pictures(self.engine.device()?, index, port, shown).await
    }

    pub(in crate::session) fn unbind(&mut self) {
        self.ready.iter_mut().flat_map(|ready| &mut ready.bindings).for_each(Bindings::clear);
    }

    /// Makes the inputs that are frames.
    pub(super) async fn frames(&self, inputs: &[Input<'_>]) -> Result<()> {
        #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
        self.uploads.make(self.engine.device()?, &self.ready()?.inputs, inputs).await?;
        let _ = inputs;
        Ok(())
    }
}
