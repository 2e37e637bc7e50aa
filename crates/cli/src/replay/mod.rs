//! `diptych run --replay-out` and `diptych replay`: a run in a file, repeated elsewhere, and where the two part.

mod file;

use crate::table::{Rows, line, node_name};
use crate::tune::PrecisionName;
use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use diptych::internals::tune::db::Database;
use diptych::internals::tune::key::ChoiceKey;
use diptych::{
    Backend, Calibration, Context, Graph, HostTensor, LoadOptions, Model, ObservedRun, ObservedStep, Session,
    SessionOptions, Value,
};
use file::{FORMAT, Replay, Saved, SavedStep};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What `diptych run --replay-out` wrote.
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) on: crate::flags::On,

    /// The record that says which kernels are flaky: a directory or a file [default: the platform's cache directory, or
    /// DIPTYCH_CACHE_DIR].
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) db: Option<PathBuf>,

    /// Print the texts that a step's kernel was made from, as they were recorded.
    #[arg(long, value_name = "STEP")]
    pub(crate) texts: Option<String>,
}

/// What becomes a file.
pub(crate) struct Recording<'a> {
    pub(crate) model: &'a Path,
    pub(crate) bytes: Vec<u8>,
    pub(crate) random_weights: bool,
    pub(crate) load: &'a LoadOptions,
    pub(crate) batch: Option<u32>,
    pub(crate) node: Option<&'a str>,
}

/// How far off a step's last value is: in proportion to its bound, in words, and whether that is too far.
fn deviation(step: &ObservedStep) -> (Option<f64>, String, bool) {
    match &step.deviation {
        Ok(found) => {
            let ratio = found.ratio();
            let mut words = format!("{ratio:.3} of the bound");
            if ratio > 1.0 {
                words += &format!(
                    ": element {} is {}, wanted {} +- {:.2e}; {} such elements",
                    found.index, found.found, found.wanted, found.bound, found.beyond
                );
            }
            (Some(ratio), words, ratio > 1.0)
        }
        Err(why) => (None, format!("not checked: {why}"), false),
    }
}

/// Runs `graph` and keeps the run in a file.
pub(crate) fn record(
    path: &Path,
    recording: Recording<'_>,
    context: &Context,
    graph: &Graph,
    options: &SessionOptions,
    feeds: &[(&str, &HostTensor)],
) -> Result<()> {
    let run = Session::observe(context, graph, options, feeds)?;
    let steps: Vec<&ObservedStep> = match recording.node {
        None => run.steps.iter().collect(),
        Some(name) => {
            let found: Vec<_> = run.steps.iter().filter(|step| step.name == name).collect();
            if found.is_empty() {
                let names: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
                bail!("found no step {name:?}, wanted one of {names:?}");
            }
            found
        }
    };
    let inputs: Vec<(String, usize)> = match recording.node {
        None => graph
            .inputs()
            .iter()
            .map(|&value| Ok((graph.name(value)?.to_owned(), value.index())))
            .collect::<Result<_>>()?,
        Some(_) => {
            let read = steps.iter().flat_map(|step| &step.reads);
            let mut read: Vec<usize> = read.map(|(_, value)| value.index()).collect();
            read.sort_unstable();
            read.dedup();
            read.into_iter().map(|index| (format!("value {index}"), index)).collect()
        }
    };
    let wanted = |index: usize| {
        recording.node.is_none()
            || inputs.iter().any(|(_, input)| *input == index)
            || steps.iter().any(|step| step.writes.iter().any(|value| value.index() == index))
    };
    let kept = run.values.iter().filter(|(value, _)| wanted(value.index()));
    let mut values: BTreeMap<usize, HostTensor> =
        kept.map(|(value, tensor)| (value.index(), tensor.clone())).collect();
    for (name, index) in &inputs {
        // What shows another value has no buffer of its own.
        if !values.contains_key(index) {
            let value = graph_value(graph, *index).with_context(|| format!("input {name:?}"))?;
            values.insert(*index, shown(graph, value, &run)?);
        }
    }
    let file_name = recording.model.file_name().unwrap_or_default();
    let saved = Saved {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        device: context.info().to_string(),
        model: file_name.to_string_lossy().into_owned(),
        random_weights: recording.random_weights,
        dimensions: recording.load.dimensions.clone(),
        batch: recording.batch,
        precision: options.precision.to_string(),
        on_cpu: options.on_cpu.iter().cloned().collect(),
        calibration: options.calibration.as_ref().map(Calibration::to_json).transpose()?,
        open_inputs: recording.load.inputs.clone(),
        signature: recording.load.signature.clone(),
        dequantize: recording.load.dequantize,
        inputs,
        one_step: recording.node.is_some(),
        steps: steps.into_iter().map(SavedStep::of).collect(),
    };
    let known = recording.load.values.clone();
    Replay { saved, model: recording.bytes, known, values }.write(path)
}

