//! Which problems a network has.

use super::work::Work;
use crate::dtype::Precision;
use crate::emit::Dialect;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::lower::{Rewrites, Unit, compose, follow, has_halves, joined, multiple, op_on, simplified};
use crate::ops::{Op, Purpose};
use crate::tune::OpBench;
use crate::tune::db::{self, Chosen, SharedDatabase, Source};
use crate::tune::key::{DeviceKey, ProblemKey};
use crate::tune::work_group::{WorkGroup, layouts, untuned_in};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// What a problem whose time is not known is taken to take.
const UNKNOWN_TIME: Duration = Duration::from_micros(10);
/// How much less a problem in images counts: few kernels offer them.
const SHARE_OF_IMAGES: f64 = 0.25;

/// A distinct problem whose search is not at its end.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) nodes: Vec<String>,
    pub(super) op: Arc<dyn Op>,
    pub(super) layout: Layout,
    pub(super) key: ProblemKey,
    /// How often it was worked on.
    pub(super) pass: usize,
    /// How long it is worked on next, where there is a budget.
    pub(super) slice: Duration,
    /// The default's time, once it is known.
    pub(super) time: Option<Duration>,
    /// The bench of the last pass, without anything on the device.
    pub(super) bench: Option<Box<OpBench>>,
}

impl Job {
    /// How long its nodes take together in an untuned network, in seconds.
    pub(super) fn share(&self) -> f64 {
        let layout = if self.layout == Layout::Image2d { SHARE_OF_IMAGES } else { 1.0 };
        self.time.unwrap_or(UNKNOWN_TIME).as_secs_f64() * self.nodes.len().max(1) as f64 * layout
    }
}

/// The layouts that are tried where the caller named none: see [`Tuner::layouts`](super::Tuner::layouts).
pub(super) fn worth_trying(limits: &Limits) -> Vec<Layout> {
    let textures = matches!(limits.family, Family::Adreno(_) | Family::Mali(_) | Family::PowerVr);
    let images = limits.dialect == Dialect::OpenClC && limits.max_image.is_some() && textures;
    if images { vec![Layout::C4, Layout::Image2d] } else { vec![Layout::C4] }
}

