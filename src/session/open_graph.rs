//! A graph some of whose named dimensions each run decides.

use super::cache_state::CACHE;
use crate::dims::Dim;
use crate::error::{Error, Result, Setting};
use crate::graph::Graph;
use crate::options::SessionOptions;
use crate::sorted;
use crate::source::{Caching, Filling, GivenInput, GraphSource, OpenInput, Part, PartStart};
use crate::source::{OpenAxis, Port};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A graph with open dimensions.
#[derive(Debug)]
pub(super) struct OpenGraph {
    graph: Graph,
    inputs: Vec<OpenInput>,
    outputs: Vec<Port>,
}

impl OpenGraph {
    /// The graph with the dimensions of `options` that are fixed, and the options without them.
    pub(super) fn new(graph: &Graph, mut options: SessionOptions) -> Result<(Arc<Self>, SessionOptions)> {
        if let Some(name) = options.open.keys().find(|name| options.dimensions.contains_key(*name)) {
            let error = Error::input(
                format!("open dimension {name:?}"),
                "a fixed extent for it as well",
                "one of both",
            );
            return Err(error.with_setting(Setting::Dimensions));
        }
        if let Some(name) = options.open.keys().find(|name| !graph.dimensions().contains_key(*name)) {
            let wanted = format!("one of {:?}", graph.dimensions().keys().collect::<Vec<_>>());
            return Err(Error::input("open dimension", format!("{name:?}"), wanted));
        }
        let fixed: Vec<(&str, usize)> =
            options.dimensions.iter().map(|(name, &extent)| (name.as_str(), extent)).collect();
        let graph = graph.with_dimensions(&fixed)?;
        let mut inputs = Vec::with_capacity(graph.inputs().len());
        for (place, &input) in graph.inputs().iter().enumerate() {
            let (mut extents, mut open) = (Vec::new(), Vec::new());
            let dims = graph.dims(input)?;
            for (axis, (declared, &extent)) in graph.declared(input)?.iter().zip(dims.extents()).enumerate() {
                match declared {
                    Dim::Named(name) if options.open.contains_key(name) => {
                        extents.push(None);
                        open.push(OpenAxis { axis, name: name.clone() });
                    }
                    _ => extents.push(Some(extent)),
                }
            }
            let (name, dtype) = (graph.name(input)?.to_owned(), graph.tensor_type(input)?.dtype);
            inputs.push(OpenInput { place, name, dtype, extents: Some(extents), open, is_optional: false });
        }
        let outputs = outputs(&graph, &options)?;
        options.dimensions.clear();
        Ok((Arc::new(OpenGraph { graph, inputs, outputs }), options))
    }
}

/// The outputs, with the axes that follow an open dimension.
fn outputs(graph: &Graph, options: &SessionOptions) -> Result<Vec<Port>> {
    let mut ports = Port::all(graph, graph.outputs())?;
    for name in options.open.keys() {
        let Some(extent) = graph.dimensions().get(name) else { continue };
        // An axis follows it if a larger extent changes it. Where that does not fit, a run tells.
        let Ok(larger) = graph.with_dimensions(&[(name, extent + 1)]) else { continue };
        for (port, other) in ports.iter_mut().zip(Port::all(&larger, larger.outputs())?) {
            let axes = port.dims.extents().iter().zip(other.dims.extents()).enumerate();
            let changed = axes.filter(|(_, (own, other))| own != other);
            port.open.extend(changed.map(|(axis, _)| OpenAxis { axis, name: name.clone() }));
        }
    }
    ports.iter_mut().for_each(|port| sorted::sort_by_key(&mut port.open, |open| open.axis));
    Ok(ports)
}

impl GraphSource for OpenGraph {
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
        let mut extents: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for (own, input) in given.iter().zip(&self.inputs) {
            for open in &input.open {
                let Some(&extent) = own.dims.extents().get(open.axis) else { continue };
                let known = *extents.entry(&open.name).or_insert((extent, &input.name));
                if known.0 != extent {
                    let found = format!("{extent} for dimension {:?}", open.name);
                    let wanted = format!("{}, as input {:?} has", known.0, known.1);
                    return Err(Error::input(format!("input {:?}", input.name), found, wanted));
                }
            }
        }
        let extents: Vec<(&str, usize)> =
            extents.into_iter().map(|(name, (extent, _))| (name, extent)).collect();
        let graph = self.graph.with_dimensions(&extents)?;
        Ok(Part::whole(graph, &self.outputs))
    }

    fn filling(&self, _: &[&str]) -> Result<Filling> {
        let why =
            "a Graph has states (Graph::state, Graph::update_slice) for what it keeps: it needs no caches";
        Err(Error::unsupported(CACHE, why))
    }
}