/// Value `index` of a graph, if a node reads or writes it.
fn graph_value(graph: &Graph, index: usize) -> Option<Value> {
    let read = graph.nodes().iter().flat_map(|node| node.inputs().iter().map(|(_, value)| *value));
    let written = graph.nodes().iter().flat_map(|node| node.outputs().iter().copied());
    read.chain(written).chain(graph.inputs().iter().copied()).find(|value| value.index() == index)
}

/// A value that a view shows, computed from what it shows.
fn shown(graph: &Graph, value: Value, run: &ObservedRun) -> Result<HostTensor> {
    let known: Vec<Value> = run.values.keys().copied().collect();
    let part = graph.part(&known, &[value])?;
    let cpu = Context::new(Backend::Cpu)?;
    let mut session = Session::new(&cpu, &part, SessionOptions::default())?;
    let names: Vec<String> = known.iter().map(|value| format!("value {}", value.index())).collect();
    let feeds: Vec<(&str, &HostTensor)> = names.iter().map(String::as_str).zip(run.values.values()).collect();
    let mut outputs = session.run(&feeds)?;
    outputs.pop().context("a run without outputs")
}

/// The graph and options of a file.
fn network(replay: &Replay) -> Result<(Graph, SessionOptions)> {
    let saved = &replay.saved;
    let load = LoadOptions {
        dimensions: saved.dimensions.clone(),
        values: replay.known.clone(),
        inputs: saved.open_inputs.clone(),
        signature: saved.signature.clone(),
        dequantize: saved.dequantize,
        ..LoadOptions::default()
    };
    let mut graph = Model::from_bytes(&replay.model, &load)?.graph;
    if let Some(batch) = saved.batch {
        graph = graph.with_batch(batch as usize)?;
    }
    let named = |what: &str, error: String| anyhow::anyhow!("{what}: {error}");
    let precision =
        PrecisionName::from_str(&saved.precision, false).map_err(|error| named("precision", error))?;
    let options = SessionOptions {
        precision: precision.precision(),
        on_cpu: saved.on_cpu.iter().cloned().collect(),
        calibration: saved.calibration.as_deref().map(Calibration::from_json).transpose()?,
        ..Default::default()
    };
    Ok((graph, options))
}

/// The largest difference of two tensors' elements; infinite where one alone is NaN.
fn difference(one: &HostTensor, other: &HostTensor) -> f64 {
    let off = |(one, other): (&f32, &f32)| match (one.is_nan(), other.is_nan()) {
        (true, true) => 0.0,
        (false, false) if one == other => 0.0,
        (false, false) => (f64::from(*one) - f64::from(*other)).abs(),
        _ => f64::INFINITY,
    };
    one.to_nhwc().iter().zip(other.to_nhwc().iter()).map(off).fold(0.0, f64::max)
}

/// The part of `graph` that a file of one step has, with its outputs in the order of `written`.
fn one_step(graph: &Graph, saved: &Saved, written: &[usize]) -> Result<Graph> {
    let value =
        |index: usize| graph_value(graph, index).with_context(|| format!("the model has no value {index}"));
    let inputs = saved.inputs.iter().map(|(_, index)| value(*index)).collect::<Result<Vec<_>>>()?;
    let outputs = written.iter().map(|index| value(*index)).collect::<Result<Vec<_>>>()?;
    Ok(graph.part(&inputs, &outputs)?)
}

