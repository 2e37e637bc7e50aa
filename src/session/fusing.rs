//! A depthwise convolution and the 1x1 convolution that alone reads it, as one kernel.
//!
//! Fused, a network has one dispatch less, and what lies between the two never goes through memory;
//! but work-groups that share pixels compute it again, each for its own output channels. So it is a
//! matter of measured time.
//!
//! **What a dispatch costs.** A kernel that is timed by itself is charged for its start and end, 5 to
//! 7 us on an NVIDIA H200, most of which a network's next dispatch overlaps. The times of two nodes
//! have that twice and the block's once: compared as they are, three blocks of an earlier kernel won
//! 7 us of device time through OpenCL, and the network took 9 us longer host to host. So the pair is
//! credited with a dispatch: the shortest time that the record has on a node of the network, which has
//! little else in it, and at most `MOST_OF_A_DISPATCH`.
//!
//! **Unmeasured** blocks run as two nodes, on every device. Of MobileNetV1's blocks on the H200, timed
//! kernel by kernel, those of up to 128 channels took up to a third less than their nodes, those of 256
//! about as long, those of 512 and more longer; with a dispatch taken off, one block of thirteen gained
//! 1 us through OpenCL and none through Vulkan. lavapipe and PoCL, which run a work-group's invocations
//! one after the other, are slower with any. On other GPUs nothing was measured.

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
use crate::tune::work_group::untuned;
use crate::tuner::{layout_of, problem_of};
use std::time::Duration;

/// What a dispatch may be taken to cost at most when it is timed by itself.
const MOST_OF_A_DISPATCH: Duration = Duration::from_micros(10);

/// Input channels up to which a block may be faster as one kernel.
const MOST_CHANNELS: usize = 128;

/// Whether a session runs a depthwise convolution and the 1x1 convolution that alone reads its output
/// as one kernel ([`crate::ops::separable`]). A node that has a choice by hand stays by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fusing {
    /// Where the record's times say that it is faster: it then has exact verdicts on the block and on
    /// both of its nodes. Nowhere else: nothing that was measured so far speaks for it.
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
    let shortest = shortest(graph, options, device, limits)?;
    for block in candidates(graph, options)? {
        let op = block.problem(graph, options.precision)?;
        if untuned(&op, options.work_group, limits).is_err() {
            continue;
        }
        let why = match options.fuse {
            Fusing::Always => Some("as asked".to_owned()),
            Fusing::Never => None,
            Fusing::Rule => faster(&op, shortest, options, device, limits),
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
fn faster(
    op: &SeparableOp,
    shortest: Duration,
    options: &SessionOptions,
    device: &DeviceKey,
    limits: &Limits,
) -> Option<String> {
    // A preference grades kernels of single nodes.
    if matches!(options.pick, Picking::Preference(_)) {
        return None;
    }
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
            let why = [one, first, second].map(microseconds);
            let why = format!("measured, {} us against {} + {}", why[0], why[1], why[2]);
            (one + shortest < first + second).then_some(why)
        }
        (Some(one), ..) if measured => Some(format!("measured, {} us, its nodes not", microseconds(one))),
        _ => None,
    }
}

/// The shortest time on record of a node of `graph`.
fn shortest(
    graph: &Graph,
    options: &SessionOptions,
    device: &DeviceKey,
    limits: &Limits,
) -> Result<Duration> {
    let mut shortest = MOST_OF_A_DISPATCH;
    for node in graph.nodes() {
        let problem = problem_of(&graph.problem(node, options.precision)?);
        let known = recorded(options, device, &*problem, layout_of(&*problem), limits);
        shortest = known.and_then(|known| known.time).map_or(shortest, |time| time.min(shortest));
    }
    Ok(shortest)
}

/// Whether it may pay to tune a block as one kernel on a device that nobody said anything about: see
/// the top of this module.
pub(crate) fn worth_tuning(op: &SeparableOp, limits: &Limits) -> bool {
    limits.family != Family::CpuDriver && op.depthwise().input.c <= MOST_CHANNELS
}
