//! 1x1 convolutions of one input as one: their weights stacked, the input read once.
//!
//! `[y_1 y_2 ..] = x [w_1 w_2 ..]`: the heads of a network have few channels each, and four small
//! kernels with a change of layout each leave a large GPU idle for eight dispatches. Merged are
//! nodes whose outputs only leave the network, so that nothing needs a single head as a feature
//! map; one conversion then writes each output's rows.

use crate::error::Result;
use crate::graph::{Extras, Graph, Node, NodeOp, Value};
use crate::host::HostTensor;
use crate::ops::convert::MOST_PARTS;
use crate::shape::Shape;

/// Nodes that run as one.
#[derive(Debug)]
pub(crate) struct Siblings<'a> {
    /// Two or more, in the graph's order.
    pub(crate) nodes: Vec<&'a Node>,
    /// The one node. Its output is no value of the graph.
    pub(crate) merged: Node,
}

/// The groups of `graph`; nodes that `alone` names stay out of them.
pub(crate) fn siblings<'a>(graph: &'a Graph, alone: &dyn Fn(&str) -> bool) -> Result<Vec<Siblings<'a>>> {
    let read = |value: Value| graph.nodes().iter().any(|node| node.inputs().any(|input| input == value));
    let mut groups: Vec<Vec<&Node>> = Vec::new();
    for node in graph.nodes() {
        let leaves = graph.outputs().contains(&node.output()) && !read(node.output());
        let one_by_one = matches!(node.op(), NodeOp::Pointwise(_)) && node.extras.residual.is_none();
        if !leaves || !one_by_one || alone(node.name()) {
            continue;
        }
        let group = groups.iter_mut().find(|group| {
            let first = group[0];
            first.input == node.input && first.op == node.op && group.len() < MOST_PARTS
        });
        match group {
            Some(group) => group.push(node),
            None => groups.push(vec![node]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups.into_iter().map(|nodes| Ok(Siblings { merged: merge(graph, &nodes)?, nodes })).collect()
}

fn merge(graph: &Graph, nodes: &[&Node]) -> Result<Node> {
    let first = nodes[0];
    let inputs = graph.shape(first.input)?.c;
    let mut channels = 0;
    let mut weights: Vec<f32> = Vec::new();
    let mut bias: Vec<f32> = Vec::new();
    let mut slope: Vec<f32> = Vec::new();
    for node in nodes {
        let own = graph.shape(node.output())?.c;
        channels += own;
        weights.extend(node.weights.iter().flat_map(|tensor| tensor.to_nhwc().into_owned()));
        // A node without a bias adds zero.
        for (stacked, tensor) in [(&mut bias, &node.extras.bias), (&mut slope, &node.extras.slope)] {
            match tensor {
                Some(tensor) => stacked.extend(tensor.to_nhwc().iter()),
                None => stacked.resize(stacked.len() + own, 0.0),
            }
        }
    }
    let any = |has: &dyn Fn(&Node) -> bool| nodes.iter().any(|node| has(node));
    Ok(Node {
        name: nodes.iter().map(|node| node.name()).collect::<Vec<_>>().join(" + "),
        op: first.op,
        input: first.input,
        right: None,
        weights: Some(HostTensor::new(Shape::nhwc(channels, 1, 1, inputs), weights)?),
        extras: Extras {
            bias: any(&|node| node.extras.bias.is_some()).then(|| HostTensor::vector(bias)).transpose()?,
            slope: any(&|node| node.extras.slope.is_some()).then(|| HostTensor::vector(slope)).transpose()?,
            residual: None,
        },
        output: Value(usize::MAX),
    })
}
