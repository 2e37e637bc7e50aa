//! The steps of a run before anything is allocated or compiled: which kernels, on which values, in which
//! form.

use super::alike::Alike;
use super::choose::{ChangeTimes, Choosing, Kernel, known_limits};
use super::constants::Constant;
use super::known::Known;
use super::memory::Lifetime;
use super::prepare::{base, prepared};
use super::step::{Part, Source, Step, Stored, StoredValue, Work};
use super::stored_as::{Kind, same_bytes, same_kind, stored_bytes};
use super::unit::{Input, Network, Unit};
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::wiring::Forms;
use crate::device::DeviceInfo;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::{Op, OperandInfo, Role};
use crate::options::{Rewrite, SessionOptions};
use crate::tune::key::DeviceKey;
use std::collections::HashMap;
use std::sync::Arc;

/// A run before anything is allocated or compiled.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) limits: Limits,
    pub(crate) stored: Vec<StoredValue>,
    pub(crate) steps: Vec<Step>,
    /// Steps that run once, when the session is built.
    pub(crate) setup: Vec<Step>,
    pub(crate) constants: Vec<Constant>,
    /// Where the graph's inputs and outputs are stored, in its order.
    pub(crate) inputs: Vec<Part>,
    pub(crate) outputs: Vec<Part>,
    /// The types of the outputs' words.
    pub(crate) output_words: Vec<DType>,
    /// All forms of the inputs and of the outputs.
    #[cfg(any(feature = "wgpu", feature = "opencl"))]
    pub(super) forms: [Vec<Forms>; 2],
    /// Where the graph's states are stored, and what they are at first.
    pub(crate) states: Vec<(Part, HostTensor)>,
    /// Which of them is the key of random numbers.
    pub(crate) key: Option<usize>,
}

impl Program {
    /// The whole of `graph` on a device; `changes` measures changes of layout, where they are asked for, and `known` are
    /// kernels that are compiled for other extents of the graph.
    pub(crate) fn of(
        graph: &Graph,
        asked: &SessionOptions,
        info: &DeviceInfo,
        changes: &ChangeTimes<'_>,
        known: Option<&Known>,
    ) -> Result<Self> {
        Self::built(graph, asked, info, (changes, known), &mut |_, _| Ok(()))
    }

    /// [`Program::of`], which tells `after` of each unit behind its steps.
    pub(super) fn built(
        graph: &Graph,
        asked: &SessionOptions,
        info: &DeviceInfo,
        (changes, known): (&ChangeTimes<'_>, Option<&Known>),
        after: &mut dyn FnMut(&mut Builder<'_, '_>, &Unit) -> Result<()>,
    ) -> Result<Self> {
        let device = DeviceKey::of(info);
        let graph = &*graph.on_device()?;
        let options = &*base(asked);
        let limits = known_limits(options, &device, &info.limits);
        let choosing = Choosing { options, device: &device, limits: &limits, known };
        let network = prepared(graph, asked, &choosing)?;
        let kernels = choosing.choose(&network, changes)?;
        let mut builder = Builder::new(&network, options.precision, &info.limits, known);
        for &input in graph.inputs() {
            builder.store(input, builder.rows(input)?, None);
        }
        builder.store_states()?;
        let mut joins = match options.without_rewrites.contains(&Rewrite::Concatenations) {
            true => HashMap::new(),
            false => builder.place_joins(&kernels)?,
        };
        for (index, (unit, kernel)) in network.units().iter().zip(kernels).enumerate() {
            let built = match joins.remove(&index) {
                Some(join) => builder.join(unit, join),
                None if unit.host.is_some() => builder.host(unit, kernel),
                None if unit.parts().is_empty() => builder.step(unit, kernel),
                None => builder.stack(unit, kernel),
            };
            let built = built.and_then(|()| after(&mut builder, unit));
            built.map_err(|error| error.at_node(&unit.name))?;
        }
        builder.finish()
    }

    /// When each stored value is written first and used last.
    pub(crate) fn lifetimes(&self) -> Vec<Lifetime> {
        let mut uses: Vec<Option<(usize, usize)>> = vec![None; self.stored.len()];
        for (index, step) in self.steps.iter().enumerate() {
            for part in step.parts() {
                let (first, _) = uses[part.stored].unwrap_or((index, index));
                uses[part.stored] = Some((first, index));
            }
        }
        let lifetime = |(value, used): (&StoredValue, Option<(usize, usize)>)| {
            let (first, last) = used.unwrap_or((0, 0));
            Lifetime { bytes: value.bytes, first, last }
        };
        self.stored.iter().zip(uses).map(lifetime).collect()
    }

    /// Lets go of the constants, which are on the device.
    pub(crate) fn let_go_of_constants(&mut self) {
        self.constants.clear();
        self.setup.clear();
        self.stored.iter_mut().for_each(|value| value.constant = None);
    }

    /// What the packed constants begin at multiples of, in bytes.
    pub(crate) fn constant_alignment(&self) -> u64 {
        self.limits.binding_alignment.max(256)
    }

    /// All of a stored value.
    pub(crate) fn whole(&self, stored: Stored) -> Part {
        Part { stored, offset: 0, bytes: self.stored[stored].bytes }
    }
}

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
    pub(super) known: Option<&'n Known>,
}

