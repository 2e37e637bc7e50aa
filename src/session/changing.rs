//! A session whose inputs' extents each run decides: the plans of the extents that were met, the least recently used
//! out, and the parts that a network is divided into where extents depend on values.
//!
//! A plan is a session for certain extents, and for certain values where a network's extents depend on them. That of the
//! last run is the outer session's own; the others lie here. A network of several parts runs one after the other, what
//! one gives is what the next one is given.
use super::cached::{CACHE, Cached};
use super::flight::{Layout, Place as OutputPlace};
use super::given::given_of;
use super::input::{Input, RunInput, arranged};
use super::plans::{Changing, Composed, FIRST, MOST_PARTS};
#[cfg(not(target_family = "wasm"))]
use super::runner::Next;
use super::runner::{Idle, Runner};
use super::source::{Caching, Found, Given, Part, Place, Source};
use super::{BuildProgress, Port, Session};
use crate::context::Context;
use crate::device::Wait;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Hint, Result, Setting};
use crate::graph::Key;
use crate::host::HostTensor;
use crate::options::SessionOptions;
use crate::parallel;
use crate::word;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What comes of a part.
enum Outcome {
    /// It ran: the next one is given this.
    Next(u64, Vec<(String, HostTensor)>),
    /// It is the last one, and has not run.
    Last(u64),
}

impl Changing {
    /// The part at a place, read on as many threads as the options give the session.
    fn part_of(
        &self,
        place: &Place,
        given: &[Given<'_>],
        by_value: &BTreeSet<String>,
        caching: Option<Caching<'_>>,
    ) -> Result<Part> {
        let _limited = parallel::Limited::to(self.options.cpu_threads);
        self.source.part(place, given, by_value, caching)
    }
}

impl Session {
    /// A session of a network whose extents each run decides. Where nothing but extents that the file fixes decides, it is
    /// planned at once.
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
    pub(super) fn idle(changing: Option<Box<Changing>>) -> Self {
        let (inputs, outputs) = (Vec::new(), Arc::new([]));
        Session {
            inputs,
            outputs,
            runner: Runner::Idle(Idle::default()),
            made_of: None,
            changing,
            carried: Vec::new(),
        }
    }

    /// Plans the first run of a network whose extents are all fixed.
    async fn plan_fixed(&mut self, wait: Wait, progress: &mut impl FnMut(BuildProgress)) -> Result<()> {
        let Some(changing) = &self.changing else { return Ok(()) };
        let required = changing.source.inputs().iter().filter(|input| !input.is_optional);
        let mut given = Vec::new();
        for own in required {
            let fixed: Option<Vec<usize>> =
                own.extents.as_ref().and_then(|own| own.iter().copied().collect());
            let Some(fixed) = fixed else { return Ok(()) };
            let dims = Dims::new_or_empty(&fixed)?;
            given.push(Given { name: Cow::Owned(own.name.clone()), dims, input: None });
        }
        self.plan_for(&given, wait, progress).await
    }

