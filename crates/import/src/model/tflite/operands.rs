//! What an operator reads and writes while a graph is made.

use super::constant::{Constant, Integers};
use super::import::{Import, Op};
use super::names;
use super::slots::{Input, Joined, Phases, Readers, Slot};
use super::tensors::Steps;
use crate::dims::Dims;
use crate::error::Error;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::model::build::{Builder, Kind, Mapped, Operand, Wanted};
use crate::model::input_dependence::help;
use crate::model::reason::Reason;

/// Operators whose outputs are elements of their inputs.
const MOVES: [&str; 33] = [
    "RESHAPE",
    "SQUEEZE",
    "EXPAND_DIMS",
    "TRANSPOSE",
    "STRIDED_SLICE",
    "SLICE",
    "SPLIT",
    "SPLIT_V",
    "UNPACK",
    "PACK",
    "CONCATENATION",
    "MAX_POOL_2D",
    "MIRROR_PAD",
    "PAD",
    "TILE",
    "REVERSE_V2",
    "GATHER",
    "DEPTH_TO_SPACE",
    "SPACE_TO_DEPTH",
    "SPACE_TO_BATCH_ND",
    "BATCH_TO_SPACE_ND",
    "BROADCAST_TO",
    "GATHER_ND",
    "EMBEDDING_LOOKUP",
    "MAXIMUM",
    "MINIMUM",
    "PADV2",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "RELU",
    "RESIZE_NEAREST_NEIGHBOR",
    "SELECT_V2",
    "TOPK_V2",
];

impl Op<'_> {
    /// Whether input `index` is there: optional ones may be left out or be -1.
    pub(super) fn has(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(|&input| input != -1)
    }

    /// Refuses another number of inputs or outputs.
    pub(super) fn check(&self, inputs: &[usize], outputs: usize) -> Result<(), Reason> {
        if !inputs.contains(&self.inputs.len()) {
            let wanted = inputs.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
            return refused!("found {} inputs, wanted {wanted}", self.inputs.len());
        }
        if self.outputs.len() != outputs {
            return refused!("found {} outputs, wanted {outputs}", self.outputs.len());
        }
        Ok(())
    }

    pub(super) fn input(&self, index: usize) -> Result<i32, Reason> {
        self.inputs.get(index).copied().ok_or_else(|| {
            format!("found {} inputs, wanted at least {}", self.inputs.len(), index + 1).into()
        })
    }

    pub(super) fn output(&self, index: usize) -> Result<i32, Reason> {
        self.outputs.get(index).copied().ok_or_else(|| {
            format!("found {} outputs, wanted at least {}", self.outputs.len(), index + 1).into()
        })
    }
}

impl<'a> Import<'a> {
    /// What is at a tensor's position by now.
    pub(super) fn resolved(&mut self, position: usize) -> Result<Input, Reason> {
        let reason = match self.slots.get(position) {
            Some(Slot::Value(value)) => return Ok(Input::Value(*value)),
            Some(Slot::Constant(constant)) => return Ok(Input::Constant(constant.clone())),
            Some(Slot::Joined(joined)) => {
                let joined = std::sync::Arc::clone(joined);
                let name = self.unique_name(position)?;
                let value = self.join(&name, &joined)?;
                self.set(position, Slot::Value(value));
                return Ok(Input::Value(value));
            }
            Some(Slot::List(_)) => "is a list of tensors",
            Some(Slot::Variable(_)) => "is a variable",
            Some(Slot::Fused) => "is a phase of a dilated convolution",
            _ if self.tensors.data(position)?.is_some() || self.is_empty(position) => {
                return Ok(Input::Constant(self.frame.tensors.constant(position, &mut self.build)?));
            }
            _ => "is not written by an operator before this one",
        };
        refused!("{}: {reason}, wanted an input or an output of an operator", self.tensors.describe(position))
    }

