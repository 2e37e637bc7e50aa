//! A unit and the one that alone reads it as one, where an op computes both: a depthwise and a 1x1
//! convolution ([`crate::ops::separable`]).
//!
//! Fused, a network has one dispatch less, and what lies between the two never goes through memory;
//! but work-groups that share pixels compute it again, each for its own output channels. So it is a
//! matter of measured time.
//!
//! **What a dispatch costs.** The time of a kernel by itself includes its start and end, 5 to
//! 7 us on an NVIDIA H200, most of which a network's next dispatch overlaps. The times of two nodes
//! have that twice and the block's once: compared as they are, three blocks of an earlier kernel won
//! 7 us of device time through OpenCL, and the network took 9 us longer host to host. So a
//! dispatch is taken off the time of the two nodes: the shortest time that the record has on a node of the network, which has
//! little else in it, and at most `MAX_DISPATCH_COST`.
//!
//! **Unmeasured** blocks run as two nodes, on every device. Of MobileNetV1's blocks on the H200, timed
//! kernel by kernel, those of up to 128 channels took up to a third less than their nodes, those of 256
//! about as long, those of 512 and more longer; with a dispatch taken off, one block of thirteen gained
//! 1 us through OpenCL and none through Vulkan. lavapipe and PoCL, which run a work-group's invocations
//! one after the other, are slower with any. On other GPUs nothing was measured.

use super::choose::Choosing;
use super::unit::{Network, Unit};
use crate::dtype::Precision;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::Layout;
use crate::ops::{self, Fused, Op};
use crate::options::{Fusing, Picking, SessionOptions};
use crate::tune::db::Source;
use crate::tune::work_group::untuned;
use std::time::Duration;

/// What a dispatch may be taken to cost at most when it is timed by itself.
const MAX_DISPATCH_COST: Duration = Duration::from_micros(10);

/// A pair of units that can run as one.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The two, by their places among the network's units.
    first: usize,
    second: usize,
    /// What they would be.
    pub(crate) unit: Unit,
}

/// The pairs of `network` that can run as one; units that `alone` names stay out of them.
pub(crate) fn candidates(network: &Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    for (first, unit) in network.units().iter().enumerate() {
        let &[between] = &unit.outputs[..] else { continue };
        let mut readers = network.readers(between);
        let (Some(second), None) = (readers.next(), readers.next()) else { continue };
        let reader = &network.units()[second];
        let reads_once = reader.reads().filter(|&read| network.resolve(read).of == between).count() == 1;
        let reads_itself = reader.reads().any(|read| read == between);
        let named = alone(&unit.name) || alone(&reader.name);
        let single = unit.parts().is_empty() && reader.parts().is_empty();
        if named || !single || !reads_once || !reads_itself || network.leaves(between) {
            continue;
        }
        found.extend(pair(network, [first, second], between)?);
    }
    Ok(found)
}

/// The two units as one, if an op computes both.
fn pair(network: &Network<'_>, places: [usize; 2], between: Value) -> Result<Option<Candidate>> {
    let [first, second] = places.map(|place| &network.units()[place]);
    let ops = [first.op(network.graph, Precision::F32)?, second.op(network.graph, Precision::F32)?];
    for fuse in ops::all().iter().filter_map(|entry| entry.fuse) {
        let Some(Fused { first: of_first, second: of_second, .. }) = fuse(&*ops[0], &*ops[1]) else {
            continue;
        };
        // What passes between them must be the operand that the one op leaves out.
        let through = second.inputs.iter().find(|(_, input)| input.value() == Some(between));
        let passes = through.is_some_and(|(operand, _)| of_second.iter().all(|(_, own)| own != operand));
        if !passes {
            continue;
        }
        let mut inputs = Vec::new();
        for (unit, mapping) in [(first, of_first), (second, of_second)] {
            for (operand, input) in &unit.inputs {
                let renamed = mapping.iter().find(|(_, own)| own == operand);
                inputs.extend(renamed.map(|(name, _)| (*name, input.clone())));
            }
        }
        let unit = Unit::pair(first.clone(), second.clone(), inputs, fuse);
        return Ok(Some(Candidate { first: places[0], second: places[1], unit }));
    }
    Ok(None)
}

