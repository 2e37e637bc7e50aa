//! A network on one backend: host to host, the sum of its nodes, and each node.

use super::cpu::noise;
use super::row::Row;
use super::subject::{Subject, Target};
use anyhow::{Result, bail, ensure};
use diptych::{
    Backend, Context, DType, Graph, HostTensor, Precision, Rewrite, Session, SessionOptions, Step, Tuning,
};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Runs whose median is a host-to-host sample, at most, and about how long they may take.
const RUNS: usize = 8;
const SAMPLE: Duration = Duration::from_millis(20);

/// A network with pictures to feed, and what it gives for them.
pub(super) struct Model {
    pub(super) name: String,
    pub(super) graph: Graph,
    /// In which precisions it is measured.
    pub(super) precisions: &'static [Precision],
    /// Whether each node has a row.
    pub(super) nodes: bool,
    input: String,
    /// Two, in turn, so that nothing can remember a result.
    pictures: [HostTensor; 2],
    wanted: [Vec<HostTensor>; 2],
}

impl Model {
    /// Runs the network on the CPU backend, node by node, to know the outputs.
    ///
    /// # Errors
    /// If the graph has not one input, or does not run.
    pub(super) fn new(name: String, graph: Graph, precisions: &'static [Precision]) -> Result<Self> {
        let [input] = graph.inputs() else {
            bail!("{name} has {} inputs, wanted one", graph.inputs().len());
        };
        let dims = graph.dims(*input)?;
        let picture = |seed| HostTensor::new(dims, noise(seed, dims.elements()));
        let pictures = [picture(1)?, picture(2)?];
        let input = graph.name(*input)?.to_owned();
        let apart = SessionOptions { without_rewrites: Rewrite::ALL.into(), ..SessionOptions::default() };
        let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, apart)?;
        let wanted = [
            session.run(&[(input.as_str(), &pictures[0])])?,
            session.run(&[(input.as_str(), &pictures[1])])?,
        ];
        Ok(Model { name, graph, precisions, nodes: true, input, pictures, wanted })
    }

    /// Bytes that a run must at least move: inputs, outputs and constants once, numbers as they are stored.
    fn bytes(&self, precision: Precision) -> Result<u64> {
        let mut seen = BTreeSet::new();
        let mut bytes = 0;
        let values = self.graph.nodes().iter().flat_map(|node| node.inputs()).map(|(_, value)| *value);
        for value in values.chain(self.graph.outputs().iter().copied()) {
            let constant = self.graph.tensor(value)?.is_some();
            let outer = self.graph.inputs().contains(&value) || self.graph.outputs().contains(&value);
            if !seen.insert(value.index()) || !(constant || outer) {
                continue;
            }
            let kind = self.graph.tensor_type(value)?;
            let dtype = if constant && kind.dtype == DType::F32 { precision.storage() } else { kind.dtype };
            bytes += (self.graph.dims(value)?.elements() * dtype.bytes()) as u64;
        }
        Ok(bytes)
    }

    /// How far `session` is off, as a share of each output's largest value.
    fn error(&self, session: &mut Session) -> Result<f64> {
        let mut worst = 0.0f64;
        for (picture, wanted) in self.pictures.iter().zip(&self.wanted) {
            let found = session.run(&[(self.input.as_str(), picture)])?;
            for (found, wanted) in found.iter().zip(wanted) {
                let (found, wanted) = (found.to_f32(), wanted.to_f32());
                let largest = wanted.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
                for (found, wanted) in found.iter().zip(wanted.iter()) {
                    let error = f64::from((found - wanted).abs()) / f64::from(largest).max(1e-30);
                    // `max` would pass over NaN.
                    worst = if error > worst || error.is_nan() { error } else { worst };
                    if worst.is_nan() {
                        bail!("wrong: an output is not a number");
                    }
                }
            }
        }
        Ok(worst)
    }
}

/// A network on one backend.
pub(super) struct Network<'m> {
    model: &'m Model,
    session: Session,
    /// Host to host, device, then the nodes.
    rows: Vec<Row>,
    runs: usize,
    turn: usize,
}

/// How far outputs may be off, as a share of the largest: a hundred times the rounding unit's share
/// of a network of thirty layers.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F32 | Precision::SplitF16 => 1e-3,
        // The others round operands to halves, or to ten bits as tf32 does.
        _ => 5e-2,
    }
}