/// The recorded steps beside those of `run`, whose values are `here`.
fn comparison(
    replay: &Replay,
    run: &ObservedRun,
    here: &BTreeMap<usize, &HostTensor>,
    terminal: bool,
) -> String {
    let heads = ["step", "op", "recorded kernel", "of bound", "kernel here", "of bound", "difference"];
    let mut rows = Rows::new(heads).numbers(&[3, 5, 6]).names(&[0]).labels(&[2, 4]);
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
    let kernel = |kernel: &str| if kernel.is_empty() { "CPU".to_owned() } else { kernel.to_owned() };
    for step in &replay.saved.steps {
        let own = run.steps.iter().find(|own| own.name == step.name);
        let both =
            step.writes.iter().filter_map(|index| Some((replay.values.get(index)?, *here.get(index)?)));
        let off = both.map(|(one, other)| difference(one, other)).reduce(f64::max);
        // JSON has no infinite numbers.
        let infinite = step.beyond && step.ratio.is_none();
        rows.add([
            node_name(&step.name, terminal),
            step.op.clone(),
            kernel(&step.kernel),
            ratio(if infinite { Some(f64::INFINITY) } else { step.ratio }),
            own.map_or("-".to_owned(), |own| kernel(&own.kernel)),
            ratio(own.and_then(|own| deviation(own).0)),
            off.map_or("-".to_owned(), |off| format!("{off:.2e}")),
        ]);
    }
    rows.text()
}

/// Whether all that was checked is within its bounds, in a line.
fn verdict(replay: &Replay, run: &ObservedRun) -> String {
    let recorded = replay.saved.steps.iter().map(|step| (step.ratio.is_some() || step.beyond, step.beyond));
    let here = run.steps.iter().map(|step| (step.deviation.is_ok(), deviation(step).2));
    let count = |steps: &mut dyn Iterator<Item = (bool, bool)>| {
        steps.fold([0; 3], |[all, checked, beyond], (known, off)| {
            [all + 1, checked + usize::from(known), beyond + usize::from(off)]
        })
    };
    in_words([count(&mut recorded.into_iter()), count(&mut here.into_iter())])
}

/// The steps where the run was recorded and those here: all, those that were checked, and those beyond their bounds.
fn in_words([recorded, here]: [[usize; 3]; 2]) -> String {
    match (recorded[2], here[2]) {
        (0, 0) => format!(
            "every checked step is within its bound; checked are {} of {} steps where the run was recorded and {} of {} \
             here",
            recorded[1], recorded[0], here[1], here[0]
        ),
        (there, own) => format!(
            "beyond their bounds are {there} of {} checked steps where the run was recorded and {own} of {} here",
            recorded[1], here[1]
        ),
    }
}

