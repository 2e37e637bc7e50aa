//! `diptych run`: a model on tensors from files, on a picture, or on random numbers.

mod calibrate;
mod classes;
mod inputs;
mod number;
mod open;
mod report;
mod trace;

pub(crate) use inputs::all_random;

use crate::flags::BackendChoice;
use crate::output::{print, say};
use crate::tune::PrecisionName;
use crate::{npy, replay};
use anyhow::{Context as _, Result, ensure};
use clap::builder::{OsStringValueParser, TypedValueParser};
use diptych::internals::pick::{Place, Target};
use diptych::{
    Choice, Context, Error, Graph, HostTensor, Layout, LoadOptions, Model, ModelFile, Picking, Profile,
    Session, SessionOptions, Setting, Tuning,
};
use diptych_base::file;
use inputs::{Input, Pixels};
use report::Report;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trace::Trace;

/// Runs on random inputs by default: enough for a median.
const RANDOM_RUNS: u32 = 30;

/// Elements of an input that is made only once the network is known to be read.
const LARGE_INPUT: usize = 1 << 24;

/// The largest model that is kept in a replay's file.
const MAX_MODEL_BYTES: u64 = 1 << 33;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The model: a TensorFlow Lite or an ONNX file, or hf:OWNER/NAME[:FILE] of the Hugging Face hub.
    pub(crate) model: PathBuf,

    /// An input tensor: a .npy file (floats, integers or booleans, C order, of the input's shape, leading
    /// ones optional). The name may be left out if the model has one input; a path that contains
    /// `=` needs it. Inputs that are not given are random numbers from 0 to 1, integers either 0 or 1.
    #[arg(
        long,
        value_name = "[NAME=]FILE",
        value_parser = OsStringValueParser::new().try_map(Input::parse)
    )]
    pub(crate) input: Vec<Input>,

    /// A picture (PNG, JPEG, BMP or GIF) as an input n h w c or n c h w of 1, 3 or 4 channels, resized to it; one channel
    /// is the luma.
    #[arg(
        long,
        value_name = "[NAME=]FILE",
        value_parser = OsStringValueParser::new().try_map(Input::parse)
    )]
    pub(crate) image: Vec<Input>,

    /// Integers of --input are those that a quantised TensorFlow Lite file stores, as other engines are given them. Without it
    /// they are numbers as they stand, and so are floats.
    #[arg(long)]
    pub(crate) stored: bool,

    /// The values of black and white in a picture's tensor [default: as the file's metadata say of an input of floats;
    /// 0,255 for one of integers].
    #[arg(long, value_name = "BLACK,WHITE", value_parser = Pixels::parse, allow_hyphen_values = true)]
    pub(crate) range: Option<Pixels>,

    /// Let the CPU round what is multiplied with weights of 4 and 8 bits: each 32 numbers to bytes by a scale of their own. With
    /// AVX-512 VNNI a decoder's next token takes less time then.
    #[arg(long)]
    round_activations: bool,

    /// The seed of random inputs, and of what the model draws.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// Write each output to DIR/INDEX.npy, in its type and shape.
    #[arg(long, value_name = "DIR")]
    pub(crate) dump: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) on: crate::flags::OnFastest,

    /// Storage and arithmetic.
    #[arg(long, value_enum, default_value_t = PrecisionName::F32)]
    pub(crate) precision: PrecisionName,

    #[command(flatten)]
    pub(crate) calibrating: calibrate::Arguments,

    /// Run this often and report the times [default: 1; 30 if all inputs are random].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,

    /// Run for this long instead.
    #[arg(long, value_name = "SECONDS", value_parser = crate::flags::seconds, conflicts_with = "runs")]
    pub(crate) duration: Option<Duration>,

    /// Runs before those whose times count [default: none, and the first of the runs does not count].
    #[arg(long, value_name = "RUNS")]
    pub(crate) warmup: Option<u32>,

    #[command(flatten)]
    pub(crate) classes: classes::Arguments,

    #[command(flatten)]
    pub(crate) load: crate::flags::Load,

    /// So many samples in one run: the outermost extents of inputs and outputs are so many times those of the model.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) batch: Option<u32>,

    /// Report the memory of the values, and its lower bound.
    #[arg(long)]
    pub(crate) memory: bool,

    /// Print JSON: device, inputs, times, memory, with --profile each step, and each output's extremes, mean, deviation
    /// and most likely classes.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a trace of load, build, upload, each kernel and download, as ui.perfetto.dev reads it.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Keep one more run in FILE, for `diptych replay`: the model, inputs, what each step wrote, how far that is from
    /// the oracle, kernels in both languages, device and driver. A safetensors file.
    #[arg(long, value_name = "FILE")]
    pub(crate) replay_out: Option<PathBuf>,

    /// Only what this step read and wrote.
    #[arg(long, value_name = "STEP", requires = "replay_out")]
    pub(crate) replay_node: Option<String>,

    /// Put random numbers in the place of the model's weights before it runs, of the same mean and deviation, so that
    /// the file has none of them.
    #[arg(long)]
    pub(crate) random_weights: bool,

    /// Report the time of each step, its kernel, and where that choice came from.
    #[arg(long)]
    pub(crate) profile: bool,

    /// How each node's kernel is picked:
    ///   rule              the record's verdict, or the rule for untuned nodes
    ///   measured          what makes the whole network fastest by the times in --db, with changes
    ///                     of layout between nodes counted
    ///   preference=PLACE,..  what suits these places best, the most wanted first
    /// A PLACE is `any`, a target (wgpu, opencl, cpu), a layout of feature maps (c4, image2d,
    /// nhwc), or TARGET/LAYOUT.
    #[arg(long, default_value = "rule", value_parser = picking, value_name = "PICK", verbatim_doc_comment)]
    pub(crate) pick: Picking,

    /// Another work-group for the kernel of a step, by the name that --profile shows.
    #[arg(long, value_name = "STEP=X,Y,Z", value_parser = crate::flags::work_group)]
    pub(crate) work_group: Vec<(String, [u32; 3])>,

    /// A node that the CPU computes in a session on a GPU: what it reads is downloaded and what it writes uploaded.
    #[arg(long, value_name = "NODE")]
    pub(crate) on_cpu: Vec<String>,

    /// Choose kernels from this record of the tuner, where it has a verdict. Without it, from the user's own, which
    /// `diptych tune` writes to.
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) db: Option<PathBuf>,

    /// Choose kernels by the rule for untuned nodes, and read no record.
    #[arg(long, conflicts_with = "db")]
    pub(crate) untuned: bool,
}

