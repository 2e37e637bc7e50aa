//! The precision of each unit: the caller's for its nodes, and with [`Precision::Auto`] f16 storage where a
//! calibration allows it, or where halves hold what the op can bound.
//!
//! **Bounds.** Halves keep eleven bits, which sums in f32 do not magnify, and end at 65504. Without a calibration
//! where the numbers of each value lie follows from where those of its op's inputs and constants lie ([`Op::reach`]); the
//! network's own inputs of floats are taken to be at most [`LARGEST_INPUT`]. So a bounded activation begins anew, and a chain
//! of others is in f16 as far as their weights allow. What halves would make 0 and is not stays in f32, and so does all that
//! leads to a division by what may be 0, or to a function where it may be infinite or none ([`Op::is_singular`]): there the
//! smallest change of a number may make a NaN of a result. Indices stay in f32 too (`idioms::indices`).
//!
//! **Conversions.** Where units of both storages meet, a value is converted. Of the units that may be in f16 those are
//! which save most, conversions paid (`cut`).

use super::cut::Cut;
use super::halves::{has_maps_alone, has_rows_alone};
use super::idioms;
use super::network::Network;
use super::savings::{CONVERSION, saves};
use super::unit::{Assigned, Input, Unit};
use crate::calibration::{CalibratedNode, Calibration};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::Value;
use crate::limits::Limits;
use crate::ops::{Op, OperandInfo, Reach, Reaches, Role};
use crate::options::SessionOptions;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What inputs of a network are taken to be at most: pictures that are not normalised are 255.
const LARGEST_INPUT: f64 = 256.0;

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
        for (own, _) in assigned.iter_mut().zip(idioms::indices(network)).filter(|(_, indices)| *indices) {
            *own = full(INDICES);
        }
        drop_small(network, &ops, &mut assigned, limits)?;
    } else if options.precision.storage() == DType::F16 {
        let wide = idioms::quotients_of_sums(network).into_iter().zip(idioms::indices(network));
        let own = wide.map(|(sums, indices)| match (sums, indices) {
            (true, _) => full("sums that are divided by sums"),
            (_, true) => full(INDICES),
            _ => None,
        });
        assigned = own.collect();
    }
    for (unit, assigned) in network.units_mut().iter_mut().zip(assigned) {
        let by_hand = options.precisions.get(&unit.name).copied();
        let by_hand = by_hand.map(|precision| Assigned { precision, why: "by hand".to_owned() });
        unit.precision = by_hand.or(assigned);
    }
    Ok(())
}

/// Whether a unit has a precision of its own that stores halves.
pub(super) fn is_narrow(unit: &Unit) -> bool {
    is_half(unit.precision.as_ref())
}

fn is_half(own: Option<&Assigned>) -> bool {
    own.is_some_and(|own| own.precision.storage() == DType::F16)
}

fn halves(why: impl Into<String>) -> Option<Assigned> {
    Some(Assigned { precision: Precision::F16Storage, why: why.into() })
}

fn full(why: impl Into<String>) -> Option<Assigned> {
    Some(Assigned { precision: Precision::F32, why: why.into() })
}

const NO_HALVES: &str = "not for halves";

const INDICES: &str = "indices, which halves hold exactly up to 2048 alone";

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

/// Where the numbers of an input of the network lie.
fn of_input(dtype: Option<DType>) -> Reach {
    match dtype {
        None | Some(DType::F32 | DType::F16) => Reach::around(LARGEST_INPUT),
        Some(DType::Bool) => Reach::new(0.0, 1.0),
        Some(DType::I8 | DType::U8) => Reach::new(-128.0, 255.0),
        Some(_) => Reach::ALL,
    }
}

