//! Long sequences of recurrent layers: the CPU computes some of their steps after the others, in a session on a GPU too.
//!
//! The products with the input are one node for all steps. What is left of the steps is a network of a chunk of them, which
//! runs as often as there are chunks: a network of all steps would have a dozen nodes for each.

use super::builder::Builder;
use super::cells::{Cell, State};
use super::kind::Kind;
use super::moves::stacked;
use super::operand::{Mapped, Operand};
use super::steps::{Steps, steps_of};
use crate::compute::{Prepare, Prepared};
use crate::dims::Dims;
use crate::error::{Error, Result as SessionResult};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::model::constant::dims_of;
use crate::model::reason::Reason;
use crate::sync::{Mutex, lock};

/// The steps of a chunk.
const CHUNK: usize = 128;

/// The network of some steps, and how many those are.
struct Chunk {
    count: usize,
    graph: Graph,
    prepare: Prepare,
    /// Sessions that no run uses. A run has one of its own, so that none waits for another.
    idle: Mutex<Vec<Box<dyn Prepared>>>,
    /// The inputs, in the order of the function's.
    names: Vec<String>,
    dims: Vec<Dims>,
}

impl Chunk {
    /// What its steps write.
    fn compute(&self, feeds: &[(&str, &HostTensor)]) -> SessionResult<Vec<HostTensor>> {
        // The lock is not held while the session is made and runs.
        let idle = lock(&self.idle).pop();
        let session = match idle {
            Some(session) => session,
            None => (self.prepare)(&self.graph)?,
        };
        let found = session.compute(feeds);
        lock(&self.idle).push(session);
        found
    }
}

/// What is known of a layer's sequence.
struct Sequence<'s> {
    batch: usize,
    columns: usize,
    steps: &'s Steps,
    /// The extents of the state: of the output, and of the cell if there is one.
    state: Vec<Vec<usize>>,
    /// The extents of weights that each run computes.
    weights: Vec<Vec<usize>>,
}

/// The outputs of all steps, `time batch units`, and the last state. `sums` is what the steps make of the input alone.
pub(super) fn in_chunks(
    b: &mut Builder,
    cell: &Cell,
    sums: Operand,
    steps: &Steps,
    state: Option<State>,
) -> Result<(Operand, State), Reason> {
    let extents = b.shape(&sums)?;
    let &[count, batch, columns] = &extents[..] else {
        return refused!("found sums of {extents:?}, wanted time, batch and columns");
    };
    let (width, inner) = cell.widths(b)?;
    let state = match state {
        Some(state) => state,
        None => State {
            output: b.filled(&[batch, width], 0.0)?,
            cell: inner.map(|inner| b.filled(&[batch, inner], 0.0)).transpose()?,
        },
    };
    let mut inputs = vec![sums, state.output];
    inputs.extend(state.cell);
    let state: Vec<Vec<usize>> = inputs[1..].iter().map(|own| b.shape(own)).collect::<Result<_, _>>()?;
    inputs.extend(steps.lengths.clone());
    // Weights that are known are constants of the chunks, others are given to them.
    let mut cell = cell.clone();
    let mut weights = Vec::new();
    for operand in cell.operands() {
        if let Operand::Value(mapped) = operand
            && b.graph.tensor(mapped.value)?.is_none()
        {
            weights.push(b.extents(mapped)?);
            inputs.push(operand.clone());
        }
    }
    let sequence = Sequence { batch, columns, steps, state, weights };
    let rest = count % CHUNK;
    let chunks = [CHUNK, rest].into_iter().filter(|&chunk| chunk > 0);
    let chunks = chunks.map(|chunk| sequence.chunk(b, &cell, chunk)).collect::<Result<Vec<_>, _>>()?;
    let mut firsts: Vec<usize> = (0..count).step_by(CHUNK).collect();
    if steps.backwards {
        firsts.reverse();
    }
    let (states, has_lengths) = (sequence.state.len(), steps.lengths.is_some());
    let mut outputs = vec![vec![count, batch, width]];
    outputs.extend(sequence.state);
    let written = b.hosted("sequence", "recurrent", inputs, &outputs, move |inputs, outputs| {
        run(&chunks, &firsts, (states, has_lengths), inputs, outputs)
    })?;
    let mut written = written.into_iter();
    let (Some(all), Some(output)) = (written.next(), written.next()) else {
        return refused!("found no results of a sequence");
    };
    Ok((all, State { output, cell: written.next() }))
}

