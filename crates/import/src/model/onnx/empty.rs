//! Operators that are given a tensor without elements, as a cache has none before the first token, and as `NonZero` may find
//! none. A graph has no such values.
//!
//! Some operators take such constants as they are: shapes, reductions, what joins tensors. What others write follows from
//! the extents alone: it is worked out what they write for tensors of two to five elements in the place of none, and
//! from these extents what they write for none. If that has no elements, all is said. If it has, it is a sum over nothing.

use super::import::{Handler, Import, Op};
use crate::dtype::DType;
use crate::graph::{Graph, Value};
use crate::model::build::{Kind, Operand, Ranged, Wanted, floats, integers, spread};
use crate::model::constant::{Constant, Integers, elements_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use std::collections::{HashMap, HashSet};
use std::mem::take;

/// Extents in the place of 0. Extents of results that are polynomials of them, of at most the second degree, are extended to 0;
/// one more than such a polynomial takes shows whether they are one.
const STAND_INS: [usize; 4] = [2, 3, 4, 5];

/// Operators whose results are sums of products of all their inputs.
const PRODUCTS: [&str; 5] = ["Einsum", "FusedMatMul", "MatMul", "MatMulInteger", "TransposeMatMul"];

/// Operators that take a tensor without elements beside others that a run computes.
const TAKES_NOTHING: [&str; 8] = [
    "Attention",
    "Concat",
    "ConcatFromSequence",
    "GroupQueryAttention",
    "MultiHeadAttention",
    "SequenceConstruct",
    "Shape",
    "Size",
];

/// The extents and the type of an output, by its index.
type Written = Vec<(usize, Vec<usize>, Kind)>;

fn filled(extents: &[usize], kind: Kind) -> Result<Constant, Reason> {
    match elements_of(extents)? {
        0 => Ok(Constant::Integers(Integers::new(extents.to_vec(), Vec::new()))),
        count if kind.is_float() => floats(extents, vec![0.0; count]),
        count => integers(extents, vec![0; count]),
    }
}

impl Operand {
    /// A tensor without elements.
    pub(super) fn nothing(extents: Vec<usize>, kind: Kind) -> Self {
        Operand::Constant(Constant::Integers(Integers::new(extents, Vec::new())), kind)
    }
}

/// None of a tensor's elements along an axis.
pub(super) fn none_along(i: &Import<'_>, slot: &Operand, place: usize) -> Result<Operand, Reason> {
    let mut extents = i.shape(slot)?;
    extents[place] = 0;
    Ok(Operand::nothing(extents, slot.kind()))
}

/// A value with an extent of 0: its name, its extents and what it holds.
type Empty<'a> = (&'a str, Vec<usize>, Kind);

/// The inputs without elements: their names, extents and types.
fn empties<'a>(i: &Import<'a>, op: &Op<'a>) -> Vec<Empty<'a>> {
    let nothing = |name: &&'a str| match i.find(name) {
        // A matrix that is kept as integers has elements.
        _ if name.is_empty() || i.unread(name).is_some() => None,
        Ok(Operand::Constant(constant, kind)) if !kind.is_handle() && constant.elements() == 0 => {
            Some((*name, constant.extents(), kind))
        }
        _ => None,
    };
    op.node.inputs.iter().filter_map(nothing).collect()
}

/// What reading an operator changes, to be undone.
struct Before<'a> {
    graph: Option<Graphs>,
    uploaded: HashMap<&'a str, Value>,
    absorbed: HashSet<usize>,
    current: String,
}

/// The graph, and what is known of its values.
struct Graphs {
    graph: Graph,
    moved: HashMap<(Value, Vec<usize>), Value>,
    cast: HashMap<(Value, DType), Value>,
    ranges: [HashMap<(Value, Ranged), Value>; 2],
    known: HashMap<String, (Vec<Operand>, Operand)>,
    transposes: usize,
}

impl<'a> Before<'a> {
    fn of(i: &Import<'a>, with_graph: bool) -> Result<Self, Reason> {
        let scope = i.scopes.last().ok_or("found no scope")?;
        Ok(Before {
            graph: with_graph.then(|| Graphs {
                graph: i.graph.clone(),
                moved: i.moved.clone(),
                cast: i.cast.clone(),
                ranges: [i.ranges.clone(), i.bytes_at_run.clone()],
                known: i.known.clone(),
                transposes: i.transposes,
            }),
            uploaded: scope.uploaded.clone(),
            absorbed: scope.absorbed.clone(),
            current: i.current.clone(),
        })
    }

