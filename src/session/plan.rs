//! A network of fixed extents, ready to run: its ports and what computes it.

use super::cpu;
use super::flight::{Flight, Launched};
use super::input::{FedInput, Input, RunInput, arranged};
#[cfg(not(target_family = "wasm"))]
use super::progress::Told;
use super::progress::{BuildProgress, Tell};
#[cfg(not(target_family = "wasm"))]
use super::run::Next;
use super::runner::{Idle, Runner};
use super::shared::Shared;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::{device, online, progress::Teller};
use crate::context::{Context, Engine};
use crate::device::Wait;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::lower::can_be_a_step;
use crate::options::{SessionOptions, Tuning};
use crate::parallel;
use crate::source::PartResult;
use crate::source::Port;
#[cfg(not(target_family = "wasm"))]
use crate::task;
use std::borrow::Cow;
#[cfg(not(target_family = "wasm"))]
use std::future::Future;
use std::sync::Arc;

/// A network of fixed extents, ready to run.
#[derive(Debug)]
pub(super) struct Plan {
    /// The inputs, in the graph's order.
    pub(super) inputs: Vec<Port>,
    /// The outputs, in the graph's order.
    pub(super) outputs: Arc<[Port]>,
    /// The recording, on a device or on the CPU.
    pub(super) runner: Runner,
    /// The graph and options that it was made of, if its kernels are those of a record or the graph is kept.
    pub(super) graph_and_options: Option<Box<(Graph, SessionOptions)>>,
}

impl Plan {
    /// A plan that computes nothing: there was no run, or all results are known without one.
    pub(super) fn idle() -> Self {
        let runner = Runner::Idle(Idle::default());
        Plan { inputs: Vec::new(), outputs: Arc::new([]), runner, graph_and_options: None }
    }

    /// Lowers a graph, allocates, compiles and records. `shared` is what plans of other extents have in common with it. Only in
    /// a browser this awaits anything.
    pub(super) async fn built(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
        shared: Option<&Shared>,
        tell: &Tell<'_>,
    ) -> Result<Self> {
        let _limited = parallel::Limited::to(options.cpu_threads);
        let graph = &*checked(graph, &options)?;
        let runner = match &context.engine {
            Engine::Cpu if cfg!(feature = "cpu") => {
                Runner::Cpu(cpu::CpuSession::new(graph, &options, shared)?)
            }
            Engine::Cpu => return Err(Error::without_cpu("a session on the CPU")),
            #[cfg(any(feature = "wgpu", feature = "opencl"))]
            engine => {
                options.check_precision(engine.device()?.info())?;
                if let Tuning::Online { database, budget } = &options.tuning {
                    online::tuned(context, graph, &options, database, *budget).await?;
                }
                let teller = Teller::new(tell);
                let session =
                    device::DeviceSession::build(engine.clone(), graph, &options, shared, &teller).await?;
                Runner::Device(Box::new(session))
            }
        };
        let (inputs, outputs) = (Port::all(graph, graph.inputs())?, Port::all(graph, graph.outputs())?);
        let with_record = matches!(options.tuning, Tuning::Database(_) | Tuning::Online { .. });
        let refreshed = with_record && matches!(runner, Runner::Device(_));
        let keep = refreshed || options.keep_graph;
        let graph_and_options = keep.then(|| Box::new((graph.clone(), options)));
        Ok(Plan { inputs, outputs: outputs.into(), runner, graph_and_options })
    }