/// A line for each step whose kernel is on record as flaky, there or here.
fn flaky(database: &Database, saved: &[SavedStep], run: &ObservedRun) -> Vec<String> {
    let here = run.steps.iter().map(|step| {
        (&step.name, step.op, step.problem.as_str(), step.precision.to_string(), step.kernel.as_str())
    });
    let recorded = saved.iter().map(|step| {
        (&step.name, step.op.as_str(), step.problem.as_str(), step.precision.clone(), step.kernel.as_str())
    });
    let mut lines = Vec::new();
    for (name, op, problem, precision, kernel) in recorded.chain(here) {
        for row in database.rows().filter(|row| row.flaky().is_some()) {
            let key = &row.key.problem;
            if (key.op.as_str(), key.shape.as_str(), &key.precision) == (op, problem, &precision)
                && is_of(kernel, op, &row.key.choice)
            {
                let line = format!("{name}: {kernel} is on record as {} on {}", row.reason(), row.key.device);
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
    }
    lines
}

/// Whether a kernel's label is that of a choice on record.
fn is_of(label: &str, op: &str, choice: &ChoiceKey) -> bool {
    let ([tx, ty, tz], [x, y, z]) = (choice.tile, choice.work_group);
    label.starts_with(&format!("{op}_{}_", choice.variant))
        && format!("{label}_").contains(&format!("_t{tx}x{ty}x{tz}_"))
        && label.ends_with(&format!("_wg{x}x{y}x{z}"))
}

/// The record, if there is one.
fn known(path: Option<&Path>) -> Result<Database> {
    match path {
        Some(path) => Ok(Database::load(path)?),
        None => {
            let path = Database::default_dir()?;
            let file = path.join("tuning.jsonl");
            if file.exists() { Ok(Database::load(path)?) } else { Ok(Database::in_memory()) }
        }
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let replay = Replay::read(&arguments.file)?;
    let saved = &replay.saved;
    let mut stdout = std::io::stdout().lock();
    if let Some(name) = &arguments.texts {
        let step = saved.steps.iter().find(|step| step.name == *name);
        let step = step.with_context(|| format!("found no step {name:?}"))?;
        writeln!(stdout, "// {} {}\n{}\n// OpenCL C\n{}", step.kernel, step.problem, step.wgsl, step.opencl)?;
        return Ok(stdout.flush()?);
    }
    let (mut graph, options) = network(&replay)?;
    let written: BTreeSet<usize> = saved.steps.iter().flat_map(|step| step.writes.iter().copied()).collect();
    let written: Vec<usize> = written.into_iter().collect();
    if saved.one_step {
        graph = one_step(&graph, saved, &written)?;
    }
    let tensor =
        |index: &usize| replay.values.get(index).with_context(|| format!("the file has no value {index}"));
    let feeds = saved.inputs.iter().map(|(name, index)| Ok((name.as_str(), tensor(index)?)));
    let feeds = feeds.collect::<Result<Vec<_>>>()?;
    let context = arguments.on.context()?;
    let run = Session::observe(&context, &graph, &options, &feeds)?;
    let here: BTreeMap<usize, &HostTensor> = if saved.one_step {
        let outputs = graph.outputs().iter().filter_map(|value| run.values.get(value));
        written.into_iter().zip(outputs).collect()
    } else {
        run.values.iter().map(|(value, tensor)| (value.index(), tensor)).collect()
    };
    let recorded = format!("recorded: {} (diptych {})", saved.device, saved.version);
    let here_is = format!("here:     {} (diptych {})", context.info(), env!("CARGO_PKG_VERSION"));
    writeln!(stdout, "{}\n{}", line(&recorded), line(&here_is))?;
    if saved.random_weights {
        writeln!(stdout, "{} with random weights", saved.model)?;
    }
    writeln!(stdout, "{}", comparison(&replay, &run, &here, std::io::stdout().is_terminal()))?;
    let recorded: Vec<&SavedStep> = saved.steps.iter().filter(|step| step.beyond).collect();
    let own: Vec<&ObservedStep> = run.steps.iter().filter(|step| deviation(step).2).collect();
    for words in flaky(&known(arguments.db.as_deref())?, &saved.steps, &run) {
        writeln!(stdout, "{}", line(&words))?;
    }
    for step in &recorded {
        writeln!(stdout, "{}", line(&format!("recorded: {} is off by {}", step.name, step.deviation)))?;
    }
    for step in &own {
        writeln!(stdout, "{}", line(&format!("here: {} is off by {}", step.name, deviation(step).1)))?;
    }
    writeln!(stdout, "{}", line(&verdict(&replay, &run)))?;
    stdout.flush()?;
    // The first in the order of execution; one that only ran here is not in the file.
    let off = |name: &str| {
        recorded.iter().any(|step| step.name == name) || own.iter().any(|step| step.name == name)
    };
    let first = saved.steps.iter().map(|step| step.name.as_str()).find(|name| off(name));
    if let Some(name) = first.or(own.first().map(|step| step.name.as_str())) {
        bail!("the results part at {name:?}");
    }
    // Every kernel is right: what is left is what the network was made into.
    let tolerance = crate::check::tolerance(options.precision);
    let rewrites = Session::compare_rewrites(&context, &graph, &options, &feeds, tolerance)?;
    writeln!(stdout, "{}", line(&crate::check::rewrites_in_words(&rewrites)))?;
    stdout.flush()?;
    match rewrites.agrees() {
        true => Ok(()),
        false => bail!("a rewrite of the network changes its results"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_that_of_its_choice() {
        let choice = |work_group| ChoiceKey::from(diptych::Choice::new("micro", [4, 2, 1], work_group));
        let label = "pointwise_micro_f32_t4x2x1_relu6_wg32x8x1";
        assert!(is_of(label, "pointwise", &choice([32, 8, 1])));
        assert!(is_of("pointwise_micro_image2d_f32_t4x2x1_wg32x8x1", "pointwise", &choice([32, 8, 1])));
        assert!(!is_of(label, "pointwise", &choice([2, 8, 1])));
        assert!(!is_of(label, "conv2d", &choice([32, 8, 1])));
        assert!(!is_of("", "pointwise", &choice([32, 8, 1])), "what the CPU computed");
    }

    #[test]
    fn the_last_line_says_whether_all_is_well() {
        assert_eq!(
            in_words([[22, 22, 0], [20, 19, 0]]),
            "every checked step is within its bound; checked are 22 of 22 steps where the run was recorded and 19 of 20 here"
        );
        assert_eq!(
            in_words([[3, 2, 0], [3, 3, 1]]),
            "beyond their bounds are 0 of 2 checked steps where the run was recorded and 1 of 3 here"
        );
    }
}
