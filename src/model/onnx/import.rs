//! A file to a graph, operator by operator.

use super::kind::Kind;
use super::operators;
use super::order::Mapped;
use super::schema::{Attribute, Function, Graph as Network, Model, Node};
use super::survey;
use super::tensors::Files;
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use crate::model::budget::Budget;
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::model::{LoadOptions, Loaded, ModelInfo};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The versions of the standard operators that are read.
const OPSETS: std::ops::RangeInclusive<i64> = 1..=28;

/// The work that any file may cause, whatever its length: the largest masks and tables that are computed of lengths
/// alone, and time to read it that nobody minds. What is held at once may be three times of it.
const LEAST_WORK: u64 = 384 << 20;

/// The most scopes within each other.
const MAX_SCOPES: usize = 64;

/// What a tensor of the file stands for.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    /// A value of the graph.
    Value(Mapped),
    /// Known while the file is read.
    Constant(Constant, Kind),
}

/// Who reads a tensor.
#[derive(Clone, Copy, Default)]
pub(super) struct Readers {
    pub(super) count: usize,
    pub(super) last: usize,
    /// Whether it is an output of the list of nodes.
    pub(super) leaves: bool,
}

/// The tensors of a network, of a branch or of a function.
#[derive(Default)]
pub(super) struct Scope<'a> {
    pub(super) slots: HashMap<&'a str, Slot>,
    /// Constants that are values of the graph.
    pub(super) uploaded: HashMap<&'a str, Value>,
    pub(super) readers: HashMap<&'a str, Readers>,
    /// Nodes that another one computes, by index.
    pub(super) absorbed: HashSet<usize>,
    /// Whether tensors that are not here are those of the scope around it.
    sees_outer: bool,
    /// The values of attributes of the function.
    attributes: HashMap<&'a str, &'a Attribute<'a>>,
    pub(super) prefix: String,
}

/// A graph in the making.
pub(super) struct Import<'a> {
    pub(super) budget: Budget,
    pub(super) graph: Graph,
    pub(super) files: Files,
    pub(super) scopes: Vec<Scope<'a>>,
    pub(super) functions: HashMap<(&'a str, &'a str, &'a str), &'a Function<'a>>,
    opsets: HashMap<&'a str, i64>,
    pub(super) names: HashSet<String>,
    /// Values in another order of axes, by value and order.
    pub(super) moved: HashMap<(Value, Vec<usize>), Value>,
    /// What the operator writes, for the names of its nodes.
    pub(super) current: String,
    /// Nodes of the graph that change the order of axes.
    pub(super) transposes: usize,
    /// What the operator has written so far.
    pub(super) written: Vec<&'a str>,
    /// Lists of tensors, by number.
    pub(super) sequences: Vec<Vec<Slot>>,
}

/// An operator with its options.
pub(super) struct Op<'a> {
    pub(super) node: &'a Node<'a>,
    pub(super) nodes: &'a [Node<'a>],
    /// The version of its domain.
    pub(super) version: i64,
    pub(super) attributes: HashMap<&'a str, &'a Attribute<'a>>,
}

/// Reads the network of a file.
pub(super) fn import(file: &str, bytes: &[u8], path: Option<&Path>, options: &LoadOptions) -> Result<Loaded> {
    let fail = |reason: Reason| Error::Model { file: file.to_owned(), op: None, message: reason.into() };
    let mut budget = Budget::new(bytes.len());
    budget.extend(LEAST_WORK);
    let model = Model::read(bytes, &mut budget).map_err(fail)?;
    let network = model
        .graph
        .as_ref()
        .ok_or_else(|| fail("found no graph: this is no ONNX model, or one that is cut short".into()))?;
    let mut import = Import::new(&model, network, Files::new(path), budget).map_err(fail)?;
    if let Some(unsupported) = survey::unsupported(&import, network) {
        return Err(fail(unsupported.into()));
    }
    import.inputs(network, options).map_err(fail)?;
    let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
    import.nodes(&network.nodes, &outputs).map_err(|(place, message)| {
        let node = place.and_then(|place| network.nodes.get(place));
        let op = node.map(|node| (node.index, node.op.to_owned()));
        Error::Model { file: file.to_owned(), op, message: message.into() }
    })?;
    import.outputs(network).map_err(fail)?;
    let info = ModelInfo {
        name: network.name.to_owned(),
        description: model.description.to_owned(),
        transposes: import.transposes,
        ..ModelInfo::default()
    };
    Ok(Loaded { graph: import.graph, info })
}

