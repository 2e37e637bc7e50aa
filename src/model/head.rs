//! Heads: nodes behind an output of a file, whose results replace that output.

use crate::dims::{Dim, Dims};
#[cfg(any(test, not(target_family = "wasm")))]
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::source::{
    Caching, Filling, GivenInput, GraphSource, OpenAxis, OpenInput, Part, PartResult, PartStart, Port,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Adds nodes behind an output, and returns the values that become outputs.
pub(super) type Added = dyn Fn(&mut Graph, Value) -> Result<Vec<Value>> + Send + Sync;

/// A head behind an output.
#[derive(Clone)]
pub(super) struct Head {
    output: String,
    added: Arc<Added>,
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head").field("output", &self.output).finish_non_exhaustive()
    }
}

/// Extents that are tried for open axes: an axis of a result that has another extent in the second trial is open too.
const TRIED: [usize; 2] = [61, 97];

/// The ranks that are tried where a file does not say an output's rank.
const RANKS: [usize; 5] = [3, 4, 2, 1, 5];

impl Head {
    pub(super) fn new(output: &str, added: Arc<Added>) -> Self {
        Head { output: output.to_owned(), added }
    }

    /// The values that are added behind `value`, at least one.
    fn add(&self, graph: &mut Graph, value: Value) -> Result<Vec<Value>> {
        let added = (self.added)(graph, value)?;
        if added.is_empty() {
            let what = format!("a head behind output {:?}", self.output);
            return Err(Error::input(what, "no outputs", "at least one"));
        }
        Ok(added)
    }