impl Work {
    pub(super) fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.begin_units(graph, true)
    }

    /// Lines up the problems of all units, or of those that are to be `tunable`.
    pub(super) fn begin_units(&mut self, graph: &Graph, tunable: bool) -> Result<()> {
        let graph = &*graph.on_device()?;
        let mut network = simplified(graph, &Rewrites::ALL)?;
        let alignment = self.device.info().limits.binding_alignment;
        joined(&mut network, &Rewrites::ALL, multiple(self.precision, alignment))?;
        let composed = if self.precision == Precision::Auto { Precision::F32 } else { self.precision };
        compose(&mut network, &|_| false, composed, &self.device.info().limits)?;
        follow(&mut network, &|_| false, composed, &self.device.info().limits)?;
        // Stacks first: they are among the largest.
        let (stacks, nodes): (Vec<_>, Vec<_>) =
            network.units().iter().partition(|unit| !unit.parts().is_empty());
        for unit in stacks.into_iter().chain(nodes) {
            for precision in self.precisions() {
                self.line_up_on(graph, unit, precision, tunable)?;
            }
        }
        if self.precision == Precision::Auto {
            // Stacks lie as in f32 where a session has nothing in halves.
            let mut network = simplified(graph, &Rewrites::ALL)?;
            joined(&mut network, &Rewrites::ALL, multiple(Precision::F32, alignment))?;
            for unit in network.units().iter().filter(|unit| unit.multiple() > 1) {
                self.line_up_on(graph, unit, Precision::F32, tunable)?;
            }
        }
        Ok(())
    }

    pub(super) fn begin_nodes(&mut self, graph: &Graph, names: &[String]) -> Result<()> {
        let graph = &*graph.on_device()?;
        let alone = |name: &str| names.iter().any(|own| own == name);
        let network = simplified(graph, &Rewrites { alone: &alone, ..Rewrites::ALL })?;
        for name in names {
            let Some(unit) = network.units().iter().find(|unit| unit.name == *name) else {
                let all: Vec<&str> = network.units().iter().map(|unit| unit.name.as_str()).collect();
                return Err(Error::input("node", format!("{name:?}"), format!("one of {all:?}")));
            };
            for precision in self.precisions() {
                self.line_up_on(graph, unit, precision, false)?;
            }
        }
        Ok(())
    }

    /// The precisions in which nodes may run: with [`Precision::Auto`] those that it chooses from.
    fn precisions(&self) -> Vec<Precision> {
        match self.precision {
            Precision::Auto if has_halves(&self.device.info().limits) => {
                vec![Precision::F32, Precision::F16Storage]
            }
            Precision::Auto => vec![Precision::F32],
            precision => vec![precision],
        }
    }

    /// Lines up the problems of a unit as the device runs it, those with one kernel too unless it is to be `tunable`.
    fn line_up_on(&mut self, graph: &Graph, unit: &Unit, precision: Precision, tunable: bool) -> Result<()> {
        let limits = &self.device.info().limits;
        let on = |layout| op_on(graph, unit, precision, layout, limits);
        let [maps, rows] = [on(Layout::C4)?, on(Layout::Nhwc)?];
        // Where the device has no rows of halves, maps are of halves and rows of f32.
        let other = rows.precision() != maps.precision() && rows.kernels().serve(Layout::Nhwc, limits);
        let rows = other.then_some(rows);
        for op in [Some(maps), rows].into_iter().flatten() {
            if !tunable || op.obstacle(Purpose::Tuning).is_none() {
                self.line_up(&unit.name, op);
            }
        }
        Ok(())
    }

    /// Lines up one problem, under a name for the report.
    pub(super) fn line_up(&mut self, name: &str, op: Arc<dyn Op>) {
        let limits = &self.device.info().limits;
        let images = self.layouts.iter().copied().filter(|layout| *layout != Layout::C4);
        // A layout in which no kernel can run is no problem to tune.
        let images = images.filter(|layout| untuned_in(&*op, WorkGroup::Table, *layout, limits).is_ok());
        let mut own = layouts(&*op, limits);
        if own.is_empty() {
            own.push(Layout::C4);
        }
        let layouts: Vec<Layout> = own.into_iter().chain(images).collect();
        for layout in layouts {
            self.line_up_in(layout, name, &op);
        }
    }

    fn line_up_in(&mut self, layout: Layout, name: &str, op: &Arc<dyn Op>) {
        let key = ProblemKey::in_layout(&**op, layout);
        if let Some(job) = self.jobs.iter_mut().find(|job| job.key == key) {
            // What computes in rows is the same problem in every precision.
            if job.nodes.iter().all(|own| own != name) {
                job.nodes.push(name.to_owned());
            }
            return;
        }
        let chosen = self.lookup(&self.database, &**op, layout);
        let settled = chosen.is_some_and(|chosen| chosen.from == Source::Exact && !chosen.open);
        if self.retune || !settled {
            if let Ok(default) = untuned_in(&**op, WorkGroup::Table, layout, &self.limits()) {
                self.defaults.push((key.clone(), default));
            }
            self.jobs.push_back(Job {
                nodes: vec![name.to_owned()],
                op: Arc::clone(op),
                layout,
                key,
                pass: 0,
                slice: Duration::ZERO,
                time: None,
                bench: None,
            });
            self.problems += 1;
            self.pass = 0;
        }
    }

    /// A record's choice.
    pub(super) fn lookup(&self, database: &SharedDatabase, op: &dyn Op, layout: Layout) -> Option<Chosen> {
        db::choose(database, &DeviceKey::of(self.device.info()), op, layout, &self.limits())
    }

    /// The device's limits, with what is on record of its speed: those by which a session chooses untuned kernels.
    pub(super) fn limits(&self) -> Limits {
        let info = self.device.info();
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        database.known_limits(&DeviceKey::of(info), &info.limits).into_owned()
    }
}
