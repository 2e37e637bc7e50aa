//! The states of a graph: buffers that a run reads, and writes when everything else is computed.

use super::program::Builder;
use super::step::Part;
use crate::error::Result;
use crate::graph::Value;
use crate::ops::copy::CopyOp;
use crate::shape::Shape;

impl Builder<'_, '_> {
    /// Gives each state its buffer.
    pub(super) fn store_states(&mut self) -> Result<()> {
        for state in self.network.graph.states() {
            let part = self.store(state.value, self.rows(state.value)?, None);
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
            let part = self.read(next, self.rows(next)?)?;
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