    /// Describes what it adds: to the first output that it takes of usual ranks and types.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn describe(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "\nhead behind {:?} ", self.output)?;
        let trial = |dtype: DType, rank: usize| -> Result<Graph> {
            let mut graph = Graph::new();
            let value = graph.typed_input(&self.output, dtype, &vec![Dim::Fixed(TRIED[0]); rank])?;
            let added = self.add(&mut graph, value)?;
            graph.set_outputs(added)?;
            Ok(graph)
        };
        let trials = [DType::F32, DType::I32].into_iter().flat_map(|dtype| RANKS.map(|rank| (dtype, rank)));
        match trials.into_iter().find_map(|(dtype, rank)| trial(dtype, rank).ok()) {
            Some(graph) => graph.describe(out),
            None => Ok(()),
        }
    }

    /// The outputs of a whole graph with the head, whose outputs have these ports before.
    pub(super) fn extend(&self, graph: &mut Graph, ports: &[Port]) -> Result<()> {
        let place = ports.iter().position(|port| port.name == self.output);
        let place = place.ok_or_else(|| self.missing(ports))?;
        let mut outputs = graph.outputs().to_vec();
        let value = outputs.get(place).copied().ok_or_else(|| self.missing(ports))?;
        outputs.splice(place..=place, self.add(graph, value)?);
        graph.set_outputs(outputs)
    }

    /// Adds the head to the last part of a network.
    fn extend_part(&self, part: &mut Part) -> Result<()> {
        let place = part.results.iter().position(|(name, _)| *name == self.output);
        let Some(place) = place else { return Ok(()) };
        let graph = &mut part.graph;
        let value = match &part.results[place].1 {
            PartResult::Output(index) => graph.outputs().get(*index).copied(),
            PartResult::Constant(tensor) => Some(graph.constant(&self.output, tensor.clone())),
            PartResult::Given(input) => {
                let mut inputs = graph.inputs().iter().copied();
                inputs.find(|own| graph.name(*own).is_ok_and(|name| name == input))
            }
        };
        let value = value.ok_or_else(|| {
            Error::unsupported("a head behind this network", format!("output {:?} is an input", self.output))
        })?;
        let added = self.add(graph, value)?;
        let mut results = Vec::with_capacity(part.results.len() + added.len());
        let mut outputs: Vec<Value> = Vec::new();
        let mut index_of = |value: Value| {
            outputs.iter().position(|own| *own == value).unwrap_or_else(|| {
                outputs.push(value);
                outputs.len() - 1
            })
        };
        for (other, (name, found)) in part.results.drain(..).enumerate() {
            if other == place {
                for &value in &added {
                    results.push((graph.name(value)?.to_owned(), PartResult::Output(index_of(value))));
                }
                continue;
            }
            let found = match found {
                PartResult::Output(index) => {
                    let value = graph.outputs().get(index).copied();
                    let value =
                        value.ok_or_else(|| Error::Internal(format!("no output {index} of a part")))?;
                    PartResult::Output(index_of(value))
                }
                other => other,
            };
            results.push((name, found));
        }
        part.results = results;
        graph.set_outputs(outputs)
    }

    fn missing(&self, ports: &[Port]) -> Error {
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        Error::input(format!("output {:?}", self.output), "none of this name", format!("one of {names:?}"))
    }

    /// The ports of what the head makes of an output. Where a file does not say the output's rank, the usual ones are tried.
    fn ports(&self, of: &Port) -> Result<Vec<Port>> {
        let found = self.tried(of);
        if found.is_ok() || of.dims.rank() > 0 {
            return found;
        }
        let of_rank = |rank: usize| {
            let axis = |axis: usize| OpenAxis { axis, name: format!("{}.{axis}", of.name) };
            let dims = Dims::new(&vec![1; rank]).ok()?;
            let open = (0..rank).map(axis).collect();
            self.tried(&Port { shape: dims.shape(), dims, open, ..of.clone() }).ok()
        };
        RANKS.into_iter().find_map(of_rank).map_or(found, Ok)
    }

    /// The ports of what the head makes of an output of known rank, with the names of the open axes that come through it.
    fn tried(&self, of: &Port) -> Result<Vec<Port>> {
        let mut tried: Vec<Vec<Port>> = Vec::with_capacity(TRIED.len());
        let mut extents_of: Vec<BTreeMap<&str, usize>> = Vec::with_capacity(TRIED.len());
        for first in TRIED {
            let mut known: BTreeMap<&str, usize> = BTreeMap::new();
            let mut extents = of.dims.extents().to_vec();
            for open in &of.open {
                let next = first + known.len();
                let extent = *known.entry(&open.name).or_insert(next);
                if let Some(own) = extents.get_mut(open.axis) {
                    *own = extent;
                }
            }
            let mut graph = Graph::new();
            let extents: Vec<Dim> = extents.into_iter().map(Dim::Fixed).collect();
            let input = graph.typed_input(&of.name, of.dtype, &extents)?;
            let added = self.add(&mut graph, input)?;
            tried.push(Port::all(&graph, &added)?);
            extents_of.push(known);
        }
        let [one, other] = &mut tried[..] else { return Err(Error::Internal("other trials".to_owned())) };
        let alike =
            |(one, other): (&Port, &Port)| one.name == other.name && one.dims.rank() == other.dims.rank();
        if one.len() != other.len() || !one.iter().zip(other.iter()).all(alike) {
            let what = format!("a head behind output {:?}", self.output);
            return Err(Error::input(
                what,
                "other outputs for other extents",
                "outputs of the same names and ranks",
            ));
        }
        for (port, other) in one.iter_mut().zip(other.iter()) {
            let mut extents = port.dims.extents().to_vec();
            for (axis, (own, other)) in extents.iter_mut().zip(other.dims.extents()).enumerate() {
                if own == other {
                    continue;
                }
                let is_it = |name: &&str| {
                    extents_of[0].get(*name) == Some(own) && extents_of[1].get(*name) == Some(other)
                };
                let name = extents_of[0].keys().copied().find(|name| is_it(name));
                let name = name.map_or_else(|| format!("{}.{axis}", port.name), str::to_owned);
                port.open.push(OpenAxis { axis, name });
                *own = 1;
            }
            port.dims = Dims::new(&extents)?;
            port.shape = port.dims.shape();
        }
        Ok(std::mem::take(one))
    }
}

/// A network with a head behind one of its outputs.
#[derive(Debug)]
pub(super) struct WithHead {
    source: Arc<dyn GraphSource>,
    head: Head,
    outputs: Vec<Port>,
}