    /// Joins parts.
    pub(super) fn join(&mut self, name: &str, joined: &Joined) -> Result<Value, Reason> {
        let mut values = Vec::with_capacity(joined.parts.len());
        for (part, _) in &joined.parts {
            values.push(match part {
                Input::Value(value) => *value,
                Input::Constant(constant) => {
                    let tensor = constant.floats(&mut self.build.budget)?;
                    let name = self.part_name(name, "constant")?;
                    self.build.graph.constant(&name, tensor)
                }
            });
        }
        let joined = self.build.graph.concat(name, &values, joined.axis as isize);
        joined.map_err(Reason::from)
    }

    /// Whether nothing writes a tensor and it has no elements.
    pub(super) fn is_empty(&self, position: usize) -> bool {
        self.tensors.extents(position).is_ok_and(|extents| extents.contains(&0))
    }

    /// Input `index` of an operator.
    pub(super) fn input(&mut self, op: &Op<'a>, index: usize) -> Result<Input, Reason> {
        let position = self.tensors.position(op.input(index)?)?;
        self.resolved(position)
    }

    /// Whether input `index` is a value of the graph already.
    pub(super) fn is_computed(&self, op: &Op<'a>, index: usize) -> Result<bool, Reason> {
        let position = self.tensors.position(op.input(index)?)?;
        Ok(matches!(self.slots.get(position), Some(Slot::Value(_) | Slot::Joined(_))))
    }

    /// Input `index` as a value of the graph; a constant becomes one.
    pub(super) fn value(&mut self, op: &Op<'a>, index: usize) -> Result<Value, Reason> {
        let position = self.tensors.position(op.input(index)?)?;
        if let Some(&value) = self.constants.get(&position) {
            return Ok(value);
        }
        match self.resolved(position)? {
            Input::Value(value) => Ok(value),
            Input::Constant(constant) => {
                let kind = self.kind_at(position)?;
                let tensor = self.build.tensor(&constant, kind)?;
                let name = self.unique_name(position)?;
                let value = self.build.graph.constant(&name, tensor);
                // What a loop computes is another constant at each pass.
                if self.depth == 0 || matches!(self.slots.get(position), Some(Slot::Untouched)) {
                    self.constants.insert(position, value);
                }
                Ok(value)
            }
        }
    }

    /// Input `index`, which is no constant.
    pub(super) fn computed(&mut self, op: &Op<'a>, index: usize) -> Result<Value, Reason> {
        match self.input(op, index)? {
            Input::Value(value) => Ok(value),
            Input::Constant(_) => refused!(
                "{}: found a constant, wanted an input or an output of an operator",
                self.describe(op, index)
            ),
        }
    }

    /// Input `index`, which is a constant.
    pub(super) fn constant(&mut self, op: &Op<'a>, index: usize) -> Result<Constant, Reason> {
        let position = self.tensors.position(op.input(index)?)?;
        if let Some(Slot::Untouched) = self.slots.get(position) {
            return self.frame.tensors.constant(position, &mut self.build);
        }
        match self.resolved(position)? {
            Input::Constant(constant) => Ok(constant),
            Input::Value(value) => {
                self.build.wanted.set(Wanted::Value(value));
                let reason = Reason::from("found a value computed or given at each run, wanted a constant");
                let reason = reason.behind(format_args!("{}: ", self.tensors.describe(position)));
                Err(reason.hinted(help(&self.build.graph, &[value])))
            }
        }
    }

    /// Input `index`, which is a constant of floats.
    pub(super) fn floats(&mut self, op: &Op<'a>, index: usize) -> Result<HostTensor, Reason> {
        match self.constant(op, index)? {
            Constant::Floats(tensor) => Ok(tensor),
            Constant::Integers(_) => {
                refused!("{}: found integers, wanted FLOAT32 or FLOAT16", self.describe_type(op, index))
            }
        }
    }

    /// Input `index`, which is a constant of integers.
    pub(super) fn integers(&mut self, op: &Op<'a>, index: usize) -> Result<Integers, Reason> {
        match self.constant(op, index)? {
            Constant::Integers(integers) => Ok(integers),
            Constant::Floats(_) => {
                refused!("{}: found floats, wanted INT32 or INT64", self.describe_type(op, index))
            }
        }
    }