/// Halves where they hold what follows from the constants of the ops.
fn bounded(network: &Network<'_>, ops: &[Arc<dyn Op>]) -> Vec<Option<Assigned>> {
    let graph = network.graph;
    let inputs = graph.inputs().iter().map(|&value| (value, of_input(graph.dtype(value))));
    let mut reaches: HashMap<Value, Reach> = inputs.collect();
    let mut singular = Vec::new();
    let mut assigned = Vec::with_capacity(ops.len());
    for (index, (unit, op)) in network.units().iter().zip(ops).enumerate() {
        let of = |value: Value| reaches.get(&network.resolve(value).of).copied().unwrap_or(Reach::ALL);
        // Of constants all elements are read, once.
        let read = unit.inputs.iter().map(|(operand, input)| match input {
            Input::Value(value) => (*operand, of(*value)),
            Input::Constant(tensor, _) => (*operand, Reach::of(&tensor.to_nhwc())),
        });
        let read: Vec<(Operand, Reach)> = read.collect();
        let exact = |wanted: Operand| {
            read.iter()
                .find(|(operand, _)| *operand == wanted)
                .map_or(Reach::around(0.0), |(_, reach)| *reach)
        };
        // What cannot be read bounds nothing.
        let own = unit.constants(&**op).ok();
        let of_inputs = |inputs: &Reaches<'_>| own.as_ref().map_or(Reach::ALL, |own| op.reach(inputs, own));
        let reach = of_inputs(&exact);
        if op.is_singular(&exact) {
            singular.push(index);
        }
        let infos = op.operands();
        let held = |(operand, input): &(Operand, Input)| {
            // What a constant mask adds to scores covers them as well with the largest half, which rows have in its place.
            let adds = |info: &OperandInfo| info.operand == *operand && info.role == Role::Input;
            let covers = matches!(operand, Operand::Bias | Operand::Mask) && infos.iter().any(adds);
            (covers && input.value().is_none()) || exact(*operand).in_halves().fits_halves()
        };
        let stored = match op.halves() {
            true => of_inputs(&|operand| exact(operand).in_halves()).in_halves(),
            false => Reach::ALL,
        };
        let own = match () {
            () if !op.halves() => full(NO_HALVES),
            () if !unit.inputs.iter().all(held) => {
                full("what it reads may not fit halves; a calibration would tell")
            }
            () if !stored.fits_halves() => full("its result may not fit halves; a calibration would tell"),
            () if stored.contains(0.0) && !reach.contains(0.0) => full("halves may make its result 0"),
            () => halves(format!("at most {:.3e}", reach.magnitude())),
        };
        let written = if is_half(own.as_ref()) { stored } else { reach };
        reaches.extend(unit.outputs.iter().map(|&value| (value, written)));
        assigned.push(own);
    }
    for index in before(network, singular) {
        if is_half(assigned[index].as_ref()) {
            assigned[index] =
                full("rounding it may lead to a division by 0, or beyond where a function is defined");
        }
    }
    assigned
}

