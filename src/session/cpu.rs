//! A session on the CPU: the nodes in order, their feature maps in shared host buffers.

use super::SessionOptions;
use super::fusing;
use super::offload::{Running, offload};
use super::picks::on_cpu;
use super::profile::{NodeTime, Profile};
use super::units::{Unit, units};
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::ops::{Operands, Role};
use crate::plan::{Lifetime, plan};
use crate::tuner::problem_of;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where a value lies during a run.
#[derive(Debug, Clone, Copy)]
enum Place {
    Input(usize),
    Buffer { buffer: usize, elements: usize },
}

/// Where an operand lies: a value, or a constant that is read as it is.
#[derive(Debug)]
enum Input {
    Value(Place),
    Constant(HostTensor),
}

#[derive(Debug)]
struct Step {
    name: String,
    op: &'static str,
    /// Why its kernel.
    source: String,
    kernel: Box<dyn CpuKernel>,
    flops: u64,
    inputs: Vec<(Operand, Input)>,
    output: Operand,
    buffer: usize,
    elements: usize,
}

#[derive(Debug)]
struct Network {
    steps: Vec<Step>,
    outputs: Vec<Place>,
    /// The planned buffers, kept from run to run.
    buffers: Mutex<Vec<Vec<f32>>>,
    unshared_bytes: u64,
}

/// A network made ready to run on the CPU.
#[derive(Debug)]
pub(super) struct CpuSession(Arc<Network>);

/// A constant of `unit`.
fn constant<'a>(unit: &Unit<'a>, operand: Operand) -> Option<&'a HostTensor> {
    let (node, first) = (unit.node, unit.first());
    match operand {
        Operand::Weights | Operand::B => node.weights.as_ref(),
        Operand::Bias => node.extras.bias.as_ref(),
        Operand::Slope => node.extras.slope.as_ref(),
        Operand::Window => first.weights.as_ref(),
        Operand::WindowBias => first.extras.bias.as_ref(),
        _ => None,
    }
}

/// A value that `unit` reads.
fn value(unit: &Unit<'_>, operand: Operand) -> Option<Value> {
    match operand {
        Operand::Src | Operand::A => Some(unit.first().input),
        Operand::B => unit.node.right,
        Operand::Residual => unit.node.extras.residual,
        _ => None,
    }
}

fn step(graph: &Graph, unit: &Unit<'_>, place: &dyn Fn(Value) -> Result<Place>) -> Result<Step> {
    let op = problem_of(&unit.problem(graph, Precision::F32)?);
    let (mut constants, mut inputs, mut output) = (Operands::new(), Vec::new(), Operand::Dst);
    for info in op.operands() {
        let operand = info.operand;
        match info.role {
            Role::Constant => {
                constants.extend(constant(unit, operand).map(|tensor| (operand, tensor.to_nhwc())));
            }
            Role::Input => {
                let value = value(unit, operand).map(place).transpose()?.map(Input::Value);
                let constant = || constant(unit, operand).cloned().map(Input::Constant);
                inputs.extend(value.or_else(constant).map(|input| (operand, input)));
            }
            Role::Output | Role::Update => output = operand,
        }
    }
    Ok(Step {
        name: unit.name().to_owned(),
        op: op.name(),
        source: String::new(),
        kernel: op.cpu(&constants)?,
        flops: op.flops(),
        inputs,
        output,
        buffer: 0,
        elements: graph.shape(unit.node.output())?.elements(),
    })
}