/// The values of `--pick`.
fn picking(text: &str) -> Result<Picking, String> {
    match text.split_once('=') {
        None if text == "rule" => Ok(Picking::Rule),
        None if text == "measured" => Ok(Picking::Measured),
        Some(("preference", places)) => {
            Ok(Picking::Preference(places.split(',').map(place).collect::<Result<_, _>>()?))
        }
        _ => Err("wanted rule, measured or preference=PLACE,..".to_owned()),
    }
}

/// A place of `--pick preference=`.
fn place(text: &str) -> Result<Place, String> {
    let mut place = Place::default();
    if text == "any" {
        return Ok(place);
    }
    let wanted = || {
        format!(
            "{text:?} is no place: wanted any, wgpu, opencl or cpu, c4, image2d or nhwc, or TARGET/LAYOUT"
        )
    };
    for word in text.split('/') {
        let target =
            [Target::Wgpu, Target::OpenCl, Target::Cpu].into_iter().find(|one| one.to_string() == word);
        let layout =
            [Layout::C4, Layout::Image2d, Layout::Nhwc].into_iter().find(|one| one.to_string() == word);
        // In this order, each once.
        match (target, layout) {
            (Some(_), _) if place == Place::default() => place.target = target,
            (_, Some(_)) if place.layout.is_none() => place.layout = layout,
            _ => return Err(wanted()),
        }
    }
    Ok(place)
}

