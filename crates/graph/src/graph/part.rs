//! A part of a graph as a graph of its own.

use super::{Graph, Origin, Value};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Graph {
    /// What computes `outputs` from `inputs`, as a graph: its inputs are named `value` and the index in this graph, both
    /// its inputs and its outputs are in the order given, and its nodes have the names that they have here. Nodes that
    /// others than `outputs` need are left out.
    ///
    /// ```
    /// use diptych::{Graph, Pool, Pooling, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// let half = graph.pool("half", x, Pool::new(Pooling::Max, [2, 2]))?;
    /// let quarter = graph.pool("quarter", half, Pool::new(Pooling::Max, [2, 2]))?;
    /// let part = graph.part(&[half], &[quarter])?;
    /// assert_eq!(part.nodes().len(), 1);
    /// assert_eq!(part.shape(part.inputs()[0])?, Shape::nhwc(1, 4, 4, 2));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a value is not of this graph, or an output depends on an input of this graph or a state that is none of
    /// `inputs`.
    pub fn part(&self, inputs: &[Value], outputs: &[Value]) -> Result<Graph> {
        let mut part =
            Graph { dimensions: self.dimensions.clone(), dequantized: self.dequantized, ..Graph::default() };
        let mut known: BTreeMap<Value, Value> = BTreeMap::new();
        for &value in inputs {
            let dims = self.info(value)?.dims;
            known.insert(value, part.input(&format!("value {}", value.index()), dims)?);
        }
        let mut needed = BTreeSet::new();
        let mut open = outputs.to_vec();
        while let Some(value) = open.pop() {
            if known.contains_key(&value) {
                continue;
            }
            match &self.info(value)?.origin {
                Origin::Node(node) if needed.insert(*node) => {
                    open.extend(self.nodes[*node].inputs.iter().map(|(_, input)| *input));
                }
                Origin::Node(_) => {}
                Origin::Constant(tensor) => {
                    known.insert(value, part.constant(self.name(value)?, tensor.clone()));
                }
                // A part draws its own numbers.
                Origin::State if self.draws.key == Some(value) => {
                    known.insert(value, part.key()?);
                    part.draws.streams.clone_from(&self.draws.streams);
                }
                Origin::Input(_) | Origin::State => {
                    let found = format!("one that depends on {:?}", self.name(value)?);
                    return Err(Error::input("part of a graph", found, "one of the inputs that are given"));
                }
            }
        }
        for node in needed.into_iter().map(|node| &self.nodes[node]) {
            let missing = || Error::Internal(format!("node {:?} before its inputs", node.name));
            let given = node.inputs.iter().map(|(operand, value)| Some((*operand, *known.get(value)?)));
            let given = given.collect::<Option<Vec<_>>>().ok_or_else(missing)?;
            let written = part.add(&node.name, Arc::clone(&node.operator), &given)?;
            for (&own, value) in node.outputs.iter().zip(written) {
                known.entry(own).or_insert(value);
            }
        }
        for output in outputs {
            let missing = || Error::Internal(format!("nothing writes value {}", output.index()));
            part.output(*known.get(output).ok_or_else(missing)?)?;
        }
        Ok(part)
    }
}
