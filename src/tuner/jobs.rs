//! Which problems a network has, and what time each gets.

use super::{Tuner, layout_of, problem_of};
use crate::emit::Dialect;
use crate::error::Result;
use crate::graph::{Graph, Node};
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::ops::{Choice, Op};
use crate::session::siblings::siblings;
use crate::tune::Problem;
use crate::tune::key::{DeviceKey, ProblemKey, SourceHash};
use crate::tune::work_group::{WorkGroup, untuned_in};
use std::sync::PoisonError;
use std::time::Duration;

/// A distinct problem still to be tuned.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) nodes: Vec<String>,
    pub(super) problem: Problem,
    pub(super) layout: Layout,
    pub(super) key: ProblemKey,
}

impl Job {
    /// Its part of a budget. Few kernels have their feature maps in images, so few have to be tried.
    fn weight(&self) -> u32 {
        if self.layout == Layout::C4 { 4 } else { 1 }
    }
}

/// The layouts that are tried on a device that nobody said anything about: see [`Tuner::layouts`].
pub(super) fn worth_trying(limits: &Limits) -> Vec<Layout> {
    let textures = matches!(limits.family, Family::Adreno(_) | Family::Mali(_) | Family::PowerVr);
    let images = limits.dialect == Dialect::OpenClC && limits.max_image.is_some() && textures;
    if images { vec![Layout::C4, Layout::Image2d] } else { vec![Layout::C4] }
}

impl Tuner {
    /// What `job` gets of the time that is `left` for it and those after it.
    pub(super) fn share(&self, job: &Job, left: Duration) -> Duration {
        let all: u32 = self.jobs.iter().map(Job::weight).sum::<u32>() + job.weight();
        left * job.weight() / all
    }

    /// Lines up the problems of `graph`'s nodes; equal ones are tuned once, and those that the
    /// record has an exact verdict on are left out (see [`Tuner::retune`]).
    ///
    /// # Errors
    /// If a node's shapes are inconsistent, which the graph's own checks rule out.
    pub fn begin(&mut self, graph: &Graph) -> Result<()> {
        let groups = siblings(graph, &|_| false)?;
        for group in &groups {
            let problem = graph.problem(&group.merged, self.precision)?;
            self.line_up(&group.merged.name, problem_of(&problem));
        }
        let merged =
            |node: &Node| groups.iter().flat_map(|group| &group.nodes).any(|one| one.output == node.output);
        for node in graph.nodes().iter().filter(|node| !merged(node)) {
            self.line_up(node.name(), problem_of(&graph.problem(node, self.precision)?));
        }
        Ok(())
    }

    /// Lines up one problem, under a name for the report.
    pub fn begin_problem(&mut self, name: &str, problem: Problem) {
        self.line_up(name, problem);
    }

    fn line_up(&mut self, name: &str, problem: Problem) {
        let (op, limits) = (problem.op(), &self.device.info().limits);
        let images = self.layouts.iter().copied().filter(|layout| *layout != Layout::C4);
        // A layout in which no kernel can run is no problem to tune.
        let images = images.filter(|layout| untuned_in(op, WorkGroup::Table, *layout, limits).is_ok());
        let layouts: Vec<Layout> = [Layout::C4].into_iter().chain(images).collect();
        for layout in layouts {
            self.line_up_in(layout, name, problem);
        }
    }

    fn line_up_in(&mut self, layout: Layout, name: &str, problem: Problem) {
        let op = problem.op();
        let key = match layout {
            Layout::C4 => ProblemKey::of(op, layout_of(op)),
            _ => ProblemKey::of(op, layout),
        };
        if let Some(job) = self.jobs.iter_mut().find(|job| job.key == key) {
            job.nodes.push(name.to_owned());
            return;
        }
        let exact = self.lookup(op, &key).is_some_and(|(_, exact)| exact);
        if self.retune || !exact {
            self.jobs.push_back(Job { nodes: vec![name.to_owned()], problem, layout, key });
            self.problems += 1;
        }
    }

    /// The record's choice, and whether it is for exactly this problem.
    pub(super) fn lookup(&self, op: &dyn Op, problem: &ProblemKey) -> Option<(Choice, bool)> {
        let limits = &self.device.info().limits;
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let key = DeviceKey::of(self.device.info());
        let found = database.lookup(&key, problem, &|choice| {
            op.fits(choice, limits).ok()?;
            SourceHash::of_kernel(op, choice, limits).ok()
        })?;
        Some((found.choice, found.from == crate::tune::db::Source::Exact))
    }
}
