//! A session on the CPU: the units in order, their values in shared host buffers.

#[cfg(all(shuttle, test))]
mod interleavings;
mod kernels;
mod run;
mod states;

use super::flight::{self, Launched, Layout};
use super::input::{Input, whole};
use super::memory::CpuMemory;
use super::profile::{self, MemoryUse, Profile, StageTimes};
use super::run::{Next, Run};
use super::sets::Sets;
use super::shared::Shared;
use crate::alloc;
use crate::clock::Instant;
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelves;
use crate::cpu::workers;
use crate::device::{Pending, Readback, Wait};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Graph, State, Value};
use crate::host::HostTensor;
use crate::layout::Layout as Order;
use crate::lower::{self, Alias, InPlace, Input as Read, Network, Rewrites, Unit};
use crate::ops::Role;
use crate::options::{Rewrite, SessionOptions};
use crate::parallel;
use crate::sorted;
use crate::sync::Mutex;
use crate::task::{Awaited, Running, offload};
use kernels::{MadeKernel, Making};
use run::RunOutputs;
use states::States;
use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// What holds the elements of a value during a run.
#[derive(Debug, Clone, Copy)]
enum Holder {
    /// An input; behind the inputs, a state.
    Input(usize),
    Constant(usize),
    Buffer(usize),
}

/// Where a value lies during a run.
#[derive(Debug, Clone, Copy)]
struct ValuePlace {
    holder: Holder,
    first: usize,
    elements: usize,
}

#[derive(Debug)]
struct Step {
    name: String,
    op: &'static str,
    /// Why its kernel.
    source: String,
    kernel: Arc<dyn CpuKernel>,
    flops: u64,
    inputs: Vec<(Operand, ValuePlace)>,
    /// Where it writes, and how many elements.
    outputs: Vec<(Operand, Target, usize)>,
}

/// What a step writes to.
#[derive(Debug, Clone, Copy)]
enum Target {
    Buffer(usize),
    /// A state that it changes.
    State(usize),
}

#[derive(Debug)]
struct CpuNetwork {
    /// Threads of a run at most.
    threads: usize,
    /// How many of them are worth it while other programs run.
    load: std::sync::Mutex<workers::Load>,
    steps: Vec<Step>,
    outputs: Vec<ValuePlace>,
    states: States,
    constants: Vec<Arc<[f32]>>,
    /// Places and bytes of the constants that the graph has.
    counted: Vec<(usize, u64)>,
    /// Stay where they are as long as what was packed of them.
    _shelved: Vec<HostTensor>,
    /// Elements of each input.
    given: Vec<usize>,
    layout: Layout,
    flops: u64,
    /// Elements of each buffer of a run.
    lengths: Vec<usize>,
    /// Buffers of runs that are over.
    sets: Arc<Sets>,
    /// Bytes of each buffer, if sessions for other extents use the same.
    shared: Vec<u64>,
    memory: MemoryUse,
}

/// A network made ready to run on the CPU.
#[derive(Debug)]
pub(super) struct CpuSession(Arc<CpuNetwork>);

/// Where values lie, found while the steps are made.
struct Places<'n> {
    network: &'n Network<'n>,
    buffers: HashMap<Value, usize>,
    /// The states that units change, by what these compute.
    changed: HashMap<Value, usize>,
    constants: Vec<Arc<[f32]>>,
    kernels: HashMap<Making, MadeKernel>,
    /// The words of constants by their places.
    words: HashMap<(usize, Order), Arc<[f32]>>,
    /// What sessions for other extents have packed, if there are any.
    shelves: Option<&'n Shelves>,
    /// The constants that are known to them by their places.
    shelved: Vec<HostTensor>,
}