impl<'m> Network<'m> {
    /// The network on the backend of `target`, checked and warmed up.
    ///
    /// # Errors
    /// If it does not run, an output is wrong, or one run takes longer than `longest`.
    pub(super) fn new(
        target: &Target,
        suite: &str,
        model: &'m Model,
        precision: Precision,
        longest: Duration,
    ) -> Result<Self> {
        let tuning = match &target.database {
            Some(database) => Tuning::Database(database.clone()),
            None => Tuning::Default,
        };
        let options = SessionOptions { precision, tuning, ..Default::default() };
        let mut session = Session::new(&target.context, &model.graph, options)?;
        let (error, bound) = (model.error(&mut session)?, tolerance(precision));
        ensure!(
            error <= bound,
            "wrong: outputs are off by {:.2} % of the largest, wanted at most {:.1} %",
            100.0 * error,
            100.0 * bound
        );
        let checked = format!(
            "every output of two pictures, against the CPU backend in f32: off by at most {:.1e} of the largest",
            error
        );
        let start = Instant::now();
        session.run(&[(model.input.as_str(), &model.pictures[0])])?;
        let estimate = start.elapsed();
        ensure!(estimate <= longest, "left out: one run takes {:.1} s", estimate.as_secs_f64());
        let runs = (SAMPLE.as_secs_f64() / estimate.as_secs_f64().max(1e-6)).ceil() as usize;

        let case = format!("{} {precision}", model.name);
        let steps = session.steps();
        let flops = steps.iter().map(|step| step.flops).sum();
        let mut host = target.row(suite, &case, "host");
        host.precision = precision.to_string();
        host.checked = checked;
        host.flops = flops;
        host.launches = launches(&steps);
        host.kernel = match host.launches {
            Some(launches) => format!("{launches} launches"),
            None => format!("{} steps", steps.len()),
        };
        host.chosen_by = if target.database.is_some() { "the tuner's record" } else { "rule" }.to_owned();
        let bytes = model.bytes(precision)?;
        let mut rows = vec![host.clone(), Row { metric: "device".to_owned(), bytes, ..host.clone() }];
        let steps = if model.nodes { steps } else { Vec::new() };
        rows.extend(steps.iter().enumerate().map(|(index, step)| Row {
            metric: "node".to_owned(),
            node: Some(format!("{} {}{}", index + 1, step.name, suffix(step))),
            kernel: step.kernel.clone(),
            work_group: step.work_group,
            launches: None,
            chosen_by: step.source.clone(),
            flops: step.flops,
            checked: "with the network".to_owned(),
            ..host.clone()
        }));
        Ok(Network { model, session, rows, runs: runs.clamp(1, RUNS), turn: 0 })
    }
}

/// The kernels that one run starts; none of a network on the CPU, whose steps have no work-groups.
fn launches(steps: &[Step]) -> Option<usize> {
    Some(steps.iter().filter(|step| step.work_group != [0; 3]).count()).filter(|&launches| launches > 0)
}

/// A step that moves a value has the value's name.
fn suffix(step: &Step) -> &'static str {
    if step.inserted { " (layout)" } else { "" }
}

impl Subject for Network<'_> {
    fn round(&mut self) -> Result<()> {
        let mut times = Vec::with_capacity(self.runs);
        for _ in 0..self.runs {
            self.turn = 1 - self.turn;
            let feeds = [(self.model.input.as_str(), &self.model.pictures[self.turn])];
            let start = Instant::now();
            self.session.run(&feeds)?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        let feeds = [(self.model.input.as_str(), &self.model.pictures[self.turn])];
        let profile = self.session.profile(&feeds)?;
        let median = diptych::internals::tune::statistics::median(&times).unwrap_or_default();
        let nodes = profile.steps.iter().map(|timed| timed.time.as_secs_f64() * 1e6);
        let values = [median, profile.total().as_secs_f64() * 1e6].into_iter().chain(nodes);
        for (row, value) in self.rows.iter_mut().zip(values) {
            row.samples.push(value);
            if row.metric == "host" {
                row.repeats = u32::try_from(self.runs).unwrap_or(u32::MAX);
            } else {
                row.clock = profile.clock.to_owned();
            }
        }
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        self.rows.clone()
    }
}