    /// Makes the plan for these extents, unless there is one, what the session runs. Of a network whose extents depend on
    /// values nothing is planned.
    pub(super) async fn plan_for(
        &mut self,
        given: &[Given<'_>],
        wait: Wait,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<()> {
        let changing = self.changing_mut()?;
        if let Some(plan) = changing.planned(FIRST, given)? {
            return self.make_current(plan, given, wait).await;
        }
        let (place, by_value) = {
            let first = changing.stage(FIRST)?;
            (first.place.clone(), first.by_value.clone())
        };
        let part = changing.part_of(&place, given, &by_value, None)?;
        if part.next.is_some() || !part.by_value.is_empty() {
            return Ok(());
        }
        let plan = self.plan(FIRST, given, part, &[], wait, progress).await?;
        self.make_current(plan, given, wait).await
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
        let inputs = inputs.into_iter().map(|(name, input)| (Cow::Borrowed(name), input)).collect();
        let inputs = self.with_carried(inputs)?;
        let inputs = inputs.iter().map(|(name, input)| (&**name, input.clone())).collect();
        let Some(changing) = self.changing.as_deref_mut() else {
            return arranged(&self.inputs, inputs, &|dtype| self.runner.word(dtype));
        };
        let shown = changing.given(inputs)?;
        let given = changing.with_caches(shown.clone())?;
        let key = changing.begin_run();
        let mut path = Vec::new();
        let mut outcome = self.part(FIRST, &given, &mut path, key, wait).await?;
        let mut feeds: Option<Vec<(String, HostTensor)>> = None;
        let last = loop {
            match outcome {
                Outcome::Last(plan) => break plan,
                Outcome::Next(..) if path.len() > MOST_PARTS => {
                    let why = format!("found more than {MOST_PARTS} parts whose extents depend on values");
                    return Err(Error::unsupported("this network", why));
                }
                Outcome::Next(stage, tensors) => {
                    outcome = self.part(stage, &given_of(&tensors), &mut path, key, wait).await?;
                    feeds = Some(tensors);
                }
            }
        };
        if let Some(changing) = &mut self.changing {
            changing.adds(last)?;
            for port in &mut changing.inputs {
                let given = shown.iter().find(|given| given.name == port.name);
                if let Some(given) = given {
                    (port.dims, port.shape) = (given.dims, given.dims.shape());
                }
            }
        }
        match feeds {
            Some(feeds) => {
                let own = given_of(&feeds);
                self.make_current(last, &own, wait).await?;
                self.draw_last(last, key)?;
                let inputs = self.feeds(own)?;
                inputs.into_iter().map(Input::into_owned).collect()
            }
            None => {
                self.make_current(last, &given, wait).await?;
                self.draw_last(last, key)?;
                let given = match &self.changing {
                    Some(changing) => changing.with_masks(last, given)?,
                    None => given,
                };
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
            let input =
                own.input.clone().ok_or_else(|| Error::Internal("an input without elements".to_owned()))?;
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

    /// Plans a part, and runs it if it is not the last one.
    async fn part(
        &mut self,
        stage: u64,
        given: &[Given<'_>],
        path: &mut Vec<u64>,
        key: Key,
        wait: Wait,
    ) -> Result<Outcome> {
        let changing = self.changing_mut()?;
        let place = changing.stage(stage)?.place.clone();
        if place.on_host {
            path.push(stage);
            let (tensors, next) = changing.source.on_host(&place, given)?;
            return Ok(Outcome::Next(changing.behind(stage, next)?, tensors));
        }
        let number = match changing.planned(stage, given)? {
            Some(number) => number,
            None => {
                let by_value = changing.stage(stage)?.by_value.clone();
                let caching = changing.cached.as_ref().map(Cached::caching);
                let part = changing.part_of(&place, given, &by_value, caching)?;
                if caching.is_some() && part.next.is_some() {
                    let why = "extents within this network depend on values";
                    let error = Error::unsupported(CACHE, why);
                    return Err(error.hinted(Hint::new(": ", Setting::Carry, " runs it")));
                }
                self.plan(stage, given, part, path, wait, &mut |_| {}).await?
            }
        };
        path.push(number);
        let changing = self.changing_mut()?;
        let gone = || Error::Internal("a plan is gone".to_owned());
        let plan = changing.plans.get_mut(&number).ok_or_else(gone)?;
        let Some(next) = plan.next else { return Ok(Outcome::Last(number)) };
        if let Some(session) = &mut plan.session {
            session.runner.take_buffers(&changing.shared)?;
        }
        let outputs = match &plan.session {
            Some(session) => {
                session.runner.draw_by(key)?;
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
                let (context, shared) = (changing.context.clone(), Arc::clone(&changing.shared));
                let options = changing.options_of(stage, &part);
                Some(match wait {
                    #[cfg(not(target_family = "wasm"))]
                    Wait::Blocks => {
                        Session::built(&context, &part.graph, options, Some(&shared), &|_| {}).await?
                    }
                    Wait::Awaits => {
                        Session::build_sharing(&context, &part.graph, options, Some(shared), progress).await?
                    }
                })
            }
        };
        let changing = self.changing_mut()?;
        changing.make_room(path);
        let number = changing.keep(stage, given, part, session)?;
        if let Some(changing) = &mut self.changing {
            changing.tidy(&self.runner);
        }
        Ok(number)
    }

    /// Makes a plan of the last part what the session runs. It takes the states of the plan before it.
    async fn make_current(&mut self, plan: u64, given: &[Given<'_>], wait: Wait) -> Result<()> {
        let Some(changing) = self.changing.as_deref_mut() else { return Ok(()) };
        if changing.current != Some(plan) {
            let gone = || Error::Internal("a plan is gone".to_owned());
            let next = changing.plans.get_mut(&plan).ok_or_else(gone)?;
            if let Some(next) = &mut next.session {
                next.runner.take_buffers(&changing.shared)?;
                next.runner.follow(&self.runner, wait).await?;
            }
            let next = next.session.take();
            let next = next.unwrap_or_else(|| Session::idle(None));
            let Session { inputs, outputs, runner, made_of, .. } = next;
            let own = Session {
                inputs: std::mem::replace(&mut self.inputs, inputs),
                outputs: std::mem::replace(&mut self.outputs, outputs),
                runner: std::mem::replace(&mut self.runner, runner),
                made_of: std::mem::replace(&mut self.made_of, made_of),
                changing: None,
                carried: Vec::new(),
            };
            let before = changing.current.replace(plan);
            if let Some(before) = before.and_then(|before| changing.plans.get_mut(&before)) {
                before.session = (!matches!(own.runner, Runner::Idle(_))).then_some(own);
            }
            changing.tidy(&self.runner);
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
        let in_order = |(index, (_, found)): (usize, &(String, Found))| matches!(found, Found::Output(own) if *own == index);
        let own = &self.outputs;
        if plan.results.len() == own.len() && plan.results.iter().enumerate().all(in_order) {
            changing.composed = None;
            // Under the file's names.
            if plan.results.iter().zip(own.iter()).any(|((name, _), port)| *name != port.name) {
                let named = own.iter().zip(&plan.results);
                let named = named.map(|(port, (name, _))| Port { name: name.clone(), ..port.clone() });
                self.outputs = named.collect();
            }
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
        Found::Output(index) => {
            outputs.get(*index).cloned().ok_or_else(|| missing(format!("output {index}")))
        }
        Found::Constant(tensor) => Ok(tensor.clone()),
        Found::Given(name) => {
            let own = given.iter().find(|given| given.name == *name).map(Given::value).transpose()?;
            own.flatten().map(Cow::into_owned).ok_or_else(|| missing(format!("value {name:?}")))
        }
    }
}
