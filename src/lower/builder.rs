//! A program in the making: where each value of a network is stored, and the steps of its units.

use super::alike::Alike;
use super::constants::Constant;
use super::kernel::{BoundOperand, Kernel};
use super::known::CompiledKernels;
use super::network::Network;
use super::program::Program;
use super::step::{OperandMemory, Part, StoredValue};
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::stored_as::Forms;
use super::stored_as::{Kind, same_bytes, same_kind, stored_bytes};
use super::unit::{Input, Unit};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::Value;
use crate::host::HostTensor;
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::{Op, OperandInfo, Role};
use std::collections::HashMap;
use std::sync::Arc;

/// A program in the making, of the units of a network.
pub(super) struct Builder<'n, 'g> {
    pub(super) network: &'n Network<'g>,
    /// The session's.
    pub(super) precision: Precision,
    pub(super) program: Program,
    /// Where values are, in each form that they are stored in.
    pub(super) places: HashMap<Value, Vec<(Kind, Part)>>,
    /// Where values are to be stored, in a form: as parts of what joins them.
    pub(super) targets: HashMap<Value, (Kind, Part)>,
    /// The constants that others may share.
    pub(super) alike: Alike,
    /// Kernels that are compiled for other extents.
    pub(super) known: Option<&'n CompiledKernels>,
}

impl<'n, 'g> Builder<'n, 'g> {
    pub(super) fn new(
        network: &'n Network<'g>,
        precision: Precision,
        limits: &Limits,
        known: Option<&'n CompiledKernels>,
    ) -> Self {
        let program = Program {
            output_words: network.graph.outputs().iter().map(|&value| network.word(value)).collect(),
            key: network.graph.key_place(),
            ..Program::new(limits)
        };
        let (places, targets) = (HashMap::new(), HashMap::new());
        Builder { network, precision, program, places, targets, alike: Alike::default(), known }
    }

    pub(super) fn finish(mut self) -> Result<Program> {
        let graph = self.network.graph;
        let ports = |builder: &mut Self, values: &[Value]| -> Result<Vec<Part>> {
            values.iter().map(|&value| builder.read(value, builder.rows(value)?)).collect()
        };
        self.program.inputs = ports(&mut self, graph.inputs())?;
        self.program.outputs = ports(&mut self, graph.outputs())?;
        self.update_states()?;
        #[cfg(any(feature = "wgpu", feature = "opencl"))]
        {
            self.program.forms = [self.forms(graph.inputs())?, self.forms(graph.outputs())?];
        }
        Ok(self.program)
    }

    /// The rows of a value.
    pub(super) fn rows(&self, value: Value) -> Result<Kind> {
        Ok((Form::Rows, self.network.dims(value)?.shape(), self.network.word(value)))
    }

    /// What an operand of `op` in `form` is stored as.
    pub(super) fn kind(op: &dyn Op, info: &OperandInfo, form: Form) -> Kind {
        match form {
            Form::Rows => (form, info.shape, info.dtype),
            Form::HalfRows => (form, info.shape, DType::F16),
            Form::C4 | Form::Image => (form, info.map, op.precision().storage()),
        }
    }

    pub(super) fn own(&mut self, bytes: usize, pinned: bool) -> Part {
        self.program.store(StoredValue::buffer(bytes as u64, pinned))
    }

    pub(super) fn store(&mut self, value: Value, kind: Kind, constant: Option<&HostTensor>) -> Part {
        let (form, shape, dtype) = kind;
        if let Some(&(wanted, part)) = self.targets.get(&value)
            && same_kind(&wanted, &kind)
            && constant.is_none()
        {
            self.places.entry(value).or_default().push((kind, part));
            return part;
        }
        let graph = self.network.graph;
        let state = graph.states().iter().any(|state| state.value == value);
        let port = state || graph.inputs().contains(&value) || self.network.leaves(value);
        // What is the same at each run is written once, in any form.
        let same = self.network.constant(value).is_some();
        let rows = if self.network.is_half_state(value) { Form::HalfRows } else { Form::Rows };
        let pinned = form == Form::Image || same || (form == rows && port);
        let part = self.own(stored_bytes(kind), pinned);
        let stored = &mut self.program.stored[part.stored];
        stored.image = (form == Form::Image).then(|| (Layout::image_extent(&shape), dtype));
        stored.is_constant = same;
        (stored.constant, stored.halves) = (constant.cloned(), form == Form::HalfRows);
        self.places.entry(value).or_default().push((kind, part));
        part
    }

    pub(super) fn place(&self, value: Value, wanted: &dyn Fn(&Kind) -> bool) -> Option<(Kind, Part)> {
        self.places.get(&value)?.iter().find(|(kind, _)| wanted(kind)).copied()
    }

