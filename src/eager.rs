//! Single ops on host tensors: a network of one node, run once.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::graph::{Extras, Graph, Value};
use crate::host::HostTensor;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::pointwise::Pointwise;
use crate::options::SessionOptions;
use crate::session::Session;

impl Context {
    /// A 2D convolution; `weights` is `oc kh kw c/groups`.
    ///
    /// For repeated runs build a [`Graph`] and a [`Session`]: this compiles, uploads and downloads
    /// at every call (compiled kernels are kept by the context).
    ///
    /// # Errors
    /// If the shapes do not fit each other, or the device fails.
    pub fn conv2d(
        &self,
        x: &HostTensor,
        weights: &HostTensor,
        bias: Option<&HostTensor>,
        options: &Conv2d,
    ) -> Result<HostTensor> {
        self.one(x, bias, |graph, x, extras| graph.conv2d("conv2d", x, weights.clone(), extras, *options))
    }

    /// A depthwise convolution; `weights` is `1 kh kw c*multiplier`. See [`Context::conv2d`].
    ///
    /// # Errors
    /// If the shapes do not fit each other, or the device fails.
    pub fn depthwise(
        &self,
        x: &HostTensor,
        weights: &HostTensor,
        bias: Option<&HostTensor>,
        options: &Depthwise,
    ) -> Result<HostTensor> {
        self.one(x, bias, |graph, x, extras| {
            graph.depthwise("depthwise", x, weights.clone(), extras, *options)
        })
    }

    /// A 1x1 convolution; `weights` is `oc 1 1 c`. See [`Context::conv2d`].
    ///
    /// # Errors
    /// If the shapes do not fit each other, or the device fails.
    pub fn pointwise(
        &self,
        x: &HostTensor,
        weights: &HostTensor,
        bias: Option<&HostTensor>,
        options: &Pointwise,
    ) -> Result<HostTensor> {
        self.one(x, bias, |graph, x, extras| {
            graph.pointwise("pointwise", x, weights.clone(), extras, *options)
        })
    }

    fn one(
        &self,
        x: &HostTensor,
        bias: Option<&HostTensor>,
        node: impl FnOnce(&mut Graph, Value, Extras) -> Result<Value>,
    ) -> Result<HostTensor> {
        let mut graph = Graph::new();
        let input = graph.input("x", x.shape())?;
        let output = node(&mut graph, input, Extras { bias: bias.cloned(), ..Default::default() })?;
        graph.output(output)?;
        let mut session = Session::new(self, &graph, SessionOptions::default())?;
        let mut outputs = session.run(&[("x", x)])?;
        outputs.pop().ok_or_else(|| Error::Internal("a network without an output".to_owned()))
    }
}