impl WithHead {
    /// # Errors
    /// If there is no such output, or the head cannot be added behind it.
    pub(super) fn new(source: Arc<dyn GraphSource>, head: Head) -> Result<Self> {
        let mut outputs = source.outputs();
        let place = outputs.iter().position(|port| port.name == head.output);
        let place = place.ok_or_else(|| head.missing(&outputs))?;
        let added = head.ports(&outputs[place])?;
        for port in &added {
            let others = outputs.iter().enumerate().filter(|(other, _)| *other != place);
            if others
                .map(|(_, own)| &own.name)
                .chain(added.iter().map(|own| &own.name))
                .filter(|name| **name == port.name)
                .count()
                > 1
            {
                let what = format!("a head behind output {:?}", head.output);
                return Err(Error::input(
                    what,
                    format!("two outputs {:?}", port.name),
                    "nodes of distinct names",
                ));
            }
        }
        outputs.splice(place..=place, added);
        Ok(WithHead { source, head, outputs })
    }
}

impl GraphSource for WithHead {
    fn inputs(&self) -> &[OpenInput] {
        self.source.inputs()
    }

    fn outputs(&self) -> Vec<Port> {
        self.outputs.clone()
    }

    fn first(&self) -> PartStart {
        self.source.first()
    }

    fn part(
        &self,
        at: &PartStart,
        given: &[GivenInput<'_>],
        by_value: &BTreeSet<String>,
        caching: Option<Caching<'_>>,
    ) -> Result<Part> {
        let mut part = self.source.part(at, given, by_value, caching)?;
        if part.next.is_none() {
            self.head.extend_part(&mut part)?;
        }
        Ok(part)
    }

    fn filling(&self, inputs: &[&str]) -> Result<Filling> {
        self.source.filling(inputs)
    }

    fn on_host(
        &self,
        at: &PartStart,
        given: &[GivenInput<'_>],
    ) -> Result<(Vec<(String, HostTensor)>, PartStart)> {
        self.source.on_host(at, given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::reduce::Reduction;

    fn port(extents: &[usize], open: &[(usize, &str)]) -> Port {
        let dims = Dims::new(extents).expect("small");
        let open = open.iter().map(|&(axis, name)| OpenAxis { axis, name: name.to_owned() }).collect();
        Port { name: "scores".to_owned(), shape: dims.shape(), dims, dtype: DType::F32, open }
    }

    fn most(axis: isize) -> Head {
        Head::new(
            "scores",
            Arc::new(move |graph, x| Ok(vec![graph.reduce("most", x, Reduction::Max, &[axis], false)?])),
        )
    }

    #[test]
    fn open_axes_keep_their_names_through_a_head() {
        let of = port(&[1, 1, 5], &[(0, "batch"), (1, "length")]);
        let ports = most(0).ports(&of).expect("a head");
        assert_eq!(ports.len(), 1);
        let own = &ports[0];
        assert_eq!((own.name.as_str(), own.dims.extents()), ("most", &[1, 5][..]));
        assert_eq!(own.open, [OpenAxis { axis: 0, name: "length".to_owned() }]);
    }

    #[test]
    fn ranks_are_tried_where_a_file_says_none() {
        let ports = most(2).ports(&port(&[], &[])).expect("a head of three axes");
        assert_eq!(ports[0].dims.rank(), 2);
        assert_eq!(ports[0].open.len(), 2);
        assert!(most(7).ports(&port(&[], &[])).is_err());
    }

    #[cfg(not(target_family = "wasm"))]
    #[test]
    fn heads_of_other_nodes_are_described_otherwise() {
        let text = |head: &Head| {
            let mut text = String::new();
            assert!(head.describe(&mut text).is_ok());
            text
        };
        let first = text(&most(0));
        assert_eq!(text(&most(0)), first);
        assert_ne!(text(&most(1)), first);
        let other = Head::new("others", most(0).added);
        assert_ne!(text(&other), first);
    }
}
