//! The networks of a file that others call: loops, branches and decompositions, put in the place of the call.

use super::constant::Constant;
use super::convolution::Phases;
use super::import::{Import, Input, Op, Readers, Slot};
use super::schema::{Model, Operator, SubGraph, Tables, at};
use super::tensors::{Budget, Tensors, indices};
use crate::dims::Dim;
use crate::graph::Value;
use crate::model::reason::Reason;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The most calls of networks, each pass of a loop being two.
const MAX_CALLS: usize = 8192;

/// The most calls within each other.
const MAX_DEPTH: usize = 16;

/// The work that a call may cause beyond what the file's length allows, in bytes.
const WORK_OF_CALL: usize = 1 << 20;

/// One network of a file, and what its tensors stand for so far.
pub(super) struct Frame<'a> {
    pub(super) tensors: Tensors<'a>,
    pub(super) operators: Option<Tables<'a, Operator<'a>>>,
    pub(super) inputs: Vec<i32>,
    pub(super) outputs: Vec<i32>,
    pub(super) slots: Vec<Slot>,
    pub(super) readers: Vec<Readers>,
    /// Names of a signature, by tensor.
    pub(super) signature: HashMap<usize, String>,
    /// Constants that are values of the graph, by tensor.
    pub(super) constants: HashMap<usize, Value>,
    /// Operators that are computed with others.
    pub(super) fused: HashSet<usize>,
    /// Names of values that are rounded after they are computed, by tensor.
    pub(super) unrounded: HashMap<usize, String>,
    /// Dilated convolutions, by the operator of the convolution.
    pub(super) phases: HashMap<usize, Phases>,
    /// Outputs of calls, which have the names of other tensors.
    pub(super) renamed: HashSet<usize>,
    /// What names begin with.
    pub(super) scope: String,
    /// The operator that writes each tensor, once it is asked for.
    pub(super) writers: Option<HashMap<i32, usize>>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(
        network: SubGraph<'a>,
        model: &Model<'a>,
        ends: [Vec<i32>; 2],
        budget: &mut Budget,
    ) -> Result<Self, Reason> {
        let tensors = network.tensors().ok_or("found no tensors, wanted at least an input and an output")?;
        let [inputs, outputs] = ends;
        let mut frame = Frame {
            slots: vec![Slot::Untouched; tensors.len()],
            readers: vec![Readers::default(); tensors.len()],
            tensors: Tensors::new(tensors, model.buffers(), [&inputs, &outputs]),
            operators: network.operators(),
            inputs,
            outputs,
            signature: HashMap::new(),
            constants: HashMap::new(),
            fused: HashSet::new(),
            unrounded: HashMap::new(),
            phases: HashMap::new(),
            renamed: HashSet::new(),
            scope: String::new(),
            writers: None,
        };
        frame.count_readers(budget)?;
        Ok(frame)
    }

    fn count_readers(&mut self, budget: &mut Budget) -> Result<(), Reason> {
        let operators = self.operators;
        for (index, operator) in operators.iter().flat_map(|operators| operators.iter()).enumerate() {
            for tensor in indices(operator.inputs(), budget)? {
                self.count_reader(tensor, index);
            }
        }
        for tensor in self.outputs.clone() {
            self.count_reader(tensor, usize::MAX);
        }
        Ok(())
    }

    /// Indices out of range are refused where they are used.
    fn count_reader(&mut self, tensor: i32, reader: usize) {
        if let Some(readers) = usize::try_from(tensor).ok().and_then(|tensor| self.readers.get_mut(tensor)) {
            *readers = Readers { count: readers.count + 1, last: reader };
        }
    }
}

/// The work that a step of a recurrent layer may cause, in bytes.
const WORK_OF_STEP: usize = 1 << 14;

impl<'a> Import<'a> {
    /// Allows for the nodes of so many steps of a recurrent layer, whose weights may be short.
    pub(super) fn allow_steps(&mut self, count: usize) -> Result<(), Reason> {
        self.calls = self.calls.saturating_add(count);
        if self.calls > MAX_CALLS {
            return refused!("found more than {MAX_CALLS} passes of loops and steps of layers, wanted fewer");
        }
        self.budget.grow(count.saturating_mul(WORK_OF_STEP));
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
                let [inputs, outputs] = ends.map(|ends| indices(ends, &mut self.budget));
                Box::new(Frame::new(network, &self.model, [inputs?, outputs?], &mut self.budget)?)
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
        self.budget.grow(WORK_OF_CALL);
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
                Some((op, name)) => format!("in network {index}, op {op} ({name}): {message}").into(),
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
            Some(slot @ (Slot::Joined(_) | Slot::Variable(_))) => Ok(slot.clone()),
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
                let value = self.graph.reshape(&name, value, &target);
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

/// Parts one behind the other along an axis, which are joined only where something else than a part is read: the
/// elements that a loop has written so far.
#[derive(Debug, Clone)]
pub(super) struct Joined {
    pub(super) axis: usize,
    pub(super) extents: Vec<usize>,
    /// Each with its extent along the axis.
    pub(super) parts: Vec<(Input, usize)>,
}

impl Joined {
    /// The elements `begin..end` along the axis, if no value is cut.
    pub(super) fn cut(
        &self,
        begin: usize,
        end: usize,
        budget: &mut Budget,
    ) -> Result<Option<Joined>, Reason> {
        let (mut first, mut parts) = (0, Vec::new());
        for (part, extent) in &self.parts {
            let (low, high) = (begin.max(first), end.min(first + extent));
            if low < high {
                match part {
                    part if high - low == *extent => parts.push((part.clone(), *extent)),
                    Input::Constant(constant) => {
                        let own = constant.extents();
                        let mut target = own.clone();
                        target[self.axis] = high - low;
                        let begin = |axis| if axis == self.axis { low - first } else { 0 };
                        let ranges = (0..own.len()).map(|axis| (begin(axis), 1));
                        let (first, steps) = super::constant::ranged(&own, ranges);
                        let cut = constant.strided(target, budget, first, &steps)?;
                        parts.push((Input::Constant(cut), high - low));
                    }
                    Input::Value(_) => return Ok(None),
                }
            }
            first += extent;
        }
        let mut extents = self.extents.clone();
        extents[self.axis] = end.saturating_sub(begin);
        Ok(Some(Joined { axis: self.axis, extents, parts }))
    }
}

/// A tensor of no elements.
pub(super) fn nothing(extents: Vec<usize>) -> Constant {
    Constant::Integers(super::constant::Integers::new(extents, Vec::new()))
}
