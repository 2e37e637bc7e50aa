//! The suites on every backend, in blocks.
//!
//! All cases of a block are alive at once and share their rounds, with the baselines among them; a
//! block holds as many as fit some memory. Cases that the machine would take too long for are left
//! out, with a note.

use super::baselines::Baseline;
use super::baselines_cpu;
use super::baselines_matrix::matrices;
use super::network::{Model, Network};
use super::networks::{self, Named};
use super::rounds::{self, Effort};
use super::row::{Note, Record, Row};
use super::start::Starts;
use super::subject::{Subject, Target};
use super::work_groups::{self, WorkGroups};
use super::{Arguments, Suite, machine, op, suites};
use crate::output::say;
use anyhow::{Context as _, Result, bail};
use diptych::{Backend, Context, LoadOptions, Precision};
use diptych_kernels::ops::Op;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Memory for the operands of a block, on each device.
const BLOCK: u64 = 1 << 30;
/// What the operands of a case take at most beyond one set of them: see `OpBench`.
const SETS: u64 = 64 << 20;
/// The share of the peak that is not doubted: nothing is left out that may be this slow.
const HOPED: f64 = 0.2;

/// Images at once.
const BATCHES: [usize; 2] = [1, 8];

struct Measurement<'a> {
    arguments: &'a Arguments,
    targets: Vec<Target>,
    record: Record,
    effort: Effort,
    longest: Duration,
}

/// Everything that the flags ask for.
///
/// # Errors
/// If nothing was measured, or a model was asked for that is not there.
pub(super) fn all(arguments: &Arguments) -> Result<Record> {
    let seconds = |value: f64, flag: &str| {
        Duration::try_from_secs_f64(value)
            .with_context(|| format!("{flag} {value}: wanted a number of seconds"))
    };
    let effort = Effort { rounds: arguments.rounds, each: seconds(arguments.each, "--each")? };
    let longest = seconds(arguments.longest, "--longest")?;
    let machine = machine::here();
    let record = Record { machines: vec![machine], ..Default::default() };
    let mut run = Measurement { arguments, targets: Vec::new(), record, effort, longest };
    run.open()?;
    for (suite, name, problems) in
        [(Suite::Gemm, "gemm", suites::products()?), (Suite::Ops, "ops", suites::layers()?)]
    {
        if run.wants(suite) {
            let named = |problem: &Arc<dyn Op>| suites::name(&**problem).contains(&arguments.case);
            run.problems(name, problems.into_iter().filter(named).collect());
        }
    }
    if run.wants(Suite::WorkGroups) {
        run.work_groups()?;
    }
    if run.wants(Suite::Posenet) || run.wants(Suite::Start) {
        run.networks()?;
    }
    if run.wants(Suite::Networks) {
        run.made("networks", networks::usual, true)?;
    }
    if run.wants(Suite::Growth) {
        run.made("growth", networks::growing, false)?;
    }
    if run.record.rows.iter().all(|row| row.suite == "baseline") {
        bail!("nothing was measured: {}", reasons(&run.record.notes, &arguments.case));
    }
    let mut record = run.record;
    hold_against_baselines(&mut record.rows);
    Ok(record)
}

fn reasons(notes: &[Note], case: &str) -> String {
    let all: Vec<String> = notes.iter().map(|note| format!("{} {}", note.case, note.text)).collect();
    if all.is_empty() { format!("no case of these suites contains {case:?}") } else { all.join("; ") }
}

