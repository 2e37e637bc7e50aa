//! What runs as one step: a node, 1x1 convolutions of one input, or a separable block.

use super::fusing::Fused;
use super::siblings::Siblings;
use crate::dtype::Precision;
use crate::error::Result;
use crate::graph::{Graph, Node, Problem, Value};

/// One or more nodes of a graph that run as one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit<'a> {
    /// The node that writes the result; of siblings, the merged one.
    pub(super) node: &'a Node,
    /// The nodes that were merged.
    pub(super) group: Option<&'a Siblings<'a>>,
    /// The depthwise convolution that runs within `node`'s kernel.
    pub(super) fused: Option<&'a Fused<'a>>,
}

impl<'a> Unit<'a> {
    /// Its name: its nodes'.
    pub(super) fn name(&self) -> &'a str {
        self.fused.map_or(self.node.name(), |fused| &fused.block.name)
    }

    /// Its op with concrete shapes.
    pub(super) fn problem(&self, graph: &Graph, precision: Precision) -> Result<Problem> {
        match self.fused {
            Some(fused) => fused.block.problem(graph, precision).map(Problem::Separable),
            None => graph.problem(self.node, precision),
        }
    }

    /// The node whose input it reads.
    pub(super) fn first(&self) -> &'a Node {
        self.fused.map_or(self.node, |fused| fused.block.depthwise)
    }

    /// What it reads, constants excluded.
    pub(super) fn inputs(&self) -> impl Iterator<Item = Value> + 'a {
        let rest = [self.node.right, self.node.extras.residual];
        [Some(self.first().input)].into_iter().chain(rest).flatten()
    }

    /// Whether it runs several nodes whose outputs leave the network together.
    pub(super) fn merged(&self) -> bool {
        self.group.is_some()
    }
}

/// The units of `graph` in order of execution. Siblings run in the first one's place: what they read
/// is there already. A block runs in its second node's.
pub(super) fn units<'a>(
    graph: &'a Graph,
    groups: &'a [Siblings<'a>],
    fused: &'a [Fused<'a>],
) -> Vec<Unit<'a>> {
    let mut units = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        let is = |other: &Node| other.output() == node.output();
        if let Some(group) = groups.iter().find(|group| group.nodes.iter().any(|one| is(one))) {
            if is(group.nodes[0]) {
                units.push(Unit { node: &group.merged, group: Some(group), fused: None });
            }
        } else if !fused.iter().any(|fused| is(fused.block.depthwise)) {
            let fused = fused.iter().find(|fused| is(fused.block.pointwise));
            units.push(Unit { node, group: None, fused });
        }
    }
    units
}