/// Runs the chunks that begin at `firsts`.
fn run(
    chunks: &[Chunk],
    firsts: &[usize],
    (states, has_lengths): (usize, bool),
    inputs: &[&[f32]],
    outputs: &mut [&mut [f32]],
) -> SessionResult<()> {
    let ([sums, rest @ ..], [all, last @ ..]) = (inputs, outputs) else { return Ok(()) };
    let (state, rest) = rest.split_at(states.min(rest.len()));
    let (lengths, weights) = rest.split_at(usize::from(has_lengths).min(rest.len()));
    let mut state: Vec<Vec<f32>> = state.iter().map(|own| own.to_vec()).collect();
    let lacks = || Error::Internal("a chunk of a sequence lacks an input".to_owned());
    for &first in firsts {
        let whole = chunks.first().ok_or_else(lacks)?;
        let columns = whole.dims.first().ok_or_else(lacks)?.elements() / whole.count.max(1);
        let left = sums.len() / columns.max(1) - first;
        let chunk = if left < whole.count { chunks.get(1).ok_or_else(lacks)? } else { whole };
        let own = sums.get(first * columns..(first + chunk.count) * columns).ok_or_else(lacks)?;
        let mut given = vec![own.to_vec()];
        given.append(&mut state);
        // Steps are counted from the chunk's first one.
        given.extend(lengths.iter().map(|own| own.iter().map(|length| length - first as f32).collect()));
        given.extend(weights.iter().map(|own| own.to_vec()));
        let tensors = given.into_iter().zip(&chunk.dims).map(|(own, &dims)| HostTensor::new(dims, own));
        let tensors = tensors.collect::<SessionResult<Vec<_>>>()?;
        let feeds: Vec<(&str, &HostTensor)> = chunk.names.iter().map(String::as_str).zip(&tensors).collect();
        let mut found = chunk.compute(&feeds)?.into_iter();
        let written = found.next().ok_or_else(lacks)?;
        let each = all.len() / (sums.len() / columns.max(1)).max(1);
        let place = all.get_mut(first * each..(first + chunk.count) * each).ok_or_else(lacks)?;
        place.copy_from_slice(&written.to_nhwc());
        state = found.map(|own| own.to_nhwc().into_owned()).collect();
    }
    for (last, state) in last.iter_mut().zip(&state) {
        last.copy_from_slice(state);
    }
    Ok(())
}

impl Sequence<'_> {
    fn chunk(&self, b: &mut Builder, cell: &Cell, count: usize) -> Result<Chunk, Reason> {
        let outer = b.begin_graph();
        let (moved, known, transposes) =
            (std::mem::take(&mut b.moved), std::mem::take(&mut b.known), b.transposes);
        let made = self.add(b, &outer, cell.clone(), count);
        (b.moved, b.known, b.transposes) = (moved, known, transposes);
        let graph = std::mem::replace(&mut b.graph, outer);
        let inputs = made?;
        let session = (b.prepare)(&graph)?;
        let (names, dims) = inputs.into_iter().unzip();
        Ok(Chunk { count, graph, prepare: b.prepare, idle: Mutex::new(vec![session]), names, dims })
    }

    /// Adds the steps of a chunk to a graph; its inputs.
    fn add(
        &self,
        b: &mut Builder,
        outer: &Graph,
        mut cell: Cell,
        count: usize,
    ) -> Result<Vec<(String, Dims)>, Reason> {
        let mut inputs = Vec::new();
        let mut input = |b: &mut Builder, extents: &[usize]| -> Result<Operand, Reason> {
            let (name, dims) = (format!("input {}", inputs.len()), dims_of(extents)?);
            let value = b.graph.input(&name, dims)?;
            inputs.push((name, dims));
            Ok(Operand::Value(Mapped::plain(value, extents.len(), Kind::F32)))
        };
        let sums = input(b, &[count, self.batch, self.columns])?;
        let mut state =
            self.state.iter().map(|own| input(b, own)).collect::<Result<Vec<_>, _>>()?.into_iter();
        let output = state.next().ok_or("found no state")?;
        let state = State { output, cell: state.next() };
        let lengths = match self.steps.lengths {
            Some(_) => Some(input(b, &[self.batch, 1])?),
            None => None,
        };
        let mut weights = self.weights.iter();
        for operand in cell.operands() {
            let Operand::Value(mapped) = operand else { continue };
            *operand = match outer.tensor(mapped.value)? {
                Some(tensor) => {
                    let name = b.part("weights")?;
                    let value = b.graph.constant(&name, tensor.clone());
                    Operand::Value(Mapped { value, ..mapped.clone() })
                }
                None => input(b, weights.next().ok_or("found weights without extents")?)?,
            };
        }
        let steps = Steps { count, lengths, ..self.steps.clone() };
        let (outputs, last) = steps_of(b, &cell, &sums, &steps, Some(state))?;
        let last = last.ok_or("found no steps")?;
        let all = stacked(b, "steps", outputs, 0)?;
        for own in [Some(all), Some(last.output), last.cell].into_iter().flatten() {
            let mapped = b.mapped(own)?;
            let value = b.logical(&mapped)?;
            b.graph.output(value)?;
        }
        Ok(inputs)
    }
}
