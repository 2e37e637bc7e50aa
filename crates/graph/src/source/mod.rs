//! What makes the graphs of a network whose extents each run decides, and the ports of such a network.

mod ports;

pub use ports::{OpenAxis, Port};

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
pub struct OpenInput {
    /// Its place among the inputs of the file, those that are given while it is read included.
    pub place: usize,
    pub name: String,
    pub dtype: DType,
    /// Its extents, those without one open; `None` where the rank is open, too.
    pub extents: Option<Vec<Option<usize>>>,
    pub open: Vec<OpenAxis>,
    /// Whether a run may do without it.
    pub is_optional: bool,
}

/// The elements of an input.
pub trait Elements: fmt::Debug {
    /// The elements as a tensor of dimensions `dims`, which hold as many.
    ///
    /// # Errors
    /// If there are more or fewer elements, or no memory for them.
    fn tensor(&self, dims: Dims) -> Result<Cow<'_, HostTensor>>;
}

/// What a part of a network is given.
#[derive(Debug, Clone)]
pub struct GivenInput<'a> {
    pub name: Cow<'a, str>,
    pub dims: Dims,
    /// Nothing while a session is planned before its first run.
    pub input: Option<&'a dyn Elements>,
}

impl GivenInput<'_> {
    /// Its elements, if they are there.
    pub fn value(&self) -> Result<Option<Cow<'_, HostTensor>>> {
        self.input.as_ref().map(|input| input.tensor(self.dims)).transpose()
    }
}

/// Where a part of a network begins.
#[derive(Clone)]
pub struct PartStart {
    /// Whether it is one operator, which the CPU computes anew at each run because its results' extents depend on values.
    pub on_host: bool,
    /// What tells it from other places behind the same part.
    pub form: String,
    /// What the source knows of it.
    pub of: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for PartStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartStart").field("on_host", &self.on_host).finish_non_exhaustive()
    }
}

/// Where a result of a part is found.
#[derive(Debug, Clone)]
pub enum PartResult {
    /// Among the outputs of its graph.
    Output(usize),
    /// With the part.
    Constant(HostTensor),
    /// What the part was given by this name.
    Given(String),
}

/// A part of a network for inputs of certain extents.
#[derive(Debug)]
pub struct Part {
    /// What computes it; without outputs where all is known.
    pub graph: Graph,
    /// What it was given whose values it depends on.
    pub by_value: BTreeSet<String>,
    /// What the next part is given, or the network's outputs, by name.
    pub results: Vec<(String, PartResult)>,
    pub next: Option<PartStart>,
    /// How many places it adds to each cache.
    pub adds: usize,
    /// Whether what attends sees those behind all others ([`Filling::Apart`]).
    pub apart: bool,
}

impl Part {
    /// The only part: `graph` computes every one of these outputs, in their order.
    pub fn whole(graph: Graph, outputs: &[Port]) -> Self {
        let named = |(index, port): (usize, &Port)| (port.name.clone(), PartResult::Output(index));
        let results = outputs.iter().enumerate().map(named).collect();
        Self { graph, by_value: BTreeSet::new(), results, next: None, adds: 0, apart: false }
    }

    /// Keeps an output as a state for the input `input` of the next run. A part that `reads` takes that input from the run before.
    ///
    /// # Errors
    /// If this is not the last part, or the output is not computed.
    pub fn feed_back(&mut self, output: &str, input: &str, reads: bool) -> Result<()> {
        let found = self.results.iter().find(|(name, _)| name == output).map(|(_, found)| found);
        let value = match found {
            Some(PartResult::Output(index)) if self.next.is_none() => {
                self.graph.outputs().get(*index).copied()
            }
            _ => None,
        };
        let wanted = "one that the last part of the network computes";
        let value = value.ok_or_else(|| Error::input(format!("output {output:?}"), "another one", wanted))?;
        self.graph.feed_back(input, value, reads)
    }
}

/// Caches that the graphs of a network keep as states: inputs of a run that outputs of the run before are.
#[derive(Debug, Clone, Copy)]
pub struct Caching<'a> {
    /// Outputs and inputs.
    pub pairs: &'a [(String, String)],
    /// Places of each cache: extents of the axis before the last one.
    pub places: usize,
    /// Axes of other inputs that have a place for each of a cache.
    pub grown: &'a [(String, usize)],
    pub way: Filling,
}

impl Caching<'_> {
    /// Whether an input is one of them.
    pub fn is_cache(&self, input: &str) -> bool {
        self.pairs.iter().any(|(_, own)| own == input)
    }

    /// How many places of its caches a network is shown.
    pub fn shown(&self, given: &[GivenInput<'_>]) -> Option<usize> {
        let cache = given.iter().find(|own| self.is_cache(&own.name))?;
        cache.dims.extents().iter().rev().nth(1).copied()
    }
}

/// How a run fills its caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filling {
    /// It is given none, and its outputs become their first places.
    First,
    /// It is given all places but as many as it adds, filled or not. Its own go where the run before has ended ([`PLACES`]),
    /// and what attends sees them there.
    Next,
    /// [`Filling::Next`], where what attends sees the places of the run behind all others, as the file has them. Masks hide
    /// those between.
    Apart,
    /// It is given all of them, and what it makes of them replaces them.
    Whole,
}

/// The input of a graph that says how many places of its caches are filled.
pub const PLACES: &str = "(places)";

/// Makes graphs of a network, part by part.
pub trait GraphSource: fmt::Debug + Send + Sync {
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