    /// What there is, with an empty graph in the place of that: for an operator all of whose inputs are known.
    fn apart(i: &mut Import<'a>) -> Result<Self, Reason> {
        let (moved, cast, known) = (take(&mut i.moved), take(&mut i.cast), take(&mut i.known));
        let ranges = [take(&mut i.ranges), take(&mut i.bytes_at_run)];
        let transposes = i.transposes;
        let graph = i.begin_graph();
        let current = i.current.clone();
        let scope = i.scopes.last_mut().ok_or("found no scope")?;
        Ok(Before {
            graph: Some(Graphs { graph, moved, cast, ranges, known, transposes }),
            uploaded: take(&mut scope.uploaded),
            absorbed: scope.absorbed.clone(),
            current,
        })
    }

    /// Undoes it, and forgets what was written.
    fn restore(self, i: &mut Import<'a>) {
        if let Some(graphs) = self.graph {
            let [ranges, bytes_at_run] = graphs.ranges;
            (i.graph, i.moved, i.cast, i.known) = (graphs.graph, graphs.moved, graphs.cast, graphs.known);
            (i.ranges, i.bytes_at_run, i.transposes) = (ranges, bytes_at_run, graphs.transposes);
        }
        let written = std::mem::take(&mut i.written);
        if let Some(scope) = i.scopes.last_mut() {
            (scope.uploaded, scope.absorbed) = (self.uploaded, self.absorbed);
            written.iter().for_each(|name| drop(scope.slots.remove(name)));
        }
        i.current = self.current;
    }
}

/// Works out an operator that is given a tensor without elements. Whether that was so, and it is done.
pub(super) fn of_nothing<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let name = op.node.op;
    let has_networks = op.node.attributes.iter().any(|attribute| attribute.graph.is_some());
    if !op.has(0) || has_networks || TAKES_NOTHING.contains(&name) || super::random::draws(op) {
        return Ok(false);
    }
    let empties = empties(i, op);
    // A region that is not used is given as nothing.
    let scales = matches!(name, "Resize" | "Upsample");
    if empties.is_empty() || scales && empties.iter().all(|empty| Some(&empty.0) != op.node.inputs.first()) {
        return Ok(false);
    }
    if matches!(name, "Scatter" | "ScatterElements" | "ScatterND") {
        let data = i.slot(op, 0)?;
        i.set(op, 0, data)?;
        return Ok(true);
    }
    let Some(handler) = (i.handlers.find)(op.node.domain, name) else { return Ok(false) };
    let known = i.has_known_inputs(op);
    let before = Before::of(i, !known)?;
    i.written.clear();
    let Err(refused) = (if known { i.evaluate(handler, op) } else { handler(i, op) }) else {
        return Ok(true);
    };
    before.restore(i);
    // What it lacks is what it lacked first.
    let wanted = i.wanted.get();
    let mut samples = Vec::with_capacity(STAND_INS.len());
    for stand_in in STAND_INS {
        samples.push(sample(i, (op, handler, known), &empties, stand_in)?);
    }
    i.wanted.set(wanted);
    let samples: Option<Vec<Written>> = samples.into_iter().collect();
    let done = match samples.as_deref() {
        Some([two, three, four, five]) => match for_none([two, three, four, five]) {
            Some(written) => write(i, op, written)?,
            None => false,
        },
        _ => false,
    };
    if !done {
        return Err(refused);
    }
    i.wanted.set(Wanted::Nothing);
    Ok(true)
}

