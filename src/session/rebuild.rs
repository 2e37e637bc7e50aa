//! A session made again, where its device was lost.

use super::Session;
use crate::context::Context;
use crate::error::{Error, Result};

impl Session {
    /// Makes the session again from its graph, on `context`: after the device was lost, or to run the network elsewhere.
    /// Kernels, memory and recordings are those of the new device; states ([`Graph::state`](crate::Graph::state)) are
    /// what they are at first. On the same device the outputs are bit for bit what they were.
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
    /// session.rebuild(&Context::new(Backend::Auto)?)?; // on another device
    /// let input = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?;
    /// assert_eq!(*session.run(&[("x", &input)])?[0].to_f32(), [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
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
