//! `diptych run --replay-out` and `diptych replay`: a run in a file, repeated elsewhere, and where the two part.

mod file;

use crate::run::FuseName;
use crate::table::{node_name, numbers, table};
use crate::tune::PrecisionName;
use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use comfy_table::presets;
use diptych::{
    Backend, Calibration, Context, DeviceSelector, Dims, Graph, HostTensor, LoadOptions, Model, ObservedRun,
    ObservedStep, Session, SessionOptions, Value,
};
use file::{FORMAT, Known, Replay, Saved, SavedStep};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What `diptych run --replay-out` wrote.
    pub(crate) file: PathBuf,

    /// The backend.
    #[arg(
        long,
        default_value = "auto",
        value_parser = PossibleValuesParser::new(["auto", "wgpu", "opencl", "cpu"])
            .try_map(|text| text.parse::<Backend>())
    )]
    pub(crate) backend: Backend,

    /// The device instead: a PCI address, a UUID, a part of its name or its number, alone or after `wgpu:` or `opencl:`.
    #[arg(long, value_name = "DEVICE", conflicts_with = "backend")]
    pub(crate) device: Option<DeviceSelector>,

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
    pub(crate) fuse: FuseName,
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
    let mut values: BTreeMap<usize, HostTensor> =
        run.values.iter().map(|(value, tensor)| (value.index(), tensor.clone())).collect();
    values.retain(|index, _| wanted(*index));
    for (name, index) in &inputs {
        // What shows another value has no buffer of its own.
        if !values.contains_key(index) {
            let value = graph_value(graph, *index).with_context(|| format!("input {name:?}"))?;
            values.insert(*index, shown(graph, value, &run)?);
        }
    }
    let known = |(name, tensor): (&String, &HostTensor)| {
        let extents = tensor.dims().extents().to_vec();
        (name.clone(), Known { extents, elements: tensor.to_nhwc().into_owned() })
    };
    let file_name = recording.model.file_name().unwrap_or_default();
    let saved = Saved {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        device: context.info().to_string(),
        model: file_name.to_string_lossy().into_owned(),
        random_weights: recording.random_weights,
        dimensions: recording.load.dimensions.clone(),
        known: recording.load.values.iter().map(known).collect(),
        batch: recording.batch,
        precision: options.precision.to_string(),
        fuse: recording.fuse.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default(),
        on_cpu: options.on_cpu.iter().cloned().collect(),
        calibration: options.calibration.as_ref().map(Calibration::to_json).transpose()?,
        inputs,
        one_step: recording.node.is_some(),
        steps: steps.into_iter().map(SavedStep::of).collect(),
    };
    Replay { saved, model: recording.bytes, values }.write(path)
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
fn network(saved: &Saved, model: &[u8]) -> Result<(Graph, SessionOptions)> {
    let known = saved.known.iter().map(|(name, known)| {
        Ok((name.clone(), HostTensor::new(Dims::new(&known.extents)?, known.elements.clone())?))
    });
    let load =
        LoadOptions { dimensions: saved.dimensions.clone(), values: known.collect::<diptych::Result<_>>()? };
    let mut graph = Model::from_bytes(model, &load)?.graph;
    if let Some(batch) = saved.batch {
        graph = graph.with_batch(batch as usize)?;
    }
    let named = |what: &str, error: String| anyhow::anyhow!("{what}: {error}");
    let precision =
        PrecisionName::from_str(&saved.precision, false).map_err(|error| named("precision", error))?;
    let fuse = FuseName::from_str(&saved.fuse, false).map_err(|error| named("fuse", error))?;
    let options = SessionOptions {
        precision: precision.precision(),
        fuse: fuse.fusing(),
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

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let Replay { saved, model, values } = Replay::read(&arguments.file)?;
    let mut stdout = std::io::stdout().lock();
    if let Some(name) = &arguments.texts {
        let step = saved.steps.iter().find(|step| step.name == *name);
        let step = step.with_context(|| format!("found no step {name:?}"))?;
        writeln!(stdout, "// {} {}\n{}\n// OpenCL C\n{}", step.kernel, step.problem, step.wgsl, step.opencl)?;
        return Ok(stdout.flush()?);
    }
    let (mut graph, options) = network(&saved, &model)?;
    let mut written: Vec<usize> = saved.steps.iter().flat_map(|step| step.writes.iter().copied()).collect();
    if saved.one_step {
        written.sort_unstable();
        written.dedup();
        let value = |index: usize| {
            graph_value(&graph, index).with_context(|| format!("the model has no value {index}"))
        };
        let inputs = saved.inputs.iter().map(|(_, index)| value(*index)).collect::<Result<Vec<_>>>()?;
        let outputs = written.iter().map(|index| value(*index)).collect::<Result<Vec<_>>>()?;
        graph = graph.part(&inputs, &outputs)?;
    }
    let tensor = |index: &usize| values.get(index).with_context(|| format!("the file has no value {index}"));
    let feeds = saved.inputs.iter().map(|(name, index)| Ok((name.as_str(), tensor(index)?)));
    let feeds = feeds.collect::<Result<Vec<_>>>()?;
    let context = crate::flags::context(arguments.backend, arguments.device.as_ref())?;
    let run = Session::observe(&context, &graph, &options, &feeds)?;
    // A part's outputs are the values that were written, in this order.
    let here: BTreeMap<usize, &HostTensor> = match saved.one_step {
        true => written
            .iter()
            .copied()
            .zip(graph.outputs().iter().filter_map(|value| run.values.get(value)))
            .collect(),
        false => run.values.iter().map(|(value, tensor)| (value.index(), tensor)).collect(),
    };
    writeln!(stdout, "recorded: {} (diptych {})", saved.device, saved.version)?;
    writeln!(stdout, "here:     {} (diptych {})", context.info(), env!("CARGO_PKG_VERSION"))?;
    if saved.random_weights {
        writeln!(stdout, "{} with random weights", saved.model)?;
    }
    let mut rows = table(presets::UTF8_HORIZONTAL_ONLY);
    rows.set_header(["step", "op", "recorded kernel", "of bound", "kernel here", "of bound", "difference"]);
    numbers(&mut rows, &[3, 5, 6]);
    let terminal = std::io::stdout().is_terminal();
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
    let mut parted = None;
    for step in &saved.steps {
        let own = run.steps.iter().find(|own| own.name == step.name);
        let (own_ratio, _, own_beyond) = own.map_or((None, String::new(), false), deviation);
        let both = step.writes.iter().filter_map(|index| Some((values.get(index)?, *here.get(index)?)));
        let off = both.map(|(one, other)| difference(one, other)).reduce(f64::max);
        if parted.is_none() && (step.beyond || own_beyond) {
            parted = Some(step.name.as_str());
        }
        let kernel = own.map_or("-", |own| if own.kernel.is_empty() { "CPU" } else { &own.kernel });
        let recorded = if step.kernel.is_empty() { "CPU" } else { &step.kernel };
        rows.add_row([
            node_name(&step.name, terminal),
            step.op.clone(),
            recorded.to_owned(),
            if step.beyond && step.ratio.is_none() { "inf".to_owned() } else { ratio(step.ratio) },
            kernel.to_owned(),
            ratio(own_ratio),
            off.map_or("-".to_owned(), |off| format!("{off:.2e}")),
        ]);
    }
    writeln!(stdout, "{rows}")?;
    for (place, step) in saved.steps.iter().filter(|step| step.beyond).map(|step| ("recorded", step)) {
        writeln!(stdout, "{place}: {} is off by {}", step.name, step.deviation)?;
    }
    for step in &run.steps {
        let (_, words, beyond) = deviation(step);
        if beyond {
            writeln!(stdout, "here: {} is off by {words}", step.name)?;
        }
    }
    let unchecked = run.steps.iter().filter(|step| step.deviation.is_err()).count();
    writeln!(stdout, "{} steps, {unchecked} of {} here not checked", saved.steps.len(), run.steps.len())?;
    stdout.flush()?;
    let beyond = run.steps.iter().find(|step| deviation(step).2).map(|step| step.name.as_str());
    match parted.or(beyond) {
        Some(name) => bail!("the results part at {name:?}"),
        None => Ok(()),
    }
}
