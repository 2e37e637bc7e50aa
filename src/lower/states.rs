//! The states of a graph: buffers that a run reads, and writes when everything else is computed.

use super::builder::Builder;
use super::halves::{forms, op_on};
use super::kernel::Kernel;
use super::network::Network;
use super::step::Part;
use super::stored_as::Kind;
use super::unit::{Assigned, Input, Unit};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{State, Value};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::Op;
use crate::ops::copy::CopyOp;
use crate::shape::Shape;
use std::sync::Arc;

/// A unit that changes a state instead of computing what it becomes.
#[derive(Debug)]
pub(crate) struct InPlace {
    /// What it computes then.
    pub(crate) op: Arc<dyn Op>,
    /// The state by its place in the graph.
    pub(crate) state: usize,
}

impl Network<'_> {
    /// How `unit` changes a state, where it can: if the state becomes its result, and nothing else reads the state.
    pub(crate) fn in_place(&self, unit: &Unit) -> Result<Option<InPlace>> {
        let &[output] = &unit.outputs[..] else { return Ok(None) };
        if !self.changes_states {
            return Ok(None);
        }
        let is_whole = |value: Value, of: Value| {
            let alias = self.resolve(value);
            let [own, whole] = [self.dims(value)?, self.dims(of)?].map(|dims| dims.elements());
            Ok(alias.of == of && alias.offset == 0 && own == whole)
        };
        for (index, state) in self.graph.states().iter().enumerate() {
            let Some(next) = state.next else { continue };
            let reads = unit.reads().filter(|&read| self.resolve(read).of == state.value).count();
            let others = self.readers(state.value).count() > 1 || self.leaves(state.value);
            if reads != 1 || others || !is_whole(next, output)? {
                continue;
            }
            let precision = if self.has_half_state(index) { Precision::F16Storage } else { Precision::F32 };
            // A state is of one type, whatever is said of the unit.
            let Some((op, operand)) = unit.op_of(self.graph, precision)?.in_place() else { continue };
            let before = unit.input(operand)?.value();
            if before.map(|before| is_whole(before, state.value)).transpose()? == Some(true) {
                return Ok(Some(InPlace { op, state: index }));
            }
        }
        Ok(None)
    }

    /// Whether the state of this place in the graph is stored as halves.
    pub(super) fn has_half_state(&self, state: usize) -> bool {
        self.half_states.get(state).copied().unwrap_or_default()
    }

    /// Whether `value` is a state that is stored as halves, or what such a state becomes.
    pub(super) fn is_half_state(&self, value: Value) -> bool {
        let of = |state: &State| state.value == value || state.next == Some(value);
        let mut states = self.graph.states().iter().enumerate();
        states.any(|(index, state)| self.has_half_state(index) && of(state))
    }

    /// Whether `unit` changes a state that is stored as halves.
    pub(super) fn changes_half_state(&self, unit: &Unit) -> Result<bool> {
        if !self.half_states.contains(&true) {
            return Ok(false);
        }
        Ok(self.in_place(unit)?.is_some_and(|in_place| self.has_half_state(in_place.state)))
    }

    /// Notes which states are stored as halves in f16 storage: those that are only changed by rows written into them, and that
    /// every reader reads in halves, as caches of keys and values are. What changes another one is in f32 as the state is.
    pub(super) fn halve_states(&mut self, precision: Precision, limits: &Limits) -> Result<()> {
        if precision == Precision::Auto || precision.storage() != DType::F16 || !limits.has_half_rows() {
            return Ok(());
        }
        let states = self.graph.states().iter().enumerate();
        self.half_states =
            states.map(|(index, state)| self.may_be_halves(index, state, limits)).collect::<Result<_>>()?;
        let mut wide = Vec::new();
        for (index, unit) in self.units().iter().enumerate() {
            if self.in_place(unit)?.is_some_and(|in_place| !self.has_half_state(in_place.state)) {
                wide.push(index);
            }
        }
        for index in wide {
            let own = &mut self.units_mut()[index].precision;
            let why = "it changes a state in f32".to_owned();
            own.get_or_insert(Assigned { precision: Precision::F32, why });
        }
        Ok(())
    }

    /// Whether what writes and reads a state has it in halves in f16 storage.
    fn may_be_halves(&self, index: usize, state: &State, limits: &Limits) -> Result<bool> {
        let Some((next, writer)) = state.next.and_then(|next| Some((next, self.writer(next)?))) else {
            return Ok(false);
        };
        let floats = self.graph.dtype(state.value).is_none_or(|dtype| dtype == DType::F32);
        let changed = self.in_place(&self.units()[writer])?;
        let leaves =
            self.graph.outputs().iter().any(|&output| self.resolve(output).of == self.resolve(next).of);
        if !floats || leaves || changed.is_none_or(|in_place| in_place.state != index) {
            return Ok(false);
        }
        for user in self.readers(next).chain([writer]) {
            let unit = &self.units()[user];
            let op = op_on(self.graph, unit, Precision::F16Storage, Layout::Nhwc, limits)?;
            if unit.host.is_some() || unit.precision.is_some() || op.precision().storage() != DType::F16 {
                return Ok(false);
            }
            // Some ops have rows whatever the layout is.
            let forms = forms(&*op, Layout::Nhwc, limits).or_else(|| forms(&*op, Layout::C4, limits));
            let forms = forms.unwrap_or_default();
            let in_halves = |operand: Operand| forms.contains(&(operand, Form::HalfRows));
            let shows = |input: &Input| input.value().is_some_and(|value| self.resolve(value).of == next);
            let mut reads = unit.inputs.iter().filter(|(_, input)| shows(input));
            let writes = user != writer || crate::ops::outputs(&*op).all(|info| in_halves(info.operand));
            if !writes || !reads.all(|(operand, _)| in_halves(*operand)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Builder<'_, '_> {
    /// The step of a unit that changes a state, by the kernel that was chosen for what it computes.
    pub(super) fn step_in_place(
        &mut self,
        unit: &Unit,
        kernel: Kernel,
        InPlace { op, state }: InPlace,
    ) -> Result<()> {
        let part = self.program.states[state].0;
        self.launch(unit, Kernel { op, ..kernel }, &mut |_, _| Some(part))?;
        for &output in &unit.outputs {
            let rows = self.state_rows(state, output)?;
            self.places.entry(output).or_default().push((rows, part));
        }
        Ok(())
    }

    /// What a state is stored as; `value` is the state, or what it becomes.
    fn state_rows(&self, state: usize, value: Value) -> Result<Kind> {
        let (form, shape, word) = self.rows(value)?;
        let halves = self.network.has_half_state(state);
        Ok(if halves { (Form::HalfRows, shape, DType::F16) } else { (form, shape, word) })
    }

    /// Gives each state its buffer.
    pub(super) fn store_states(&mut self) -> Result<()> {
        for (index, state) in self.network.graph.states().iter().enumerate() {
            let part = self.store(state.value, self.state_rows(index, state.value)?, None);
            self.program.states.push((part, state.initial.clone()));
        }
        Ok(())
    }

    /// Copies what the states become to their buffers. What is read from such a buffer then, as an output or
    /// as the next value of another state, is copied elsewhere before.
    pub(super) fn update_states(&mut self) -> Result<()> {
        let graph = self.network.graph;
        let mut moves = Vec::new();
        for (index, state) in graph.states().iter().enumerate() {
            let Some(next) = state.next.filter(|&next| self.network.resolve(next).of != state.value) else {
                continue;
            };
            let part = self.read(next, self.state_rows(index, next)?)?;
            // What was changed in place is there.
            if part == self.program.states[index].0 {
                continue;
            }
            let part = if self.of_state(&part) { self.copied(next, part, false)? } else { part };
            moves.push((next, part, self.program.states[index].0));
        }
        for (index, &output) in graph.outputs().iter().enumerate() {
            let part = self.program.outputs[index];
            if self.of_state(&part) {
                self.program.outputs[index] = self.copied(output, part, true)?;
            }
        }
        moves.into_iter().try_for_each(|(next, part, state)| self.move_to(next, part, state))
    }

    /// Whether a part is of a state's buffer.
    fn of_state(&self, part: &Part) -> bool {
        self.program.states.iter().any(|(state, _)| state.stored == part.stored)
    }

    fn copied(&mut self, value: Value, part: Part, pinned: bool) -> Result<Part> {
        let own = self.own(part.bytes as usize, pinned);
        self.move_to(value, part, own)?;
        Ok(own)
    }

    fn move_to(&mut self, value: Value, from: Part, to: Part) -> Result<()> {
        let (shape, word) = (self.network.dims(value)?.shape(), self.network.word(value));
        // A view may begin where no binding may: what it is a view of is bound.
        let whole = self.program.whole(from.stored);
        let (from, op) = if from.offset == 0 {
            (from, CopyOp::new(shape, 0, shape)?.of(word))
        } else {
            let elements = (whole.bytes / 4) as usize;
            let all = Shape::nhwc(1, 1, 1, elements);
            (whole, CopyOp::new(all, (from.offset / 4) as usize, shape)?.of(word))
        };
        let name = format!("{} (state)", self.network.graph.name(value)?);
        let step = self.single(name, &op, from, to)?;
        self.program.steps.push(step);
        Ok(())
    }
}
