//! A [`Bench`] on a real device.
//!
//! **Caches.** Back-to-back runs of one kernel on one set of buffers would find their inputs in the
//! last-level cache, which in a network they do not: between two runs of a node its weights were
//! evicted by all others. So the operands exist several times and the runs of a sample take turns,
//! until the sets together exceed a cache of 64 MiB (8 MiB on mobile GPUs) or there are 16. An
//! operand set that is that large by itself exists once. Sixteen sets of a tiny problem still fit a
//! cache; there every candidate profits alike.

mod images;

use super::bench::{Bench, Check};
use super::clock::Clock;
use super::problem::{Expectation, Operands, Problem};
use super::quirks::Policy;
use super::work_group::{WorkGroup, table, untuned_in};
use crate::device::{Device, Dispatch, Memory, Pipeline, Recording, Resource, family};
use crate::dtype::DType;
use crate::emit::{Binding, Element, Operand};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::ops::convert::{self, ConvertOp};
use crate::ops::{Choice, Launch};
use crate::shape::Shape;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest that one sample of a short kernel is made to last.
const SAMPLE: Duration = Duration::from_millis(5);
/// Operand sets at most.
const MOST_SETS: usize = 16;
/// A kernel this short calibrates the clock.
const SHORT: Duration = Duration::from_micros(500);

/// One problem on one device.
#[derive(Debug)]
pub struct OpBench {
    device: Arc<dyn Device>,
    problem: Problem,
    /// Of the feature maps of every candidate.
    layout: Layout,
    operands: Operands,
    expected: Expectation,
    clock: Clock,
    calibrated: bool,
    policy: Policy,
    sets: usize,
    resources: HashMap<Key, Vec<Resource>>,
    prepared: HashMap<Choice, Prepared>,
    turn: usize,
    start: Instant,
}

/// What an operand's resources are found by. A constant's layout depends on the candidate; its
/// content tells which it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    operand: Operand,
    element: Element,
    dtype: DType,
    image: bool,
    content: u64,
}

#[derive(Debug)]
struct Prepared {
    pipeline: Pipeline,
    launch: Launch,
    arguments: Vec<Key>,
    /// The last recording and its number of runs.
    recording: Option<(u32, Recording)>,
}

fn encode(values: &[f32], dtype: DType) -> Vec<u8> {
    let mut bytes = dtype.encode(values);
    // Whole vec4s, so that a kernel may bind the range as such.
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    bytes
}

fn is_output(operand: Operand) -> bool {
    matches!(operand, Operand::Dst | Operand::C)
}

impl OpBench {
    /// Lays out nothing yet, but computes the expected result on the CPU.
    ///
    /// # Errors
    /// If the problem converts to or from images, which is not tuned.
    pub fn new(device: Arc<dyn Device>, problem: Problem) -> Result<Self> {
        if let Problem::Convert(op) = &problem
            && (op.from == Layout::Image2d || op.to == Layout::Image2d)
        {
            return Err(Error::unsupported("tuning a conversion of images", "its table's choice is used"));
        }
        let info = device.info();
        let policy = Policy::of(&family::facts(info.limits.family, &info.name));
        let operands = problem.operands()?;
        let expected = Expectation::new(&problem, &operands)?;
        let values: usize = operands.values().map(Vec::len).sum();
        let bytes = (values * problem.precision().storage().bytes()).max(1);
        let cache: usize = match info.limits.family {
            Family::Adreno(_) | Family::Mali(_) | Family::PowerVr => 8 << 20,
            _ => 64 << 20,
        };
        let clock = Clock::of(&*device, policy);
        Ok(OpBench {
            device,
            operands,
            expected,
            clock,
            calibrated: false,
            policy,
            sets: cache.div_ceil(bytes).clamp(1, MOST_SETS),
            problem,
            layout: Layout::C4,
            resources: HashMap::new(),
            prepared: HashMap::new(),
            turn: 0,
            start: Instant::now(),
        })
    }

