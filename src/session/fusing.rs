//! A depthwise convolution and the 1x1 convolution that alone reads it, as one kernel.
//!
//! Fused, a network's step has one dispatch less, and what lies between the two never goes through
//! memory; but work-groups that share pixels compute it again, each for its own output channels. So
//! it is a matter of measured time: see [`Fusing::Rule`].

use super::picks::recorded;
use super::{Picking, SessionOptions};
use crate::dtype::Precision;
use crate::error::Result;
use crate::graph::{Graph, Node, NodeOp, Problem};
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::ops::Op;
use crate::ops::depthwise::DepthwiseOp;
use crate::ops::pointwise::PointwiseOp;
use crate::ops::separable::SeparableOp;
use crate::tune::db::Source;
use crate::tune::key::DeviceKey;
use crate::tune::work_group::{WorkGroup, untuned};
use std::time::Duration;

/// Whether a session runs a depthwise convolution and the 1x1 convolution that alone reads its output
/// as one kernel ([`crate::ops::separable`]). A node that has a choice by hand stays by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fusing {
    /// Where that is faster: by the record's times, if it has exact verdicts on the block and on both
    /// of its nodes, else by what was measured on like devices.
    #[default]
    Rule,
    /// Wherever a kernel can.
    Always,
    /// Nowhere.
    Never,
}

/// Two nodes that can run as one.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) depthwise: &'a Node,
    pub(crate) pointwise: &'a Node,
    /// The names of both.
    pub(crate) name: String,
}

impl Block<'_> {
    /// The op with its concrete shapes.
    pub(crate) fn problem(&self, graph: &Graph, precision: Precision) -> Result<SeparableOp> {
        let [first, second] = self.halves(graph, precision)?;
        separable(first, second)
    }

    /// The problems of the two nodes.
    fn halves(&self, graph: &Graph, precision: Precision) -> Result<[Problem; 2]> {
        Ok([graph.problem(self.depthwise, precision)?, graph.problem(self.pointwise, precision)?])
    }
}

fn separable(first: Problem, second: Problem) -> Result<SeparableOp> {
    match (first, second) {
        (Problem::Depthwise(first), Problem::Pointwise(second)) => SeparableOp::new(first, second),
        _ => Err(crate::Error::Internal("a block of other ops".to_owned())),
    }
}

/// The blocks of `graph`; nodes that `alone` names stay out of them.
pub(crate) fn blocks<'a>(graph: &'a Graph, alone: &dyn Fn(&str) -> bool) -> Result<Vec<Block<'a>>> {
    let mut found = Vec::new();
    for depthwise in graph.nodes().iter().filter(|node| matches!(node.op(), NodeOp::Depthwise(_))) {
        let value = depthwise.output();
        let mut readers = graph.nodes().iter().filter(|node| node.inputs().any(|input| input == value));
        let (Some(pointwise), None) = (readers.next(), readers.next()) else { continue };
        let reads_once = pointwise.input == value && pointwise.extras.residual != Some(value);
        let one_by_one = matches!(pointwise.op(), NodeOp::Pointwise(_));
        let named = alone(depthwise.name()) || alone(pointwise.name());
        if !one_by_one || !reads_once || graph.outputs().contains(&value) || named {
            continue;
        }
        let name = format!("{} + {}", depthwise.name(), pointwise.name());
        let block = Block { depthwise, pointwise, name };
        let [first, second] = block.halves(graph, Precision::F32)?;
        // What the op refuses runs as two nodes.
        if separable(first, second).is_ok() {
            found.push(block);
        }
    }
    Ok(found)
}

/// A block that runs as one.
#[derive(Debug)]
pub(super) struct Fused<'a> {
    pub(super) block: Block<'a>,
    /// Why.
    pub(super) why: String,
}

/// The blocks of `graph` that run as one on a device.
pub(super) fn on_device<'a>(
    graph: &'a Graph,
    options: &SessionOptions,
    device: &DeviceKey,
    limits: &Limits,
) -> Result<Vec<Fused<'a>>> {
    let mut fused = Vec::new();
    for block in candidates(graph, options)? {
        let op = block.problem(graph, options.precision)?;
        if untuned(&op, options.work_group, limits).is_err() {
            continue;
        }
        let why = match options.fuse {
            Fusing::Always => Some("as asked".to_owned()),
            Fusing::Never => None,
            Fusing::Rule => faster(&op, options, device, limits),
        };
        fused.extend(why.map(|why| Fused { block, why }));
    }
    Ok(fused)
}

/// The blocks of `graph` that run as one on the CPU.
pub(super) fn on_cpu<'a>(graph: &'a Graph, options: &SessionOptions) -> Result<Vec<Fused<'a>>> {
    let fused = |block| Fused { block, why: "as asked".to_owned() };
    match options.fuse {
        Fusing::Always => Ok(candidates(graph, options)?.into_iter().map(fused).collect()),
        Fusing::Rule | Fusing::Never => Ok(Vec::new()),
    }
}

fn candidates<'a>(graph: &'a Graph, options: &SessionOptions) -> Result<Vec<Block<'a>>> {
    if options.fuse == Fusing::Never {
        return Ok(Vec::new());
    }
    blocks(graph, &|name| options.choices.contains_key(name))
}

/// Why the block is expected to be faster as one kernel, if it is.
fn faster(op: &SeparableOp, options: &SessionOptions, device: &DeviceKey, limits: &Limits) -> Option<String> {
    let measured = options.pick == Picking::Measured;
    let layouts = if measured { &[Layout::C4, Layout::Image2d][..] } else { &[Layout::C4] };
    let time = |op: &dyn Op| -> Option<Duration> {
        let known = layouts.iter().filter_map(|&layout| recorded(options, device, op, layout, limits));
        known.filter(|known| known.from == Source::Exact).filter_map(|known| known.time).min()
    };
    let (first, second) = (DepthwiseOp(*op.depthwise()), PointwiseOp(*op.pointwise()));
    let microseconds = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e6);
    match (time(op), time(&first), time(&second)) {
        (Some(one), Some(first), Some(second)) => {
            let [one, first, second] = [one, first, second].map(|time| (time, microseconds(time)));
            let why = format!("measured, {} us against {} + {}", one.1, first.1, second.1);
            (one.0 < first.0 + second.0).then_some(why)
        }
        (Some(one), ..) if measured => Some(format!("measured, {} us, its nodes not", microseconds(one))),
        // A preference grades kernels of single nodes, and a given work-group is none of the rule's.
        _ if options.pick != Picking::Rule || options.work_group != WorkGroup::Table => None,
        _ => worthwhile(op, limits).then(|| "rule".to_owned()),
    }
}

/// Input channels up to which an NVIDIA GPU is faster with one kernel. Measured on an H200, through
/// both APIs, on the blocks of MobileNetV1 at 257 x 257: a block of 32 channels gains a third of its
/// time, one of 512 loses a quarter, because its many output channels are spread over work-groups
/// that each sum the windows again.
const MOST_CHANNELS: usize = 128;

/// The rule for blocks that were not measured. Only where some were: lavapipe and PoCL, which run a
/// work-group's invocations one after the other, are slower with any; on Mali, Adreno and others
/// nothing was measured, and the two nodes stay two.
fn worthwhile(op: &SeparableOp, limits: &Limits) -> bool {
    limits.family == Family::Nvidia && op.depthwise().input.c <= MOST_CHANNELS
}
