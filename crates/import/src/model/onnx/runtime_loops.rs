//! Loops whose number of turns is known only at run time: their body is a network of its own, which the CPU runs as
//! often as it says.

use super::import::{Import, Op};
use super::schema::{Graph as Network, captures};
use crate::error::Error;
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::model::build::{Kind, Mapped, Operand, Wanted, drawn};
use crate::model::constant::dims_of;
use crate::model::reason::Reason;
use crate::ops::random::Random;
use crate::sorted;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

type Done = Result<(), Reason>;

/// Numbers that the seed of a body's random numbers is made of.
const SEED: usize = 3;

/// The body of a loop as a network: what it reads of the values around it, and what it writes.
struct Body {
    graph: Graph,
    /// Values around the loop, in the order of the graph's last inputs.
    outer: Vec<Operand>,
    /// Where the condition and what is carried are among the graph's outputs.
    places: Vec<usize>,
}

/// What is known of a loop where it is left to the CPU.
pub(super) struct Start {
    /// Turns that were done.
    pub(super) turn: u32,
    /// The most turns in all, and the condition of the next one; without one there is no such end.
    pub(super) most: Option<Operand>,
    pub(super) go_on: Option<Operand>,
}

/// `Loop` whose condition or number of turns is computed at each run: what is carried keeps its extents, and nothing
/// is collected.
pub(super) fn repeat<'a>(i: &mut Import<'a>, op: &Op<'a>, start: Start, carried: Vec<Operand>) -> Done {
    let body = op.network("body")?;
    i.wanted.set(Wanted::Host);
    if (carried.len()..op.node.outputs.len()).any(|index| op.writes(index)) {
        return refused!(
            "found results that are collected over iterations whose number is computed at each run"
        );
    }
    let mut extents = Vec::with_capacity(carried.len());
    for slot in &carried {
        if slot.kind().is_handle() {
            return refused!("found a sequence carried over iterations whose number is computed at each run");
        }
        extents.push(i.shape(slot)?);
    }
    let Body { graph, outer, places } = network(i, op, body, &carried, &extents)?;
    let session = (i.prepare)(&graph)?;
    let draws = graph.draws();
    let names: Vec<String> = session.inputs().iter().map(|port| port.name.clone()).collect();
    let dims: Vec<_> = session.inputs().iter().map(|port| port.dims).collect();
    let kinds: Vec<Kind> = carried.iter().map(Operand::kind).collect();
    let Start { turn: first, most, go_on } = start;
    let (counted, conditional) = (most.is_some(), go_on.is_some());
    let mut inputs: Vec<Operand> = most.into_iter().chain(go_on).collect();
    inputs.extend(carried);
    inputs.extend(outer);
    if draws {
        inputs.push(drawn(i, "seed", Random::uniform(0.0, 1.0), &[SEED])?);
    }
    let session = Mutex::new(session);
    let written = i.hosted("", "loop", inputs, &extents, move |inputs, outputs| {
        let (inputs, seed) = inputs.split_at(inputs.len() - usize::from(draws));
        let (numbers, values) = inputs.split_at(usize::from(counted) + usize::from(conditional));
        let number = |at: usize| numbers.get(at).and_then(|own| own.first().copied());
        let most = if counted { number(0).unwrap_or(0.0) } else { f32::INFINITY };
        let mut go_on = !conditional || number(usize::from(counted)).is_some_and(|truth| truth != 0.0);
        let tensor = |at: usize, values: &[f32]| HostTensor::new(dims[at], values.to_vec());
        let mut given = values
            .iter()
            .enumerate()
            .map(|(at, values)| tensor(at + 2, values))
            .collect::<Result<Vec<_>, Error>>()?;
        let session = session.lock().unwrap_or_else(PoisonError::into_inner);
        if let [seed] = seed {
            session.draw_by(seed_of(seed))?;
        }
        let mut turn = first;
        while go_on && (turn as f32) < most {
            let own = [tensor(0, &[turn as f32])?, tensor(1, &[1.0])?];
            let feeds: Vec<(&str, &HostTensor)> =
                names.iter().map(String::as_str).zip(own.iter().chain(&given)).collect();
            let found = session.compute(&feeds)?;
            let mut found = places.iter().map(|&place| found.get(place).cloned());
            go_on = found
                .next()
                .flatten()
                .is_some_and(|truth| truth.to_f32().first().is_some_and(|&it| it != 0.0));
            given.iter_mut().zip(found.flatten()).for_each(|(given, found)| *given = found);
            turn =
                turn.checked_add(1).ok_or_else(|| Error::unsupported("a loop", "it has 2^32 iterations"))?;
        }
        for (output, value) in outputs.iter_mut().zip(&given) {
            output.copy_from_slice(&value.to_nhwc());
        }
        Ok(())
    })?;
    for (index, (slot, kind)) in written.into_iter().zip(kinds).enumerate() {
        i.set(op, index, slot.of_kind(kind))?;
    }
    Ok(())
}

/// The seed that random numbers from 0 to 1 make: 24 bits are of each.
fn seed_of(numbers: &[f32]) -> u64 {
    numbers.iter().fold(0, |seed, number| seed << 24 ^ (number * (1 << 24) as f32) as u64)
}