    /// Input `index` of an operator for a message.
    pub(super) fn describe(&self, op: &Op<'a>, index: usize) -> String {
        let position = op.input(index).and_then(|tensor| self.tensors.position(tensor));
        position.map_or_else(|_| format!("input {index}"), |position| self.tensors.describe(position))
    }

    fn describe_type(&self, op: &Op<'a>, index: usize) -> String {
        let position = op.input(index).and_then(|tensor| self.tensors.position(tensor));
        let kind = position.and_then(|position| self.tensors.tensor(position));
        let kind = kind.map_or_else(|_| String::new(), |tensor| names::element_type(tensor.element_type()));
        format!("{}: found {kind}", self.describe(op, index))
    }

    pub(super) fn dims(&self, value: Value) -> Result<Dims, Reason> {
        self.build.graph.dims(value).map_err(Reason::from)
    }

    /// The name of the node that writes output `index`.
    pub(super) fn name(&mut self, op: &Op<'a>, index: usize) -> Result<String, Reason> {
        let position = self.tensors.position(op.output(index)?)?;
        self.check_unwritten(position)?;
        let name = self.unique_name(position)?;
        match self.tensors.steps(position)? {
            Some(steps) if !self.keeps_steps(op, steps)? => {}
            _ => return Ok(name),
        }
        let part = self.part_name(&name, "unrounded")?;
        self.unrounded.insert(position, name);
        Ok(part)
    }

    /// Notes that output `index` is this value.
    pub(super) fn write(&mut self, op: &Op<'a>, index: usize, value: Value) -> Result<(), Reason> {
        let position = self.tensors.position(op.output(index)?)?;
        self.check_unwritten(position)?;
        let value = match self.tensors.steps(position)? {
            Some(steps) if !self.keeps_steps(op, steps)? => {
                let name = match self.unrounded.remove(&position) {
                    Some(name) => name,
                    None => self.unique_name(position)?,
                };
                let rounding = self.rounding(op)?;
                self.rounded(&name, value, steps, rounding)?
            }
            _ => value,
        };
        let dims = self.dims(value)?;
        if let Ok(declared) = self.tensors.extents(position)
            && !declared.is_empty()
            && declared != dims.extents()
        {
            let tensor = self.tensors.describe(position);
            tracing::warn!("{tensor}: the file declares {declared:?}, its operators give {dims}");
        }
        self.set(position, Slot::Value(value));
        Ok(())
    }