/// What an operator writes where each extent of 0 of its inputs is another one; `None` if it is refused, too.
fn sample<'a>(
    i: &mut Import<'a>,
    (op, handler, known): (&Op<'a>, Handler, bool),
    empties: &[Empty<'a>],
    stand_in: usize,
) -> Result<Option<Written>, Reason> {
    let before = if known { Before::apart(i)? } else { Before::of(i, true)? };
    i.written.clear();
    let mut slots = Vec::with_capacity(empties.len());
    // No operator that follows is computed along.
    let readers = i.scopes.last_mut().map(|scope| std::mem::take(&mut scope.readers)).unwrap_or_default();
    for (name, extents, kind) in empties {
        let with = |&extent: &usize| if extent == 0 { stand_in } else { extent };
        let extents: Vec<usize> = extents.iter().map(with).collect();
        i.budget.spend(elements_of(&extents)?.saturating_mul(8))?;
        let constant = Operand::Constant(filled(&extents, *kind)?, *kind);
        let scope = i.scopes.last_mut().ok_or("found no scope")?;
        scope.uploaded.remove(name);
        slots.push((*name, scope.slots.insert(name, constant)));
    }
    let mut written = handler(i, op).is_ok().then(Vec::new);
    for (index, output) in op.node.outputs.iter().enumerate().filter(|(_, output)| !output.is_empty()) {
        let own = i.scopes.last().and_then(|scope| scope.slots.get(output)).cloned();
        match own.filter(|own| !own.kind().is_handle()).map(|own| Ok((i.shape(&own)?, own.kind()))) {
            Some(Ok((extents, kind))) => {
                written.iter_mut().for_each(|all| all.push((index, extents.clone(), kind)))
            }
            Some(Err(reason)) => return Err(reason),
            None => (),
        }
    }
    before.restore(i);
    if let Some(scope) = i.scopes.last_mut() {
        scope.readers = readers;
        for (name, slot) in slots.into_iter().rev() {
            match slot {
                Some(slot) => drop(scope.slots.insert(name, slot)),
                None => drop(scope.slots.remove(name)),
            }
        }
    }
    Ok(written)
}

/// What is written where the extents are 0, of what is written where they are two, three, four and five.
fn for_none(samples: [&Written; 4]) -> Option<Written> {
    let [two, ..] = samples;
    if two.is_empty() || samples.iter().any(|written| written.len() != two.len()) {
        return None;
    }
    let output = |place: usize| {
        let all = samples.map(|written| written.get(place));
        let [Some(two), Some(three), Some(four), Some(five)] = all else { return None };
        let extents = [two, three, four, five].map(|written| &written.1);
        if extents.iter().any(|own| own.len() != two.1.len()) {
            return None;
        }
        let extent = |axis: usize| {
            let [two, three, four, five] = extents.map(|own| own.get(axis).copied().unwrap_or(0));
            // The third difference of a polynomial of the second degree is 0. One that is rounded has another.
            let is_one = two.checked_add(four.checked_mul(3)?)? == three.checked_mul(3)?.checked_add(five)?;
            let grows = two <= three && three <= four && four <= five;
            let at_none =
                two.checked_mul(6)?.checked_add(four.checked_mul(3)?)?.checked_sub(three.checked_mul(8)?);
            at_none.filter(|_| is_one && grows)
        };
        let at_none = (0..two.1.len()).map(extent).collect::<Option<Vec<usize>>>()?;
        Some((two.0, at_none, two.2))
    };
    (0..two.len()).map(output).collect()
}

/// Writes results of these extents, if they have no elements, or are sums over nothing. Whether it did.
fn write<'a>(i: &mut Import<'a>, op: &Op<'a>, written: Written) -> Result<bool, Reason> {
    let mut slots = Vec::with_capacity(written.len());
    for (index, extents, kind) in written {
        let elements = elements_of(&extents)?;
        i.budget.spend(elements.saturating_mul(8))?;
        let zeros = Operand::Constant(filled(&extents, kind)?, kind);
        let slot = match op.node.op {
            _ if elements == 0 => zeros,
            name if PRODUCTS.contains(&name) => zeros,
            "Gemm" if op.has(2) => {
                let (summand, beta) = (i.slot(op, 2)?, op.preset("beta")?);
                let scaled = i.apply("scaled", Function::Mul, &[summand.into(), beta.into()])?;
                spread(i, scaled, &extents)?
            }
            "Gemm" => zeros,
            // Without features the steps have their biases still.
            "LSTM" | "GRU" | "RNN" if i.extents_of(op, 0)?.last() == Some(&0) => return Ok(false),
            // The state that no step changes.
            "LSTM" | "GRU" | "RNN" if index > 0 && op.has(index + 4) => i.slot(op, index + 4)?,
            "LSTM" | "GRU" | "RNN" if index > 0 => zeros,
            _ => return Ok(false),
        };
        slots.push((index, slot));
    }
    for (index, slot) in slots {
        i.set(op, index, slot)?;
    }
    Ok(true)
}
