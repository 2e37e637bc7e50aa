//! What nodes are added through while a file is read.

use super::kind::Kind;
use super::operand::{Mapped, Operand};
use crate::compute::Prepare;
use crate::dtype::DType;
use crate::error::Result as GraphResult;
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::model::budget::Budget;
use crate::model::constant::Constant;
use crate::model::constant_cache::{self, ConstantCache};
use crate::model::reason::Reason;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What an operator lacked that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing that a run would tell.
    Nothing,
    /// This value, while the file is read.
    Value(Value),
    /// All that it reads: the CPU can compute it then.
    Host,
}

/// A cache that the graph keeps as a state: a run finds the places of the runs before in it, and writes its own.
#[derive(Debug)]
pub(crate) struct Cache {
    /// The input of the network that it is.
    pub(crate) input: String,
    pub(crate) state: Value,
    /// What operators are given: the state, or a part of it.
    pub(crate) shown: Option<Value>,
    /// How many places are filled before a run, in i32; `None` where the file says it.
    pub(crate) filled: Option<Value>,
    /// Whether an input hides those that are not.
    pub(crate) has_mask: bool,
    /// Whether what attends is to see the places of the run behind all others; then, whether it does.
    pub(crate) apart: bool,
    /// The state with the places of the run.
    pub(crate) next: Option<Value>,
    /// What operators are given with them.
    pub(crate) given: Option<Value>,
    /// How many those are.
    pub(crate) adds: usize,
}

/// Which numbers of a value share one range when they are rounded to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ranged {
    /// Each row along the last axis has a range of its own.
    Rows,
    /// Each index of the first axis has a range of its own.
    Batches,
}

/// A graph in the making, with the names that it has and the work that it may still cause.
pub(crate) struct Builder {
    pub(crate) graph: Graph,
    pub(crate) budget: Budget,
    /// The names of nodes.
    pub(crate) names: HashSet<String>,
    /// The name of the operator that is read, for those of its nodes.
    pub(crate) current: String,
    /// Values in another order of axes, by value and order.
    pub(crate) moved: HashMap<(Value, Vec<usize>), Value>,
    /// What a value in other dimensions was made of, by the value and the order in which its axes are stored, if that is
    /// another one than the file's.
    pub(crate) reshaped: HashMap<(Value, Vec<usize>), Mapped>,
    /// Values in another type, by value and type.
    pub(crate) cast: HashMap<(Value, DType), Value>,
    /// Ranges of values that are rounded to bytes at each run, and the bytes.
    pub(crate) ranges: HashMap<(Value, Ranged), Value>,
    pub(crate) bytes_at_run: HashMap<(Value, Ranged), Value>,
    /// What operators share, by how it is made and of what; with that, which stays where it is.
    pub(crate) known: HashMap<String, (Vec<Operand>, Operand)>,
    /// Nodes of the graph that change the order of axes.
    pub(crate) transposes: usize,
    /// What the operator lacks that is read.
    pub(crate) wanted: Cell<Wanted>,
    /// Constants of a file that is read several times.
    pub(crate) kept: Option<Arc<ConstantCache>>,
    /// Caches that the graph keeps.
    pub(crate) caches: Vec<Cache>,
    /// What a node counts in the budget.
    node_bytes: usize,
    /// What computes graphs on the CPU.
    pub(crate) prepare: Prepare,
}

/// A graph without nodes.
fn empty() -> Graph {
    let mut graph = Graph::new();
    graph.cast_where_needed();
    graph
}

impl Builder {
    /// Begins another graph; the one until now.
    pub(crate) fn begin_graph(&mut self) -> Graph {
        let mut graph = empty();
        if let Some(kept) = &self.kept {
            graph.share_derived(kept.derived());
        }
        if self.graph.is_dequantized() {
            graph.dequantize_operators();
        }
        std::mem::replace(&mut self.graph, graph)
    }

    /// A builder of an empty graph, of which each node spends `node_bytes` of the budget.
    pub(crate) fn new(budget: Budget, node_bytes: usize, prepare: Prepare) -> Self {
        Builder {
            graph: empty(),
            budget,
            names: HashSet::new(),
            current: String::new(),
            moved: HashMap::new(),
            reshaped: HashMap::new(),
            cast: HashMap::new(),
            ranges: HashMap::new(),
            bytes_at_run: HashMap::new(),
            known: HashMap::new(),
            transposes: 0,
            wanted: Cell::new(Wanted::Nothing),
            kept: None,
            caches: Vec::new(),
            node_bytes,
            prepare,
        }
    }

    /// What is made of a constant: once, where the file is read several times. `what` says all that it depends on beside.
    pub(crate) fn derived(
        &mut self,
        of: &HostTensor,
        what: &str,
        make: impl FnOnce(&mut Self) -> Result<HostTensor, Reason>,
    ) -> Result<HostTensor, Reason> {
        let kept = self.kept.clone().filter(|_| of.dims().elements() > constant_cache::FEW);
        let name = kept.and_then(|kept| {
            let identity = kept.identity(&Constant::Floats(of.clone()))?;
            Some((kept, format!("{what} of {identity}")))
        });
        let Some((kept, name)) = name else { return make(self) };
        if let Some([(Constant::Floats(known), _)]) = kept.known(&name).as_deref() {
            return Ok(known.clone());
        }
        let made = make(self)?;
        kept.keep_made(name, &[(Constant::Floats(made.clone()), Kind::F32)]);
        Ok(made)
    }

    /// A name that no other node has.
    pub(crate) fn unique(&mut self, base: &str) -> Result<String, Reason> {
        self.budget.spend(2 * base.len() + 32)?;
        let mut name = base.to_owned();
        let mut number = self.names.len();
        while !self.names.insert(name.clone()) {
            self.budget.spend(2 * base.len() + 32)?;
            name = format!("{base}#{number}");
            number += 1;
        }
        Ok(name)
    }

    /// The name of a node that computes a part of the operator; the result has the empty one.
    pub(crate) fn part(&mut self, part: &str) -> Result<String, Reason> {
        let base = if part.is_empty() { self.current.clone() } else { format!("{}/{part}", self.current) };
        self.unique(&base)
    }

    /// Adds what `add` adds under the name of a part.
    pub(crate) fn add<T>(
        &mut self,
        part: &str,
        add: impl FnOnce(&mut Graph, &str) -> GraphResult<T>,
    ) -> Result<T, Reason> {
        let name = self.part(part)?;
        self.budget.spend(self.node_bytes)?;
        let before = self.graph.nodes().len();
        let added = add(&mut self.graph, &name)?;
        // Some methods add several, as many as they were given values.
        let more = (self.graph.nodes().len() - before).saturating_sub(1);
        self.budget.spend(more.saturating_mul(self.node_bytes))?;
        Ok(added)
    }
}