    /// Where `value` is stored as `kind`; it is converted if it is stored only in others.
    pub(super) fn read(&mut self, value: Value, kind: Kind) -> Result<Part> {
        let (form, shape, dtype) = kind;
        let value = self.same_map(value)?;
        if let Some((_, part)) = self.place(value, &|other| same_kind(other, &kind)) {
            return Ok(part);
        }
        // What leaves the network is read behind the last step, when the memory of a map may be another one's.
        if (form != Form::Rows || !self.network.leaves(value))
            && let Some((_, part)) = self.place(value, &|other| same_bytes(other, &kind))
        {
            return Ok(Part { bytes: stored_bytes(kind) as u64, ..part });
        }
        if form.is_rows()
            && let Some(part) = self.rows_elsewhere(value, form)?
        {
            return Ok(part);
        }
        // From C4 to an image or back directly, if only the form differs, and from C4 to C4 of another type; else
        // from or through rows.
        let near = |other: &Kind| {
            let alike = other.2 == dtype || (form, other.0) == (Form::C4, Form::C4);
            !form.is_rows() && other.1 == shape && !other.0.is_rows() && alike
        };
        let from = match (self.place(value, &near), form) {
            (Some(found), _) => found,
            (None, Form::Rows | Form::HalfRows) => self.source_of_rows(value)?,
            (None, _) => {
                let rows = self.stored_rows(value, dtype)?;
                (rows, self.read(value, rows)?)
            }
        };
        let target = self.store(value, kind, None);
        self.convert(value, from, (kind, target))?;
        Ok(target)
    }

    /// The value of which `value` is a view of all elements with the same extents, or `value` itself.
    pub(super) fn same_map(&self, value: Value) -> Result<Value> {
        let alias = self.network.resolve(value);
        let shapes = [self.network.dims(value)?.shape(), self.network.dims(alias.of)?.shape()];
        Ok(if alias.offset == 0 && shapes[0] == shapes[1] { alias.of } else { value })
    }

    /// The step of `unit`, and before it the conversions of what it reads.
    pub(super) fn step(&mut self, unit: &Unit, kernel: Kernel) -> Result<()> {
        if let Some(in_place) = self.network.in_place(unit)? {
            return self.step_in_place(unit, kernel, in_place);
        }
        let op = Arc::clone(&kernel.op);
        let choice = kernel.choice()?;
        let own = op.kernel(choice.variant)?;
        let written = crate::ops::outputs(&*op).zip(&unit.outputs);
        let mut targets = Vec::with_capacity(unit.outputs.len());
        for (info, &value) in written {
            let form = own.form(info.operand, &choice).unwrap_or(Form::Rows);
            targets.push((info.operand, value, Self::kind(&*op, &info, form)));
        }
        self.launch(unit, kernel, &mut |builder, operand| {
            let target = targets.iter().find(|(own, ..)| *own == operand);
            target.map(|&(_, value, kind)| builder.store(value, kind, None))
        })
    }

    /// The kernel of `unit`, which writes where `target` says.
    pub(super) fn launch(
        &mut self,
        unit: &Unit,
        kernel: Kernel,
        target: &mut dyn FnMut(&mut Self, Operand) -> Option<Part>,
    ) -> Result<()> {
        let op = Arc::clone(&kernel.op);
        let planned = kernel.planned(&self.program.limits)?;
        let mut sources = Vec::new();
        for bound in planned.operands()? {
            let (info, form, dtype) = match bound {
                BoundOperand::Scratch(bytes) => {
                    sources.push(OperandMemory::Stored(self.program.scratch(bytes)));
                    continue;
                }
                BoundOperand::Operand { info, form, dtype } => (info, form, dtype),
            };
            let operand = info.operand;
            sources.push(match info.role {
                Role::Output | Role::Update => {
                    OperandMemory::Stored(target(self, operand).ok_or_else(|| {
                        Error::Internal(format!("{:?} writes {} nowhere", unit.name, operand.name()))
                    })?)
                }
                Role::Constant => match unit.input(operand)? {
                    Input::Constant(tensor, _) => {
                        let constant = planned.constant(&unit.name, operand, dtype, tensor.clone());
                        OperandMemory::Constant(self.constant(constant))
                    }
                    Input::Value(_) => {
                        let name = operand.name();
                        return Err(Error::unsupported(name, "it is packed once, and computed at each run"));
                    }
                },
                Role::Input => {
                    OperandMemory::Stored(self.input(unit, operand, Self::kind(&*op, &info, form))?)
                }
            });
        }
        self.program.steps.push(planned.step(&unit.name, sources));
        Ok(())
    }

    /// Where a unit finds an input that is not packed.
    fn input(&mut self, unit: &Unit, operand: Operand, kind: Kind) -> Result<Part> {
        match unit.input(operand)? {
            Input::Value(value) => self.read(*value, kind),
            Input::Constant(_, Some(value)) => {
                let value = self.stored_alike(*value)?;
                self.read(value, kind)
            }
            Input::Constant(_, None) => {
                Err(Error::Internal(format!("{:?} reads a stacked {}", unit.name, operand.name())))
            }
        }
    }

    /// The place of a packed constant among the program's.
    fn constant(&mut self, constant: Constant) -> usize {
        let next = self.program.constants.len();
        let place =
            constant.packing().map_or(next, |packing| *self.alike.packed.entry(packing).or_insert(next));
        if place == next {
            self.program.constants.push(constant);
        }
        place
    }

    /// The value that is stored for the constant `value`: the first of its tensor and dimensions.
    fn stored_alike(&mut self, value: Value) -> Result<Value> {
        let dims = self.network.dims(value)?;
        let place = self.network.constant(value).map(HostTensor::place);
        Ok(place.map_or(value, |place| *self.alike.values.entry((place, dims)).or_insert(value)))
    }

    /// Where values are stored, in each form.
    #[cfg(any(feature = "wgpu", feature = "opencl"))]
    fn forms(&self, values: &[Value]) -> Result<Vec<Forms>> {
        let forms = |&value: &Value| {
            let stored = self.places.get(&self.same_map(value)?).cloned().unwrap_or_default();
            Ok((self.rows(value)?.1, stored))
        };
        values.iter().map(forms).collect()
    }
}
