//! A run before anything is allocated or compiled: which kernels, on which values, in which form.

use super::SessionOptions;
use super::constants::Constant;
use super::fusing;
use super::picks::{ChangeTimes, Picks, picks, recorded};
use super::siblings::{Siblings, siblings};
use super::units::{Unit, units};
use crate::device::DeviceInfo;
use crate::dtype::{DType, Precision};
use crate::emit::{Element, Operand};
use crate::error::{Error, Result};
use crate::graph::{Graph, Problem, Value};
use crate::host::HostTensor;
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::convert::ConvertOp;
use crate::ops::{Choice, Launch, Op};
use crate::plan::Lifetime;
use crate::shape::Shape;
use crate::tune::key::DeviceKey;
use crate::tune::work_group::{WorkGroup, untuned};
use crate::tuner::problem_of;
use std::collections::HashMap;
use std::sync::Arc;

/// A stored value: an index into [`Draft::stored`].
pub(super) type Stored = usize;

#[derive(Debug, Clone)]
pub(super) struct StoredValue {
    pub(super) bytes: u64,
    /// Inputs, outputs and constants keep a buffer of their own.
    pub(super) pinned: bool,
    /// Width, height and channels' type, for an image.
    pub(super) image: Option<([usize; 2], DType)>,
}

/// What an operand is bound to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    Stored(Stored),
    /// A constant, by its place in [`Draft::constants`].
    Constant(usize),
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) op: &'static str,
    pub(super) flops: u64,
    /// Where the choice came from.
    pub(super) from: String,
    pub(super) launch: Launch,
    pub(super) sources: Vec<(Operand, Source)>,
}

/// A part of a stored value, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) stored: Stored,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// What a node runs.
struct Chosen {
    problem: Problem,
    choice: Choice,
    /// Where the choice came from.
    from: String,
}

/// Where a graph's inputs and outputs are stored, in its order.
pub(super) struct Ports {
    pub(super) inputs: Vec<Part>,
    pub(super) outputs: Vec<Part>,
}

/// A run before anything is allocated or compiled.
pub(super) struct Draft<'a> {
    graph: &'a Graph,
    options: &'a SessionOptions,
    /// What was picked for nodes, by name, before anything was drafted.
    picks: Picks,
    /// Who the device is in the tuner's record.
    device: DeviceKey,
    pub(super) limits: Limits,
    pub(super) stored: Vec<StoredValue>,
    forms: HashMap<(Value, Form), Stored>,
    /// Outputs that lie in one buffer with others.
    parts: HashMap<Value, Part>,
    pub(super) steps: Vec<Step>,
    /// Steps that run once, when the session is built.
    pub(super) setup: Vec<Step>,
    pub(super) constants: Vec<Constant>,
}