/// What went wrong, and at which node.
pub(super) type Trouble = (Option<usize>, Reason);

impl<'a> Import<'a> {
    fn new(
        model: &'a Model<'a>,
        network: &'a Network<'a>,
        files: Files,
        budget: Budget,
    ) -> Result<Self, Reason> {
        let mut opsets = HashMap::new();
        for &(domain, version) in &model.opsets {
            opsets.insert(domain, version);
        }
        let standard = opsets.get("").copied();
        let standard =
            standard.unwrap_or(if network.nodes.iter().any(|node| node.domain.is_empty()) { 1 } else { 7 });
        if !OPSETS.contains(&standard) {
            let (first, last) = (OPSETS.start(), OPSETS.end());
            return refused!("found version {standard} of the operators, wanted {first} to {last}");
        }
        if network.sparse > 0 {
            return refused!("found {} sparse constants, wanted dense ones", network.sparse);
        }
        let functions = model.functions.iter();
        let functions = functions
            .map(|function| ((function.domain, function.name, function.overload), function))
            .collect();
        Ok(Import {
            budget,
            graph: Graph::new(),
            files,
            scopes: vec![Scope::default()],
            functions,
            opsets,
            names: HashSet::new(),
            moved: HashMap::new(),
            current: String::new(),
            transposes: 0,
            written: Vec::new(),
            sequences: Vec::new(),
        })
    }

    /// Adds what the outputs need of a list of nodes.
    pub(super) fn nodes(&mut self, nodes: &'a [Node<'a>], outputs: &[&'a str]) -> Result<(), Trouble> {
        let nowhere = |message| (None, message);
        let needed = needed(nodes, outputs);
        self.count_readers(nodes, &needed, outputs).map_err(nowhere)?;
        for (index, node) in nodes.iter().enumerate() {
            let absorbed = self.scopes.last().is_some_and(|scope| scope.absorbed.contains(&index));
            if !needed[index] || absorbed {
                continue;
            }
            self.node(nodes, index).map_err(|message| {
                let name = match (node.name, node.outputs.first()) {
                    ("", Some(output)) => format!("that writes {output:?}"),
                    ("", None) => String::new(),
                    (name, _) => format!("{name:?}"),
                };
                (Some(index), format!("{} {name}: {message}", node.op).into())
            })?;
        }
        Ok(())
    }