/// Runs the pairs of `network` as one for which `why` has a reason, in the second one's place.
pub(crate) fn fuse(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    why: &dyn Fn(&Candidate) -> Result<Option<String>>,
) -> Result<()> {
    let mut taken: Vec<Candidate> = Vec::new();
    for mut candidate in candidates(network, alone)? {
        let places = [candidate.first, candidate.second];
        let overlaps =
            taken.iter().any(|other| places.contains(&other.first) || places.contains(&other.second));
        if !overlaps && let Some(why) = why(&candidate)? {
            candidate.unit.why = Some(why);
            taken.push(candidate);
        }
    }
    let units = network.take_units().into_iter().enumerate();
    let placed = units.filter(|(index, _)| taken.iter().all(|pair| pair.first != *index));
    let units = placed.map(|(index, unit)| {
        let pair = taken.iter().find(|pair| pair.second == index);
        pair.map_or(unit, |pair| pair.unit.clone())
    });
    network.set_units(units.collect());
    Ok(())
}

/// The pairs that run as one on the CPU: those that are asked for.
pub(crate) fn on_cpu(network: &mut Network<'_>, options: &SessionOptions) -> Result<()> {
    let alone = |name: &str| options.names(name);
    match options.fuse {
        Fusing::Always => fuse(network, &alone, &|_| Ok(Some("as asked".to_owned()))),
        Fusing::Rule | Fusing::Never => Ok(()),
    }
}

/// The pairs that run as one on a device: those that are asked for, or that are faster by the record's times.
pub(super) fn on_device(network: &mut Network<'_>, choosing: &Choosing<'_>) -> Result<()> {
    let options = choosing.options;
    // The rule goes by a record's times.
    let unmeasured = options.fuse == Fusing::Rule && options.tuning.database().is_none();
    if options.fuse == Fusing::Never || unmeasured {
        return Ok(());
    }
    let alone = |name: &str| options.names(name);
    let shortest = shortest(network, choosing)?;
    let graph = network.graph;
    fuse(network, &alone, &|candidate| {
        let op = candidate.unit.op(graph, options.precision)?;
        if untuned(&*op, options.work_group, choosing.limits).is_err() {
            return Ok(None);
        }
        match options.fuse {
            Fusing::Always => Ok(Some("as asked".to_owned())),
            Fusing::Never => Ok(None),
            Fusing::Rule => faster(&*op, &candidate.unit, shortest, choosing, graph),
        }
    })
}

/// Why the pair is expected to be faster as one kernel, if it is.
fn faster(
    op: &dyn Op,
    unit: &Unit,
    shortest: Duration,
    choosing: &Choosing<'_>,
    graph: &crate::graph::Graph,
) -> Result<Option<String>> {
    // A preference grades kernels of single nodes.
    let (pick, precision) = (&choosing.options.pick, choosing.options.precision);
    let Some([first, second]) = unit.halves() else { return Ok(None) };
    if matches!(pick, Picking::Preference(_)) {
        return Ok(None);
    }
    let measured = *pick == Picking::Measured;
    let layouts = if measured { &[Layout::C4, Layout::Image2d][..] } else { &[Layout::C4] };
    let time = |op: &dyn Op| -> Option<Duration> {
        let known = layouts.iter().filter_map(|&layout| choosing.recorded(op, layout));
        known.filter(|known| known.from == Source::Exact).filter_map(|known| known.time).min()
    };
    let [first, second] = [first.op(graph, precision)?, second.op(graph, precision)?];
    let microseconds = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e6);
    Ok(match (time(op), time(&*first), time(&*second)) {
        (Some(one), Some(first), Some(second)) => {
            let why = [one, first, second].map(microseconds);
            let why = format!("measured, {} us against {} + {}", why[0], why[1], why[2]);
            (one + shortest < first + second).then_some(why)
        }
        (Some(one), ..) if measured => Some(format!("measured, {} us, its nodes not", microseconds(one))),
        _ => None,
    })
}

/// The shortest time on record of a unit of `network`.
fn shortest(network: &Network<'_>, choosing: &Choosing<'_>) -> Result<Duration> {
    let mut shortest = MAX_DISPATCH_COST;
    for unit in network.units() {
        let op = unit.op(network.graph, choosing.options.precision)?;
        let known = choosing.recorded(&*op, Layout::C4);
        shortest = known.and_then(|known| known.time).map_or(shortest, |time| time.min(shortest));
    }
    Ok(shortest)
}
