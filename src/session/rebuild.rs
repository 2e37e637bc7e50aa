//! A session made again, where its device was lost.

use super::Session;
use crate::context::Context;
use crate::error::{Error, Result};

impl Session {
    /// Makes the session again from its graph, on `context`: the device was lost, or the network is to run elsewhere.
    /// Kernels, memory and recordings are those of the new device; states ([`Graph::state`](crate::Graph::state)) are
    /// what they are at first. On the same device the outputs are bit for bit what they were.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the graph was not kept ([`SessionOptions::keep_graph`](crate::SessionOptions)), and
    /// those of [`Session::new`]; the session is then as it was.
    #[cfg(not(target_family = "wasm"))]
    pub fn rebuild(&mut self, context: &Context) -> Result<()> {
        let (graph, options) = self.made_of()?;
        *self = Session::new(context, graph, options.clone())?;
        Ok(())
    }

    /// [`Session::rebuild`], awaited.
    ///
    /// # Errors
    /// Those of [`Session::rebuild`].
    pub async fn rebuild_async(&mut self, context: &Context) -> Result<()> {
        let (graph, options) = self.made_of()?;
        *self = Session::build(context, graph, options.clone()).await?;
        Ok(())
    }

    fn made_of(&self) -> Result<(&crate::graph::Graph, &crate::options::SessionOptions)> {
        let kept = self.made_of.as_deref().map(|(graph, options)| (graph, options));
        kept.ok_or_else(|| {
            Error::unsupported("Session::rebuild", "the graph was not kept (SessionOptions::keep_graph)")
        })
    }
}