/// From the unit that writes a value to the last that reads it; outputs live to the end.
fn lifetimes(graph: &Graph, units: &[Unit<'_>]) -> Result<Vec<Lifetime>> {
    let end = units.len();
    units
        .iter()
        .enumerate()
        .map(|(step, unit)| {
            let value = unit.node.output();
            let readers = units.iter().enumerate().skip(step);
            let last_reader = readers
                .filter(|(_, reader)| reader.inputs().any(|input| input == value))
                .map(|(reader, _)| reader)
                .next_back();
            let last = if graph.outputs().contains(&value) { end } else { last_reader.unwrap_or(step) };
            Ok(Lifetime { bytes: 4 * graph.shape(value)?.elements() as u64, first: step, last })
        })
        .collect()
}

impl CpuSession {
    pub(super) fn new(graph: &Graph, options: &SessionOptions) -> Result<Self> {
        let fused = fusing::on_cpu(graph, options)?;
        let units = units(graph, &[], &fused);
        let sources = on_cpu(graph, options, &units)?;
        let lifetimes = lifetimes(graph, &units)?;
        let planned = plan(&lifetimes);
        let place = |value: Value| -> Result<Place> {
            if let Some(input) = graph.inputs().iter().position(|&input| input == value) {
                return Ok(Place::Input(input));
            }
            let writer = units.iter().position(|unit| unit.node.output() == value);
            let writer =
                writer.ok_or_else(|| Error::Internal(format!("nothing writes value {}", value.index())))?;
            Ok(Place::Buffer { buffer: planned.place[writer], elements: graph.shape(value)?.elements() })
        };
        let mut steps = Vec::with_capacity(units.len());
        for (index, unit) in units.iter().enumerate() {
            let mut step = step(graph, unit, &place).map_err(|error| error.at_node(unit.name()))?;
            step.source = sources.get(index).cloned().unwrap_or_default();
            step.buffer = planned.place[index];
            steps.push(step);
        }
        Ok(CpuSession(Arc::new(Network {
            steps,
            outputs: graph.outputs().iter().map(|&output| place(output)).collect::<Result<_>>()?,
            buffers: Mutex::new(planned.buffers.iter().map(|&bytes| vec![0.0; bytes as usize / 4]).collect()),
            unshared_bytes: lifetimes.iter().map(|lifetime| lifetime.bytes).sum(),
        })))
    }

    pub(super) fn run(&self, inputs: &[Cow<'_, [f32]>]) -> Result<Vec<Vec<f32>>> {
        self.0.run(inputs, |_| {})
    }

    pub(super) async fn run_async(&self, inputs: &[Cow<'_, [f32]>]) -> Result<Vec<Vec<f32>>> {
        offload(self.work(inputs))?.await
    }

    /// A run on a thread of its own.
    pub(super) fn start(&self, inputs: &[Cow<'_, [f32]>]) -> Result<Running<Vec<Vec<f32>>>> {
        Running::new(self.work(inputs))
    }

    /// A run that owns what it needs.
    fn work(&self, inputs: &[Cow<'_, [f32]>]) -> impl FnOnce() -> Result<Vec<Vec<f32>>> + Send + 'static {
        let network = Arc::clone(&self.0);
        let inputs: Vec<Cow<'static, [f32]>> =
            inputs.iter().map(|input| Cow::Owned(input.to_vec())).collect();
        move || network.run(&inputs, |_| {})
    }

    pub(super) fn profile(&self, inputs: &[Cow<'_, [f32]>]) -> Result<Profile> {
        let mut times = Vec::with_capacity(self.0.steps.len());
        self.0.run(inputs, |time| times.push(time))?;
        let mut nodes = self.steps();
        for (node, time) in nodes.iter_mut().zip(times) {
            node.time = time;
        }
        Ok(Profile { clock: "host clock", nodes })
    }

    pub(super) fn steps(&self) -> Vec<NodeTime> {
        self.0
            .steps
            .iter()
            .map(|step| {
                let op = step.op;
                NodeTime {
                    name: step.name.clone(),
                    op,
                    kernel: format!("cpu_{op}_f32"),
                    work_group: [0; 3],
                    source: step.source.clone(),
                    time: Duration::ZERO,
                    flops: step.flops,
                }
            })
            .collect()
    }

    pub(super) fn feature_map_bytes(&self) -> (u64, u64) {
        let buffers = self.0.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        (buffers.iter().map(|buffer| 4 * buffer.len() as u64).sum(), self.0.unshared_bytes)
    }
}

impl Network {
    /// Runs the nodes on a worker of rayon's current pool, so that handing out parts of a node wakes
    /// nobody but the other workers.
    fn run(
        &self,
        inputs: &[Cow<'_, [f32]>],
        mut clock: impl FnMut(Duration) + Send,
    ) -> Result<Vec<Vec<f32>>> {
        rayon::scope(|_| {
            let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
            for step in &self.steps {
                let start = Instant::now();
                // The plan never lets a step write a buffer that it reads.
                let mut target = std::mem::take(&mut buffers[step.buffer]);
                let result = step.run(inputs, &buffers, &mut target[..step.elements]);
                buffers[step.buffer] = target;
                result.map_err(|error| error.at_node(&step.name))?;
                clock(start.elapsed());
            }
            Ok(self.outputs.iter().map(|place| place.read(inputs, &buffers).to_vec()).collect())
        })
    }
}

impl Place {
    fn read<'a>(self, inputs: &'a [Cow<'_, [f32]>], buffers: &'a [Vec<f32>]) -> &'a [f32] {
        match self {
            Place::Input(input) => &inputs[input],
            Place::Buffer { buffer, elements } => &buffers[buffer][..elements],
        }
    }
}

impl Step {
    fn run(&self, inputs: &[Cow<'_, [f32]>], buffers: &[Vec<f32>], dst: &mut [f32]) -> Result<()> {
        let constants: Vec<Cow<'_, [f32]>> = self
            .inputs
            .iter()
            .map(|(_, input)| match input {
                Input::Value(place) => Cow::Borrowed(place.read(inputs, buffers)),
                Input::Constant(tensor) => tensor.to_nhwc(),
            })
            .collect();
        let operands: Vec<(Operand, &[f32])> =
            self.inputs.iter().zip(&constants).map(|((operand, _), values)| (*operand, &**values)).collect();
        self.kernel.run(&operands, &mut [(self.output, dst)])
    }
}