    /// Whether an operator only moves elements of these steps, or chooses among them.
    fn keeps_steps(&self, op: &Op<'a>, steps: Steps) -> Result<bool, Reason> {
        let activation = match op.name.as_str() {
            "MAX_POOL_2D" => op.table.pool().map(|table| table.activation()),
            "CONCATENATION" => op.table.concatenation().map(|table| table.activation()),
            _ => None,
        };
        if !MOVES.contains(&op.name.as_str()) || activation.unwrap_or(0) != 0 {
            return Ok(false);
        }
        for &input in op.inputs.iter().filter(|&&input| input != -1) {
            let own = self.tensors.position(input).and_then(|position| self.tensors.steps(position));
            if own?.is_some_and(|own| own != steps) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes that output `index` is known.
    pub(super) fn write_constant(
        &mut self,
        op: &Op<'a>,
        index: usize,
        constant: Constant,
    ) -> Result<(), Reason> {
        let position = self.tensors.position(op.output(index)?)?;
        self.check_unwritten(position)?;
        self.set(position, Slot::Constant(constant));
        Ok(())
    }

    /// The operator after the one that writes output 0 of `op`, if it alone reads that.
    pub(super) fn only_reader(&mut self, op: &Op<'a>) -> Result<Option<Op<'a>>, Reason> {
        let position = self.tensors.position(op.output(0)?)?;
        if self.tensors.steps(position)?.is_some() {
            return Ok(None);
        }
        match self.readers.get(position) {
            Some(&Readers { count: 1, last }) if last < self.operator_count() => self.op(last).map(Some),
            _ => Ok(None),
        }
    }

    /// Notes that `op` and what follows are one dilated convolution of `x`.
    pub(super) fn dilate(&mut self, op: &Op<'a>, x: Value, phases: Phases) -> Result<(), Reason> {
        let position = self.tensors.position(op.output(0)?)?;
        self.check_unwritten(position)?;
        self.set(position, Slot::Value(x));
        self.fused.insert(phases.joins);
        self.phases.insert(phases.convolution, phases);
        Ok(())
    }

    /// The operator that joins the phases of a dilated convolution.
    pub(super) fn joined_phases(&mut self, op: &Op<'a>) -> Result<Option<Op<'a>>, Reason> {
        let Some(&Phases { joins, .. }) = self.phases.get(&op.index) else { return Ok(None) };
        let position = self.tensors.position(op.output(0)?)?;
        self.check_unwritten(position)?;
        self.set(position, Slot::Fused);
        self.op(joins).map(Some)
    }
}

impl<'a> Import<'a> {
    /// The element type of a tensor in the graph: f32 for a quantized tensor, whose integers are read as the floats that they
    /// stand for.
    pub(super) fn kind(&self, tensor: i32) -> Result<Kind, Reason> {
        self.kind_at(self.tensors.position(tensor)?)
    }

    /// The element type in the graph of the tensor at `position`: f32 if it is quantized.
    pub(super) fn kind_at(&self, position: usize) -> Result<Kind, Reason> {
        match self.tensors.steps(position)? {
            Some(_) => Ok(Kind::F32),
            None => Ok(names::kind(self.tensors.tensor(position)?.element_type())),
        }
    }

    /// Input `index` as an operand of the builder.
    pub(super) fn operand(&mut self, op: &Op<'a>, index: usize) -> Result<Operand, Reason> {
        let kind = self.kind(op.input(index)?)?;
        Ok(match self.input(op, index)? {
            Input::Value(value) => Operand::Value(Mapped::plain(value, self.dims(value)?.rank(), kind)),
            Input::Constant(constant) => Operand::Constant(constant, kind),
        })
    }

    /// Input `index` as an operand that is a value: a constant is one of the graph, which all that read it share.
    pub(super) fn shared(&mut self, op: &Op<'a>, index: usize) -> Result<Operand, Reason> {
        let (value, kind) = (self.value(op, index)?, self.kind(op.input(index)?)?);
        Ok(Operand::Value(Mapped::plain(value, self.dims(value)?.rank(), kind)))
    }

    /// The builder, with output `index` as what the names of nodes begin with.
    pub(super) fn begin(&mut self, op: &Op<'a>, index: usize) -> Result<&mut Builder, Reason> {
        let name = self.name(op, index)?;
        Ok(self.named(&name))
    }

    /// The builder, with a name that is reserved already as what those of nodes begin with.
    pub(super) fn named(&mut self, name: &str) -> &mut Builder {
        self.build.names.remove(name);
        self.build.current = name.to_owned();
        &mut self.build
    }

    /// Notes that output `index` is this operand, whose node has the name of the output if it is a value.
    pub(super) fn put(&mut self, op: &Op<'a>, index: usize, operand: Operand) -> Result<(), Reason> {
        match operand {
            Operand::Constant(constant, _) => self.write_constant(op, index, constant),
            Operand::Value(mapped) => {
                let value = self.build.logical(&mapped)?;
                self.write(op, index, value)
            }
        }
    }

    /// Notes that output `index` is this operand, under the name of the output.
    pub(super) fn finish(&mut self, op: &Op<'a>, index: usize, operand: Operand) -> Result<(), Reason> {
        let extents = self.build.shape(&operand)?;
        let named = self.build.with_extents("", operand, &extents)?;
        self.put(op, index, named)
    }
}

pub(super) fn missing(op: &Op<'_>, wanted: &str) -> Reason {
    format!("found options of type {}, wanted {wanted}", op.table.options_type()).into()
}

/// Adds one node as output 0.
pub(super) fn node<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    add: impl FnOnce(&mut Import<'a>, &str) -> Result<Value, Error>,
) -> Result<(), Reason> {
    let name = import.name(op, 0)?;
    let value = add(import, &name)?;
    import.write(op, 0, value)
}