impl Measurement<'_> {
    fn wants(&self, suite: Suite) -> bool {
        self.arguments.wants(suite)
    }

    fn note(&mut self, suite: &str, case: &str, backend: &str, error: &anyhow::Error) {
        let text = format!("{error:#}");
        // What is left out on purpose begins so; a driver's or a kernel's fault does not.
        let failure = !text.starts_with("left out");
        say(format_args!("{backend}: {case}: {text}"));
        let (suite, case, backend) = (suite.to_owned(), case.to_owned(), backend.to_owned());
        self.record.notes.push(Note { suite, case, backend, text, failure });
    }

    fn open(&mut self) -> Result<()> {
        let asked = self.arguments.backend.clone();
        let database = match &self.arguments.db {
            Some(path) => Some(Arc::new(Mutex::new(crate::tune::record(Some(path))?.0))),
            None => None,
        };
        let mut contexts = Vec::new();
        if let Some(device) = &self.arguments.device {
            contexts.push(Context::builder().device(device.clone()).open()?);
        } else {
            let all = [Backend::Wgpu, Backend::OpenCl, Backend::Cpu];
            for backend in all.into_iter().filter(|backend| asked.is_empty() || asked.contains(backend)) {
                match Context::new(backend) {
                    Ok(context) => contexts.push(context),
                    Err(error) if asked.is_empty() => {
                        let error = anyhow::Error::from(error).context("left out");
                        self.note("", "every case", &backend.to_string(), &error);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        for context in contexts {
            say(context.info());
            let machine = self.record.machines[0].clone();
            let (who, database) = (machine::device(&context), database.clone());
            self.targets.push(Target { context, who, machine, database, peak: None, multiply_add: None });
        }
        Ok(())
    }

    /// The baselines of every target; the first time, they show what may take too long.
    fn baselines<'m>(&mut self) -> Vec<Box<dyn Subject + 'm>> {
        let mut subjects: Vec<Box<dyn Subject + 'm>> = Vec::new();
        let mut failed = Vec::new();
        for target in &mut self.targets {
            let made: Result<Vec<(Box<dyn Subject>, Row)>> = match target.context.device() {
                Some(_) => Baseline::both(target).map(|both| {
                    let boxed = |baseline: Baseline| {
                        let row = baseline.estimate().clone();
                        (Box::new(baseline) as Box<dyn Subject>, row)
                    };
                    both.into_iter().map(boxed).collect()
                }),
                None => baselines_cpu::both(target),
            };
            match made {
                Ok(made) => {
                    let rate = |of: fn(&Row) -> u64| {
                        let fastest = made.iter().map(|(_, row)| of(row) as f64 / row.median / 1e3);
                        fastest.fold(0.0, f64::max)
                    };
                    target.peak = Some([rate(|row| row.flops), rate(|row| row.bytes)]);
                    subjects.extend(made.into_iter().map(|(subject, _)| subject));
                }
                Err(error) => failed.push((target.who.backend.clone(), error)),
            }
            if target.context.device().is_some() {
                match matrices(target) {
                    Ok(made) => subjects.extend(made.map(|baseline| Box::new(baseline) as _)),
                    Err(error) => failed.push((target.who.backend.clone(), error)),
                }
            }
        }
        for (backend, error) in failed {
            self.note("baseline", "copy and multiply-adds", &backend, &error);
        }
        subjects
    }

    /// Times `subjects` and keeps their rows; samples of a quantity that is there already join it.
    fn time(&mut self, what: &str, subjects: Vec<Box<dyn Subject + '_>>, effort: Effort) {
        let bar = ProgressBar::new(u64::from(effort.rounds));
        if let Ok(style) =
            ProgressStyle::with_template("{msg:24} {spinner} [{bar:30}] round {pos}/{len} {elapsed}")
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar.set_message(what.to_owned());
        let (rows, notes) = rounds::run(subjects, effort, |round| bar.set_position(u64::from(round)));
        bar.finish_and_clear();
        self.record.notes.extend(notes);
        for row in rows {
            let key = row.key();
            match self.record.rows.iter_mut().find(|known| known.key() == key && known.flops == row.flops) {
                Some(known) => {
                    known.samples.extend(row.samples);
                    known.summarise();
                }
                None => self.record.rows.push(row),
            }
        }
    }

    /// The problems on every target, in blocks.
    fn problems(&mut self, suite: &str, problems: Vec<Arc<dyn Op>>) {
        let mut rest = problems.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |problem: &&Arc<dyn Op>| {
                bytes += suites::bytes(&***problem) + SETS;
                bytes <= BLOCK
            };
            let (block, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            rest = others;
            let mut subjects = self.baselines();
            for problem in block {
                subjects.extend(self.on_every_target(suite, Arc::clone(problem)));
            }
            self.time(suite, subjects, self.effort);
        }
    }

    fn on_every_target(&mut self, suite: &str, problem: Arc<dyn Op>) -> Vec<Box<dyn Subject>> {
        let (mut subjects, mut failed) = (Vec::new(), Vec::new());
        for target in &self.targets {
            if target.context.device().is_none() && problem.precision() != Precision::F32 {
                continue;
            }
            let least = target.least(problem.flops(), suites::bytes(&*problem));
            let made = match least.filter(|least| least / HOPED > self.longest.as_secs_f64()) {
                Some(least) => Err(anyhow::anyhow!(
                    "left out: one run takes {least:.1} s at the measured peak; --longest allows it"
                )),
                None => op::subject(target, suite, Arc::clone(&problem), self.longest),
            };
            match made {
                Ok(subject) => subjects.push(subject),
                Err(error) => failed.push((target.who.backend.clone(), error)),
            }
        }
        for (backend, error) in failed {
            self.note(suite, &suites::name(&*problem), &backend, &error);
        }
        subjects
    }

    fn work_groups(&mut self) -> Result<()> {
        let mut subjects = self.baselines();
        let mut failed = Vec::new();
        for target in self.targets.iter().filter(|target| target.context.device().is_some()) {
            for kernel in work_groups::kernels(target)? {
                let name = kernel.name();
                if !name.contains(&self.arguments.case) {
                    continue;
                }
                match WorkGroups::new(target, kernel, self.longest) {
                    Ok(subject) => subjects.push(Box::new(subject)),
                    Err(error) => failed.push((name, target.who.backend.clone(), error)),
                }
            }
        }
        for (name, backend, error) in failed {
            self.note("work-groups", &name, &backend, &error);
        }
        self.time("work-groups", subjects, self.effort);
        Ok(())
    }

    fn networks(&mut self) -> Result<()> {
        let Some(path) = self.model()? else { return Ok(()) };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if self.wants(Suite::Posenet) {
            let graph = diptych::Model::load(&path, &LoadOptions::default())?.graph;
            let mut models = Vec::new();
            for batch in BATCHES {
                let case = format!("{name} batch {batch}");
                match graph.with_batch(batch) {
                    Ok(graph) => models.push(Model::new(case, graph, &suites::PRECISIONS)?),
                    // What a file says of a batch of one may be no more than that.
                    Err(error) if batch > 1 => {
                        let error = anyhow::anyhow!("left out: {error}");
                        self.note("posenet", &case, "any", &error);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            models.retain(|model| model.name.contains(&self.arguments.case));
            self.network("posenet", &models);
        }
        if self.wants(Suite::Start) {
            let starts = self.targets.iter().map(|target| Box::new(Starts::new(target, &path)) as _);
            let effort = Effort { rounds: self.arguments.starts, each: Duration::MAX };
            let subjects = starts.collect();
            self.time("start", subjects, effort);
        }
        Ok(())
    }

    /// Networks that `make` gives. Those of a size each have no rows for nodes.
    fn made(&mut self, suite: &str, make: fn() -> Result<Vec<Named>>, nodes: bool) -> Result<()> {
        for Named { name, graph, bytes } in make()? {
            if !name.contains(&self.arguments.case) {
                continue;
            }
            let precisions = if bytes { &[Precision::F32][..] } else { &suites::PRECISIONS };
            let mut model = Model::new(name, graph, precisions)?;
            model.nodes = nodes;
            self.network(suite, &[model]);
        }
        Ok(())
    }

    fn network(&mut self, suite: &str, models: &[Model]) {
        let mut subjects: Vec<Box<dyn Subject + '_>> = self.baselines();
        let mut failed = Vec::new();
        for target in &self.targets {
            for model in models {
                for &precision in model.precisions {
                    if target.context.device().is_none() && precision != Precision::F32 {
                        continue;
                    }
                    match Network::new(target, suite, model, precision, self.longest) {
                        Ok(network) => subjects.push(Box::new(network)),
                        Err(error) => {
                            let case = format!("{} {precision}", model.name);
                            failed.push((case, target.who.backend.clone(), error));
                        }
                    }
                }
            }
        }
        for (case, backend, error) in failed {
            self.note(suite, &case, &backend, &error);
        }
        self.time(suite, subjects, self.effort);
    }

    /// The model's file; none, with a note, if no one asked for it by name and it is not there.
    fn model(&mut self) -> Result<Option<PathBuf>> {
        if let Some(path) = &self.arguments.model {
            return Ok(Some(path.clone()));
        }
        let shared =
            std::env::var_os("DIPTYCH_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
        let path = shared.join("posenet/posenet_mobilenet_v1_100_257x257_f32.tflite");
        if path.is_file() {
            return Ok(Some(path));
        }
        if !self.arguments.wants_all() {
            bail!("the suites posenet and start need --model");
        }
        let error = anyhow::anyhow!("left out: no --model, and $DIPTYCH_SHARED has none");
        self.note("posenet", "posenet", "", &error);
        Ok(None)
    }
}

/// Sets what the baselines of a row's device allow.
fn hold_against_baselines(rows: &mut [Row]) {
    let baselines: Vec<Row> = rows.iter().filter(|row| row.suite == "baseline").cloned().collect();
    for row in rows.iter_mut().filter(|row| row.bytes > 0 && row.suite != "baseline") {
        let of = |what: fn(&Row) -> bool| {
            baselines.iter().find(|baseline| baseline.device == row.device && what(baseline))
        };
        let matrices = of(|row| row.flops > 0 && row.is_of_halves()).filter(|_| row.is_of_halves());
        let fma = matrices.or_else(|| of(|row| row.flops > 0 && !row.is_of_halves()));
        let (Some(copy), Some(fma)) = (of(|row| row.bytes > 0), fma) else { continue };
        let compute = fma.median * row.flops as f64 / fma.flops as f64;
        let memory = copy.median * row.bytes as f64 / copy.bytes as f64;
        row.roofline = Some((1e4 * compute.max(memory) / row.median).round() / 1e4);
        row.bound = Some(if compute > memory { "compute" } else { "memory" }.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::tests::row;

    #[test]
    fn the_roofline_is_the_slower_of_both_baselines() {
        let baseline = |flops, bytes, time: f64| {
            let mut row = row("baseline", &[time; 5]);
            (row.suite, row.flops, row.bytes) = ("baseline".to_owned(), flops, bytes);
            row
        };
        // 1000 operations and 100 bytes a microsecond; 4000 operations of matrices of halves.
        let mut matrices = baseline(40_000, 0, 10.0);
        matrices.precision = "f16s".to_owned();
        let mut rows = vec![matrices, baseline(10_000, 0, 10.0), baseline(0, 500, 5.0)];
        for (flops, bytes, precision) in
            [(8000, 100, "f32"), (1000, 400, "f32"), (32_000, 100, "f16s"), (1000, 400, "f16")]
        {
            let mut row = row("case", &[16.0; 5]);
            (row.flops, row.bytes, row.precision) = (flops, bytes, precision.to_owned());
            rows.push(row);
        }
        hold_against_baselines(&mut rows);
        let held = rows[3..].iter().map(|row| (row.roofline, row.bound.as_deref()));
        let (compute, memory) = ((Some(0.5), Some("compute")), (Some(0.25), Some("memory")));
        assert_eq!(held.collect::<Vec<_>>(), [compute, memory, compute, memory]);
        // Without matrix instructions the roof is that of the multiply-adds.
        rows.remove(0);
        hold_against_baselines(&mut rows);
        assert_eq!(rows[4].roofline, Some(2.0));
    }
}