impl<'a> Draft<'a> {
    /// Drafts the whole graph. Also gives where its inputs and outputs are stored.
    pub(super) fn of(
        graph: &'a Graph,
        options: &'a SessionOptions,
        info: &DeviceInfo,
        changes: &ChangeTimes<'_>,
    ) -> Result<(Self, Ports)> {
        let mut draft = Draft::new(graph, options, info);
        for &input in graph.inputs() {
            draft.store(input, Form::Rows)?;
        }
        let groups = siblings(graph, &|name| options.choices.contains_key(name))?;
        let fused = fusing::on_device(graph, options, &draft.device, &draft.limits)?;
        let units = units(graph, &groups, &fused);
        draft.picks = picks(graph, options, &units, &draft.device, &draft.limits, changes)?;
        for unit in &units {
            let drafted = match unit.group {
                Some(group) => draft.siblings(unit, group),
                None => draft.chosen(unit).and_then(|chosen| draft.step(unit, None, chosen)),
            };
            drafted.map_err(|error| error.at_node(unit.name()))?;
        }
        let ports = |draft: &mut Draft<'_>, values: &[Value]| -> Result<Vec<Part>> {
            values.iter().map(|&value| draft.port(value)).collect()
        };
        let inputs = ports(&mut draft, graph.inputs())?;
        let outputs = ports(&mut draft, graph.outputs())?;
        Ok((draft, Ports { inputs, outputs }))
    }

    fn new(graph: &'a Graph, options: &'a SessionOptions, info: &DeviceInfo) -> Self {
        Draft {
            graph,
            options,
            picks: Picks::new(),
            device: DeviceKey::of(info),
            limits: info.limits.clone(),
            stored: Vec::new(),
            forms: HashMap::new(),
            parts: HashMap::new(),
            steps: Vec::new(),
            setup: Vec::new(),
            constants: Vec::new(),
        }
    }

    fn store(&mut self, value: Value, form: Form) -> Result<Stored> {
        let shape = self.graph.shape(value)?;
        let dtype = self.options.precision.storage();
        let bytes = match form {
            Form::C4 | Form::Image => Layout::C4.elements(&shape) * dtype.bytes(),
            Form::Rows => 4 * shape.elements(),
        };
        let image = (form == Form::Image).then(|| (Layout::image_extent(&shape), dtype));
        let port = self.graph.inputs().contains(&value) || self.graph.outputs().contains(&value);
        let pinned = form == Form::Image || (form == Form::Rows && port);
        self.stored.push(StoredValue { bytes: bytes as u64, pinned, image });
        self.forms.insert((value, form), self.stored.len() - 1);
        Ok(self.stored.len() - 1)
    }

    /// `value` in `form`, converting it if it is stored only in others.
    fn read(&mut self, value: Value, form: Form) -> Result<Stored> {
        if let Some(&stored) = self.forms.get(&(value, form)) {
            return Ok(stored);
        }
        let stored = |form: &Form| Some((*form, *self.forms.get(&(value, *form))?));
        let Some((other, source)) = Form::ALL.iter().find_map(stored) else {
            return Err(Error::Internal(format!("value {} is read before it is written", value.index())));
        };
        let (from, to) = (other.layout(), form.layout());
        let target = self.store(value, form)?;
        let name = self.graph.name(value)?.to_owned();
        let op = ConvertOp::new(self.graph.shape(value)?, from, to, self.options.precision)?;
        let step = self.convert(format!("{name} ({from} to {to})"), &op, Source::Stored(source), target)?;
        self.steps.push(step);
        Ok(target)
    }

    fn convert(&self, name: String, op: &ConvertOp, source: Source, target: Stored) -> Result<Step> {
        let choice = untuned(op, WorkGroup::Table, &self.limits)?;
        let launch = op.plan(&choice, &self.limits)?;
        let sources = vec![(Operand::Src, source), (Operand::Dst, Source::Stored(target))];
        Ok(Step { name, op: "convert", flops: 0, from: "rule".to_owned(), launch, sources })
    }

    /// The right operand of a product as an image of `ceil(n / 4) x (k * matrices)` pixels. A
    /// constant is converted once, a value at each run.
    fn image(&mut self, name: &str, matrices: usize, k: usize, n: usize, rows: Source) -> Result<Stored> {
        let shape = Shape::nhwc(matrices, k, 1, n);
        let op = ConvertOp::new(shape, Layout::Nhwc, Layout::Image2d, Precision::F32)?;
        let image = Some((Layout::image_extent(&shape), DType::F32));
        self.stored.push(StoredValue { bytes: 0, pinned: true, image });
        let target = self.stored.len() - 1;
        let step = self.convert(format!("{name} (B to image2d)"), &op, rows, target)?;
        match rows {
            Source::Constant(_) => self.setup.push(step),
            Source::Stored(_) => self.steps.push(step),
        }
        Ok(target)
    }

    fn constant(&mut self, constant: Constant) -> Source {
        self.constants.push(constant);
        Source::Constant(self.constants.len() - 1)
    }

    /// The problem of a unit and the choice for it, with where that came from.
    fn chosen(&self, unit: &Unit<'_>) -> Result<Chosen> {
        let mut chosen = self.chosen_alone(unit)?;
        if let Some(fused) = unit.fused {
            chosen.from = format!("{}; fused: {}", chosen.from, fused.why);
        }
        Ok(chosen)
    }

    fn chosen_alone(&self, unit: &Unit<'_>) -> Result<Chosen> {
        let pick = self.picks.get(unit.name());
        let precision = pick.map_or(self.options.precision, |pick| pick.precision);
        let problem = unit.problem(self.graph, precision)?;
        let tunable = problem_of(&problem);
        let op = &*tunable;
        if let Some(choice) = self.options.choices.get(unit.name()) {
            op.fits(choice, &self.limits)?;
            return Ok(Chosen { problem, choice: *choice, from: "by hand".to_owned() });
        }
        if let Some(pick) = pick {
            return Ok(Chosen { problem, choice: pick.choice, from: pick.from.clone() });
        }
        let recorded = recorded(self.options, &self.device, op, Layout::C4, &self.limits);
        let (choice, from) = match recorded {
            Some(found) => (found.choice, found.from.to_string()),
            None => (untuned(op, self.options.work_group, &self.limits)?, "rule".to_owned()),
        };
        Ok(Chosen { problem, choice, from })
    }

    /// Nodes that run as one: a step that computes all, and one that gives each its rows.
    fn siblings(&mut self, unit: &Unit<'_>, group: &Siblings<'_>) -> Result<()> {
        let precision = self.options.precision;
        let shapes =
            group.nodes.iter().map(|node| self.graph.shape(node.output())).collect::<Result<Vec<_>>>()?;
        let channels: Vec<usize> = shapes.iter().map(|shape| shape.c).collect();
        let shape = Shape { c: channels.iter().sum(), ..shapes[0] };
        let op = ConvertOp::parts(shape, &channels, precision)?;
        let mut own = |bytes: usize, pinned| {
            self.stored.push(StoredValue { bytes: bytes as u64, pinned, image: None });
            self.stored.len() - 1
        };
        let map = own(Layout::C4.elements(&shape) * precision.storage().bytes(), false);
        let rows = own(4 * shape.elements(), true);
        let chosen = self.chosen(unit)?;
        self.step(unit, Some(map), chosen)?;
        let step = self.convert(format!("{} (rows)", group.merged.name), &op, Source::Stored(map), rows)?;
        self.steps.push(step);
        let mut offset = 0;
        for (node, shape) in group.nodes.iter().zip(shapes) {
            let bytes = 4 * shape.elements() as u64;
            self.parts.insert(node.output(), Part { stored: rows, offset, bytes });
            offset += bytes;
        }
        Ok(())
    }

    /// Where the rows of an input or output are.
    fn port(&mut self, value: Value) -> Result<Part> {
        if let Some(&part) = self.parts.get(&value) {
            return Ok(part);
        }
        let stored = self.read(value, Form::Rows)?;
        Ok(self.whole(stored))
    }

    /// All of a stored value.
    pub(super) fn whole(&self, stored: Stored) -> Part {
        Part { stored, offset: 0, bytes: self.stored[stored].bytes }
    }

    /// The step of `unit`, which writes `dst`, or else its node's value. Conversions of what it reads
    /// come before it.
    fn step(&mut self, unit: &Unit<'_>, dst: Option<Stored>, chosen: Chosen) -> Result<()> {
        let (node, first) = (unit.node, unit.first());
        let Chosen { problem, choice, from } = chosen;
        let tunable = problem_of(&problem);
        let op = &*tunable;
        let launch = op.plan(&choice, &self.limits)?;
        let form = |operand| op.form(operand, &choice).unwrap_or(Form::Rows);
        let mut sources = Vec::with_capacity(launch.spec.interface.bindings.len());
        for binding in launch.spec.interface.bindings.clone() {
            let operand = binding.operand;
            let mut pack = |tensor: &Option<HostTensor>| -> Result<Source> {
                let tensor = tensor.as_ref().ok_or_else(|| {
                    Error::Internal(format!("node {:?} has no {}", unit.name(), operand.name()))
                })?;
                let (node, tensor, dtype) = (unit.name().to_owned(), tensor.clone(), binding.element.dtype());
                Ok(self.constant(Constant {
                    node,
                    problem: Arc::clone(&tunable),
                    choice,
                    operand,
                    tensor,
                    dtype,
                }))
            };
            let source = match operand {
                Operand::Src | Operand::A => Source::Stored(self.read(first.input, form(operand))?),
                Operand::Window => pack(&first.weights)?,
                Operand::WindowBias => pack(&first.extras.bias)?,
                Operand::Weights => pack(&node.weights)?,
                Operand::Bias => pack(&node.extras.bias)?,
                Operand::Slope => pack(&node.extras.slope)?,
                Operand::B => self.right(unit, &problem, Arc::clone(&tunable), &choice, binding.element)?,
                Operand::Residual => match node.extras.residual {
                    Some(residual) => Source::Stored(self.read(residual, form(operand))?),
                    None => return Err(Error::Internal("a residual that is not there".to_owned())),
                },
                Operand::Dst | Operand::C => Source::Stored(match dst {
                    Some(stored) => stored,
                    None => self.store(node.output(), form(operand))?,
                }),
            };
            sources.push((operand, source));
        }
        let (name, flops) = (unit.name().to_owned(), op.flops());
        self.steps.push(Step { name, op: op.name(), flops, from, launch, sources });
        Ok(())
    }

    /// The right operand of a product, as a buffer or an image.
    fn right(
        &mut self,
        unit: &Unit<'_>,
        problem: &Problem,
        tunable: Arc<dyn Op>,
        choice: &Choice,
        element: Element,
    ) -> Result<Source> {
        let rows = match (&unit.node.weights, unit.node.right) {
            (Some(tensor), _) => {
                let (node, tensor, dtype) = (unit.name().to_owned(), tensor.clone(), element.dtype());
                let (problem, choice, operand) = (tunable, *choice, Operand::B);
                self.constant(Constant { node, problem, choice, operand, tensor, dtype })
            }
            (None, Some(value)) => Source::Stored(self.read(value, Form::Rows)?),
            (None, None) => return Err(Error::Internal("a product without B".to_owned())),
        };
        let (Element::Image2d(_), Problem::Gemm(gemm)) = (element, problem) else {
            return Ok(rows);
        };
        let matrices = if gemm.shared_b { 1 } else { gemm.batch };
        Ok(Source::Stored(self.image(unit.name(), matrices, gemm.k, gemm.n, rows)?))
    }

    /// When each stored value is written first and used last.
    pub(super) fn lifetimes(&self) -> Vec<Lifetime> {
        self.stored
            .iter()
            .enumerate()
            .map(|(stored, value)| {
                let uses = self.steps.iter().enumerate().filter(|(_, step)| {
                    step.sources
                        .iter()
                        .any(|(_, source)| matches!(source, Source::Stored(used) if *used == stored))
                });
                let mut steps = uses.map(|(step, _)| step);
                let first = steps.next().unwrap_or(0);
                Lifetime { bytes: value.bytes, first, last: steps.next_back().unwrap_or(first) }
            })
            .collect()
    }
}