/// The model's file, and its bytes where they are kept or changed.
fn opened(arguments: &Arguments, options: &LoadOptions) -> Result<(ModelFile, Vec<u8>)> {
    let path = &arguments.model;
    if arguments.replay_out.is_none() && !arguments.random_weights {
        return Ok((ModelFile::load(path, options)?, Vec::new()));
    }
    let mut bytes = file::read(path, MAX_MODEL_BYTES).with_context(|| path.display().to_string())?;
    if arguments.random_weights {
        bytes = diptych::with_random_weights(&bytes, arguments.seed)?;
    }
    // Not from its path: the file to be kept has to be enough.
    let file = ModelFile::from_bytes(bytes.clone(), options).with_context(|| path.display().to_string())?;
    Ok((file, bytes))
}

/// The network for the extents of this run, where something wants it whole: a batch, a calibration, a replay.
fn model(arguments: &Arguments, options: &LoadOptions, bytes: &[u8]) -> Result<Model> {
    let path = &arguments.model;
    let mut model = match bytes {
        [] => Model::load(path, options)?,
        bytes => Model::from_bytes(bytes, options).with_context(|| path.display().to_string())?,
    };
    if let Some(batch) = arguments.batch {
        model.graph = model.graph.with_batch(batch as usize)?;
    }
    Ok(model)
}

/// The kernels of steps with other work-groups.
fn choices(
    context: &Context,
    graph: &Graph,
    options: &SessionOptions,
    wanted: &[(String, [u32; 3])],
) -> Result<BTreeMap<String, Choice>> {
    let mut steps = Session::planned_steps(context, graph, options)?;
    steps.retain(|step| step.unit.is_some());
    let choice = |(name, work_group): &(String, [u32; 3])| {
        let step = steps.iter().find(|step| step.name == *name).with_context(|| {
            let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
            format!("--work-group: found no step {name:?} on this device, wanted one of {names:?}")
        })?;
        Ok((name.clone(), Choice { work_group: *work_group, ..step.choice }))
    };
    wanted.iter().map(choice).collect()
}

/// Refuses options that do not go together.
fn check(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.pick != Picking::Measured || arguments.db.is_some(),
        "--pick measured picks by the times of a record: wanted --db DIR|FILE too"
    );
    ensure!(
        arguments.on.backend != BackendChoice::Fastest || !arguments.calibrating.is_asked(),
        "--backend fastest measures without a calibration: wanted --backend wgpu, opencl or cpu with one"
    );
    Ok(())
}

/// Whether values of a run settle what is refused: the session reads the network with them.
fn is_settled_later(error: &Error) -> bool {
    matches!(error, Error::Hinted { hint, .. } if matches!(hint.setting(), Setting::Values(_)))
}

/// The options of the session, before a calibration and choices by hand.
fn session_options(arguments: &Arguments) -> Result<SessionOptions> {
    let tuning =
        if arguments.untuned { Tuning::Default } else { crate::tune::of_record(arguments.db.as_deref())? };
    Ok(SessionOptions {
        tuning,
        pick: arguments.pick.clone(),
        precision: arguments.precision.precision(),
        on_cpu: arguments.on_cpu.iter().cloned().collect(),
        seed: arguments.seed,
        rounded_activations: arguments.round_activations,
        cpu_threads: arguments.load.threads,
        ..Default::default()
    })
}

/// Prints what is said of the run, and then its outputs.
fn say_all(arguments: &Arguments, report: &Report<'_>, profile: Option<&Profile>) -> Result<String> {
    if arguments.json {
        return Ok(serde_json::to_string_pretty(&report.json())?);
    }
    say(report.times());
    if arguments.memory {
        say(report.memory());
    }
    if let Some(profile) = profile {
        print(report::profile(profile))?;
    }
    Ok(report.outputs())
}