impl Places<'_> {
    fn of(&mut self, value: Value) -> Result<ValuePlace> {
        let each = self.network.word(value).words();
        let elements = self.network.dims(value)?.elements() * each;
        if let Some(tensor) = self.network.constant(value) {
            return self.of_constant(tensor.clone());
        }
        let Alias { of, offset } = self.network.resolve(value);
        let graph = self.network.graph;
        let states = graph.states().iter().map(|state| state.value);
        let input = match self.changed.get(&of) {
            Some(state) => Some(graph.inputs().len() + state),
            None => graph.inputs().iter().copied().chain(states).position(|input| input == of),
        };
        let holder = match (input, self.buffers.get(&of)) {
            (Some(input), _) => Holder::Input(input),
            (None, Some(&buffer)) => Holder::Buffer(buffer),
            (None, None) => return Err(Error::Internal(format!("nothing writes value {}", of.index()))),
        };
        Ok(ValuePlace { holder, first: offset * each, elements })
    }

    fn step(&mut self, unit: &Unit, source: String) -> Result<Step> {
        let mut op = unit.op(self.network.graph, Precision::F32)?;
        let in_place = self.network.in_place(unit)?;
        if let Some(InPlace { op: changing, state }) = &in_place {
            op = Arc::clone(changing);
            self.changed.extend(unit.outputs.iter().map(|&output| (output, *state)));
        }
        let (network, mut constants) = (self.network, Vec::new());
        for info in op.operands().iter().filter(|info| info.role == Role::Input) {
            let tensor = match unit.input(info.operand)? {
                Read::Value(value) => network.constant(*value),
                Read::Constant(tensor, value) => {
                    value.and_then(|value| network.constant(value)).or(Some(tensor))
                }
            };
            constants.extend(tensor.map(|tensor| (info.operand, tensor)));
        }
        let MadeKernel { kernel, held } = self.kernel(unit, &*op, &constants)?;
        let mut inputs = Vec::new();
        for info in op.operands().iter().filter(|info| info.role == Role::Input) {
            if held.contains(&info.operand) {
                continue;
            }
            let constant = constants.iter().find(|(operand, _)| *operand == info.operand);
            let place = match (constant, unit.input(info.operand)?) {
                (Some((_, tensor)), _) => self.of_constant((*tensor).clone())?,
                (None, Read::Value(value) | Read::Constant(_, Some(value))) => self.of(*value)?,
                (None, Read::Constant(tensor, None)) => self.of_constant(tensor.clone())?,
            };
            inputs.push((info.operand, place));
        }
        let (mut outputs, graph) = (Vec::new(), self.network.graph);
        for (info, &value) in crate::ops::outputs(&*op).zip(&unit.outputs) {
            match self.of(value)? {
                ValuePlace { holder: Holder::Input(input), elements, .. } if in_place.is_some() => {
                    outputs.push((info.operand, Target::State(input - graph.inputs().len()), elements));
                }
                ValuePlace { holder: Holder::Buffer(buffer), elements, .. } => {
                    outputs.push((info.operand, Target::Buffer(buffer), elements));
                }
                place => return Err(Error::Internal(format!("a step that writes {place:?}"))),
            }
        }
        let (name, flops) = (unit.name.clone(), op.flops());
        Ok(Step { name, op: op.name(), source, kernel, flops, inputs, outputs })
    }
}

/// The units that the CPU runs.
fn lowered<'g>(graph: &'g Graph, options: &SessionOptions) -> Result<Network<'g>> {
    let alone = |name: &str| options.choices.contains_key(name);
    let mut network = lower::simplified(graph, &Rewrites::of(options, &alone))?;
    if !options.without_rewrites.contains(&Rewrite::Loops) {
        lower::compose_on_cpu(&mut network, &|name| options.names(name))?;
    }
    if options.rounded_activations {
        lower::round_activations(&mut network);
    }
    Ok(network)
}

impl CpuSession {
    /// What a session would take.
    pub(super) fn plan_memory(graph: &Graph, options: &SessionOptions) -> Result<MemoryUse> {
        Ok(CpuMemory::of(&lowered(graph, options)?)?.memory)
    }

