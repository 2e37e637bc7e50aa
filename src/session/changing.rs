//! A session whose inputs' extents each run decides: the plans of the extents that were met, the least recently used
//! out, and the parts that a network is divided into where extents depend on values.
//!
//! A plan is a session for certain extents, and for certain values where a network's extents depend on them. That of the
//! last run is the outer session's own; the others lie here. A network of several parts runs one after the other, what
//! one gives is what the next one is given.

use super::flight::{Layout, Place as OutputPlace};
use super::input::{Input, RunInput, arranged};
use super::ports::unknown;
use super::profile::MemoryUse;
#[cfg(not(target_family = "wasm"))]
use super::runner::Next;
use super::runner::{Idle, Runner};
use super::source::{Found, Given, OpenInput, Part, Place, Source};
use super::{BuildProgress, Port, Session};
use crate::context::Context;
use crate::device::Wait;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::options::SessionOptions;
use crate::word;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// How many plans are kept unless the options say so.
const MOST_PLANS: usize = 32;

/// The most parts of one run: a loop of a network that has no end must have one here.
const MOST_PARTS: usize = 4096;

/// Where all begin.
const FIRST: u64 = 0;

/// What a session of open extents knows beside what it runs.
#[derive(Debug)]
pub(super) struct Changing {
    context: Context,
    options: SessionOptions,
    source: Arc<dyn Source>,
    /// The inputs as they are shown: with the extents of the last run.
    pub(super) inputs: Vec<Port>,
    stages: BTreeMap<u64, Stage>,
    plans: BTreeMap<u64, Plan>,
    /// Numbers of stages and plans, and when a plan was used.
    next: u64,
    /// The plan whose session is the outer one's.
    current: Option<u64>,
    /// The outputs of the last run, where they are not just those of the current plan's session.
    pub(super) composed: Option<Composed>,
}

/// Outputs that a session and what is known beside it have between them.
#[derive(Debug)]
pub(super) struct Composed {
    pub(super) ports: Arc<[Port]>,
    pub(super) layout: Layout,
}

/// A place in the network, and the plans that begin there.
#[derive(Debug)]
struct Stage {
    place: Place,
    plans: Vec<u64>,
    /// What some plan depends on the value of.
    by_value: BTreeSet<String>,
    /// The stages behind one on the host, by what tells them apart.
    behind: BTreeMap<String, u64>,
}

/// What runs for certain extents and values.
#[derive(Debug)]
struct Plan {
    extents: Vec<(String, Dims)>,
    values: Vec<(String, HostTensor)>,
    used: u64,
    /// Nothing while it is the outer session's, and where there is nothing to compute.
    session: Option<Session>,
    results: Vec<(String, Found)>,
    next: Option<u64>,
}

/// What comes of a part.
enum Outcome {
    /// It ran: the next one is given this.
    Next(u64, Vec<(String, HostTensor)>),
    /// It is the last one, and has not run.
    Last(u64),
}

/// Whether two tensors are equal, NaN included.
fn same(a: &HostTensor, b: &HostTensor) -> bool {
    a.dims() == b.dims() && a.dtype() == b.dtype() && a.layout() == b.layout() && a.bytes() == b.bytes()
}

