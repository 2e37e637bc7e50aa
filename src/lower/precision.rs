//! The precision of each unit: the caller's for its nodes, and with [`Precision::Auto`] f16 storage where a
//! calibration allows it, or where halves hold what the op can bound.
//!
//! **Bounds.** Halves keep eleven bits, which sums in f32 do not magnify, and end at 65504. Without a calibration
//! the largest magnitude of each value follows from those of its op's inputs and constants ([`Op::reach`]); the
//! network's own inputs are taken to be at most [`LARGEST_INPUT`]. So a bounded activation begins anew, and a chain
//! of others is in f16 as far as their weights allow.
//!
//! **Conversions.** Where units of both storages meet, a value is converted. Of the units that may be in f16 those are
//! which save most, conversions paid (`cut`).

use super::cut::Cut;
use super::halves::{has_maps_alone, has_rows_alone};
use super::unit::{Assigned, Network, Unit};
use crate::calibration::{CalibratedNode, Calibration};
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::graph::Value;
use crate::limits::Limits;
use crate::ops::{LARGEST_HALF, Op};
use crate::options::SessionOptions;
use std::collections::HashMap;
use std::sync::Arc;

/// What inputs of a network are taken to be at most: pictures that are not normalised are 255.
const LARGEST_INPUT: f64 = 256.0;

/// What a conversion between two storages costs beside what it moves, in bytes that could be moved meanwhile: 4 us at
/// 1000 GB/s. So much it took on an NVIDIA H200 when it was two dispatches; networks that move less were slower with
/// it then, by up to a tenth. It is one dispatch since.
pub(super) const CONVERSION: f64 = (4 << 20) as f64;

/// Operations that a device makes in f32 while it moves a byte.
const OPERATIONS_PER_BYTE: f64 = 16.0;

/// Whether a device gains by halves.
pub(crate) fn has_halves(limits: &Limits) -> bool {
    limits.native_half || limits.matrix_unit.is_some()
}

/// Gives each unit its precision, where it is not the session's.
pub(super) fn assign(network: &mut Network<'_>, options: &SessionOptions, limits: &Limits) -> Result<()> {
    let auto = options.precision == Precision::Auto;
    let mut assigned: Vec<Option<Assigned>> = vec![None; network.units().len()];
    if auto && has_halves(limits) {
        let ops = network.units().iter().map(|unit| unit.op(network.graph, Precision::F16Storage));
        let ops = ops.collect::<Result<Vec<_>>>()?;
        assigned = match &options.calibration {
            Some(calibration) => calibrated(network, &ops, calibration)?,
            None => bounded(network, &ops),
        };
        drop_small(network, &ops, &mut assigned, limits)?;
    }
    for (unit, assigned) in network.units_mut().iter_mut().zip(assigned) {
        let by_hand = options.precisions.get(&unit.name).copied();
        let by_hand = by_hand.map(|precision| Assigned { precision, why: "by hand".to_owned() });
        unit.precision = by_hand.or(assigned);
    }
    Ok(())
}

fn halves(why: impl Into<String>) -> Option<Assigned> {
    Some(Assigned { precision: Precision::F16Storage, why: why.into() })
}

fn full(why: impl Into<String>) -> Option<Assigned> {
    Some(Assigned { precision: Precision::F32, why: why.into() })
}

const NO_HALVES: &str = "not for halves";

/// What `calibration` says of `unit`, or of what it was made of.
fn entries<'c>(unit: &Unit, calibration: &'c Calibration) -> Vec<&'c CalibratedNode> {
    if let Some(found) = calibration.node(&unit.name) {
        return vec![found];
    }
    unit.parts().iter().flat_map(|part| entries(part, calibration)).collect()
}

fn calibrated(
    network: &Network<'_>,
    ops: &[Arc<dyn Op>],
    calibration: &Calibration,
) -> Result<Vec<Option<Assigned>>> {
    let mut known = network.units().is_empty();
    let each = network.units().iter().zip(ops).map(|(unit, op)| {
        let found = entries(unit, calibration);
        known |= !found.is_empty();
        match found.iter().find_map(|node| node.kept.as_ref()) {
            _ if !op.halves() => full(NO_HALVES),
            _ if found.is_empty() => full("not calibrated"),
            Some(why) => full(why.clone()),
            None => halves("calibrated"),
        }
    });
    let each = each.collect();
    if !known {
        let first = network.units().first().map_or("", |unit| unit.name.as_str());
        let wanted = format!("one of this network, whose first node is {first:?}");
        return Err(Error::input("calibration", "none of the network's nodes", wanted));
    }
    Ok(each)
}

