//! Which problems a network has, and what time each gets.

use super::Tuner;
use crate::dtype::Precision;
use crate::emit::Dialect;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::lower::{fusible, has_halves, joined, multiple, simplified};
use crate::ops::{Choice, Op};
use crate::options::Fusing;
use crate::tune::db::{self, NEAR, SharedDatabase, Source};
use crate::tune::key::{DeviceKey, ProblemKey};
use crate::tune::work_group::{WorkGroup, layouts, untuned_in};
use std::sync::Arc;
use std::time::Duration;

/// How many times the share of others the first problem of its kind has.
const FIRST_PROBLEM_SHARE: u32 = 2;
/// Nodes at most that count for a problem's share.
const MAX_NODES_COUNTED: usize = 4;

/// A distinct problem still to be tuned.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) nodes: Vec<String>,
    pub(super) op: Arc<dyn Op>,
    pub(super) layout: Layout,
    pub(super) key: ProblemKey,
}

impl Job {
    /// Its part of a budget: more for a problem of many nodes, because more is gained; less for images, which
    /// few kernels offer; more for the `first` of its kind, which begins without hints and gives them to
    /// those that follow.
    pub(super) fn weight(&self, first: bool) -> u32 {
        let nodes = u32::try_from(self.nodes.len().clamp(1, MAX_NODES_COUNTED)).unwrap_or(1);
        let layout = if self.layout == Layout::C4 { 4 } else { 1 };
        nodes * layout * if first { FIRST_PROBLEM_SHARE } else { 1 }
    }
}

/// The layouts that are tried where the caller named none: see [`Tuner::layouts`].
pub(super) fn worth_trying(limits: &Limits) -> Vec<Layout> {
    let textures = matches!(limits.family, Family::Adreno(_) | Family::Mali(_) | Family::PowerVr);
    let images = limits.dialect == Dialect::OpenClC && limits.max_image.is_some() && textures;
    if images { vec![Layout::C4, Layout::Image2d] } else { vec![Layout::C4] }
}

impl Tuner {
    /// What `job`, of which the record knows nothing if it is the `first` of its kind, gets of the
    /// time that is `left` for it and those after it.
    pub(super) fn share(&self, job: &Job, first: bool, left: Duration) -> Duration {
        let similar = |a: &ProblemKey, b: &ProblemKey| a.distance(b).is_some_and(|distance| distance <= NEAR);
        let after: u32 = self
            .jobs
            .iter()
            .enumerate()
            .map(|(place, waiting)| {
                let follows = similar(&job.key, &waiting.key)
                    || self.jobs.iter().take(place).any(|before| similar(&before.key, &waiting.key))
                    || !self.relatives(&waiting.key).is_empty();
                waiting.weight(!follows)
            })
            .sum();
        let own = job.weight(first);
        left * own / (own + after)
    }

    /// Lines up the problems of `graph`'s nodes, and of the blocks that may run as one; equal ones are tuned
    /// once, and those that the record has an exact verdict on are left out (see [`Tuner::retune`]).
    ///
    /// # Errors
    /// If a node's shapes are inconsistent, which the graph's own checks rule out.
    pub fn begin(&mut self, graph: &Graph) -> Result<()> {
        let mut network = simplified(graph, &|_| false)?;
        let alignment = self.device.info().limits.binding_alignment;
        joined(&mut network, &|_| false, multiple(self.precision, alignment))?;
        // Stacks first: they are among the largest.
        let (stacks, nodes): (Vec<_>, Vec<_>) =
            network.units().iter().partition(|unit| !unit.parts().is_empty());
        for unit in stacks.into_iter().chain(nodes) {
            for precision in self.precisions() {
                let op = unit.op(graph, precision)?;
                if op.untunable().is_none() {
                    self.line_up(&unit.name, op);
                }
            }
        }
        if self.fuse == Fusing::Never {
            return Ok(());
        }
        let limits = self.device.info().limits.clone();
        for candidate in fusible(&network, &|_| false)? {
            let op = candidate.unit.op(graph, self.precision)?;
            if self.fuse == Fusing::Rule && !op.worth_tuning(&limits) {
                continue;
            }
            // A block that no kernel serves is not tuned as one.
            if untuned_in(&*op, WorkGroup::Table, Layout::C4, &limits).is_ok() {
                self.line_up(&candidate.unit.name, op);
            }
        }
        Ok(())
    }

    /// Lines up the problems of some of `graph`'s nodes.
    ///
    /// # Errors
    /// If the graph has no node of one of these names.
    pub fn begin_nodes(&mut self, graph: &Graph, names: &[String]) -> Result<()> {
        let network = simplified(graph, &|name| names.iter().any(|own| own == name))?;
        for name in names {
            let Some(unit) = network.units().iter().find(|unit| unit.name == *name) else {
                let all: Vec<&str> = network.units().iter().map(|unit| unit.name.as_str()).collect();
                return Err(Error::input("node", format!("{name:?}"), format!("one of {all:?}")));
            };
            for precision in self.precisions() {
                self.line_up(&unit.name, unit.op(graph, precision)?);
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

    /// Lines up one problem, under a name for the report.
    #[doc(hidden)]
    pub fn begin_problem(&mut self, name: &str, op: Arc<dyn Op>) {
        self.line_up(name, op);
    }

    fn line_up(&mut self, name: &str, op: Arc<dyn Op>) {
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
        let exact = self.lookup(&self.database, &**op, layout).is_some_and(|(_, exact)| exact);
        if self.retune || !exact {
            if let Ok(default) = untuned_in(&**op, WorkGroup::Table, layout, &self.device.info().limits) {
                self.defaults.push((key.clone(), default));
            }
            let (nodes, op) = (vec![name.to_owned()], Arc::clone(op));
            self.jobs.push_back(Job { nodes, op, layout, key });
            self.problems += 1;
        }
    }

    /// A record's choice, and whether it is for exactly this problem.
    pub(super) fn lookup(
        &self,
        database: &SharedDatabase,
        op: &dyn Op,
        layout: Layout,
    ) -> Option<(Choice, bool)> {
        let info = self.device.info();
        let found = db::choose(database, &DeviceKey::of(info), op, layout, &info.limits)?;
        Some((found.choice, found.from == Source::Exact))
    }
}