impl Plan {
    fn fits(&self, given: &[Given<'_>]) -> Result<bool> {
        let same_extents = self.extents.len() == given.len()
            && self.extents.iter().zip(given).all(|((name, dims), given)| *name == given.name && *dims == given.dims);
        if !same_extents {
            return Ok(false);
        }
        for (name, value) in &self.values {
            let own = given.iter().find(|given| given.name == *name).map(Given::value).transpose()?.flatten();
            if !own.is_some_and(|own| same(&own, value)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// An input as it is shown before the first run: open extents are 1.
fn shown(input: &OpenInput) -> Result<Port> {
    let extents = input.extents.iter().flatten().map(|extent| extent.unwrap_or(1));
    let dims = Dims::new_or_empty(&extents.collect::<Vec<usize>>())?;
    Ok(Port {
        name: input.name.clone(),
        shape: dims.shape(),
        dims,
        dtype: input.dtype,
        open: input.open.clone(),
    })
}

impl Changing {
    fn new(context: &Context, source: Arc<dyn Source>, options: SessionOptions) -> Result<Self> {
        let required = source.inputs().iter().filter(|input| !input.is_optional);
        let inputs = required.map(shown).collect::<Result<_>>()?;
        let composed = Some(Composed { ports: source.outputs().into(), layout: Layout::default() });
        let first = Stage {
            place: source.first(),
            plans: Vec::new(),
            by_value: BTreeSet::new(),
            behind: BTreeMap::new(),
        };
        Ok(Changing {
            context: context.clone(),
            options,
            source,
            inputs,
            stages: BTreeMap::from([(FIRST, first)]),
            plans: BTreeMap::new(),
            next: FIRST + 1,
            current: None,
            composed,
        })
    }

    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn stage(&self, stage: u64) -> Result<&Stage> {
        self.stages.get(&stage).ok_or_else(|| Error::Internal("a part of a network is gone".to_owned()))
    }

    /// What a run is given, checked against what the network declares, in the order of its inputs.
    fn given<'a>(&self, inputs: Vec<(&str, RunInput<'a>)>) -> Result<Vec<Given<'a>>> {
        let mut found: Vec<Option<RunInput<'a>>> = vec![None; self.source.inputs().len()];
        for (name, input) in inputs {
            let place = self.source.inputs().iter().position(|own| own.name == name);
            let place = place.and_then(|place| found.get_mut(place));
            let place = place.ok_or_else(|| unknown("input", name, &self.inputs))?;
            if place.is_some() {
                return Err(Error::input(format!("input {name:?}"), "two tensors", "one"));
            }
            *place = Some(input);
        }
        let mut given = Vec::with_capacity(found.len());
        for (own, input) in self.source.inputs().iter().zip(found) {
            match input {
                Some(input) => {
                    let dims = self.extents(own, &input)?;
                    given.push(Given { name: Cow::Owned(own.name.clone()), dims, input: Some(input) });
                }
                None if own.is_optional => (),
                None => {
                    let wanted = format!("a tensor of {}", declared(own));
                    return Err(Error::input(format!("input {:?}", own.name), "nothing", wanted));
                }
            }
        }
        Ok(given)
    }

    /// The dimensions of what is given for an input.
    fn extents(&self, own: &OpenInput, input: &RunInput<'_>) -> Result<Dims> {
        let misfit = |found: String| {
            Error::input(format!("input {:?}", own.name), found, format!("a tensor of {}", declared(own)))
        };
        let Some(dims) = input.dims() else {
            // A slice has as many elements as the last run's.
            let port = self.inputs.iter().find(|port| port.name == own.name);
            let same = port.filter(|port| port.dims.elements() == input.elements());
            return same.map(|port| port.dims).ok_or_else(|| {
                misfit(format!("a slice of {} elements, which does not say its extents", input.elements()))
            });
        };
        let Some(extents) = &own.extents else { return Ok(dims) };
        let fits = |dims: &Dims| {
            dims.rank() == extents.len()
                && dims.extents().iter().zip(extents).all(|(found, own)| own.is_none_or(|own| own == *found))
        };
        if fits(&dims) {
            return Ok(dims);
        }
        // One number serves for any rank, and a feature map for what has its shape.
        let ones = Dims::new_or_empty(&vec![1; extents.len()])?;
        let fixed: Option<Vec<usize>> = extents.iter().copied().collect();
        let map = fixed.map(|fixed| Dims::new_or_empty(&fixed)).transpose()?;
        let map = map.filter(|own| dims.rank() == 4 && own.shape() == dims.shape());
        match map {
            Some(map) => Ok(map),
            None if dims.elements() == 1 && fits(&ones) => Ok(ones),
            None => Err(misfit(format!("shape {dims}"))),
        }
    }

    /// The plan of a stage for what it is given, used now.
    fn planned(&mut self, stage: u64, given: &[Given<'_>]) -> Result<Option<u64>> {
        for number in self.stage(stage)?.plans.clone() {
            if self.plans.get(&number).map(|plan| plan.fits(given)).transpose()? == Some(true) {
                let now = self.number();
                if let Some(plan) = self.plans.get_mut(&number) {
                    plan.used = now;
                }
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Makes room for a plan. Those of `path` stay.
    fn make_room(&mut self, path: &[u64]) {
        let most = self.options.plans.map_or(MOST_PLANS, NonZeroUsize::get);
        while self.plans.len() >= most.max(path.len() + 1) {
            let held = |number: &u64| path.contains(number) || self.current == Some(*number);
            let oldest = self.plans.iter().filter(|(number, _)| !held(number));
            let Some(oldest) = oldest.min_by_key(|(_, plan)| plan.used).map(|(&number, _)| number) else {
                return;
            };
            self.forget(oldest);
        }
    }

    /// Forgets a plan and all that is behind it.
    fn forget(&mut self, plan: u64) {
        let mut open = vec![plan];
        while let Some(number) = open.pop() {
            let gone = self.plans.remove(&number);
            self.stages.values_mut().for_each(|stage| stage.plans.retain(|&own| own != number));
            let mut stages: Vec<u64> = gone.and_then(|plan| plan.next).into_iter().collect();
            while let Some(stage) = stages.pop() {
                if let Some(gone) = self.stages.remove(&stage) {
                    open.extend(gone.plans);
                    stages.extend(gone.behind.into_values());
                }
            }
        }
        if self.current.is_some_and(|current| !self.plans.contains_key(&current)) {
            self.current = None;
        }
    }

    /// The stage of what begins at `place`.
    fn begun(&mut self, place: Place) -> u64 {
        let number = self.number();
        let stage = Stage { place, plans: Vec::new(), by_value: BTreeSet::new(), behind: BTreeMap::new() };
        self.stages.insert(number, stage);
        number
    }

    /// Keeps a plan.
    fn keep(&mut self, stage: u64, given: &[Given<'_>], part: Part, session: Option<Session>) -> Result<u64> {
        let mut values = Vec::with_capacity(part.by_value.len());
        for own in given.iter().filter(|own| part.by_value.contains(&*own.name)) {
            if let Some(value) = own.value()? {
                values.push((own.name.clone().into_owned(), value.into_owned()));
            }
        }
        let next = part.next.map(|place| self.begun(place));
        let number = self.number();
        let plan = Plan {
            extents: given.iter().map(|own| (own.name.clone().into_owned(), own.dims)).collect(),
            values,
            used: number,
            session,
            results: part.results,
            next,
        };
        self.plans.insert(number, plan);
        if let Some(stage) = self.stages.get_mut(&stage) {
            stage.plans.push(number);
            stage.by_value.extend(part.by_value);
        }
        Ok(number)
    }

    /// The options of a part's session: those of its nodes.
    fn options_of(&self, stage: u64, part: &Part) -> SessionOptions {
        let mut options = self.options.clone();
        if stage == FIRST && part.next.is_none() {
            return options;
        }
        let names: BTreeSet<&str> = part.graph.nodes().iter().map(|node| node.name()).collect();
        options.choices.retain(|name, _| names.contains(name.as_str()));
        options.precisions.retain(|name, _| names.contains(name.as_str()));
        options.on_cpu.retain(|name| names.contains(name.as_str()));
        options
    }

    /// What all plans take.
    pub(super) fn memory(&self) -> MemoryUse {
        let sessions = self.plans.values().filter_map(|plan| plan.session.as_ref());
        sessions.map(|session| session.runner.memory()).fold(MemoryUse::default(), MemoryUse::and)
    }

    /// Whether a run is one of the current plan's session alone.
    pub(super) fn is_whole(&self) -> bool {
        let first = self.stages.get(&FIRST);
        self.composed.is_none()
            && self.current.is_some_and(|current| first.is_some_and(|first| first.plans.contains(&current)))
    }

    /// The sessions of the plans that are not the current one.
    pub(super) fn others(&mut self) -> impl Iterator<Item = &mut Session> {
        self.plans.values_mut().filter_map(|plan| plan.session.as_mut())
    }

    /// Has all plans made again, on another context.
    pub(super) fn restart(&mut self, context: &Context) -> Result<()> {
        *self = Changing::new(context, Arc::clone(&self.source), self.options.clone())?;
        Ok(())
    }
}

/// The extents of an input as the file has them.
fn declared(input: &OpenInput) -> String {
    let Some(extents) = &input.extents else { return "any dimensions".to_owned() };
    let name = |axis: usize| input.open.iter().find(|open| open.axis == axis).map_or("?", |open| &open.name);
    let extents = extents.iter().enumerate().map(|(axis, extent)| match extent {
        Some(extent) => extent.to_string(),
        None => name(axis).to_owned(),
    });
    match extents.collect::<Vec<_>>().join("x") {
        none if none.is_empty() => "one number".to_owned(),
        extents => extents,
    }
}

/// What a part is given of the results of the one before it.
fn given_of(tensors: &[(String, HostTensor)]) -> Vec<Given<'_>> {
    let given = tensors.iter().map(|(name, tensor)| Given {
        name: Cow::Borrowed(name.as_str()),
        dims: tensor.dims(),
        input: Some(RunInput::from(tensor)),
    });
    given.collect()
}

impl Session {
    /// A session of a network whose extents each run decides. Where nothing but extents that the file fixes decides, it is
    /// planned at once.
    #[cfg_attr(not(any(feature = "onnx", feature = "tflite")), expect(dead_code, reason = "no file is read"))]
    pub(crate) async fn of_source(
        context: &Context,
        source: Arc<dyn Source>,
        options: SessionOptions,
        wait: Wait,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<Self> {
        let changing = Changing::new(context, source, options)?;
        let mut session = Session::idle(Some(Box::new(changing)));
        session.plan_fixed(wait, progress).await?;
        Ok(session)
    }

    /// One that computes nothing.
    fn idle(changing: Option<Box<Changing>>) -> Self {
        let (inputs, outputs) = (Vec::new(), Arc::new([]));
        Session { inputs, outputs, runner: Runner::Idle(Idle::default()), made_of: None, changing }
    }

    /// Lets go of the current plan, which is none any more.
    pub(super) fn restarted(&mut self) {
        let changing = self.changing.take();
        *self = Session::idle(changing);
    }

    /// Plans the first run of a network whose extents are all fixed.
    async fn plan_fixed(&mut self, wait: Wait, progress: &mut impl FnMut(BuildProgress)) -> Result<()> {
        let Some(changing) = &self.changing else { return Ok(()) };
        let required = changing.source.inputs().iter().filter(|input| !input.is_optional);
        let mut given = Vec::new();
        for own in required {
            let fixed: Option<Vec<usize>> = own.extents.as_ref().and_then(|own| own.iter().copied().collect());
            let Some(fixed) = fixed else { return Ok(()) };
            let dims = Dims::new_or_empty(&fixed)?;
            given.push(Given { name: Cow::Owned(own.name.clone()), dims, input: None });
        }
        let (place, by_value) = {
            let first = changing.stage(FIRST)?;
            (first.place.clone(), first.by_value.clone())
        };
        let part = changing.source.part(&place, &given, &by_value)?;
        if part.next.is_some() || !part.by_value.is_empty() {
            return Ok(());
        }
        let plan = self.plan(FIRST, &given, part, &[], wait, progress).await?;
        self.make_current(plan, &given)
    }

    fn changing_mut(&mut self) -> Result<&mut Changing> {
        self.changing.as_deref_mut().ok_or_else(|| Error::Internal("a session of fixed extents".to_owned()))
    }

    /// Plans for what a run is given, and runs what comes before the last part: the inputs of that part, in order.
    pub(super) async fn fit<'a>(
        &mut self,
        inputs: Vec<(&str, RunInput<'a>)>,
        wait: Wait,
    ) -> Result<Vec<Input<'a>>> {
        let Some(changing) = &self.changing else {
            return arranged(&self.inputs, inputs, &|dtype| self.runner.word(dtype));
        };
        let given = changing.given(inputs)?;
        let mut path = Vec::new();
        let mut outcome = self.part(FIRST, &given, &mut path, wait).await?;
        let mut feeds: Option<Vec<(String, HostTensor)>> = None;
        let last = loop {
            match outcome {
                Outcome::Last(plan) => break plan,
                Outcome::Next(..) if path.len() > MOST_PARTS => {
                    let why = format!("found more than {MOST_PARTS} parts whose extents depend on values");
                    return Err(Error::unsupported("this network", why));
                }
                Outcome::Next(stage, tensors) => {
                    outcome = self.part(stage, &given_of(&tensors), &mut path, wait).await?;
                    feeds = Some(tensors);
                }
            }
        };
        if let Some(changing) = &mut self.changing {
            for port in &mut changing.inputs {
                let given = given.iter().find(|given| given.name == port.name);
                if let Some(given) = given {
                    (port.dims, port.shape) = (given.dims, given.dims.shape());
                }
            }
        }
        match feeds {
            Some(feeds) => {
                let own = given_of(&feeds);
                self.make_current(last, &own)?;
                let inputs = self.feeds(own)?;
                inputs.into_iter().map(Input::into_owned).collect()
            }
            None => {
                self.make_current(last, &given)?;
                self.feeds(given)
            }
        }
    }

    /// What is given to the current plan's session, in the order of its inputs.
    fn feeds<'a>(&self, given: Vec<Given<'a>>) -> Result<Vec<Input<'a>>> {
        let word = |dtype: DType| self.runner.word(dtype);
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for port in &self.inputs {
            let own = given.iter().find(|given| *given.name == port.name);
            let own = own.ok_or_else(|| Error::Internal(format!("nothing is given for {:?}", port.name)))?;
            let input = own.input.clone().ok_or_else(|| Error::Internal("an input without elements".to_owned()))?;
            // In the dimensions of the network.
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

    /// Runs a part that is not the last one, after planning it.
    async fn part(
        &mut self,
        stage: u64,
        given: &[Given<'_>],
        path: &mut Vec<u64>,
        wait: Wait,
    ) -> Result<Outcome> {
        let changing = self.changing_mut()?;
        let place = changing.stage(stage)?.place.clone();
        if place.on_host {
            path.push(stage);
            let (tensors, next) = changing.source.on_host(&place, given)?;
            let behind = changing.stage(stage)?.behind.get(&next.form).copied();
            let next = match behind {
                Some(behind) => behind,
                None => {
                    let form = next.form.clone();
                    let begun = changing.begun(next);
                    changing.stages.get_mut(&stage).map(|stage| stage.behind.insert(form, begun));
                    begun
                }
            };
            return Ok(Outcome::Next(next, tensors));
        }
        let number = match changing.planned(stage, given)? {
            Some(number) => number,
            None => {
                let by_value = changing.stage(stage)?.by_value.clone();
                let part = changing.source.part(&place, given, &by_value)?;
                self.plan(stage, given, part, path, wait, &mut |_| {}).await?
            }
        };
        path.push(number);
        let changing = self.changing.as_deref().ok_or_else(|| Error::Internal("no plans".to_owned()))?;
        let gone = || Error::Internal("a plan is gone".to_owned());
        let plan = changing.plans.get(&number).ok_or_else(gone)?;
        let Some(next) = plan.next else { return Ok(Outcome::Last(number)) };
        let outputs = match &plan.session {
            Some(session) => {
                let inputs = session.feeds(given.to_vec())?;
                session.completed(&inputs, wait).await?
            }
            None => Vec::new(),
        };
        let mut tensors = Vec::with_capacity(plan.results.len());
        for (name, found) in &plan.results {
            tensors.push((name.clone(), result(found, &outputs, given)?));
        }
        Ok(Outcome::Next(next, tensors))
    }

    /// The outputs of a run whose inputs are arranged.
    async fn completed(&self, inputs: &[Input<'_>], wait: Wait) -> Result<Vec<HostTensor>> {
        match wait {
            #[cfg(not(target_family = "wasm"))]
            Wait::Blocks => self.launch(inputs, Next::Waits)?.wait()?.tensors(),
            Wait::Awaits => {
                let launched = self.runner.launch_async(inputs).await?;
                self.flight(launched).await?.tensors()
            }
        }
    }

    /// Makes a plan of a part, and keeps it.
    async fn plan(
        &mut self,
        stage: u64,
        given: &[Given<'_>],
        part: Part,
        path: &[u64],
        wait: Wait,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<u64> {
        let changing = self.changing_mut()?;
        let session = match part.graph.outputs().is_empty() {
            true => None,
            false => {
                let (context, options) = (changing.context.clone(), changing.options_of(stage, &part));
                Some(match wait {
                    #[cfg(not(target_family = "wasm"))]
                    Wait::Blocks => Session::built(&context, &part.graph, options, &|_| {}).await?,
                    Wait::Awaits => {
                        Session::build_with_progress(&context, &part.graph, options, progress).await?
                    }
                })
            }
        };
        let changing = self.changing_mut()?;
        changing.make_room(path);
        changing.keep(stage, given, part, session)
    }

    /// Makes a plan of the last part what the session runs.
    fn make_current(&mut self, plan: u64, given: &[Given<'_>]) -> Result<()> {
        let Some(changing) = self.changing.as_deref_mut() else { return Ok(()) };
        if changing.current != Some(plan) {
            let gone = || Error::Internal("a plan is gone".to_owned());
            let next = changing.plans.get_mut(&plan).ok_or_else(gone)?.session.take();
            let next = next.unwrap_or_else(|| Session::idle(None));
            let Session { inputs, outputs, runner, made_of, .. } = next;
            let own = Session {
                inputs: std::mem::replace(&mut self.inputs, inputs),
                outputs: std::mem::replace(&mut self.outputs, outputs),
                runner: std::mem::replace(&mut self.runner, runner),
                made_of: std::mem::replace(&mut self.made_of, made_of),
                changing: None,
            };
            let before = changing.current.replace(plan);
            if let Some(before) = before.and_then(|before| changing.plans.get_mut(&before)) {
                before.session = (!matches!(own.runner, Runner::Idle(_))).then_some(own);
            }
        }
        self.compose(plan, given)
    }

    /// Says how the outputs of the network lie.
    fn compose(&mut self, plan: u64, given: &[Given<'_>]) -> Result<()> {
        let Some(changing) = self.changing.as_deref_mut() else { return Ok(()) };
        let Some(plan) = changing.plans.get(&plan) else { return Ok(()) };
        let is_run = given.iter().all(|own| own.input.is_some());
        if !is_run && plan.results.iter().any(|(_, found)| matches!(found, Found::Given(_))) {
            return Ok(());
        }
        let in_order =
            |(index, (_, found)): (usize, &(String, Found))| matches!(found, Found::Output(own) if *own == index);
        let own = &self.outputs;
        if plan.results.len() == own.len() && plan.results.iter().enumerate().all(in_order) {
            changing.composed = None;
            return Ok(());
        }
        let inner = self.runner.layout();
        let reads = inner.places.iter().map(|place| place.read + 1).max().unwrap_or(0);
        let (mut ports, mut places, mut words) = (Vec::new(), Vec::new(), Vec::new());
        let mut fixed: Vec<Vec<f32>> = Vec::new();
        for (name, found) in &plan.results {
            if let Found::Output(index) = found {
                let missing = || Error::Internal(format!("no output {index} for {name:?}"));
                let port = own.get(*index).ok_or_else(missing)?;
                ports.push(Port { name: name.clone(), ..port.clone() });
                places.push(*inner.places.get(*index).ok_or_else(missing)?);
                words.push(*inner.words.get(*index).ok_or_else(missing)?);
                continue;
            }
            let tensor = result(found, &[], given)?;
            let (dims, dtype) = (tensor.dims(), tensor.dtype());
            let elements = word::of_tensor(&tensor, dtype.word(), dtype, name)?.into_owned();
            ports.push(Port { name: name.clone(), shape: dims.shape(), dims, dtype, open: Vec::new() });
            places.push(OutputPlace { read: reads + fixed.len(), offset: 0, bytes: 4 * elements.len() });
            words.push(dtype.word());
            fixed.push(elements);
        }
        let (places, words, fixed) = (places.into(), words.into(), fixed.into());
        let layout = Layout { places, words, spare: Arc::clone(&inner.spare), fixed };
        changing.composed = Some(Composed { ports: ports.into(), layout });
        Ok(())
    }
}

/// A result of a part whose session has these outputs.
fn result(found: &Found, outputs: &[HostTensor], given: &[Given<'_>]) -> Result<HostTensor> {
    let missing = |what: String| Error::Internal(format!("a part of a network has no {what}"));
    match found {
        Found::Output(index) => outputs.get(*index).cloned().ok_or_else(|| missing(format!("output {index}"))),
        Found::Constant(tensor) => Ok(tensor.clone()),
        Found::Given(name) => {
            let own = given.iter().find(|given| given.name == *name).map(Given::value).transpose()?;
            own.flatten().map(Cow::into_owned).ok_or_else(|| missing(format!("value {name:?}")))
        }
    }
}