/// The constants that a unit's op can bound its sums with.
fn bounded(network: &Network<'_>, ops: &[Arc<dyn Op>]) -> Vec<Option<Assigned>> {
    let graph = network.graph;
    let mut reaches: HashMap<Value, f64> =
        graph.inputs().iter().map(|&value| (value, LARGEST_INPUT)).collect();
    let mut assigned = Vec::with_capacity(ops.len());
    for (unit, op) in network.units().iter().zip(ops) {
        let of = |value: Value| reaches.get(&network.resolve(value).of).copied().unwrap_or(f64::INFINITY);
        let inputs = |operand| match unit.input(operand) {
            Ok(super::unit::Input::Value(value)) => of(*value),
            Ok(super::unit::Input::Constant(tensor, _)) => {
                tensor.to_nhwc().iter().fold(0.0, |most: f64, value| most.max(f64::from(value.abs())))
            }
            Err(_) => 0.0,
        };
        let most = unit.reads().map(of).fold(0.0, f64::max);
        // What cannot be read bounds nothing.
        let reach = unit.constants(&**op).map_or(f64::INFINITY, |own| op.reach(&inputs, &own));
        for &value in &unit.outputs {
            reaches.insert(value, reach);
        }
        let holds = |magnitude: f64| magnitude <= LARGEST_HALF;
        assigned.push(match () {
            () if !op.halves() => full(NO_HALVES),
            () if !holds(most) => full("its inputs may not fit halves; a calibration would tell"),
            () if !holds(reach) => full("its result may not fit halves; a calibration would tell"),
            () => halves(format!("at most {reach:.3e}")),
        });
    }
    assigned
}

/// Bytes that an op moves if its values are stored in elements of so many bytes: one that computes nothing reads no more
/// than it writes.
fn moved(op: &dyn Op, bytes: usize) -> f64 {
    let written: usize = crate::ops::outputs(op).map(|info| info.elements()).sum();
    let most = if op.flops() == 0 { written } else { usize::MAX };
    op.operands().iter().map(|info| info.elements().min(most) * bytes).sum::<usize>() as f64
}

/// What an op saves in f16, in bytes that could be moved meanwhile.
pub(super) fn saves(op: &dyn Op) -> f64 {
    moved(op, 2) + op.flops() as f64 / (2.0 * OPERATIONS_PER_BYTE)
}

/// The units that will be in rows: those that have no other form, and between those the ones that have others too.
fn in_rows(network: &Network<'_>, ops: &[Arc<dyn Op>], limits: &Limits) -> Vec<bool> {
    let alone: Vec<[bool; 2]> =
        ops.iter().map(|op| [has_rows_alone(&**op, limits), has_maps_alone(&**op, limits)]).collect();
    let mut beside = vec![[false; 2]; ops.len()];
    for users in network.users().values() {
        let any = [0, 1].map(|kind| users.iter().any(|&user| alone[user][kind]));
        for &user in users {
            beside[user] = [beside[user][0] | any[0], beside[user][1] | any[1]];
        }
    }
    let either =
        |([rows, maps], beside): (&[bool; 2], &[bool; 2])| *rows || (!maps && *beside == [true, false]);
    alone.iter().zip(&beside).map(either).collect()
}

/// Gives f32 back to units in f16 that save less than the conversions between them and others cost.
fn drop_small(
    network: &Network<'_>,
    ops: &[Arc<dyn Op>],
    assigned: &mut [Option<Assigned>],
    limits: &Limits,
) -> Result<()> {
    let halves = Precision::F16Storage.storage();
    let narrow = |own: &Option<Assigned>| own.as_ref().is_some_and(|own| own.precision.storage() == halves);
    let own = assigned.iter().zip(ops).map(|(own, op)| narrow(own).then(|| saves(&**op) as u64));
    // One more stands for what enters and leaves the network.
    let ends = ops.len();
    let mut cut = Cut::new(&own.chain([None]).collect::<Vec<_>>());
    let rows = &in_rows(network, ops, limits);
    for (value, users) in network.users() {
        let cost = CONVERSION as u64 + 6 * network.dims(value)?.elements() as u64;
        // Rows are of halves or of f32. What computes in maps stores one of them, of which rows are made in any storage.
        let of = |in_rows| users.iter().copied().filter(move |&user| rows[user] == in_rows);
        let maps: Vec<usize> = of(false).filter(|&user| ops[user].halves()).collect();
        cut.value(&maps, cost);
        let port = network.graph.inputs().contains(&value) || network.leaves(value);
        let lines: Vec<usize> = of(true).chain(port.then_some(ends)).collect();
        cut.value(&lines, cost);
    }
    for (own, stays) in assigned.iter_mut().zip(cut.narrow()) {
        if narrow(own) && !stays {
            *own = full("in f16 it would save less than conversions cost");
        }
    }
    Ok(())
}

/// What a calibration asks about a network: what runs as one step.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) name: String,
    /// What it reads and writes.
    pub(crate) reads: Vec<Value>,
    pub(crate) writes: Vec<Value>,
    /// Whether it may be in f16.
    pub(crate) halves: bool,
    /// What f16 saves there, in bytes that could be moved meanwhile.
    pub(crate) saves: f64,
}

/// What runs of `graph` with `options`.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn observed(graph: &crate::graph::Graph, options: &SessionOptions) -> Result<Vec<Observed>> {
    // What is stacked does not depend on where bindings begin.
    let graph = &*graph.on_device()?;
    let network = super::prepare::network(graph, options, 0)?;
    let each = network.units().iter().map(|unit| {
        let op = unit.op(graph, Precision::F16Storage)?;
        Ok(Observed {
            name: unit.name.clone(),
            reads: unit.reads().map(|value| network.resolve(value).of).collect(),
            writes: unit.outputs.clone(),
            halves: op.halves() && !options.precisions.contains_key(&unit.name),
            saves: saves(&*op),
        })
    });
    each.collect()
}