/// The units that `units` depend on, themselves included.
fn before(network: &Network<'_>, units: Vec<usize>) -> BTreeSet<usize> {
    let (mut found, mut open) = (BTreeSet::new(), units);
    let next = |value: Value| {
        let state = network.graph.states().iter().find(|state| state.value == value);
        state.and_then(|state| state.next)
    };
    while let Some(index) = open.pop() {
        let Some(unit) = network.units().get(index).filter(|_| found.insert(index)) else { continue };
        for value in unit.reads().map(|value| network.resolve(value).of) {
            let updated = next(value).map(|next| network.resolve(next).of);
            open.extend(
                [Some(value), updated].into_iter().flatten().filter_map(|value| network.writer(value)),
            );
        }
    }
    found
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
    let narrow = |own: &Option<Assigned>| is_half(own.as_ref());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::graph::{Extras, Graph, Right, Term};
    use crate::host::HostTensor;
    use crate::ops::elementwise::Function;
    use crate::ops::gemm::Gemm;
    use crate::ops::reduce::Reduction;

    const ROWS: usize = 5;
    const COLUMNS: usize = 8;

    fn input() -> (Graph, Value) {
        let mut graph = Graph::new();
        let x = graph.input("x", Dims::new(&[ROWS, COLUMNS]).expect("small")).expect("an input");
        (graph, x)
    }

    fn product(graph: &mut Graph, name: &str, x: Value) -> Value {
        let weights = HostTensor::matrix(1, COLUMNS, COLUMNS, vec![0.5; COLUMNS * COLUMNS]).expect("as many");
        let right = Right::Constant(weights);
        graph.gemm(name, x, right, Extras::default(), Gemm::default()).expect("a product")
    }

    fn of(graph: &mut Graph, name: &str, function: Function, terms: &[Term]) -> Value {
        graph.elementwise(name, function, terms).expect("a function")
    }

    /// The units whose names begin with these that are in halves, in the order of execution.
    fn in_halves(mut graph: Graph, y: Value) -> Vec<String> {
        graph.output(y).expect("an output");
        let network = super::super::prepare::network(&graph, &SessionOptions::default(), 256).expect("units");
        let ops = network.units().iter().map(|unit| unit.op(&graph, Precision::F16Storage));
        let ops = ops.collect::<Result<Vec<_>>>().expect("ops");
        let assigned = bounded(&network, &ops);
        let units = network.units().iter().zip(&assigned).filter(|(_, own)| is_half(own.as_ref()));
        units.map(|(unit, _)| unit.name.clone()).collect()
    }

    #[test]
    fn what_leads_to_a_division_by_what_may_be_zero_is_in_f32() {
        let quotient = |least: f32| {
            let (mut graph, x) = input();
            let first = product(&mut graph, "first", x);
            let aside = product(&mut graph, "aside", first);
            let s = of(&mut graph, "share", Function::Sigmoid, &[first.into()]);
            let s = graph.reduce("mean", s, Reduction::Mean, &[-1], true).expect("a mean");
            let s = of(&mut graph, "kept", Function::Maximum, &[s.into(), least.into()]);
            let y = of(&mut graph, "quotient", Function::Div, &[aside.into(), s.into()]);
            let y = of(&mut graph, "bound", Function::Tanh, &[y.into()]);
            let y = product(&mut graph, "behind", y);
            in_halves(graph, y)
        };
        // Nothing keeps the divisor from 0.
        assert_eq!(quotient(0.0), ["behind"]);
        // A number keeps it from 0, and does so in f32.
        assert_eq!(quotient(1e-12), ["first", "aside", "share", "mean", "behind"]);
        // What halves would make 0 is not stored in them.
        let kept = |least: f32| {
            let (mut graph, x) = input();
            let y = of(&mut graph, "share", Function::Sigmoid, &[x.into()]);
            let y = of(&mut graph, "kept", Function::Maximum, &[y.into(), least.into()]);
            in_halves(graph, y).len()
        };
        assert_eq!([kept(1e-12), kept(1e-3)], [0, 1]);
    }

    #[test]
    fn numbers_beyond_halves_and_bounds_that_are_none_are_seen_within_a_bounded_function() {
        let bounded = |factor: f32| {
            let (mut graph, x) = input();
            let dims = Dims::new(&[ROWS, COLUMNS]).expect("small");
            let factor = HostTensor::new(dims, vec![factor; ROWS * COLUMNS]).expect("as many");
            let factor = graph.constant("factor", factor);
            let y = of(&mut graph, "times", Function::Mul, &[x.into(), factor.into()]);
            let y = of(&mut graph, "bound", Function::Tanh, &[y.into()]);
            in_halves(graph, y).len()
        };
        assert_eq!([bounded(100.0), bounded(1e5), bounded(f32::NAN)], [1, 0, 0]);
        // 0 times what nothing bounds.
        let (mut graph, x) = input();
        let y = of(&mut graph, "power", Function::Exp, &[x.into()]);
        let y = graph.reduce("sum", y, Reduction::Product, &[-1], true).expect("a product");
        let y = of(&mut graph, "none", Function::Mul, &[y.into(), 0.0f32.into()]);
        let y = graph.broadcast_to("many", y, &[ROWS.into(), COLUMNS.into()]).expect("many");
        let y = product(&mut graph, "behind", y);
        assert_eq!(in_halves(graph, y), Vec::<String>::new());
    }
}