impl<'n, 'g> Builder<'n, 'g> {
    fn new(
        network: &'n Network<'g>,
        precision: Precision,
        limits: &Limits,
        known: Option<&'n Known>,
    ) -> Self {
        let program = Program {
            limits: limits.clone(),
            stored: Vec::new(),
            steps: Vec::new(),
            setup: Vec::new(),
            constants: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            output_words: network.graph.outputs().iter().map(|&value| network.word(value)).collect(),
            #[cfg(any(feature = "wgpu", feature = "opencl"))]
            forms: Default::default(),
            states: Vec::new(),
            key: network.graph.key_place(),
        };
        let (places, targets) = (HashMap::new(), HashMap::new());
        Builder { network, precision, program, places, targets, alike: Alike::default(), known }
    }

    fn finish(mut self) -> Result<Program> {
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
        let stored = StoredValue {
            bytes: bytes as u64,
            pinned,
            image: None,
            is_constant: false,
            constant: None,
            halves: false,
            scratch: false,
        };
        self.program.stored.push(stored);
        self.program.whole(self.program.stored.len() - 1)
    }

    /// So many bytes of scratch memory. All steps have the same: each leaves it as it was, and one runs after the other.
    fn scratch(&mut self, bytes: u64) -> Part {
        let known = self.program.stored.iter().position(|value| value.scratch);
        let stored = known.unwrap_or_else(|| self.own(0, true).stored);
        if let Some(value) = self.program.stored.get_mut(stored) {
            (value.scratch, value.bytes) = (true, value.bytes.max(bytes.next_multiple_of(16)));
        }
        Part { stored, offset: 0, bytes }
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
        let pinned = form == Form::Image || same || (form == Form::Rows && port);
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
    fn step(&mut self, unit: &Unit, kernel: Kernel) -> Result<()> {
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
        let choice = kernel.choice()?;
        let from = kernel.why();
        let Kernel { op, by, .. } = kernel;
        let own = op.kernel(choice.variant)?;
        let launch = own.plan(&choice, &self.program.limits)?;
        let infos = op.operands();
        let mut sources = Vec::with_capacity(launch.spec.interface.bindings.len());
        for binding in &launch.spec.interface.bindings {
            let operand = binding.operand;
            if let Some(bytes) = binding.scratch_bytes() {
                sources.push(Source::Stored(self.scratch(bytes)));
                continue;
            }
            let info = infos.iter().find(|info| info.operand == operand).ok_or_else(|| {
                Error::Internal(format!("a kernel of {} binds {}", op.name(), operand.name()))
            })?;
            sources.push(match info.role {
                Role::Output | Role::Update => Source::Stored(target(self, operand).ok_or_else(|| {
                    Error::Internal(format!("{:?} writes {} nowhere", unit.name, operand.name()))
                })?),
                Role::Constant => match unit.input(operand)? {
                    Input::Constant(tensor, _) => {
                        let (node, op, tensor) = (unit.name.clone(), Arc::clone(&op), tensor.clone());
                        let dtype = binding.element.dtype();
                        Source::Constant(self.constant(Constant { node, op, choice, operand, tensor, dtype }))
                    }
                    Input::Value(_) => {
                        let name = operand.name();
                        return Err(Error::unsupported(name, "it is packed once, and computed at each run"));
                    }
                },
                Role::Input => {
                    let form = own.form(operand, &choice).unwrap_or(Form::Rows);
                    let kind = Self::kind(&*op, info, form);
                    Source::Stored(self.input(unit, operand, kind)?)
                }
            });
        }
        self.program.steps.push(Step {
            name: unit.name.clone(),
            op: op.name(),
            flops: op.flops(),
            inserted: false,
            by,
            from,
            choice: Some(choice),
            unit: Some(Arc::clone(&op)),
            work: Work::Device { launch: Box::new(launch), sources },
        });
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
}
