//! A graph in the making: the tensors of a file's networks, and its operators one after the other.

use super::rounded_values::RoundedValues;
use super::schema::{Attribute, Function, Graph as Network, Model, Node, captures};
use super::tensors::Files;
use crate::compute::Prepare;
use crate::graph::Value;
use crate::model::ModelInfo;
use crate::model::budget::Budget;
use crate::model::build::{Builder, Kind, Operand, Quantised, Wanted};
use crate::model::reason::Reason;
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// The versions of the standard operators that are read.
const OPSETS: std::ops::RangeInclusive<i64> = 1..=28;

/// What a node may take of memory, with its names and values.
const NODE_BYTES: usize = 4096;

/// The most scopes within each other.
const MAX_SCOPES: usize = 64;

/// Who reads a tensor.
#[derive(Clone, Copy, Default)]
pub(super) struct Readers {
    pub(super) count: usize,
    pub(super) last: usize,
    /// Whether it is an output of the list of nodes.
    pub(super) leaves: bool,
}

/// A constant matrix of integers, and the type of the floats that they stand for.
pub(super) type Unread = (Arc<Quantised>, Kind);

/// The tensors of a network, of a branch or of a function.
#[derive(Default)]
pub(super) struct Scope<'a> {
    pub(super) slots: HashMap<&'a str, Operand>,
    /// Constant matrices of integers that no operator has read as floats.
    pub(super) unread: HashMap<&'a str, Unread>,
    /// Constants that are values of the graph.
    pub(super) uploaded: HashMap<&'a str, Value>,
    pub(super) readers: HashMap<&'a str, Readers>,
    /// Nodes that another one computes, by index.
    pub(super) absorbed: HashSet<usize>,
    /// Whether tensors that are not here are those of the scope around it.
    pub(super) sees_outer: bool,
    /// The values of attributes of the function.
    attributes: HashMap<&'a str, &'a Attribute<'a>>,
    pub(super) prefix: String,
}

/// Adds an operator to the graph, or works out its constants.
pub(super) type Handler = for<'a> fn(&mut Import<'a>, &Op<'a>) -> Result<(), Reason>;

/// The functions that operators are read by.
#[derive(Clone, Copy)]
pub(super) struct Handlers {
    /// Finds the handler of an operator by its domain and name.
    pub(super) find: fn(&str, &str) -> Option<Handler>,
    /// Keeps what an operator writes as integers, if that can be.
    pub(super) keep: for<'a> fn(&mut Import<'a>, &Op<'a>) -> Result<bool, Reason>,
}

/// A graph in the making.
pub(super) struct Import<'a> {
    pub(super) build: Builder,
    pub(super) handlers: Handlers,
    pub(super) files: Files,
    pub(super) scopes: Vec<Scope<'a>>,
    pub(super) functions: HashMap<(&'a str, &'a str, &'a str), &'a Function<'a>>,
    opsets: HashMap<&'a str, i64>,
    /// What the operator has written so far.
    pub(super) written: Vec<&'a str>,
    /// Lists of tensors, by number.
    pub(super) sequences: Vec<Vec<Operand>>,
    /// What the file says that the network is.
    pub(super) info: ModelInfo,
    /// Whether the network may be divided where extents depend on values.
    pub(super) open: bool,
    /// Whether everything is known, and results are wanted as constants.
    pub(super) computes: bool,
    /// Whether floats that are rounded at each run are computed on bytes.
    pub(super) on_bytes: bool,
    /// What is known of these.
    pub(super) quantised: RoundedValues,
}

impl Deref for Import<'_> {
    type Target = Builder;

    fn deref(&self) -> &Builder {
        &self.build
    }
}

impl DerefMut for Import<'_> {
    fn deref_mut(&mut self) -> &mut Builder {
        &mut self.build
    }
}

/// An operator with its options.
pub(super) struct Op<'a> {
    pub(super) node: &'a Node<'a>,
    pub(super) nodes: &'a [Node<'a>],
    /// The version of its domain.
    pub(super) version: i64,
    pub(super) attributes: HashMap<&'a str, &'a Attribute<'a>>,
}

/// What went wrong, and at which node.
pub(super) type Trouble = (Option<usize>, Reason);

impl<'a> Import<'a> {
    pub(super) fn new(
        model: &'a Model<'a>,
        network: &'a Network<'a>,
        files: Files,
        budget: Budget,
        (handlers, prepare): (Handlers, Prepare),
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
            build: Builder::new(budget, NODE_BYTES, prepare),
            handlers,
            files,
            scopes: vec![Scope::default()],
            functions,
            opsets,
            written: Vec::new(),
            sequences: Vec::new(),
            info: model.info(),
            open: false,
            computes: false,
            on_bytes: true,
            quantised: RoundedValues::default(),
        })
    }

    /// Has quantized operators computed on floats, and what is rounded at each run left as it is.
    pub(super) fn set_dequantize(&mut self, dequantize: bool) {
        self.on_bytes = !dequantize;
        if dequantize {
            self.build.graph.dequantize_operators();
        }
    }

    /// Adds what the outputs need of a list of nodes.
    pub(super) fn nodes(&mut self, nodes: &'a [Node<'a>], outputs: &[&'a str]) -> Result<(), Trouble> {
        self.nodes_between(nodes, outputs, 0..nodes.len(), &HashSet::new())
    }

    /// Adds what the outputs need of some of a list of nodes, without those that earlier ones have computed along.
    pub(super) fn nodes_between(
        &mut self,
        nodes: &'a [Node<'a>],
        outputs: &[&'a str],
        range: Range<usize>,
        absorbed: &HashSet<usize>,
    ) -> Result<(), Trouble> {
        let nowhere = |message| (None, message);
        let mut needed = needed(nodes, outputs);
        needed.iter_mut().take(range.start).for_each(|needed| *needed = false);
        self.count_readers(nodes, &needed, outputs).map_err(nowhere)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.absorbed.extend(absorbed);
        }
        for (index, node) in nodes.iter().enumerate().take(range.end).skip(range.start) {
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
                (Some(index), message.behind(format_args!("{} {name}: ", node.op)))
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
        if self.scopes.len() == 1 {
            self.wanted.set(Wanted::Nothing);
        }
        if let Some(function) = self.functions.get(&(node.domain, node.op, node.overload)).copied() {
            return self.call(&op, function);
        }
        self.current = self.output_name(&op)?;
        self.written.clear();
        if (self.handlers.keep)(self, &op)? {
            return Ok(());
        }
        match (self.handlers.find)(node.domain, node.op) {
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
    ) -> Result<Vec<Operand>, Reason> {
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
        around: Option<HashMap<&'a str, Operand>>,
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
    pub(super) fn find(&self, name: &str) -> Result<Operand, Reason> {
        for scope in self.scopes.iter().rev() {
            if let Some(slot) = scope.slots.get(name) {
                return Ok(slot.clone());
            }
            if let Some((unread, kind)) = scope.unread.get(name) {
                return Ok(Operand::Constant(unread.floats()?, *kind));
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
