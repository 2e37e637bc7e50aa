//! A network for several samples at once, each of which has the results that it would have alone.
//!
//! A value is the same for all samples, or each sample has its own. Then all of them are one value, which has the samples'
//! axis before one of the axes of a sample: `2x3` of 4 samples is `4x2x3`, `2x4x3` or `2x3x4` in memory. Where the axis behind
//! it has one element, as that of a batch has, the samples' axis takes its place.
//!
//! A rule says how a node is computed for all samples: by the same operator where it treats the elements of some axis apart
//! from each other, or by one with an axis more. What has no rule is computed for one sample after the other. So no sample
//! can change the results of another one, whatever the network does along the axis of its batch.

mod along;
mod inputs;
mod joined;
mod place;
mod products;
mod rules;

use super::{Graph, Node, Origin, Value};
use crate::dims::{Dim, Dims};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operator::Operator;
use crate::ops::view::{Reshape, Slice};
use std::sync::Arc;

/// A value of the network of one sample, in that of all.
#[derive(Debug, Clone, Copy)]
struct Own {
    value: Value,
    /// The dimensions of one sample.
    dims: Dims,
    /// Before which of these the samples' axis lies; none if all samples share the value.
    at: Option<usize>,
}

/// The network of all samples, as far as it is made.
struct Samples<'g> {
    one: &'g Graph,
    all: Graph,
    count: usize,
    /// The values of `one`, by index.
    own: Vec<Option<Own>>,
    /// The node that is made: its name, the types of its outputs, and how many nodes beside it there are.
    name: String,
    types: Vec<DType>,
    beside: usize,
}

/// Removes what does not fit from the end of a graph.
fn back_to(graph: &mut Graph, (values, nodes): (usize, usize)) {
    graph.values.truncate(values);
    graph.nodes.truncate(nodes);
}

impl Graph {
    /// The network for `count` samples. Values keep their indices; those that it has beside them come last.
    pub(super) fn for_samples(&self, count: usize) -> Result<Graph> {
        let mut samples = Samples::new(self, count)?;
        for node in &self.nodes {
            samples.add_node(node).map_err(|error| error.at_node(&node.name))?;
        }
        samples.finish()
    }
}

impl<'g> Samples<'g> {
    /// The values that no node writes.
    fn new(one: &'g Graph, count: usize) -> Result<Self> {
        let all = Graph {
            number: one.number,
            dimensions: one.dimensions.clone(),
            narrow: one.narrow,
            draws: one.draws.clone(),
            derived: Arc::clone(&one.derived),
            dequantized: one.dequantized,
            ..Graph::default()
        };
        let own = vec![None; one.values.len()];
        let (name, types) = (String::new(), Vec::new());
        let mut samples = Samples { one, all, count, own, name, types, beside: 0 };
        for (index, info) in one.values.iter().enumerate() {
            let (dims, all) = (info.dims, &mut samples.all);
            let value = match &info.origin {
                Origin::Input(declared) => {
                    let grown = dims.extents().first().unwrap_or(&1).checked_mul(count).ok_or_else(|| {
                        let found = format!("{count} times {dims} of input {:?}", info.name);
                        Error::shape("batch", found, "fewer elements")
                    })?;
                    let outermost = Dim::Fixed(grown);
                    let extents: Vec<Dim> =
                        [outermost].into_iter().chain(declared.iter().skip(1).cloned()).collect();
                    let value = all.typed_input(&info.name, info.dtype, &extents)?;
                    Own { value, dims, at: Some(0) }
                }
                Origin::Constant(tensor) => {
                    let value = all.value(&info.name, dims, info.dtype, Origin::Constant(tensor.clone()));
                    Own { value, dims, at: None }
                }
                Origin::State => {
                    let place = all.values.len();
                    all.state_again(one, Value { graph: one.number, index });
                    Own { value: Value { graph: one.number, index: place }, dims, at: None }
                }
                Origin::Node(_) => continue,
            };
            if let Some(known) = samples.own.get_mut(index) {
                *known = Some(value);
            }
        }
        Ok(samples)
    }

