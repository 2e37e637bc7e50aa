//! Calls of networks: loops, branches and decompositions, put in the place of the call.

use super::frame::Frame;
use super::import::{Import, Op};
use super::slots::{Input, Joined, Slot, nothing};
use super::tables::at;
use super::tensors::indices;
use crate::dims::Dim;
use crate::model::reason::Reason;
use std::sync::Arc;

/// The most calls of networks, each pass of a loop being two.
const MAX_CALLS: usize = 8192;

/// The most calls within each other.
const MAX_DEPTH: usize = 16;

/// The work that a call may cause beyond what the file's length allows, in bytes.
const WORK_OF_CALL: usize = 1 << 20;

/// The work that a step of a recurrent layer may cause, in bytes.
const WORK_OF_STEP: usize = 1 << 14;

impl<'a> Import<'a> {
    /// Allows for the nodes of so many steps of a recurrent layer, whose weights may be short.
    pub(super) fn allow_steps(&mut self, count: usize) -> Result<(), Reason> {
        self.calls = self.calls.saturating_add(count);
        if self.calls > MAX_CALLS {
            return refused!("found more than {MAX_CALLS} passes of loops and steps of layers, wanted fewer");
        }
        self.build.budget.grow(count.saturating_mul(WORK_OF_STEP));
        Ok(())
    }

    /// Does `work` in network `index` of the file.
    pub(super) fn within<T>(
        &mut self,
        index: usize,
        work: impl FnOnce(&mut Self) -> Result<T, Reason>,
    ) -> Result<T, Reason> {
        if self.depth == MAX_DEPTH {
            return refused!("found calls {MAX_DEPTH} deep, wanted fewer");
        }
        let kept = self.frames.remove(&index);
        let mut frame = match kept {
            Some(frame) => frame,
            None => {
                let networks = self.model.subgraphs();
                let network = networks.and_then(|networks| at(networks, index));
                let network = network.ok_or_else(|| {
                    let count = networks.map_or(0, |networks| networks.len());
                    format!("found a call of network {index}, wanted one below {count}")
                })?;
                let ends = [network.inputs(), network.outputs()];
                let [inputs, outputs] = ends.map(|ends| indices(ends, &mut self.build.budget));
                Box::new(Frame::new(
                    network,
                    (&self.model, self.file),
                    [inputs?, outputs?],
                    &mut self.build.budget,
                )?)
            }
        };
        std::mem::swap(&mut self.frame, &mut frame);
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        std::mem::swap(&mut self.frame, &mut frame);
        self.frames.insert(index, frame);
        result
    }

    /// Puts network `index` of the file here: what it makes of `inputs`. Names begin with `scope`.
    pub(super) fn call(&mut self, index: i32, inputs: Vec<Slot>, scope: String) -> Result<Vec<Slot>, Reason> {
        let index = usize::try_from(index)
            .map_err(|_| format!("found a call of network {index}, wanted one from 0 on"))?;
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return refused!("found more than {MAX_CALLS} passes of loops, wanted fewer");
        }
        self.build.budget.grow(WORK_OF_CALL);
        self.within(index, |import| {
            let frame = &mut import.frame;
            frame.slots.fill(Slot::Untouched);
            frame.fused.clear();
            frame.unrounded.clear();
            frame.phases.clear();
            frame.renamed.clear();
            frame.scope = scope;
            if inputs.len() != frame.inputs.len() {
                let (found, wanted) = (inputs.len(), frame.inputs.len());
                return refused!("found {found} inputs of network {index}, wanted {wanted}");
            }
            for (tensor, slot) in frame.inputs.clone().into_iter().zip(inputs) {
                let position = import.tensors.position(tensor)?;
                import.set(position, slot);
            }
            import.run().map_err(|(at, message)| match at {
                Some((op, name)) => message.behind(format_args!("in network {index}, op {op} ({name}): ")),
                None => message,
            })?;
            let outputs = import.frame.outputs.clone();
            outputs.into_iter().map(|output| import.slot_of(output)).collect()
        })
    }

    /// What a tensor stands for by now.
    pub(super) fn slot_of(&mut self, tensor: i32) -> Result<Slot, Reason> {
        let position = self.tensors.position(tensor)?;
        match self.slots.get(position) {
            Some(slot @ (Slot::Joined(_) | Slot::List(_) | Slot::Variable(_))) => Ok(slot.clone()),
            _ => Ok(match self.resolved(position)? {
                Input::Value(value) => Slot::Value(value),
                Input::Constant(constant) => Slot::Constant(constant),
            }),
        }
    }

    /// The parts of an input that are not joined yet.
    pub(super) fn joined(&self, op: &Op<'a>, index: usize) -> Result<Option<Arc<Joined>>, Reason> {
        let position = self.tensors.position(op.input(index)?)?;
        Ok(match self.slots.get(position) {
            Some(Slot::Joined(joined)) => Some(Arc::clone(joined)),
            _ => None,
        })
    }

    /// Notes that output `index` is these parts, in the extents `target` if they are given.
    pub(super) fn write_joined(
        &mut self,
        op: &Op<'a>,
        index: usize,
        joined: Joined,
        target: Option<Vec<usize>>,
    ) -> Result<(), Reason> {
        let position = self.tensors.position(op.output(index)?)?;
        self.check_unwritten(position)?;
        let slot = match (&joined.parts[..], &target) {
            ([], _) => Slot::Constant(nothing(target.unwrap_or(joined.extents))),
            ([(Input::Value(value), _)], None) => Slot::Value(*value),
            ([(Input::Constant(constant), _)], None) => Slot::Constant(constant.clone()),
            (_, None) => Slot::Joined(Arc::new(joined)),
            (_, Some(target)) => {
                let name = self.name(op, index)?;
                let value = match joined.parts[..] {
                    [(Input::Value(value), _)] => value,
                    _ => {
                        let part = self.part_name(&name, "joined")?;
                        self.join(&part, &joined)?
                    }
                };
                let target: Vec<Dim> = target.iter().map(|&extent| Dim::Fixed(extent)).collect();
                let value = self.build.graph.reshape(&name, value, &target);
                return self.write(op, index, value?);
            }
        };
        self.set(position, slot);
        Ok(())
    }

    /// Every input of an operator.
    pub(super) fn input_slots(&mut self, op: &Op<'a>) -> Result<Vec<Slot>, Reason> {
        op.inputs.iter().map(|&input| self.slot_of(input)).collect()
    }

    /// Notes what a call made of each output.
    pub(super) fn write_slots(&mut self, op: &Op<'a>, slots: Vec<Slot>) -> Result<(), Reason> {
        if slots.len() != op.outputs.len() {
            return refused!("found {} outputs, wanted {}", op.outputs.len(), slots.len());
        }
        for (index, slot) in slots.into_iter().enumerate() {
            let position = self.tensors.position(op.output(index)?)?;
            self.check_unwritten(position)?;
            self.frame.renamed.insert(position);
            self.set(position, slot);
        }
        Ok(())
    }
}
