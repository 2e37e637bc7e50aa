//! A session whose inputs' extents each run decides: the plans of the extents that were met, the least recently used
//! out, and the parts that a network is divided into where extents depend on values.
//!
//! A plan is for certain extents, and for certain values where a network's extents depend on them. A network of several
//! parts runs one part after the other; the results of a part are the inputs of the next one.
use super::cache_state::{CACHE, CacheState, fed_by_last};
use super::extents::Extents;
use super::flight::{Layout, OutputPlace};
use super::input::{FedInput, Input, RunInput, arranged};
use super::open_inputs::given_of;
use super::part_plan::PartPlan;
use super::plan::{Plan, are_outputs};
use super::plans::{Composed, FIRST, MOST_PARTS, Plans};
use super::{BuildProgress, Port, Session};
use crate::context::Context;
use crate::device::Wait;
use crate::dims::Dims;
use crate::error::{Error, Hint, Result, Setting};
use crate::graph::Key;
use crate::host::HostTensor;
use crate::options::SessionOptions;
use crate::parallel;
use crate::source::{Caching, GraphSource, Part, PartResult, PartStart};
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

impl Plans {
    /// The part at a place, read on as many threads as the options give the session.
    pub(super) fn part_of(
        &self,
        place: &PartStart,
        given: &[FedInput<'_>],
        by_value: &BTreeSet<String>,
        caching: Option<Caching<'_>>,
    ) -> Result<Part> {
        let _limited = parallel::Limited::to(self.options.cpu_threads);
        let fed = self.cached.as_ref().map_or(&[][..], |cached| &cached.caches.fed);
        let is_fed = |input: &str| given.iter().any(|own| own.name == fed_by_last(input));
        let mut shown = FedInput::given(given);
        shown.retain(|own| !fed.iter().any(|(_, input)| own.name == fed_by_last(input)));
        let mut part = self.source.part(place, &shown, by_value, caching)?;
        if part.next.is_none() {
            fed.iter().try_for_each(|(output, input)| part.feed_back(output, input, is_fed(input)))?;
        }
        Ok(part)
    }
}

impl Session {
    /// A session of a network whose extents each run decides. Where nothing but extents that the file fixes decides, it is
    /// planned at once.
    pub(crate) async fn of_source(
        context: &Context,
        source: Arc<dyn GraphSource>,
        options: SessionOptions,
        wait: Wait,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<Self> {
        let plans = Plans::new(context, source, options)?;
        let mut session = Session { extents: Extents::Open(Box::new(plans)), carried: Vec::new() };
        session.plan_fixed(wait, progress).await?;
        Ok(session)
    }

    /// Plans the first run of a network whose extents are all fixed.
    async fn plan_fixed(&mut self, wait: Wait, progress: &mut impl FnMut(BuildProgress)) -> Result<()> {
        let Some(plans) = self.extents.open() else { return Ok(()) };
        let required = plans.source.inputs().iter().filter(|input| !input.is_optional);
        let mut given = Vec::new();
        for own in required {
            let fixed: Option<Vec<usize>> =
                own.extents.as_ref().and_then(|own| own.iter().copied().collect());
            let Some(fixed) = fixed else { return Ok(()) };
            let dims = Dims::new(&fixed)?;
            given.push(FedInput { name: Cow::Owned(own.name.clone()), dims, input: None });
        }
        self.plan_for(&given, wait, progress).await
    }

    /// Makes the plan for these extents, unless there is one, what the session runs. Of a network whose extents depend on
    /// values nothing is planned.
    pub(super) async fn plan_for(
        &mut self,
        given: &[FedInput<'_>],
        wait: Wait,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<()> {
        let plans = self.plans_mut()?;
        if let Some(plan) = plans.planned(FIRST, given)? {
            return plans.make_current(plan, given, wait).await;
        }
        let (place, by_value) = {
            let first = plans.stage(FIRST)?;
            (first.place.clone(), first.by_value.clone())
        };
        let part = plans.part_of(&place, given, &by_value, None)?;
        if part.next.is_some() || !part.by_value.is_empty() {
            return Ok(());
        }
        let plan = plans.plan(FIRST, given, part, &[], wait, progress).await?;
        plans.make_current(plan, given, wait).await
    }

    fn plans_mut(&mut self) -> Result<&mut Plans> {
        self.extents.open_mut().ok_or_else(|| Error::Internal("a session of fixed extents".to_owned()))
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
        let plans = match &mut self.extents {
            Extents::Fixed(plan) => {
                return arranged(&plan.inputs, inputs, &|dtype| plan.runner.word(dtype));
            }
            Extents::Open(plans) => plans,
        };
        let shown = plans.given(inputs)?;
        let given = plans.with_caches(shown.clone())?;
        let key = plans.draws.begin(plans.options.seed);
        let mut path = Vec::new();
        let mut outcome = plans.part(FIRST, &given, &mut path, key, wait).await?;
        let mut feeds: Option<Vec<(String, HostTensor)>> = None;
        let last = loop {
            match outcome {
                Outcome::Last(plan) => break plan,
                Outcome::Next(..) if path.len() > MOST_PARTS => {
                    let why = format!("found more than {MOST_PARTS} parts whose extents depend on values");
                    return Err(Error::unsupported("this network", why));
                }
                Outcome::Next(stage, tensors) => {
                    outcome = plans.part(stage, &given_of(&tensors), &mut path, key, wait).await?;
                    feeds = Some(tensors);
                }
            }
        };
        plans.adds(last)?;
        for port in &mut plans.inputs {
            let given = shown.iter().find(|given| given.name == port.name);
            if let Some(given) = given {
                (port.dims, port.shape) = (given.dims, given.dims.shape());
            }
        }
        match feeds {
            Some(feeds) => {
                let own = given_of(&feeds);
                plans.make_current(last, &own, wait).await?;
                plans.draw_last(last, key)?;
                let inputs = plans.current().feeds(own)?;
                inputs.into_iter().map(Input::into_owned).collect()
            }
            None => {
                plans.make_current(last, &given, wait).await?;
                plans.draw_last(last, key)?;
                let given = plans.with_masks(last, given)?;
                plans.current().feeds(given)
            }
        }
    }
}

impl Plans {
    /// Plans a part, and runs it if it is not the last one.
    async fn part(
        &mut self,
        stage: u64,
        given: &[FedInput<'_>],
        path: &mut Vec<u64>,
        key: Key,
        wait: Wait,
    ) -> Result<Outcome> {
        let place = self.stage(stage)?.place.clone();
        if place.on_host {
            path.push(stage);
            let (tensors, next) = self.source.on_host(&place, &FedInput::given(given))?;
            return Ok(Outcome::Next(self.behind(stage, next)?, tensors));
        }
        let number = match self.planned(stage, given)? {
            Some(number) => number,
            None => {
                let by_value = self.stage(stage)?.by_value.clone();
                let caching = self.cached.as_ref().map(CacheState::caching);
                let part = self.part_of(&place, given, &by_value, caching)?;
                if caching.is_some() && part.next.is_some() {
                    let why = "extents within this network depend on values";
                    let error = Error::unsupported(CACHE, why);
                    return Err(error.hinted(Hint::new(": ", Setting::Carry, " runs it")));
                }
                self.plan(stage, given, part, path, wait, &mut |_| {}).await?
            }
        };
        path.push(number);
        let gone = || Error::Internal("a plan is gone".to_owned());
        let PartPlan { plan, results, next, .. } = self.parts.get_mut(&number).ok_or_else(gone)?;
        let Some(next) = *next else { return Ok(Outcome::Last(number)) };
        plan.runner.take_buffers(&self.shared)?;
        plan.runner.draw_by(key)?;
        let outputs = plan.run(&plan.feeds(given.to_vec())?, wait).await?;
        let mut tensors = Vec::with_capacity(results.len());
        for (name, found) in results.iter() {
            tensors.push((name.clone(), result(found, &outputs, given)?));
        }
        Ok(Outcome::Next(next, tensors))
    }

    /// Makes a plan of a part, and keeps it.
    async fn plan(
        &mut self,
        stage: u64,
        given: &[FedInput<'_>],
        part: Part,
        path: &[u64],
        wait: Wait,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<u64> {
        let plan = match part.graph.outputs().is_empty() {
            true => Plan::idle(),
            false => {
                let options = self.options_of(stage, &part);
                let (context, shared) = (&self.context, &self.shared);
                let mut plan = match wait {
                    #[cfg(not(target_family = "wasm"))]
                    Wait::Blocks => Plan::built(context, &part.graph, options, Some(shared), &|_| {}).await?,
                    Wait::Awaits => {
                        let shared = Some(Arc::clone(shared));
                        Plan::built_async(context, &part.graph, options, shared, progress).await?
                    }
                };
                plan.name_outputs(&part.results);
                plan
            }
        };
        self.make_room(path);
        let number = self.keep(stage, given, part, plan)?;
        self.tidy();
        Ok(number)
    }

    /// Makes a plan of the last part what runs. It takes the states of the plan before it.
    async fn make_current(&mut self, number: u64, given: &[FedInput<'_>], wait: Wait) -> Result<()> {
        if self.current != Some(number) {
            let gone = || Error::Internal("a plan is gone".to_owned());
            let next = self.parts.get_mut(&number).ok_or_else(gone)?;
            next.plan.runner.take_buffers(&self.shared)?;
            let next = self.parts.get(&number).ok_or_else(gone)?;
            next.plan.runner.follow(&self.current().runner, wait).await?;
            self.current = Some(number);
            self.dropped = Plan::idle();
            self.tidy();
        }
        self.compose(number, given)
    }

    /// Has the last part of the run that was begun draw by its key.
    fn draw_last(&mut self, plan: u64, key: Key) -> Result<()> {
        if self.draws.end_by(plan) { self.current().runner.draw_by(key) } else { Ok(()) }
    }

    /// Says how the outputs of the network lie.
    fn compose(&mut self, number: u64, given: &[FedInput<'_>]) -> Result<()> {
        let Some(PartPlan { plan, results, .. }) = self.parts.get(&number) else { return Ok(()) };
        let is_run = given.iter().all(|own| own.input.is_some());
        if !is_run && results.iter().any(|(_, found)| matches!(found, PartResult::Given(_))) {
            return Ok(());
        }
        let own = &plan.outputs;
        if are_outputs(results, own.len()) {
            self.composed = None;
            return Ok(());
        }
        let inner = plan.runner.layout();
        let all = inner.places.iter().map(|place| place.read + 1).max().unwrap_or(0);
        // What the plan knows without a run lies behind what it reads.
        let reads = all.saturating_sub(inner.fixed.len());
        let (mut ports, mut places, mut words) = (Vec::new(), Vec::new(), Vec::new());
        let mut fixed: Vec<Vec<f32>> = Vec::new();
        for (name, found) in results {
            if let PartResult::Output(index) = found {
                let missing = || Error::Internal(format!("no output {index} for {name:?}"));
                let port = own.get(*index).ok_or_else(missing)?;
                let place = *inner.places.get(*index).ok_or_else(missing)?;
                ports.push(Port { name: name.clone(), ..port.clone() });
                places.push(if place.bytes > 0 {
                    place
                } else {
                    fixed.push(Vec::new());
                    OutputPlace { read: reads + fixed.len() - 1, offset: 0, bytes: 0 }
                });
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
        self.composed = Some(Composed { ports: ports.into(), layout });
        Ok(())
    }
}

/// A result of a part whose plan has these outputs.
fn result(found: &PartResult, outputs: &[HostTensor], given: &[FedInput<'_>]) -> Result<HostTensor> {
    let missing = |what: String| Error::Internal(format!("a part of a network has no {what}"));
    match found {
        PartResult::Output(index) => {
            outputs.get(*index).cloned().ok_or_else(|| missing(format!("output {index}")))
        }
        PartResult::Constant(tensor) => Ok(tensor.clone()),
        PartResult::Given(name) => {
            let own = given.iter().find(|given| given.name == *name).map(FedInput::value).transpose()?;
            own.flatten().map(Cow::into_owned).ok_or_else(|| missing(format!("value {name:?}")))
        }
    }
}