    /// `shared`: what sessions of the same network for other extents have.
    pub(super) fn new(graph: &Graph, options: &SessionOptions, shared: Option<&Shared>) -> Result<Self> {
        let network = lowered(graph, options)?;
        let sources = lower::on_cpu(&network, options)?;
        let CpuMemory { values, plan, memory, constants: counted } = CpuMemory::of(&network)?;
        let buffers = values.iter().copied().zip(plan.place.iter().copied());
        let mut places = Places {
            network: &network,
            buffers: buffers.collect(),
            changed: HashMap::new(),
            constants: Vec::new(),
            kernels: HashMap::new(),
            words: HashMap::new(),
            shelves: shared.map(|shared| &shared.shelves),
            shelved: Vec::new(),
        };
        let mut steps = Vec::with_capacity(network.units().len());
        for (unit, source) in network.units().iter().zip(sources) {
            steps.push(places.step(unit, source).map_err(|error| error.at_node(&unit.name))?);
        }
        let elements = |value: Value| Ok(network.dims(value)?.elements() * network.word(value).words());
        let outputs = graph.outputs().iter().map(|&value| places.of(value)).collect::<Result<Vec<_>>>()?;
        let of_state = |state: &State| state.next.map(|next| places.of(next)).transpose();
        let next = graph.states().iter().map(of_state).collect::<Result<Vec<_>>>()?;
        let initial = graph.states().iter().map(|state| state.initial.clone().into_words());
        let initial = initial.collect::<Result<Vec<Arc<[f32]>>>>()?;
        let changed = sorted::set(places.changed.values().copied()).into_iter().collect();
        let key = graph.key_place();
        let dims = graph.states().iter().map(|state| state.initial.dims()).collect();
        let states = States { held: Mutex::new(initial.clone()), initial, dims, next, changed, key };
        Ok(CpuSession(Arc::new(CpuNetwork {
            threads: options.cpu_threads.map_or(usize::MAX, NonZeroUsize::get),
            load: std::sync::Mutex::default(),
            flops: steps.iter().map(|step| step.flops).sum(),
            steps,
            given: graph.inputs().iter().map(|&input| elements(input)).collect::<Result<_>>()?,
            layout: layout(&outputs, graph.outputs().iter().map(|&value| network.word(value)).collect()),
            outputs,
            states,
            constants: places.constants,
            counted,
            _shelved: places.shelved,
            lengths: plan.buffers.iter().map(|&bytes| bytes as usize / 4).collect(),
            sets: shared.map_or_else(Arc::default, |shared| Arc::clone(&shared.sets)),
            // The largest first.
            shared: shared.map_or_else(Vec::new, |_| plan.buffers),
            memory: MemoryUse { planned: if shared.is_some() { 0 } else { memory.planned }, ..memory },
        })))
    }

    /// Whether a run is over when it was launched: on a worker of rayon's, which shares its run with its pool, where it
    /// leaves something to the next one, and where there is no other thread.
    fn runs_at_once(&self) -> bool {
        parallel::in_pool() || !self.0.states.initial.is_empty() || cfg!(target_family = "wasm")
    }

    /// A run on the caller's thread.
    fn run(&self, inputs: &[Input<'_>], clock: impl FnMut(Duration) + Send) -> Result<RunOutputs> {
        self.0.run(&whole(inputs, &self.0.given)?, clock)
    }

    /// A run on a thread of its own.
    fn start(&self, inputs: &[Input<'_>]) -> Result<Computing> {
        let network = Arc::clone(&self.0);
        let copy = |input: Cow<'_, [f32]>| match input {
            Cow::Borrowed(elements) => alloc::copied(elements, "an input").map(Cow::Owned),
            Cow::Owned(elements) => Ok(Cow::Owned(elements)),
        };
        let inputs = whole(inputs, &self.0.given)?.into_iter().map(copy);
        let inputs = inputs.collect::<Result<Vec<Cow<'static, [f32]>>>>()?;
        offload(move || network.run(&inputs, |_| {})).map(Computing)
    }

    /// A run whose steps take turns with the page's other tasks, where there is one thread.
    #[cfg(target_family = "wasm")]
    async fn in_turns(&self, inputs: &[Input<'_>]) -> Result<RunOutputs> {
        let inputs = whole(inputs, &self.0.given)?;
        let (mut run, mut turns) = (self.0.begin()?, crate::task::Turns::begin());
        for step in &self.0.steps {
            workers::run(self.0.flops, self.0.threads, &self.0.load, || run.step(step, &inputs))?;
            turns.pass().await;
        }
        run.end(&inputs)
    }
}

/// A run on a thread of its own.
#[derive(Debug)]
struct Computing(Running<RunOutputs>);

impl Pending for Computing {
    fn wait(self: Box<Self>) -> Result<Box<dyn Readback>> {
        Ok(Box::new(self.0.wait()?))
    }

    fn arrive(self: Box<Self>) -> Awaited<'static, Result<Box<dyn Readback>>> {
        Box::pin(async move { Ok(Box::new(self.0.await?) as Box<dyn Readback>) })
    }
}

/// The outputs, each by itself.
fn layout(outputs: &[ValuePlace], words: Arc<[DType]>) -> Layout {
    let place = |(read, place): (usize, &ValuePlace)| flight::OutputPlace {
        read,
        offset: 0,
        bytes: 4 * place.elements,
    };
    let places = outputs.iter().enumerate().map(place).collect();
    // The caller's thread copies them: it may be a worker that takes up another run meanwhile.
    Layout { places, words, ..Layout::default() }
}

impl Run for CpuSession {
    fn steps(&self) -> Vec<profile::Step> {
        let step = |step: &Step| profile::Step {
            precision: crate::dtype::Precision::F32,
            name: step.name.clone(),
            inserted: false,
            op: step.op,
            kernel: format!("cpu_{}_f32", step.op),
            work_group: [0; 3],
            choice: None,
            source: step.source.clone(),
            flops: step.flops,
        };
        self.0.steps.iter().map(step).collect()
    }