    fn count_readers(
        &mut self,
        nodes: &'a [Node<'a>],
        needed: &[bool],
        outputs: &[&'a str],
    ) -> Result<(), Reason> {
        let mut readers: HashMap<&'a str, Readers> = HashMap::new();
        let mut count = |name: &'a str, last: usize, leaves: bool| {
            let entry = readers.entry(name).or_default();
            *entry = Readers { count: entry.count + 1, last, leaves: entry.leaves || leaves };
        };
        for (index, node) in nodes.iter().enumerate().filter(|(index, _)| needed[*index]) {
            self.budget.spend(16 * node.inputs.len())?;
            for name in &node.inputs {
                count(name, index, false);
            }
            // A branch may read anything around it.
            let mut captured = Vec::new();
            captures(node, &mut captured);
            for name in captured {
                count(name, usize::MAX, false);
            }
        }
        for name in outputs {
            count(name, usize::MAX, true);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.readers = readers;
            scope.absorbed.clear();
        }
        Ok(())
    }

    fn node(&mut self, nodes: &'a [Node<'a>], index: usize) -> Result<(), Reason> {
        let node = nodes.get(index).ok_or("found no such node")?;
        self.budget.spend(64 + 8 * (node.inputs.len() + node.outputs.len()))?;
        let op = self.op(nodes, node)?;
        if let Some(function) = self.functions.get(&(node.domain, node.op, node.overload)).copied() {
            return self.call(&op, function);
        }
        self.current = self.output_name(&op)?;
        match operators::handler(node.domain, node.op) {
            Some(handler) if self.has_known_inputs(&op) => self.evaluate(handler, &op),
            Some(handler) => {
                self.written.clear();
                handler(self, &op)
            }
            None => refused!("this operator is not supported"),
        }
    }

    pub(super) fn op(&self, nodes: &'a [Node<'a>], node: &'a Node<'a>) -> Result<Op<'a>, Reason> {
        let version = self.opsets.get(node.domain).copied().unwrap_or(1);
        let mut attributes = HashMap::new();
        for attribute in &node.attributes {
            let own = match attribute.reference {
                "" => Some(attribute),
                reference => {
                    self.scopes.iter().rev().find_map(|scope| scope.attributes.get(reference).copied())
                }
            };
            attributes.extend(own.map(|own| (attribute.name, own)));
        }
        Ok(Op { node, nodes, version, attributes })
    }

    /// Adds the nodes of a function in the place of the one that calls it.
    fn call(&mut self, op: &Op<'a>, function: &'a Function<'a>) -> Result<(), Reason> {
        let mut scope = Scope { prefix: self.inner_prefix(op)?, ..Scope::default() };
        for (index, &name) in function.inputs.iter().enumerate() {
            if op.has(index) {
                scope.slots.insert(name, self.slot(op, index)?);
            }
        }
        for default in &function.defaults {
            scope.attributes.insert(default.name, default);
        }
        scope.attributes.extend(op.attributes.iter().map(|(name, own)| (*name, *own)));
        let opsets: HashMap<&str, i64> = function.opsets.iter().copied().collect();
        let outer = std::mem::replace(&mut self.opsets, opsets);
        let written = self.within(scope, &function.nodes, &function.outputs);
        self.opsets = outer;
        for (index, slot) in written?.into_iter().enumerate() {
            if op.writes(index) {
                self.set(op, index, slot)?;
            }
        }
        Ok(())
    }

    /// What the nodes of an inner network write. A scope that `sees_outer` reads the tensors around it.
    pub(super) fn within(
        &mut self,
        scope: Scope<'a>,
        nodes: &'a [Node<'a>],
        outputs: &[&'a str],
    ) -> Result<Vec<Slot>, Reason> {
        if self.scopes.len() >= MAX_SCOPES {
            return refused!(
                "found functions and branches more than {MAX_SCOPES} deep in each other, wanted fewer"
            );
        }
        self.budget.spend(nodes.len() * 64)?;
        self.scopes.push(scope);
        let done = self.nodes(nodes, outputs).map_err(|(_, message)| message);
        let slots = done.and_then(|()| outputs.iter().map(|name| self.find(name)).collect());
        self.scopes.pop();
        slots
    }

    /// A scope within this one, of a branch of `op`: it reads the tensors around it, or those of `around` alone.
    pub(super) fn branch(
        &self,
        op: &Op<'a>,
        around: Option<HashMap<&'a str, Slot>>,
    ) -> Result<Scope<'a>, Reason> {
        let (sees_outer, prefix) = (around.is_none(), self.inner_prefix(op)?);
        Ok(Scope { sees_outer, prefix, slots: around.unwrap_or_default(), ..Scope::default() })
    }

    fn inner_prefix(&self, op: &Op<'a>) -> Result<String, Reason> {
        let outer = self.scopes.last().map_or("", |scope| &scope.prefix);
        let name = op.node.outputs.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        if outer.len() > 1024 {
            return refused!("found names of more than 1024 bytes, wanted shorter ones");
        }
        Ok(format!("{outer}{name}/"))
    }

    /// The slot of a tensor by its name.
    pub(super) fn find(&self, name: &str) -> Result<Slot, Reason> {
        for scope in self.scopes.iter().rev() {
            if let Some(slot) = scope.slots.get(name) {
                return Ok(slot.clone());
            }
            if !scope.sees_outer {
                break;
            }
        }
        refused!(
            "found {name:?} read, wanted a tensor that an operator writes which does not wait for this one"
        )
    }
}

/// Which nodes the outputs depend on.
pub(super) fn needed(nodes: &[Node<'_>], outputs: &[&str]) -> Vec<bool> {
    let mut wanted: HashSet<&str> = outputs.iter().copied().collect();
    let mut needed = vec![false; nodes.len()];
    for (index, node) in nodes.iter().enumerate().rev() {
        if node.outputs.iter().any(|name| wanted.contains(name)) {
            needed[index] = true;
            wanted.extend(node.inputs.iter().copied());
            let mut captured = Vec::new();
            captures(node, &mut captured);
            wanted.extend(captured);
        }
    }
    needed
}

/// Every name that the branches of a node read or return. The file bounds their depth.
pub(super) fn captures<'a>(node: &Node<'a>, into: &mut Vec<&'a str>) {
    for graph in node.attributes.iter().filter_map(|attribute| attribute.graph.as_deref()) {
        for inner in &graph.nodes {
            into.extend(inner.inputs.iter().copied());
            captures(inner, into);
        }
        into.extend(graph.outputs.iter().map(|output| output.name));
    }
}
