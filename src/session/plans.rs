//! The plans of a session: one where its extents are fixed; else one for each set of extents of its runs, of which the least
//! recently used is dropped, and the places of the network where they begin.

use super::cache_state::CacheState;
use super::draws::Draws;
use super::flight::Layout;
use super::input::{FedInput, RunInput};
use super::open_inputs::{check_open, declared, shown};
use super::part_plan::PartPlan;
use super::plan::Plan;
use super::ports::unknown;
use super::shared::Shared;
use super::{Port, Session};
use crate::context::Context;
use crate::device::Wait;
use crate::dims::Dims;
use crate::error::{Error, Result, Setting};
use crate::lower::can_be_a_step;
use crate::options::{SessionOptions, Tuning};
use crate::sorted;
use crate::source::{GraphSource, OpenInput, Part, PartStart};
use crate::tune::db::SharedDatabase;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// How many plans are kept unless the options say so.
const MOST_PLANS: usize = 32;

/// The most parts of one run. A faulty file could make them without end.
pub(super) const MOST_PARTS: usize = 4096;

/// Where all begin.
pub(super) const FIRST: u64 = 0;

/// Plans of a network whose extents each run decides, and what makes them.
#[derive(Debug)]
pub(super) struct Plans {
    pub(super) context: Context,
    pub(super) options: SessionOptions,
    pub(super) source: Arc<dyn GraphSource>,
    pub(super) shared: Arc<Shared>,
    /// The inputs as they are shown: with the extents of the last run.
    pub(super) inputs: Vec<Port>,
    pub(super) stages: BTreeMap<u64, Stage>,
    pub(super) parts: BTreeMap<u64, PartPlan>,
    /// Numbers of stages and plans, and when a plan was used.
    pub(super) next: u64,
    /// The plan of the last part of the last run.
    pub(super) current: Option<u64>,
    /// What runs where there is no such plan: nothing, or a plan that was dropped since, whose states the next one takes.
    pub(super) dropped: Plan,
    pub(super) draws: Draws,
    /// The outputs of the last run, where they are not just those of the current plan.
    pub(super) composed: Option<Composed>,
    /// What [`Session::cache`] keeps.
    pub(super) cached: Option<CacheState>,
}

/// Outputs of which a plan computes some, and others are known beside it.
#[derive(Debug)]
pub(super) struct Composed {
    pub(super) ports: Arc<[Port]>,
    pub(super) layout: Layout,
}

/// A place in the network, and the plans that begin there.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) place: PartStart,
    pub(super) plans: Vec<u64>,
    /// What some plan depends on the value of.
    pub(super) by_value: BTreeSet<String>,
    /// The stages behind one on the host, by what tells them apart.
    pub(super) behind: BTreeMap<String, u64>,
}

impl Plans {
    pub(super) fn new(
        context: &Context,
        source: Arc<dyn GraphSource>,
        options: SessionOptions,
    ) -> Result<Self> {
        check_open(source.inputs(), &options)?;
        let required = source.inputs().iter().filter(|input| !input.is_optional);
        let inputs = required.map(shown).collect::<Result<_>>()?;
        let composed = Some(Composed { ports: source.outputs().into(), layout: Layout::default() });
        let first = Stage {
            place: source.first(),
            plans: Vec::new(),
            by_value: BTreeSet::new(),
            behind: BTreeMap::new(),
        };
        Ok(Plans {
            context: context.clone(),
            options,
            source,
            shared: Arc::default(),
            inputs,
            stages: BTreeMap::from([(FIRST, first)]),
            parts: BTreeMap::new(),
            next: FIRST + 1,
            current: None,
            dropped: Plan::idle(),
            draws: Draws::default(),
            composed,
            cached: None,
        })
    }

    /// What runs for the extents of the last run.
    pub(super) fn current(&self) -> &Plan {
        let part = self.current.and_then(|current| self.parts.get(&current));
        part.map_or(&self.dropped, |part| &part.plan)
    }