    /// The same problem with feature maps in `layout`. Each layout has candidates, a default and a
    /// verdict of its own: what a change of layout costs depends on the network around the node.
    #[must_use]
    pub fn in_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The clock, calibrated once the first candidate was sampled.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The stored values of `binding` before a run. The destination is full of NaN, so that an
    /// element that is not written is seen.
    fn stored(&self, choice: &Choice, binding: &Binding) -> Result<Vec<f32>> {
        let operand = binding.operand;
        let given = || {
            let values = self.operands.get(&operand);
            values.ok_or_else(|| Error::Internal(format!("no {} to tune with", operand.name())))
        };
        let c4 = |shape: Shape, nhwc: &[f32]| {
            ConvertOp::new(shape, Layout::Nhwc, Layout::C4, crate::dtype::Precision::F32)
                .map(|op| convert::oracle(&op, nhwc))
        };
        match (&self.problem, operand, self.problem.convolution()) {
            (_, Operand::Weights | Operand::Bias | Operand::Slope, _) => {
                self.problem.op().pack(choice, operand, given()?)
            }
            (Problem::Gemm(op), Operand::C, _) if op.beta.0 == 0.0 => Ok(vec![f32::NAN; op.elements_c()]),
            (Problem::Convert(op), Operand::Dst, _) => Ok(vec![f32::NAN; op.to.elements(&op.shape)]),
            (_, Operand::Dst, Some(conv)) => Ok(vec![f32::NAN; Layout::C4.elements(&conv.output)]),
            // A kernel that reads NHWC rows.
            (_, Operand::Src, Some(_)) if matches!(binding.element, Element::Scalar(_)) => given().cloned(),
            (_, Operand::Src, Some(conv)) => c4(conv.input, given()?),
            (_, Operand::Residual, Some(conv)) => c4(conv.output, given()?),
            _ => given().cloned(),
        }
    }

    /// The resources of `binding`, one per set.
    fn resources(&mut self, choice: &Choice, binding: &Binding) -> Result<Key> {
        let constant = matches!(binding.operand, Operand::Weights | Operand::Bias | Operand::Slope);
        let mut key = Key {
            operand: binding.operand,
            element: binding.element,
            dtype: binding.element.dtype(),
            image: matches!(binding.element, Element::Image2d(_)),
            content: 0,
        };
        if !constant && self.resources.contains_key(&key) {
            return Ok(key);
        }
        let values = self.stored(choice, binding)?;
        if constant {
            let mut hasher = DefaultHasher::new();
            bytemuck::cast_slice::<f32, u8>(&values).hash(&mut hasher);
            key.content = hasher.finish();
        }
        if !self.resources.contains_key(&key) {
            let made = (0..self.sets)
                .map(|_| if key.image { self.image(&key, &values) } else { self.buffer(&values, key.dtype) })
                .collect::<Result<Vec<_>>>()?;
            self.resources.insert(key.clone(), made);
        }
        Ok(key)
    }

    fn buffer(&self, values: &[f32], dtype: DType) -> Result<Resource> {
        let bytes = encode(values, dtype);
        let slice = self.device.alloc(bytes.len() as u64, Memory::Device)?.whole();
        self.device.write(&slice, &bytes)?;
        Ok(slice.into())
    }

    fn prepared(&self, choice: &Choice) -> Result<&Prepared> {
        let prepared = self.prepared.get(choice);
        prepared.ok_or_else(|| Error::Internal(format!("{choice} runs before it is compiled")))
    }

    /// `runs` dispatches that take turns among the sets, beginning with set `first`.
    fn record(&self, prepared: &Prepared, first: usize, runs: u32) -> Result<Recording> {
        let dispatch = |run: usize| -> Result<Dispatch> {
            let resources = prepared.arguments.iter().map(|key| {
                let set = self.resources.get(key).and_then(|sets| sets.get(run % self.sets));
                set.cloned().ok_or_else(|| Error::Internal(format!("no {}", key.operand.name())))
            });
            Ok(Dispatch {
                pipeline: prepared.pipeline.clone(),
                resources: resources.collect::<Result<_>>()?,
                params: prepared.launch.params.clone(),
                groups: prepared.launch.groups(),
            })
        };
        let dispatches: Vec<Dispatch> =
            (first..first + runs as usize).map(dispatch).collect::<Result<_>>()?;
        self.device.record(&dispatches)
    }

    /// The destination of set 0 and the type of its elements.
    fn target(&self, prepared: &Prepared) -> Result<(Resource, DType)> {
        let key = prepared.arguments.iter().find(|key| is_output(key.operand));
        key.and_then(|key| Some((self.resources.get(key)?.first()?.clone(), key.dtype)))
            .ok_or_else(|| Error::Internal("a kernel without a destination".to_owned()))
    }

