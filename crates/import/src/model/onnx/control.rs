//! Branches and loops whose conditions are known while the file is read.

use super::import::{Import, Op};
use super::runtime_loops::{self, Start, inner};
use super::schema::{Extent, Graph as Network};
use crate::model::build::{Condition, Kind, Mapped, Operand, axis, stacked};
use crate::model::constant::Constant;
use crate::model::reason::Reason;

type Done = Result<(), Reason>;

/// The most turns of a loop that is unrolled.
const MAX_TURNS: usize = 4096;

/// The truth that a slot is, if it is known.
fn truth(slot: &Operand) -> Option<bool> {
    match slot {
        Operand::Constant(constant, _) => constant.truth(),
        Operand::Value(_) => None,
    }
}

/// `If`: the branch that the condition chooses. Where it is computed at each run both are, and what they write is
/// selected.
pub(super) fn branch<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let condition = i.slot(op, 0)?;
    let (then, other) = (op.network("then_branch")?, op.network("else_branch")?);
    let current = i.current.clone();
    let run = |i: &mut Import<'a>, network: &'a Network<'a>| -> Result<Vec<Operand>, Reason> {
        let outputs: Vec<&str> = network.outputs.iter().map(|output| output.name).collect();
        if outputs.len() != op.node.outputs.len() {
            return refused!("found {} outputs of a branch, wanted {}", outputs.len(), op.node.outputs.len());
        }
        inner(i, op, network, &[], &outputs, None)
    };
    let slots = match truth(&condition) {
        Some(true) => run(i, then)?,
        Some(false) => run(i, other)?,
        None => {
            let condition = Condition::new(i.mapped_slot(condition, None)?);
            let mut both = Vec::with_capacity(2);
            for (name, network) in [("then_branch", then), ("else_branch", other)] {
                both.push(run(i, network).map_err(|reason| condition.refused(i, name, &reason))?);
            }
            let (then, other) = (both.remove(0), both.remove(0));
            let mut selected = Vec::with_capacity(then.len());
            for (a, b) in then.into_iter().zip(other) {
                i.current.clone_from(&current);
                selected.push(condition.select(i, "selected", [a, b])?);
            }
            selected
        }
    };
    for (index, slot) in slots.into_iter().enumerate() {
        i.set(op, index, slot)?;
    }
    Ok(())
}

/// `Loop` with a number of turns that is known: each turn's nodes behind the last one's.
pub(super) fn repeat<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let body = op.network("body")?;
    let count = op.inputs().saturating_sub(2);
    let mut carried = (0..count).map(|index| i.any(op, index + 2)).collect::<Result<Vec<_>, _>>()?;
    let computed = |index: usize| op.has(index) && matches!(i.slot(op, index), Ok(Operand::Value(_)));
    if computed(0) || computed(1) {
        let given = |i: &Import<'a>, index: usize| op.has(index).then(|| i.slot(op, index)).transpose();
        let start = Start { turn: 0, most: given(i, 0)?, go_on: given(i, 1)? };
        return runtime_loops::repeat(i, op, start, carried);
    }
    let most = match op.has(0) {
        true => i.integers(op, 0)?.first().copied().unwrap_or(0).max(0) as usize,
        false => usize::MAX,
    };
    let mut go_on = if op.has(1) { i.slot(op, 1)? } else { truth_of(true) };
    let outputs: Vec<&str> = body.outputs.iter().map(|output| output.name).collect();
    if outputs.len() < 1 + count || outputs.len() - 1 != op.node.outputs.len() {
        return refused!(
            "found {} outputs of the body for {} of the loop, wanted one more, the condition",
            outputs.len(),
            op.node.outputs.len()
        );
    }
    let mut scanned: Vec<Vec<Operand>> = vec![Vec::new(); outputs.len() - 1 - count];
    let mut turn = 0;
    while turn < most {
        match truth(&go_on) {
            Some(true) => (),
            Some(false) => break,
            // The turns so far are part of the network; how many follow is known at run time.
            None => {
                let most = (most != usize::MAX).then(|| Operand::integers(Vec::new(), vec![most as i64]));
                let start = Start { turn: turn as u32, most, go_on: Some(go_on) };
                return runtime_loops::repeat(i, op, start, carried);
            }
        }
        if turn >= MAX_TURNS {
            return refused!("found more than {MAX_TURNS} iterations, wanted fewer");
        }
        let number = Operand::Constant(crate::model::build::integers(&[], vec![turn as i64])?, Kind::I64);
        let inputs: Vec<Operand> = [number, go_on.clone()].into_iter().chain(carried).collect();
        let mut written = inner(i, op, body, &inputs, &outputs, None)?.into_iter();
        go_on = written.next().ok_or("found no condition")?;
        carried = written.by_ref().take(count).collect();
        for (list, slot) in scanned.iter_mut().zip(written) {
            list.push(slot);
        }
        turn += 1;
    }
    for (index, slot) in carried.into_iter().enumerate() {
        i.set(op, index, slot)?;
    }
    for (index, list) in scanned.into_iter().enumerate() {
        if op.writes(count + index) {
            let slot = match list.is_empty() {
                true => never(i, op, body, 1 + count + index)?,
                false => collected(i, list, 0)?,
            };
            i.set(op, count + index, slot)?;
        }
    }
    Ok(())
}