/// Writes the outputs to files of a directory.
fn dump(directory: &Path, outputs: &[HostTensor]) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
    for (index, output) in outputs.iter().enumerate() {
        npy::write(&directory.join(format!("{index}.npy")), output)?;
    }
    Ok(())
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    check(arguments)?;
    let mut trace = Trace::new();
    let mut load = arguments.load.options();
    let (file, bytes) = opened(arguments, &load)?;
    let inputs = {
        let given = arguments.input.iter().chain(&arguments.image);
        let names: Vec<&str> = given.filter_map(|input| input.name.as_deref()).collect();
        open::wanted(file.inputs(), |name| names.contains(&name))
    };
    let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    let sources = inputs::bind(&names, &arguments.input, &arguments.image)?;
    let mut ports = open::ports(&inputs, &sources)?;
    let is_whole = arguments.batch.is_some()
        || arguments.replay_out.is_some()
        || arguments.calibrating.is_asked()
        || !arguments.work_group.is_empty();
    // A network that is refused costs no inputs before.
    let is_large = ports.iter().any(|port| port.of.dims.elements() > LARGE_INPUT);
    if is_whole || is_large {
        for (input, port) in inputs.iter().zip(&ports) {
            for open in &input.open {
                let extent = port.of.dims.extents().get(open.axis).copied();
                load.dimensions
                    .extend(extent.map(|extent| (format!("{}.{}", input.name, open.axis), extent)));
            }
        }
    }
    if is_large
        && !is_whole
        && let Err(error) = file.model(&load.dimensions)
        && !is_settled_later(&error)
    {
        return Err(error.into());
    }
    let model = match is_whole {
        true => {
            let model = model(arguments, &load, &bytes)?;
            ports = inputs::ports(&model.graph)?;
            Some(model)
        }
        false => None,
    };
    trace.lap("load");
    let mut tensors = inputs::read(&ports, &sources, (arguments.range, &file.pixels()), arguments.seed)?;
    let quantised = &file.info().quantised;
    inputs::dequantise(&mut tensors, (&ports, &sources), quantised, arguments.stored)?;
    let feeds: Vec<(&str, &HostTensor)> = ports.iter().map(|port| port.name.as_str()).zip(&tensors).collect();
    trace.lap("inputs");

    let mut options = session_options(arguments)?;
    let context = {
        let record = arguments.db.as_deref();
        arguments.on.context(&options, &feeds, record, |options| match &model {
            Some(model) => Context::fastest(&model.graph, options),
            None => file.fastest(options),
        })?
    };
    say(context.info());
    trace.lap("open the device");
    if let Some(model) = &model {
        let (network, given) = ((&context, &model.graph), (&ports[..], &tensors[..]));
        options.calibration = arguments.calibrating.calibration(network, &options, given, arguments.range)?;
    }
    if arguments.calibrating.calibrate.is_some() {
        trace.lap("calibrate");
    }
    if let Some(model) = model.as_ref().filter(|_| !arguments.work_group.is_empty()) {
        options.choices = choices(&context, &model.graph, &options, &arguments.work_group)?;
    }
    let mut session = match &model {
        Some(model) => Session::new(&context, &model.graph, options.clone())?,
        None => file.session(&context, options.clone())?,
    };
    trace.lap("build the session");
    let random = sources.iter().all(Option::is_none);
    let often = Often {
        runs: arguments.runs.unwrap_or(if random { RANDOM_RUNS } else { 1 }),
        duration: arguments.duration,
        warmup: arguments.warmup,
    };
    let mut outputs = Vec::new();
    let times = often.time(|| {
        outputs = session.run(&feeds)?;
        Ok(())
    })?;
    trace.lap(&format!("run ({})", times.len()));
    let classes = classes::most_likely(&arguments.classes, file.info(), &outputs)?;
    let profile = arguments.profile.then(|| session.profile(&feeds)).transpose()?;
    let report = Report {
        device: context.info().to_string(),
        inputs: ports.iter().zip(&sources).map(|(port, source)| (port, source.as_ref())).collect(),
        outputs: session.outputs().iter().zip(&outputs).collect(),
        classes,
        times: &times,
        warmup: often.warmup() as usize,
        profile: profile.as_ref(),
        memory: session.memory(),
        steps: session.steps().len(),
    };
    let text = say_all(arguments, &report, profile.as_ref())?;
    if let Some(file) = &arguments.trace {
        let (_, stages) = session.run_in_stages(&feeds)?;
        trace.run(&stages, &session.profile(&feeds)?);
        trace.write(file)?;
    }
    if let (Some(file), Some(model)) = (&arguments.replay_out, &model) {
        let recording = replay::Recording {
            model: &arguments.model,
            bytes,
            random_weights: arguments.random_weights,
            load: &load,
            batch: arguments.batch,
            node: arguments.replay_node.as_deref(),
        };
        replay::record(file, recording, &context, &model.graph, &options, &feeds)?;
    }
    if let Some(directory) = &arguments.dump {
        dump(directory, &outputs)?;
    }
    print(text)
}