    fn known(&self, value: Value) -> Result<Own> {
        let known = self.own.get(value.index).copied().flatten();
        known.ok_or_else(|| Error::Internal(format!("value {} is read before it is written", value.index)))
    }

    /// Makes a node for all samples.
    fn add_node(&mut self, node: &Node) -> Result<()> {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for &(operand, value) in &node.inputs {
            inputs.push((operand, self.known(value)?));
        }
        let mut wanted = Vec::with_capacity(node.outputs.len());
        for &output in &node.outputs {
            wanted.push((self.one.info(output)?.dims, self.one.info(output)?.dtype));
        }
        self.name.clone_from(&node.name);
        self.types = wanted.iter().map(|(_, dtype)| *dtype).collect();
        self.beside = 0;
        let outputs = if inputs.iter().all(|(_, own)| own.at.is_none()) {
            let inputs: Vec<_> = inputs.iter().map(|(operand, own)| (*operand, own.value)).collect();
            let written = self.add(Arc::clone(&node.operator), &inputs)?;
            let shared = |(value, &(dims, _)): (Value, &(Dims, DType))| Own { value, dims, at: None };
            written.into_iter().zip(&wanted).map(shared).collect()
        } else {
            let before = (self.all.values.len(), self.all.nodes.len());
            match self.by_rule(node, &inputs) {
                Ok(Some(outputs)) => outputs,
                // A rule's result may have too many axes, or extents that the op has no kernel for.
                Ok(None) | Err(_) => {
                    back_to(&mut self.all, before);
                    self.one_by_one(node, &inputs)?
                }
            }
        };
        for (&value, own) in node.outputs.iter().zip(outputs) {
            if let Some(known) = self.own.get_mut(value.index) {
                *known = Some(own);
            }
        }
        Ok(())
    }

    /// Adds a node that computes what the current one does: its outputs have the types that those have.
    fn add(&mut self, operator: Arc<dyn Operator>, inputs: &[(Operand, Value)]) -> Result<Vec<Value>> {
        let name = self.name.clone();
        self.add_named(&name, operator, inputs)
    }

    fn add_named(
        &mut self,
        name: &str,
        operator: Arc<dyn Operator>,
        inputs: &[(Operand, Value)],
    ) -> Result<Vec<Value>> {
        let outputs = self.all.add(name, operator, inputs)?;
        for (value, &dtype) in outputs.iter().zip(&self.types) {
            // Some were given a type of the same words.
            self.all.retype(*value, dtype)?;
        }
        Ok(outputs)
    }

    /// The name of a node beside the current one.
    fn name_beside(&mut self) -> String {
        self.beside += 1;
        format!("{}.samples{}", self.name, self.beside)
    }

    /// One node for each sample, and what they write joined.
    fn one_by_one(&mut self, node: &Node, inputs: &[(Operand, Own)]) -> Result<Vec<Own>> {
        let mut whole = Vec::with_capacity(inputs.len());
        for &(operand, own) in inputs {
            let value = if own.at.is_some() { self.merged(own, 0)? } else { own.value };
            whole.push((operand, value, own));
        }
        let mut parts: Vec<Vec<Value>> = vec![Vec::with_capacity(self.count); node.outputs.len()];
        for index in 0..self.count {
            let mut given = Vec::with_capacity(whole.len());
            for &(operand, value, own) in &whole {
                let value = match own.at {
                    Some(_) => self.sample(value, own.dims, index)?,
                    None => value,
                };
                given.push((operand, value));
            }
            let name = format!("{}.{index}", node.name);
            let written = self.add_named(&name, Arc::clone(&node.operator), &given)?;
            for (parts, value) in parts.iter_mut().zip(written) {
                parts.push(value);
            }
        }
        let mut outputs = Vec::with_capacity(parts.len());
        for (own, parts) in node.outputs.iter().zip(parts) {
            let dims = self.one.info(*own)?.dims;
            let mut rows = Vec::with_capacity(parts.len());
            for part in parts {
                let axes: &[usize] = if dims.rank() == 0 { &[1] } else { dims.extents() };
                rows.push(self.shaped(part, axes)?);
            }
            // No node has the current one's name: options that name it would be of the join alone.
            let name = self.name_beside();
            let value = self.all.concat(&name, &rows, 0)?;
            outputs.push(Own { value, dims, at: Some(0) });
        }
        Ok(outputs)
    }