/// The body with its turn's number, the condition, what is carried and what it reads of the values around it as inputs.
fn network<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    body: &'a Network<'a>,
    carried: &[Operand],
    extents: &[Vec<usize>],
) -> Result<Body, Reason> {
    let mut names = Vec::new();
    captures(op.node, &mut names);
    sorted::sort(&mut names, Ord::cmp);
    names.dedup();
    // What the body has of its own is no value around it.
    let inner = body.nodes.iter().flat_map(|node| node.outputs.iter().copied());
    let inner: HashSet<&str> = inner.chain(body.inputs.iter().map(|input| input.name)).collect();
    names.retain(|name| !inner.contains(name));
    let around: Vec<(&'a str, Operand)> =
        names.into_iter().filter_map(|name| Some((name, i.find(name).ok()?))).collect();
    let mut sizes = Vec::with_capacity(around.len());
    for (_, slot) in &around {
        sizes.push(i.shape(slot)?);
    }
    let graph = i.begin_graph();
    let moved = std::mem::take(&mut i.moved);
    let transposes = i.transposes;
    let made = make(i, op, body, (carried, extents), (&around, &sizes));
    i.transposes = transposes;
    i.moved = moved;
    let graph = std::mem::replace(&mut i.graph, graph);
    let (outer, places) = made?;
    Ok(Body { graph, outer, places })
}

fn make<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    body: &'a Network<'a>,
    (carried, extents): (&[Operand], &[Vec<usize>]),
    (around, sizes): (&[(&'a str, Operand)], &[Vec<usize>]),
) -> Result<(Vec<Operand>, Vec<usize>), Reason> {
    let input =
        |i: &mut Import<'a>, name: String, extents: &[usize], kind: Kind| -> Result<Operand, Reason> {
            let dims = dims_of(extents)?;
            let value = i.graph.input(&name, dims)?;
            Ok(Operand::Value(Mapped::plain(value, extents.len(), kind)))
        };
    let mut inputs =
        vec![input(i, "turn".to_owned(), &[], Kind::I64)?, input(i, "go on".to_owned(), &[], Kind::Bool)?];
    for (index, (slot, extents)) in carried.iter().zip(extents).enumerate() {
        inputs.push(input(i, format!("carried {index}"), extents, slot.kind())?);
    }
    let (mut outer, mut known) = (Vec::new(), HashMap::new());
    for (index, ((name, slot), extents)) in around.iter().zip(sizes).enumerate() {
        let own = match slot {
            Operand::Constant(..) => slot.clone(),
            Operand::Value(mapped) => {
                outer.push(slot.clone());
                input(i, format!("around {index}"), extents, mapped.kind)?
            }
        };
        known.insert(*name, own);
    }
    let outputs: Vec<&str> = body.outputs.iter().map(|output| output.name).take(1 + carried.len()).collect();
    if outputs.len() != 1 + carried.len() {
        return refused!("found {} outputs of the body, wanted {}", outputs.len(), 1 + carried.len());
    }
    let written = inner(i, op, body, &inputs, &outputs, Some(known))?;
    let mut values: Vec<Value> = Vec::new();
    let mut places = Vec::with_capacity(written.len());
    for (index, slot) in written.into_iter().enumerate() {
        let found = i.shape(&slot)?;
        let wanted = index.checked_sub(1).and_then(|index| extents.get(index)).cloned();
        let wanted = wanted.unwrap_or_else(|| found.iter().map(|_| 1).collect());
        if found != wanted {
            return refused!(
                "found a value of {wanted:?} that an iteration makes {found:?}, in a loop whose iterations are counted at each run, \
                 wanted extents that stay"
            );
        }
        let mapped = i.mapped_slot(slot, None)?;
        let value = i.logical(&mapped)?;
        let place = values.iter().position(|&own| own == value).unwrap_or(values.len());
        if place == values.len() {
            i.graph.output(value)?;
            values.push(value);
        }
        places.push(place);
    }
    Ok((outer, places))
}

/// The work of a network within an operator, beside that of its nodes. Loops may lie in each other.
const TURN_BYTES: usize = 8 << 10;

/// What a network within the operator writes, with some of its inputs given. It reads the tensors around it, or those
/// of `around` alone.
pub(super) fn inner<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    network: &'a Network<'a>,
    inputs: &[Operand],
    outputs: &[&'a str],
    around: Option<HashMap<&'a str, Operand>>,
) -> Result<Vec<Operand>, Reason> {
    i.budget.spend(TURN_BYTES)?;
    check_inputs(network, inputs.len())?;
    let mut scope = i.branch(op, around)?;
    for tensor in &network.initializers {
        let (constant, kind) = i.files.constant(tensor, &mut i.build.budget)?;
        scope.slots.insert(tensor.name, Operand::Constant(constant, kind));
    }
    // One that has a constant of its name may be left out.
    let has_own = |name: &str| network.initializers.iter().any(|tensor| tensor.name == name);
    let all = inputs.len() == network.inputs.len();
    let given = network.inputs.iter().filter(|input| all || !has_own(input.name));
    for (input, slot) in given.zip(inputs) {
        scope.slots.insert(input.name, slot.clone());
    }
    i.within(scope, &network.nodes, outputs)
}

/// Refuses a network within an operator that is given more inputs than it has, or fewer. Those that have a constant of their
/// name may be left out.
fn check_inputs(network: &Network<'_>, given: usize) -> Result<(), Reason> {
    let has_own = |name: &str| network.initializers.iter().any(|tensor| tensor.name == name);
    let least = network.inputs.iter().filter(|input| !has_own(input.name)).count();
    match (least..=network.inputs.len()).contains(&given) {
        true => Ok(()),
        false => refused!(
            "found a network of {} inputs within the operator, wanted {given}, as many as it is given",
            network.inputs.len()
        ),
    }
}