/// How often a network is run.
#[derive(Debug, Clone, Copy)]
struct Often {
    runs: u32,
    duration: Option<Duration>,
    warmup: Option<u32>,
}

impl Often {
    /// The first runs, whose times do not count: they may include work that is done once.
    fn warmup(self) -> u32 {
        self.warmup.unwrap_or(1)
    }

    /// The times of all runs, at least one.
    fn time(self, mut run: impl FnMut() -> Result<()>) -> Result<Vec<Duration>> {
        let mut times: Vec<Duration> = Vec::new();
        let mut timed = |times: &mut Vec<Duration>| {
            let start = Instant::now();
            run()?;
            times.push(start.elapsed());
            Ok::<(), anyhow::Error>(())
        };
        for _ in 0..self.warmup.unwrap_or(0) {
            timed(&mut times)?;
        }
        let start = Instant::now();
        let mut runs = 0;
        while runs == 0 || self.duration.map_or(runs < self.runs, |duration| start.elapsed() < duration) {
            timed(&mut times)?;
            runs += 1;
        }
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_runs_as_often_or_as_long_as_asked() {
        let runs = |often: Often| often.time(|| Ok(())).expect("timed").len();
        let often = Often { runs: 4, duration: None, warmup: None };
        assert_eq!((runs(often), often.warmup()), (4, 1), "the first of them is the warm-up");
        assert_eq!(runs(Often { warmup: Some(3), ..often }), 7);
        assert_eq!(runs(Often { duration: Some(Duration::ZERO), ..often }), 1);
        let often = Often { duration: Some(Duration::from_millis(20)), ..often };
        let start = Instant::now();
        let times = often.time(|| {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        });
        let (count, took) = (times.expect("timed").len(), start.elapsed());
        assert!((1..=4).contains(&count) && took >= Duration::from_millis(20), "{count} runs in {took:?}");
    }

    #[test]
    fn picks_are_read_and_wrong_ones_refused() {
        let (opencl, image) = (Some(Target::OpenCl), Some(Layout::Image2d));
        let places = vec![
            Place { target: opencl, precision: None, layout: image },
            Place { target: opencl, ..Default::default() },
            Place { layout: image, ..Default::default() },
            Place::default(),
        ];
        assert_eq!(picking("rule"), Ok(Picking::Rule));
        assert_eq!(picking("measured"), Ok(Picking::Measured));
        let found = picking("preference=opencl/image2d,opencl,image2d,any");
        assert_eq!(found, Ok(Picking::Preference(places)));
        for (text, words) in [
            ("fast", "wanted rule, measured or preference="),
            ("preference", "wanted rule, measured or preference="),
            ("rule=any", "wanted rule, measured or preference="),
            ("preference=", "\"\" is no place"),
            ("preference=any,cuda", "\"cuda\" is no place"),
            ("preference=c4/wgpu", "\"c4/wgpu\" is no place"),
            ("preference=wgpu/opencl", "\"wgpu/opencl\" is no place"),
            ("preference=c4/c4", "\"c4/c4\" is no place"),
            ("preference=any/c4", "\"any/c4\" is no place"),
        ] {
            let error = picking(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