    fn memory(&self) -> MemoryUse {
        self.0.memory
    }

    fn constants(&self) -> &[(usize, u64)] {
        &self.0.counted
    }

    fn shared_values(&self) -> &[u64] {
        &self.0.shared
    }

    fn reset(&self) -> Result<()> {
        self.0.states.reset();
        Ok(())
    }

    fn layout(&self) -> &Layout {
        &self.0.layout
    }

    fn launch(&self, inputs: &[Input<'_>], next: Next) -> Result<Launched> {
        Ok(if next == Next::Waits || self.runs_at_once() {
            Launched::Done(Box::new(self.run(inputs, |_| {})?))
        } else {
            Launched::Pending(Box::new(self.start(inputs)?))
        })
    }

    fn launch_async<'a>(&'a self, inputs: &'a [Input<'a>]) -> Awaited<'a, Result<Launched>> {
        #[cfg(target_family = "wasm")]
        return Box::pin(async { Ok(Launched::Done(Box::new(self.in_turns(inputs).await?))) });
        #[cfg(not(target_family = "wasm"))]
        Box::pin(async { self.launch(inputs, Next::GoesOn) })
    }

    fn stages<'a>(
        &'a self,
        inputs: &'a [Input<'a>],
        _: Wait,
    ) -> Awaited<'a, Result<(Box<dyn Readback>, StageTimes)>> {
        Box::pin(async {
            let start = Instant::now();
            let held = self.run(inputs, |_| {})?;
            let times = StageTimes { network: start.elapsed(), ..StageTimes::default() };
            Ok((Box::new(held) as Box<dyn Readback>, times))
        })
    }

    fn profile<'a>(&'a self, inputs: &'a [Input<'a>], _: Wait) -> Awaited<'a, Result<Profile>> {
        Box::pin(async {
            let mut times = Vec::with_capacity(self.0.steps.len());
            self.run(inputs, |time| times.push(time))?;
            Ok(Profile { clock: "host clock", steps: profile::timed(self.steps(), times)? })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::graph::{Extras, Right};
    use crate::ops::gemm::Gemm;

    #[test]
    fn steps_of_one_op_and_the_same_weights_share_a_kernel() {
        let mut graph = Graph::new();
        let matrix = |extents: [usize; 2]| Dims::new(&extents).expect("two extents");
        let weights = |value: f32| HostTensor::new(matrix([40, 40]), vec![value; 1600]).expect("a matrix");
        let (own, other) = (weights(0.5), weights(0.5));
        let mut x = graph.input("x", matrix([3, 40])).expect("an input");
        let mut product = |name: &str, x: Value, weights: &HostTensor| {
            let right = Right::Constant(weights.clone());
            graph.gemm(name, x, right, Extras::default(), Gemm::default()).expect("a product")
        };
        for (name, weights) in [("a", &own), ("b", &own), ("c", &other)] {
            x = product(name, x, weights);
        }
        graph.output(x).expect("an output");
        let CpuSession(network) =
            CpuSession::new(&graph, &SessionOptions::default(), None).expect("a session");
        let [a, b, c] = &network.steps[..] else { panic!("{:?}", network.steps) };
        assert!(Arc::ptr_eq(&a.kernel, &b.kernel));
        // As many numbers, which are the same, but others'.
        assert!(!Arc::ptr_eq(&a.kernel, &c.kernel));
        assert_eq!(network.memory.constants, 2 * 4 * 1600);
    }
}
