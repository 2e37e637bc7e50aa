//! A session made again, where its device was lost.

use super::Session;
use crate::context::Context;
use crate::device::Wait;
use crate::error::{Error, Result, Setting};

impl Session {
    /// [`Session::rebuild`], awaited.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let options = SessionOptions { keep_graph: true, ..Default::default() };
    /// let mut session = Session::new(&context, &graph, options)?;
    /// pollster::block_on(session.rebuild_async(&context))?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::rebuild`].
    pub async fn rebuild_async(&mut self, context: &Context) -> Result<()> {
        let next = match self.extents.open() {
            Some(plans) => plans.again(context, Wait::Awaits).await?,
            None => {
                let (graph, options) = self.made_of()?;
                Session::new_async(context, graph, options.clone()).await?
            }
        };
        self.replace(next)
    }

    /// Becomes a session that was made again: the same outputs are carried and the same caches kept, and nothing is in
    /// them.
    pub(super) fn replace(&mut self, next: Session) -> Result<()> {
        let carried = std::mem::take(&mut self.carried);
        let caches = self.caches().cloned();
        *self = Session { carried, ..next };
        self.forget_carried();
        caches.map_or(Ok(()), |caches| self.cache(&caches))
    }

    pub(super) fn made_of(&self) -> Result<(&crate::graph::Graph, &crate::options::SessionOptions)> {
        let kept = self.extents.plan().graph_and_options.as_deref().map(|(graph, options)| (graph, options));
        kept.ok_or_else(|| {
            Error::unsupported("to build this session again", "the graph was not kept")
                .with_setting(Setting::KeepGraph)
        })
    }
}