/// What a loop collects that has no iterations: nothing, of the extents that one would write.
fn never<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    body: &'a Network<'a>,
    output: usize,
) -> Result<Operand, Reason> {
    let described = body.outputs.get(output).ok_or("found no such output of the body")?;
    let fixed = described.extents.as_ref().and_then(|extents| {
        let extents = extents.iter().map(|extent| match extent {
            Extent::Fixed(extent) => Some(*extent),
            Extent::Free(_) => None,
        });
        extents.collect::<Option<Vec<usize>>>()
    });
    let (mut extents, kind) = match fixed {
        Some(extents) => (extents, Kind::of(described.kind)?),
        None => {
            let mut inputs = vec![Operand::integers(Vec::new(), vec![0]), truth_of(true)];
            for index in 2..op.inputs() {
                inputs.push(i.any(op, index)?);
            }
            let (graph, transposes) = (i.begin_graph(), i.transposes);
            let uploaded = i.scopes.last_mut().map(|scope| std::mem::take(&mut scope.uploaded));
            // Values of the graph around are none of this one: what needs them is not known.
            let written = inner(i, op, body, &inputs, &[described.name], None);
            let shape = written.and_then(|written| {
                let slot = written.first().ok_or("found no result")?;
                Ok((i.shape(slot)?, slot.kind()))
            });
            i.graph = graph;
            i.transposes = transposes;
            if let (Some(scope), Some(uploaded)) = (i.scopes.last_mut(), uploaded) {
                scope.uploaded = uploaded;
            }
            shape.map_err(|why| {
                format!("found a loop without iterations whose results are collected, of extents that are not known: {why}")
            })?
        }
    };
    extents.insert(0, 0);
    let nothing = crate::model::constant::Integers::new(extents, Vec::new());
    Ok(Operand::Constant(Constant::Integers(nothing), kind))
}

fn truth_of(value: bool) -> Operand {
    let integers = crate::model::constant::Integers::new(Vec::new(), vec![i64::from(value)]);
    Operand::Constant(Constant::Integers(integers), Kind::Bool)
}

/// What the turns of a loop collect.
fn collected(i: &mut Import<'_>, list: Vec<Operand>, place: usize) -> Result<Operand, Reason> {
    match list.is_empty() {
        true => refused!(
            "found a loop without iterations whose results are collected, wanted at least one iteration"
        ),
        false => stacked(i, "stacked", list, place),
    }
}

/// An input of a scan, with its extents, and the axis along which it is read.
struct ScannedInput {
    slot: Operand,
    extents: Vec<usize>,
    axis: usize,
    backwards: bool,
}