    /// Finds the clock's resolution with a kernel that was found correct.
    fn calibrate(&mut self, choice: &Choice) -> Result<()> {
        self.calibrated = true;
        let prepared = self.prepared(choice)?;
        let one = self.record(prepared, 0, 1)?;
        let begin = Instant::now();
        self.device.submit(&one)?;
        self.device.wait()?;
        // A long kernel needs no fine clock, and 32 of it would take their time.
        if begin.elapsed() > 20 * SHORT {
            return Ok(());
        }
        let many = self.record(prepared, 0, 32)?;
        self.clock.calibrate(&*self.device, &many, &one)
    }
}

impl Bench for OpBench {
    fn default_choice(&self) -> Result<Choice> {
        untuned_in(self.problem.op(), WorkGroup::Table, self.layout, self.limits())
    }

    fn space(&self) -> Vec<(&'static str, [u32; 3])> {
        let op = self.problem.op();
        let mut space = op.space(self.limits());
        space.retain(|(variant, _)| op.layouts(variant).contains(&self.layout));
        space
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        self.problem.op().grid(variant, tile)
    }

    fn table(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        table(self.problem.op(), variant, tile, self.limits())
    }

    fn work_groups(&self, variant: &'static str, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.problem.op().work_groups(variant, tile)
    }

    fn limits(&self) -> &Limits {
        &self.device.info().limits
    }

    fn fits(&self, choice: &Choice) -> Result<()> {
        self.problem.op().fits(choice, self.limits())
    }

    fn prepare(&mut self, choice: &Choice) -> Result<()> {
        let launch = self.problem.op().plan(choice, self.limits())?;
        let source = launch.spec.render(self.limits().dialect)?;
        let pipeline = self.device.compile(&source)?;
        let bindings = &launch.spec.interface.bindings;
        let arguments =
            bindings.iter().map(|binding| self.resources(choice, binding)).collect::<Result<_>>()?;
        self.prepared.insert(*choice, Prepared { pipeline, launch, arguments, recording: None });
        Ok(())
    }

    fn check(&mut self, choice: &Choice) -> Result<Check> {
        let prepared = self.prepared(choice)?;
        let recording = self.record(prepared, 0, 1)?;
        let (target, dtype) = self.target(prepared)?;
        let bindings = &prepared.launch.spec.interface.bindings;
        let Some(binding) = bindings.iter().find(|binding| is_output(binding.operand)) else {
            return Err(Error::Internal("a kernel without a destination".to_owned()));
        };
        let before = self.stored(choice, binding)?;
        let slice = match &target {
            Resource::Buffer(slice) => slice,
            Resource::Image(_) => {
                return Ok(self.expected.compare(&self.run_on_image(prepared, &target, &before, dtype)?));
            }
        };
        let before = encode(&before, dtype);
        let read = self.device.run(&[(slice, &before)], &recording, &[slice])?;
        Ok(self.expected.compare(&dtype.decode(read.first().map_or(&[], Vec::as_slice))))
    }

    fn sample(&mut self, choice: &Choice, repeats: u32) -> Result<Duration> {
        if !self.calibrated {
            self.calibrate(choice)?;
        }
        let runs = self.policy.runs(repeats.max(1));
        let prepared = self.prepared(choice)?;
        let kept = prepared.recording.as_ref().filter(|(kept, _)| *kept == runs && runs > 1);
        let recording = match kept {
            Some((_, recording)) => recording.clone(),
            None => self.record(prepared, self.turn, runs)?,
        };
        self.turn = (self.turn + runs as usize) % self.sets;
        let time = self.clock.measure(&*self.device, &recording, runs)?;
        if let Some(prepared) = self.prepared.get_mut(choice) {
            prepared.recording = Some((runs, recording));
        }
        Ok(time / runs * repeats.max(1))
    }

    fn repeats(&self, estimate: Duration) -> u32 {
        self.clock.repeats(estimate, SAMPLE)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn release(&mut self, choice: &Choice) {
        self.prepared.remove(choice);
    }

    /// Drops every trial kernel and its recordings, as Mali's drivers ask for
    /// ([`Policy::recreate`]): a session makes kernels of its own.
    fn finish(&mut self) -> Result<()> {
        self.prepared.clear();
        self.resources.clear();
        self.device.wait()
    }
}