    /// One sample of those that lie one behind the other.
    fn sample(&mut self, all: Value, dims: Dims, index: usize) -> Result<Value> {
        let rows = dims.extents().first().copied().unwrap_or(1);
        let begin = index * rows;
        let slice = Arc::new(Slice { axis: 0, begin, end: begin + rows });
        let name = self.name_beside();
        let part = self.all.add(&name, slice, &[(Operand::Src, all)])?;
        let part = part.first().copied().ok_or_else(|| Error::Internal("a slice of nothing".to_owned()))?;
        self.shaped(part, dims.extents())
    }

    /// The value in these extents.
    fn shaped(&mut self, value: Value, extents: &[usize]) -> Result<Value> {
        if self.all.info(value)?.dims.extents() == extents {
            return Ok(value);
        }
        let target = extents.iter().map(|&extent| Dim::Fixed(extent)).collect();
        let name = self.name_beside();
        let shown = self.all.add(&name, Arc::new(Reshape { target }), &[(Operand::Src, value)])?;
        shown.first().copied().ok_or_else(|| Error::Internal("a reshape of nothing".to_owned()))
    }

    /// The graph, whose values have the indices that they have in that of one sample.
    fn finish(mut self) -> Result<Graph> {
        let mut outputs = Vec::with_capacity(self.one.outputs.len());
        for &output in &self.one.outputs {
            let own = self.known(output)?;
            let name = self.one.info(output)?.name.clone();
            self.name = format!("{name}.outputs");
            self.beside = 0;
            // What does not depend on the samples is a result of each of them. No node is called as an output's row is.
            let value = self.merged(own, 0)?;
            if let Some(info) = self.all.values.get_mut(value.index) {
                info.name = name;
            }
            outputs.push(value);
        }
        let mut places: Vec<Option<usize>> = vec![None; self.all.values.len()];
        for (index, own) in self.own.iter().enumerate() {
            let own = own.ok_or_else(|| Error::Internal(format!("nothing makes value {index}")))?;
            if let Some(place) = places.get_mut(own.value.index) {
                *place = Some(index);
            }
        }
        let mut next = self.own.len();
        let places = places.into_iter().map(|place| {
            place.unwrap_or_else(|| {
                next += 1;
                next - 1
            })
        });
        let places: Vec<usize> = places.collect();
        let mut graph = self.all;
        graph.renumber(&places)?;
        for output in outputs {
            let index = places.get(output.index).copied();
            let index = index.ok_or_else(|| Error::Internal("an output of no value".to_owned()))?;
            graph.output(Value { index, ..output })?;
        }
        graph.updates_again(self.one)?;
        Ok(graph)
    }
}

impl Graph {
    /// Gives each value the index at its place in `places`, which has each index once.
    fn renumber(&mut self, places: &[usize]) -> Result<()> {
        let place = |value: Value| {
            let index = places.get(value.index).copied();
            let index = index.ok_or_else(|| Error::Internal(format!("value {} of none", value.index)))?;
            Ok::<_, Error>(Value { index, ..value })
        };
        let mut values = Vec::with_capacity(self.values.len());
        values.extend(places.iter().copied().zip(std::mem::take(&mut self.values)));
        crate::sorted::sort_by_key(&mut values, |(index, _)| *index);
        self.values = values.into_iter().map(|(_, info)| info).collect();
        for node in &mut self.nodes {
            for (_, value) in &mut node.inputs {
                *value = place(*value)?;
            }
            for value in &mut node.outputs {
                *value = place(*value)?;
            }
        }
        for value in &mut self.inputs {
            *value = place(*value)?;
        }
        for state in &mut self.states {
            state.value = place(state.value)?;
        }
        Ok(())
    }
}