impl ScannedInput {
    /// The element at a place along the axis.
    fn element(&self, i: &mut Import<'_>, at: usize) -> Result<Operand, Reason> {
        let mut ranges: Vec<(usize, usize, i64)> =
            self.extents.iter().map(|&extent| (0, extent, 1)).collect();
        ranges[self.axis] = (at, 1, 1);
        let one = crate::model::build::cut(i, "step", self.slot.clone(), &ranges)?;
        let mut extents = self.extents.clone();
        extents.remove(self.axis);
        Ok(match one {
            Operand::Constant(constant, kind) => Operand::Constant(constant.reshaped(&extents)?, kind),
            Operand::Value(mapped) => {
                let value = i.logical(&mapped)?;
                let value = i.reshaped("element", value, &extents)?;
                Operand::Value(Mapped::plain(value, extents.len(), mapped.kind))
            }
        })
    }
}

/// An element of a list of the options; 0 where it has none.
fn listed(op: &Op<'_>, name: &str, index: usize) -> i64 {
    op.ints(name).and_then(|list| list.get(index).copied()).unwrap_or(0)
}

/// The inputs that a scan reads element by element, and how many elements there are.
fn scanned_inputs<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    states: usize,
    scans: usize,
) -> Result<(Vec<ScannedInput>, usize), Reason> {
    let mut read = Vec::with_capacity(scans);
    let mut turns = None;
    for index in 0..scans {
        let (slot, extents) = (i.slot(op, states + index)?, i.extents_of(op, states + index)?);
        let axis = axis(listed(op, "scan_input_axes", index), extents.len())?;
        if *turns.get_or_insert(extents[axis]) != extents[axis] {
            return refused!(
                "found inputs of {turns:?} and {} elements to scan, wanted as many in each",
                extents[axis]
            );
        }
        let backwards = listed(op, "scan_input_directions", index) != 0;
        read.push(ScannedInput { slot, extents, axis, backwards });
    }
    let turns = turns.unwrap_or(0);
    if turns > MAX_TURNS {
        return refused!("found {turns} iterations, wanted at most {MAX_TURNS}");
    }
    Ok((read, turns))
}

/// `Scan` of version 9 on: a turn for each element along an axis of its inputs.
pub(super) fn scan<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if op.version < 9 {
        return refused!("found version {}, wanted one from 9 on", op.version);
    }
    let body = op.network("body")?;
    let scans = usize::try_from(op.int("num_scan_inputs", 0)).unwrap_or(0);
    let states = op.inputs().checked_sub(scans).filter(|_| scans > 0);
    let states = states.ok_or_else(|| {
        format!(
            "found {scans} inputs to scan of {}, wanted at least one and no more than there are",
            op.inputs()
        )
    })?;
    let listed = |name: &str, index: usize| listed(op, name, index);
    let mut carried = (0..states).map(|index| i.any(op, index)).collect::<Result<Vec<_>, _>>()?;
    let (read, turns) = scanned_inputs(i, op, states, scans)?;
    let outputs: Vec<&str> = body.outputs.iter().map(|output| output.name).collect();
    if outputs.len() < states || outputs.len() != op.node.outputs.len() {
        return refused!(
            "found {} outputs of the body for {}, wanted as many as the operator has",
            outputs.len(),
            op.node.outputs.len()
        );
    }
    let mut scanned: Vec<Vec<Operand>> = vec![Vec::new(); outputs.len() - states];
    for turn in 0..turns {
        let mut inputs = carried;
        for input in &read {
            inputs.push(input.element(i, if input.backwards { turns - 1 - turn } else { turn })?);
        }
        let mut written = inner(i, op, body, &inputs, &outputs, None)?.into_iter();
        carried = written.by_ref().take(states).collect();
        for (list, slot) in scanned.iter_mut().zip(written) {
            list.push(slot);
        }
    }
    for (index, slot) in carried.into_iter().enumerate() {
        i.set(op, index, slot)?;
    }
    for (index, mut list) in scanned.into_iter().enumerate() {
        if listed("scan_output_directions", index) != 0 {
            list.reverse();
        }
        let place = listed("scan_output_axes", index);
        let place =
            usize::try_from(place).map_err(|_| format!("found output axis {place}, wanted one from 0 on"))?;
        if op.writes(states + index) {
            let slot = collected(i, list, place)?;
            i.set(op, states + index, slot)?;
        }
    }
    Ok(())
}
