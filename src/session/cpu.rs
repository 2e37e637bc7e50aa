//! A session on the CPU: the nodes in order, their feature maps in shared host buffers.

use super::SessionOptions;
use super::fusing;
use super::offload::{Running, offload};
use super::picks::on_cpu;
use super::profile::{NodeTime, Profile};
use super::units::{Unit, units};
use crate::cpu::{
    Conv2dKernel, DepthwiseKernel, GemmKernel, PointwiseKernel, SeparableConstants, SeparableKernel,
};
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::graph::{Graph, Problem, Value};
use crate::host::HostTensor;
use crate::plan::{Lifetime, plan};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
enum Kernel {
    Conv2d(Conv2dKernel),
    Depthwise(DepthwiseKernel),
    Pointwise(PointwiseKernel),
    Separable(Box<SeparableKernel>),
    Gemm(GemmKernel),
}

/// Where a value lies during a run.
#[derive(Debug, Clone, Copy)]
enum Place {
    Input(usize),
    Buffer { buffer: usize, elements: usize },
}

#[derive(Debug)]
struct Step {
    name: String,
    /// Why its kernel.
    source: String,
    kernel: Kernel,
    flops: u64,
    input: Place,
    /// The right operand of a matrix product, if it is a value.
    right: Option<Place>,
    /// The right operand of a matrix product, if it is a constant.
    constant: Option<HostTensor>,
    residual: Option<Place>,
    buffer: usize,
    elements: usize,
}

#[derive(Debug)]
struct Network {
    steps: Vec<Step>,
    outputs: Vec<Place>,
    /// Elements of each planned buffer.
    sizes: Vec<usize>,
    /// Sets of buffers that no run uses. A run takes one or makes one, and never waits for another
    /// run: a worker that waits for a part of one run may begin the next on the same stack.
    idle: Mutex<Vec<Buffers>>,
    unshared_bytes: u64,
}

/// The planned buffers of one run.
type Buffers = Vec<Vec<f32>>;

/// Sets of buffers that are kept for later runs.
const MAX_IDLE_SETS: usize = 4;

/// A network made ready to run on the CPU.
#[derive(Debug)]
pub(super) struct CpuSession(Arc<Network>);

fn elements(tensor: &Option<HostTensor>) -> Option<Cow<'_, [f32]>> {
    tensor.as_ref().map(HostTensor::to_nhwc)
}

fn kernel(graph: &Graph, unit: &Unit<'_>) -> Result<(Kernel, u64)> {
    let (problem, node, first) = (unit.problem(graph, Precision::F32)?, unit.node, unit.first());
    let (bias, slope) = (elements(&node.extras.bias), elements(&node.extras.slope));
    let (bias, slope) = (bias.as_deref(), slope.as_deref());
    let weights = elements(&node.weights).unwrap_or_default();
    let kernel = match &problem {
        Problem::Conv2d(op) => Kernel::Conv2d(Conv2dKernel::new(op, &weights, bias, slope)?),
        Problem::Depthwise(op) => Kernel::Depthwise(DepthwiseKernel::new(op, &weights, bias, slope)?),
        Problem::Pointwise(op) => Kernel::Pointwise(PointwiseKernel::new(op, &weights, bias, slope)?),
        Problem::Separable(op) => {
            let window = elements(&first.weights).unwrap_or_default();
            let window_bias = elements(&first.extras.bias);
            let (window, window_bias) = (&*window, window_bias.as_deref());
            let constants = SeparableConstants { window, window_bias, weights: &weights, bias, slope };
            Kernel::Separable(Box::new(SeparableKernel::new(op, constants)?))
        }
        Problem::Gemm(op) => Kernel::Gemm(GemmKernel::new(op, bias, slope)?),
    };
    Ok((kernel, problem.flops()))
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
            let (kernel, flops) = kernel(graph, unit).map_err(|error| error.at_node(unit.name()))?;
            let node = unit.node;
            steps.push(Step {
                name: unit.name().to_owned(),
                source: sources.get(index).cloned().unwrap_or_default(),
                constant: match &kernel {
                    Kernel::Gemm(_) => node.weights.clone(),
                    _ => None,
                },
                kernel,
                flops,
                input: place(unit.first().input)?,
                right: node.right.map(place).transpose()?,
                residual: node.extras.residual.map(place).transpose()?,
                buffer: planned.place[index],
                elements: graph.shape(node.output())?.elements(),
            });
        }
        Ok(CpuSession(Arc::new(Network {
            steps,
            outputs: graph.outputs().iter().map(|&output| place(output)).collect::<Result<_>>()?,
            sizes: planned.buffers.iter().map(|&bytes| bytes as usize / 4).collect(),
            idle: Mutex::default(),
            unshared_bytes: lifetimes.iter().map(|lifetime| lifetime.bytes).sum(),
        })))
    }

    pub(super) fn run(&self, inputs: &[Cow<'_, [f32]>]) -> Result<Vec<Vec<f32>>> {
        self.0.run(inputs, |_| {})
    }

    pub(super) async fn run_async(&self, inputs: &[Cow<'_, [f32]>]) -> Result<Vec<Vec<f32>>> {
        if rayon::current_thread_index().is_some() {
            return self.run(inputs);
        }
        offload(self.work(inputs))?.await
    }

    /// A run on a thread of its own. On a worker of rayon's it is over when this returns: the thread
    /// would need the pool whose workers wait for it.
    pub(super) fn start(&self, inputs: &[Cow<'_, [f32]>]) -> Result<Running<Vec<Vec<f32>>>> {
        if rayon::current_thread_index().is_some() {
            return Ok(Running::Done(self.run(inputs)));
        }
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
                let op = match step.kernel {
                    Kernel::Conv2d(_) => "conv2d",
                    Kernel::Depthwise(_) => "depthwise",
                    Kernel::Pointwise(_) => "pointwise",
                    Kernel::Separable(_) => "separable",
                    Kernel::Gemm(_) => "gemm",
                };
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
        (self.0.sizes.iter().map(|&elements| 4 * elements as u64).sum(), self.0.unshared_bytes)
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
        let mut buffers = self.take_buffers();
        let outputs = rayon::scope(|_| {
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
        });
        self.give_back(buffers);
        outputs
    }

    fn take_buffers(&self) -> Buffers {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| self.sizes.iter().map(|&elements| vec![0.0; elements]).collect())
    }

    fn give_back(&self, buffers: Buffers) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE_SETS {
            idle.push(buffers);
        }
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
        let src = self.input.read(inputs, buffers);
        let residual = self.residual.map(|place| place.read(inputs, buffers));
        match &self.kernel {
            Kernel::Conv2d(kernel) => kernel.run(src, residual, dst),
            Kernel::Depthwise(kernel) => kernel.run(src, residual, dst),
            Kernel::Pointwise(kernel) => kernel.run(src, residual, dst),
            Kernel::Separable(kernel) => kernel.run(src, residual, dst),
            Kernel::Gemm(kernel) => {
                let constant = elements(&self.constant);
                let right = match (&constant, self.right) {
                    (Some(constant), _) => constant,
                    (None, Some(place)) => place.read(inputs, buffers),
                    (None, None) => return Err(Error::Internal("a product without B".to_owned())),
                };
                kernel.run(src, right, residual, dst)
            }
        }
    }
}
