//! A session of one network for batches of several sizes, whose plans are made before the first run. They have one copy of
//! the weights, and use the same buffers one after the other.

use super::Session;
use super::extents::Extents;
use super::input::FedInput;
use super::plans::Plans;
use crate::context::Context;
use crate::device::Wait;
use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::options::SessionOptions;
use crate::sorted;
use crate::source::{Caching, Filling, GivenInput, GraphSource, OpenInput, Part, PartStart};
use crate::source::{OpenAxis, Port};
use crate::task::block_on;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The open dimension that counts requests.
const REQUESTS: &str = "requests";

/// The network for each size.
#[derive(Debug)]
struct Sizes {
    graphs: Vec<Graph>,
    inputs: Vec<OpenInput>,
    outputs: Vec<Port>,
}

impl Sizes {
    fn new(graphs: Vec<Graph>) -> Result<Self> {
        let first = graphs.first().ok_or_else(|| Error::Internal("a batch without sizes".to_owned()))?;
        let own = |port: &Port| {
            let extents = port.dims.extents().iter().enumerate();
            extents.map(|(axis, &extent)| (axis > 0).then_some(extent)).collect()
        };
        let input = |(place, port): (usize, Port)| OpenInput {
            place,
            extents: Some(own(&port)),
            open: vec![OpenAxis { axis: 0, name: REQUESTS.to_owned() }],
            name: port.name,
            dtype: port.dtype,
            is_optional: false,
        };
        let inputs = Port::all(first, first.inputs())?.into_iter().enumerate().map(input).collect();
        let outputs = Port::all(first, first.outputs())?;
        Ok(Sizes { graphs, inputs, outputs })
    }
}

impl GraphSource for Sizes {
    fn inputs(&self) -> &[OpenInput] {
        &self.inputs
    }

    fn outputs(&self) -> Vec<Port> {
        self.outputs.clone()
    }

    fn part(
        &self,
        _: &PartStart,
        given: &[GivenInput<'_>],
        _: &BTreeSet<String>,
        _: Option<Caching<'_>>,
    ) -> Result<Part> {
        let fits = |graph: &Graph| {
            let dims = graph.inputs().iter().map(|&input| graph.dims(input).ok());
            dims.eq(given.iter().map(|own| Some(own.dims)))
        };
        let found = self.graphs.iter().find(|graph| fits(graph));
        let graph = found.ok_or_else(|| Error::Internal("no network for these extents".to_owned()))?.clone();
        Ok(Part::whole(graph, &self.outputs))
    }

    fn filling(&self, _: &[&str]) -> Result<Filling> {
        Err(Error::unsupported(super::cache_state::CACHE, "requests of a batch have no order"))
    }
}

/// What a run of so many requests is given, by the inputs of one.
fn given(inputs: &[Port], size: usize) -> Result<Vec<FedInput<'_>>> {
    let mut given = Vec::with_capacity(inputs.len());
    for port in inputs {
        let mut extents = port.dims.extents().to_vec();
        match extents.first_mut() {
            Some(outermost) => *outermost = outermost.saturating_mul(size),
            None if size > 1 => extents.push(size),
            None => {}
        }
        let dims = Dims::new(&extents)?;
        given.push(FedInput { name: Cow::Borrowed(port.name.as_str()), dims, input: None });
    }
    Ok(given)
}

impl Session {
    /// A session of the networks for these numbers of requests, whose inputs are so many times `inputs`. All are planned.
    pub(crate) fn of_sizes(
        context: &Context,
        graphs: &[(usize, Graph)],
        inputs: &[Port],
        mut options: SessionOptions,
    ) -> Result<Self> {
        let mut sizes: Vec<usize> = graphs.iter().map(|(size, _)| *size).collect();
        options.plans = NonZeroUsize::new(sizes.len());
        let source = Arc::new(Sizes::new(graphs.iter().map(|(_, graph)| graph.clone()).collect())?);
        let plans = Plans::new(context, source, options)?;
        let mut session = Session { extents: Extents::Open(Box::new(plans)), carried: Vec::new() };
        // The largest one's buffers are large enough for all.
        sorted::sort_by_key(&mut sizes, |size| Reverse(*size));
        for size in sizes {
            session.turn_to(inputs, size)?;
        }
        Ok(session)
    }

    /// Has the runs from now on be of so many requests.
    pub(crate) fn turn_to(&mut self, inputs: &[Port], size: usize) -> Result<()> {
        block_on(self.plan_for(&given(inputs, size)?, Wait::Blocks, &mut |_| {}))
    }
}