    /// [`Plan::built`] without blocking the calling thread: elsewhere than in a browser a thread of its own does the work, and
    /// goes on to its end if this is dropped. `progress` is told how far it is, as long as it is awaited.
    pub(super) async fn built_async(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
        shared: Option<Arc<Shared>>,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<Self> {
        #[cfg(target_family = "wasm")]
        {
            let progress = std::cell::RefCell::new(progress);
            let tell = |now| {
                // None if it is called from within.
                if let Ok(mut progress) = progress.try_borrow_mut() {
                    progress(now);
                }
            };
            Self::built(context, graph, options, shared.as_deref(), &tell).await
        }
        #[cfg(not(target_family = "wasm"))]
        {
            let (context, graph) = (context.clone(), graph.clone());
            let told = Arc::new(Told::default());
            let teller = Arc::clone(&told);
            let mut building = task::offload(move || {
                let tell = |now| teller.tell(now);
                task::block_on(Self::built(&context, &graph, options, shared.as_deref(), &tell))
            })?;
            std::future::poll_fn(|task| {
                told.take(task.waker()).into_iter().for_each(&mut *progress);
                let built = std::pin::Pin::new(&mut building).poll(task);
                if built.is_ready() {
                    told.take(task.waker()).into_iter().for_each(&mut *progress);
                }
                built
            })
            .await
        }
    }

    /// Takes the kernels that the record says now: the names of the steps that changed.
    pub(super) async fn refresh(&mut self, shared: Option<&Shared>, wait: Wait) -> Result<Vec<String>> {
        let (Ok(session), Some(made_of)) = (self.runner.device_mut("a refresh"), &self.graph_and_options)
        else {
            return Ok(Vec::new());
        };
        let _limited = parallel::Limited::to(made_of.1.cpu_threads);
        session.refresh(&made_of.0, &made_of.1, shared, wait).await
    }

    /// A run that was begun, with the outputs of the graph.
    fn flight(&self, launched: Launched) -> Flight {
        Flight { launched, ports: Arc::clone(&self.outputs), layout: self.runner.layout().clone() }
    }

    /// The outputs of a run on these inputs, which are in order.
    pub(super) async fn run(&self, inputs: &[Input<'_>], wait: Wait) -> Result<Vec<HostTensor>> {
        match wait {
            #[cfg(not(target_family = "wasm"))]
            Wait::Blocks => self.flight(self.runner.launch(inputs, Next::Waits)?).wait()?.tensors(),
            Wait::Awaits => {
                let launched = self.runner.launch_async(inputs).await?;
                self.flight(launched).await?.tensors()
            }
        }
    }

    /// Gives the outputs the names of the network's, if they are all of them and in their order.
    pub(super) fn name_outputs(&mut self, results: &[(String, PartResult)]) {
        if are_outputs(results, self.outputs.len()) {
            let named = self.outputs.iter().zip(results);
            let named = named.map(|(port, (name, _))| Port { name: name.clone(), ..port.clone() });
            self.outputs = named.collect();
        }
    }

    /// What a run is given, in the order of the inputs, in their dimensions and types.
    pub(super) fn feeds<'a>(&self, given: Vec<FedInput<'a>>) -> Result<Vec<Input<'a>>> {
        let word = |dtype: DType| self.runner.word(dtype);
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for port in &self.inputs {
            let own = given.iter().find(|given| *given.name == port.name);
            let own = own.ok_or_else(|| Error::Internal(format!("nothing is given for {:?}", port.name)))?;
            let input =
                own.input.clone().ok_or_else(|| Error::Internal("an input without elements".to_owned()))?;
            fn named<'n, 'i>(port: &'n Port, input: RunInput<'i>) -> Vec<(&'n str, RunInput<'i>)> {
                vec![(&port.name, input)]
            }
            let ports = std::slice::from_ref(port);
            inputs.extend(match input.dims() {
                Some(dims) if dims != own.dims => {
                    let tensor = input.tensor(own.dims)?;
                    let owned = arranged(ports, named(port, RunInput::from(&*tensor)), &word)?;
                    owned.into_iter().map(Input::into_owned).collect::<Result<Vec<_>>>()?
                }
                _ => arranged(ports, named(port, input), &word)?,
            });
        }
        Ok(inputs)
    }
}

/// Whether results are the `count` outputs of a graph, in their order.
pub(super) fn are_outputs(results: &[(String, PartResult)], count: usize) -> bool {
    let in_order = |(index, (_, found)): (usize, &(String, PartResult))| matches!(found, PartResult::Output(own) if *own == index);
    results.len() == count && results.iter().enumerate().all(in_order)
}

/// The graph with the dimensions of `options`, which name nodes of it alone.
pub(super) fn checked<'g>(graph: &'g Graph, options: &SessionOptions) -> Result<Cow<'g, Graph>> {
    if graph.outputs().is_empty() {
        return Err(Error::input("graph", "no outputs", "at least one"));
    }
    let is_node = |name: &str| graph.nodes().iter().any(|node| node.name() == name);
    for name in options.precisions.keys().chain(&options.on_cpu) {
        if !is_node(name) {
            return Err(Error::input("options", format!("node {name:?}"), "a node of the graph"));
        }
    }
    for name in options.choices.keys() {
        if !can_be_a_step(name, &is_node) {
            let wanted = "a node of the graph, or a step of several, as Session::steps names them";
            return Err(Error::input("options", format!("node {name:?}"), wanted));
        }
    }
    let fixed: Vec<(&str, usize)> =
        options.dimensions.iter().map(|(name, &extent)| (name.as_str(), extent)).collect();
    if fixed.is_empty() {
        return graph.seeded(options.seed);
    }
    Ok(Cow::Owned(graph.with_dimensions(&fixed)?.seeded(options.seed)?.into_owned()))
}
