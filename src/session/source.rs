//! What makes the graphs of a network whose extents each run decides.

use super::input::RunInput;
use super::ports::{OpenAxis, Port};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// An input of a network whose extents each run decides.
#[derive(Debug, Clone)]
pub(crate) struct OpenInput {
    /// Its place among the inputs of the file, those that are given while it is read included.
    #[cfg_attr(
        not(any(feature = "tflite", feature = "onnx")),
        expect(dead_code, reason = "files alone have others")
    )]
    pub(crate) place: usize,
    pub(crate) name: String,
    pub(crate) dtype: DType,
    /// Its extents, those without one open; `None` where the rank is open, too.
    pub(crate) extents: Option<Vec<Option<usize>>>,
    pub(crate) open: Vec<OpenAxis>,
    /// Whether a run may do without it.
    pub(crate) is_optional: bool,
}

/// What a part of a network is given.
#[derive(Debug, Clone)]
pub(crate) struct GivenInput<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) dims: Dims,
    /// Nothing while a session is planned before its first run.
    pub(crate) input: Option<RunInput<'a>>,
}

impl GivenInput<'_> {
    /// Its elements, if they are there.
    pub(crate) fn value(&self) -> Result<Option<Cow<'_, HostTensor>>> {
        self.input.as_ref().map(|input| input.tensor(self.dims)).transpose()
    }
}

/// Where a part of a network begins.
#[derive(Clone)]
pub(crate) struct PartStart {
    /// Whether it is one operator, which the CPU computes anew at each run because its results' extents depend on values.
    pub(crate) on_host: bool,
    /// What tells it from other places behind the same part.
    pub(crate) form: String,
    /// What the source knows of it.
    #[cfg_attr(not(feature = "onnx"), expect(dead_code, reason = "a TensorFlow Lite file has one part"))]
    pub(crate) of: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for PartStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartStart").field("on_host", &self.on_host).finish_non_exhaustive()
    }
}

/// Where a result of a part is found.
#[cfg_attr(not(feature = "onnx"), expect(dead_code, reason = "a TensorFlow Lite file has one part"))]
#[derive(Debug, Clone)]
pub(crate) enum PartResult {
    /// Among the outputs of its graph.
    Output(usize),
    /// With the part.
    Constant(HostTensor),
    /// What the part was given by this name.
    Given(String),
}

/// A part of a network for inputs of certain extents.
#[derive(Debug)]
pub(crate) struct Part {
    /// What computes it; without outputs where all is known.
    pub(crate) graph: Graph,
    /// What it was given whose values it depends on.
    pub(crate) by_value: BTreeSet<String>,
    /// What the next part is given, or the network's outputs, by name.
    pub(crate) results: Vec<(String, PartResult)>,
    pub(crate) next: Option<PartStart>,
    /// How many places it adds to each cache.
    pub(crate) adds: usize,
    /// Whether what attends sees those behind all others ([`Filling::Apart`]).
    pub(crate) apart: bool,
}

impl Part {
    /// The only part: `graph` computes every one of these outputs, in their order.
    pub(crate) fn whole(graph: Graph, outputs: &[Port]) -> Self {
        let named = |(index, port): (usize, &Port)| (port.name.clone(), PartResult::Output(index));
        let results = outputs.iter().enumerate().map(named).collect();
        Self { graph, by_value: BTreeSet::new(), results, next: None, adds: 0, apart: false }
    }
}

/// Caches that the graphs of a network keep as states: inputs of a run that outputs of the run before are.
#[cfg_attr(not(feature = "onnx"), expect(dead_code, reason = "files of ONNX alone have caches"))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caching<'a> {
    /// Outputs and inputs.
    pub(crate) pairs: &'a [(String, String)],
    /// Places of each cache: extents of the axis before the last one.
    pub(crate) places: usize,
    /// Axes of other inputs that have a place for each of a cache.
    pub(crate) grown: &'a [(String, usize)],
    pub(crate) way: Filling,
}

/// How a run fills its caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filling {
    /// It is given none, and its outputs become their first places.
    First,
    /// It is given all places but as many as it adds, filled or not. Its own go where the run before has ended ([`PLACES`]),
    /// and what attends sees them there.
    Next,
    /// [`Filling::Next`], where what attends sees the places of the run behind all others, as the file has them. Masks hide
    /// those between.
    #[cfg_attr(not(feature = "onnx"), expect(dead_code, reason = "ONNX files alone have caches"))]
    Apart,
    /// It is given all of them, and what it makes of them replaces them.
    Whole,
}

/// The input of a graph that says how many places of its caches are filled.
pub(crate) const PLACES: &str = "(places)";

/// Makes graphs of a network, part by part.
pub(crate) trait GraphSource: fmt::Debug + Send + Sync {
    fn inputs(&self) -> &[OpenInput];

    /// The outputs, as far as they are known before a run.
    fn outputs(&self) -> Vec<Port>;

    /// Where the network begins.
    fn first(&self) -> PartStart {
        PartStart { on_host: false, form: String::new(), of: Arc::new(()) }
    }

    /// The part at a place that is not on the host, for what it is given. `by_value`: what other parts at this place
    /// depended on the values of.
    fn part(
        &self,
        at: &PartStart,
        given: &[GivenInput<'_>],
        by_value: &BTreeSet<String>,
        caching: Option<Caching<'_>>,
    ) -> Result<Part>;

    /// How runs fill caches that are these inputs, once they are filled in part.
    ///
    /// # Errors
    /// If there is no way.
    fn filling(&self, inputs: &[&str]) -> Result<Filling>;

    /// What the part at a place on the host gives, and where the next one begins.
    fn on_host(
        &self,
        _at: &PartStart,
        _given: &[GivenInput<'_>],
    ) -> Result<(Vec<(String, HostTensor)>, PartStart)> {
        Err(Error::Internal("a network of one part".to_owned()))
    }
}