    /// [`Plans::current`], to change.
    pub(super) fn current_mut(&mut self) -> &mut Plan {
        let part = self.current.and_then(|current| self.parts.get_mut(&current));
        part.map_or(&mut self.dropped, |part| &mut part.plan)
    }

    /// Forgets all plans, and keeps caches from now on.
    pub(super) fn begin_again(&mut self, cached: CacheState) {
        self.parts.clear();
        self.dropped = Plan::idle();
        self.stages.retain(|&stage, _| stage == FIRST);
        for stage in self.stages.values_mut() {
            stage.plans.clear();
            stage.by_value.clear();
            stage.behind.clear();
        }
        self.current = None;
        let ports = self.source.outputs().into_iter().filter(|port| !cached.has_output(&port.name));
        self.composed = Some(Composed { ports: ports.collect(), layout: Layout::default() });
        self.shared.keep_states();
        self.cached = Some(cached);
    }

    pub(super) fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    pub(super) fn stage(&self, stage: u64) -> Result<&Stage> {
        self.stages.get(&stage).ok_or_else(|| Error::Internal("a part of a network is gone".to_owned()))
    }

    /// What a run is given, checked against what the network declares, in the order of its inputs.
    pub(super) fn given<'a>(&self, inputs: Vec<(&str, RunInput<'a>)>) -> Result<Vec<FedInput<'a>>> {
        let mut found: Vec<Option<RunInput<'a>>> = vec![None; self.source.inputs().len()];
        for (name, input) in inputs {
            let place = self.source.inputs().iter().position(|own| own.name == name);
            let place = place.and_then(|place| found.get_mut(place));
            let place = place.ok_or_else(|| unknown("input", name, &self.inputs))?;
            if place.is_some() {
                return Err(Error::input(format!("input {name:?}"), "two tensors", "one"));
            }
            if self.cached.as_ref().is_some_and(|cached| cached.has_input(name)) {
                let error = Error::input(format!("input {name:?}"), "a tensor", "none: the session keeps it");
                return Err(error.with_setting(Setting::Cache));
            }
            *place = Some(input);
        }
        let mut given = Vec::with_capacity(found.len());
        for (own, input) in self.source.inputs().iter().zip(found) {
            match input {
                Some(input) => {
                    let dims = self.extents(own, &input)?;
                    given.push(FedInput { name: Cow::Owned(own.name.clone()), dims, input: Some(input) });
                }
                None if self.cached.as_ref().is_some_and(|it| it.has_fed(&own.name)) => {
                    if self.cached.as_ref().is_some_and(|it| !it.ran) {
                        let found = "nothing, and no run before has left it";
                        let wanted = format!("a tensor of {}", declared(own));
                        return Err(Error::input(format!("input {:?}", own.name), found, wanted));
                    }
                    let dims = self.fed_dims(&own.name)?;
                    given.push(FedInput { name: Cow::Owned(own.name.clone()), dims, input: None });
                }
                None if own.is_optional || self.cached.as_ref().is_some_and(|it| it.has_input(&own.name)) => {
                }
                None => {
                    let wanted = format!("a tensor of {}", declared(own));
                    return Err(Error::input(format!("input {:?}", own.name), "nothing", wanted));
                }
            }
        }
        Ok(given)
    }

    /// The dimensions of an input that the run before has left: those of its output.
    fn fed_dims(&self, input: &str) -> Result<Dims> {
        let gone = || Error::Internal(format!("no output for input {input:?}"));
        let pairs = self.cached.as_ref().map(|cached| &cached.caches.fed);
        let output = pairs.and_then(|fed| fed.iter().find(|(_, own)| own == input)).ok_or_else(gone)?;
        let ports = self.composed.as_ref().map_or(&self.current().outputs, |composed| &composed.ports);
        let mut ports = ports.iter();
        ports.find(|port| port.name == output.0).map(|port| port.dims).ok_or_else(gone)
    }

    /// The dimensions of what is given for an input.
    fn extents(&self, own: &OpenInput, input: &RunInput<'_>) -> Result<Dims> {
        let misfit = |found: String| {
            Error::input(format!("input {:?}", own.name), found, format!("a tensor of {}", declared(own)))
        };
        let Some(dims) = input.dims() else {
            // A slice has as many elements as the last run's, and frames its extents.
            let port = self.inputs.iter().find(|port| port.name == own.name);
            let same = port.filter(|port| input.could_be(port.dims));
            return same
                .map(|port| port.dims)
                .ok_or_else(|| misfit(format!("{}, which does not say its extents", input.said())));
        };
        let Some(extents) = &own.extents else { return Ok(dims) };
        for open in &own.open {
            let extent = dims.extents().get(open.axis);
            let range = self.options.open.get(&open.name).and_then(Option::as_ref);
            if let Some((extent, range)) = extent.zip(range).filter(|(own, range)| !range.contains(own)) {
                let found = format!("{extent} for dimension {:?}", open.name);
                let wanted = format!("{} to {}", range.start(), range.end());
                let error = Error::input(format!("input {:?}", own.name), found, wanted);
                return Err(error.with_setting(Setting::Open));
            }
        }
        let fits = |dims: &Dims| {
            dims.rank() == extents.len()
                && dims.extents().iter().zip(extents).all(|(found, own)| own.is_none_or(|own| own == *found))
        };
        if fits(&dims) {
            return Ok(dims);
        }
        // One number serves for any rank, and a feature map for what has its shape.
        let ones = Dims::new(&vec![1; extents.len()])?;
        let fixed: Option<Vec<usize>> = extents.iter().copied().collect();
        let map = fixed.map(|fixed| Dims::new(&fixed)).transpose()?;
        let map = map.filter(|own| dims.rank() == 4 && own.shape() == dims.shape());
        match map {
            Some(map) => Ok(map),
            None if dims.elements() == 1 && fits(&ones) => Ok(ones),
            None => Err(misfit(format!("shape {dims}"))),
        }
    }

    /// The plan of a stage for what it is given, used now.
    pub(super) fn planned(&mut self, stage: u64, given: &[FedInput<'_>]) -> Result<Option<u64>> {
        for number in self.stage(stage)?.plans.clone() {
            if self.parts.get(&number).map(|part| part.fits(given)).transpose()? == Some(true) {
                let now = self.number();
                if let Some(part) = self.parts.get_mut(&number) {
                    part.used = now;
                }
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Makes room for a plan. Those of `path` stay.
    pub(super) fn make_room(&mut self, path: &[u64]) {
        while self.parts.len() >= self.most().max(path.len() + 1) {
            let held = |number: &u64| path.contains(number) || self.current == Some(*number);
            let oldest = self.parts.iter().filter(|(number, _)| !held(number));
            let Some(oldest) = oldest.min_by_key(|(_, part)| part.used).map(|(&number, _)| number) else {
                return;
            };
            self.forget(oldest);
        }
    }

    /// Forgets a plan and all that is behind it.
    fn forget(&mut self, plan: u64) {
        self.stages.values_mut().for_each(|stage| stage.plans.retain(|&own| own != plan));
        self.remove(plan).into_iter().for_each(|stage| self.forget_stage(stage));
    }

    /// Removes a plan: the stage behind it.
    fn remove(&mut self, number: u64) -> Option<u64> {
        let PartPlan { plan, next, .. } = self.parts.remove(&number)?;
        if self.current == Some(number) {
            self.current = None;
            self.dropped = plan;
        }
        next
    }

    /// Forgets a stage and all that is behind it.
    fn forget_stage(&mut self, stage: u64) {
        let mut stages = vec![stage];
        while let Some(stage) = stages.pop() {
            let Some(gone) = self.stages.remove(&stage) else { continue };
            stages.extend(gone.behind.into_values());
            for number in gone.plans {
                stages.extend(self.remove(number));
            }
        }
    }

    /// How many plans are kept, and how many stages behind one that the CPU computes.
    fn most(&self) -> usize {
        self.options.plans.map_or(MOST_PLANS, NonZeroUsize::get)
    }

    /// The stage of what begins at `place`.
    pub(super) fn begun(&mut self, place: PartStart) -> u64 {
        let number = self.number();
        let stage = Stage { place, plans: Vec::new(), by_value: BTreeSet::new(), behind: BTreeMap::new() };
        self.stages.insert(number, stage);
        number
    }

    /// The stage that begins at `place`, behind one that the CPU computes. The one that was begun first makes room for it.
    pub(super) fn behind(&mut self, stage: u64, place: PartStart) -> Result<u64> {
        let known = &self.stage(stage)?.behind;
        if let Some(&known) = known.get(&place.form) {
            return Ok(known);
        }
        if known.len() >= self.most() {
            let first = known.values().min().copied();
            first.into_iter().for_each(|first| self.forget_stage(first));
            if let Some(stage) = self.stages.get_mut(&stage) {
                stage.behind.retain(|_, own| Some(*own) != first);
            }
        }
        let form = place.form.clone();
        let begun = self.begun(place);
        if let Some(stage) = self.stages.get_mut(&stage) {
            stage.behind.insert(form, begun);
        }
        Ok(begun)
    }

    /// Keeps a plan.
    pub(super) fn keep(&mut self, stage: u64, given: &[FedInput<'_>], part: Part, plan: Plan) -> Result<u64> {
        let mut values = Vec::with_capacity(part.by_value.len());
        for own in given.iter().filter(|own| part.by_value.contains(&*own.name)) {
            if let Some(value) = own.value()? {
                values.push((own.name.clone().into_owned(), value.into_owned()));
            }
        }
        let next = part.next.map(|place| self.begun(place));
        let number = self.number();
        let part_plan = PartPlan {
            extents: given.iter().map(|own| (own.name.clone().into_owned(), own.dims)).collect(),
            values,
            used: number,
            plan,
            results: part.results,
            next,
            adds: part.adds,
            apart: part.apart,
        };
        self.parts.insert(number, part_plan);
        if let Some(stage) = self.stages.get_mut(&stage) {
            stage.plans.push(number);
            stage.by_value.extend(part.by_value);
        }
        Ok(number)
    }

    /// The options of a part's session: those of its nodes.
    pub(super) fn options_of(&self, stage: u64, part: &Part) -> SessionOptions {
        let mut options = self.options.clone();
        options.open.clear();
        // The budget is for the session, not for each plan.
        if let (false, Tuning::Online { database, .. }) = (self.parts.is_empty(), &options.tuning) {
            options.tuning = Tuning::Database(SharedDatabase::clone(database));
        }
        if stage == FIRST && part.next.is_none() {
            return options;
        }
        let names = sorted::set(part.graph.nodes().iter().map(|node| node.name()));
        options.choices.retain(|name, _| can_be_a_step(name, &|node| names.contains(node)));
        options.precisions.retain(|name, _| names.contains(name.as_str()));
        options.on_cpu.retain(|name| names.contains(name.as_str()));
        options
    }

    /// All plans, and one that was dropped and whose states are wanted.
    pub(super) fn all(&self) -> impl Iterator<Item = &Plan> {
        self.parts.values().map(|part| &part.plan).chain([&self.dropped])
    }

    /// [`Plans::all`], to change.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Plan> {
        self.parts.values_mut().map(|part| &mut part.plan).chain([&mut self.dropped])
    }

    /// Whether a run is one of the current plan alone.
    pub(super) fn is_whole(&self) -> bool {
        let first = self.stages.get(&FIRST);
        self.composed.is_none()
            && self.current.is_some_and(|current| first.is_some_and(|first| first.plans.contains(&current)))
    }

    /// A session of the same network on another context.
    pub(super) async fn again(&self, context: &Context, wait: Wait) -> Result<Session> {
        let (source, options) = (Arc::clone(&self.source), self.options.clone());
        Session::of_source(context, source, options, wait, &mut |_| {}).await
    }
}
