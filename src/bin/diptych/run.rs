//! `diptych run`: a model on tensors from files.

use crate::npy;
use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use diptych::pick::{Place, Target};
use diptych::{
    Backend, Context, Fusing, Graph, HostTensor, Layout, Picking, Session, SessionOptions, Shape, Tuning,
    tflite,
};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The TensorFlow Lite model.
    pub(crate) model: PathBuf,

    /// An input tensor: a .npy file (float32, float64 or float16, C order, shape n h w c, leading
    /// ones optional). The name may be left out if the model has one input; a path that contains
    /// `=` needs it.
    #[arg(
        long,
        required = true,
        value_name = "[NAME=]FILE",
        value_parser = OsStringValueParser::new().try_map(Input::parse)
    )]
    pub(crate) input: Vec<Input>,

    /// Write each output to DIR/INDEX.npy (float32, shape n h w c).
    #[arg(long, value_name = "DIR")]
    pub(crate) dump: Option<PathBuf>,

    /// What computes.
    #[arg(
        long,
        default_value = "auto",
        value_parser = PossibleValuesParser::new(["auto", "wgpu", "opencl", "cpu"])
            .try_map(|text| text.parse::<Backend>())
    )]
    pub(crate) backend: Backend,

    /// Run this often and report the times.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,

    /// Report the time of each node, its kernel, and where that choice came from.
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

    /// Whether a depthwise convolution and the 1x1 convolution that alone reads it run as one kernel.
    #[arg(long, default_value = "rule", value_name = "WHEN")]
    pub(crate) fuse: FuseName,

    /// Choose kernels from the tuner's record, where it has a verdict.
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) db: Option<PathBuf>,
}

/// What `--fuse` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FuseName {
    /// Where the times in --db say that it is faster.
    Rule,
    /// Wherever a kernel can.
    Always,
    /// Nowhere.
    Never,
}

impl FuseName {
    fn fusing(self) -> Fusing {
        match self {
            FuseName::Rule => Fusing::Rule,
            FuseName::Always => Fusing::Always,
            FuseName::Never => Fusing::Never,
        }
    }
}

/// An `--input`: a file, and the name of the input that it feeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) name: Option<String>,
    pub(crate) path: PathBuf,
}

impl Input {
    /// A name is text; a path may be anything that the system takes.
    fn parse(argument: OsString) -> Result<Self, &'static str> {
        let (name, path) = match split_at_equals(&argument) {
            Some((name, path)) => (Some(name.to_str().ok_or("wanted a NAME of UTF-8")?), path),
            None => (None, argument.clone()),
        };
        if path.is_empty() || name == Some("") {
            return Err("wanted FILE or NAME=FILE");
        }
        Ok(Input { name: name.map(str::to_owned), path: path.into() })
    }
}

/// What is before the first `=` and what is after it, if there is one.
#[cfg(unix)]
fn split_at_equals(argument: &OsStr) -> Option<(&OsStr, OsString)> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = argument.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    Some((OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..]).to_owned()))
}

/// What is before the first `=` and what is after it, if there is one. A path that is no Unicode needs
/// to go without a name: elsewhere such strings cannot be split.
#[cfg(not(unix))]
fn split_at_equals(argument: &OsStr) -> Option<(&OsStr, OsString)> {
    let (name, path) = argument.to_str()?.split_once('=')?;
    Some((OsStr::new(name), path.into()))
}

/// What `--pick` says.
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

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.pick != Picking::Measured || arguments.db.is_some(),
        "--pick measured picks by the times of a record: wanted --db DIR|FILE too"
    );
    let graph = tflite::load(&arguments.model)?;
    let ends = inputs(&graph)?;
    let names: Vec<&str> = ends.iter().map(|(name, _)| name.as_str()).collect();
    let paths = bind(&names, &arguments.input)?;
    let tensors = ends
        .iter()
        .zip(paths)
        .map(|((name, shape), path)| npy::read(path, *shape).with_context(|| format!("input {name:?}")))
        .collect::<Result<Vec<HostTensor>>>()?;
    let feeds: Vec<(&str, &HostTensor)> = names.into_iter().zip(&tensors).collect();

    let context = Context::new(arguments.backend)?;
    eprintln!("{}", context.info());
    let tuning = match &arguments.db {
        Some(path) => Tuning::Database(Arc::new(Mutex::new(crate::tune::record(Some(path))?.0))),
        None => Tuning::Default,
    };
    let options = SessionOptions {
        tuning,
        pick: arguments.pick.clone(),
        fuse: arguments.fuse.fusing(),
        ..Default::default()
    };
    let mut session = Session::new(&context, &graph, options)?;
    let mut times = Vec::new();
    let mut outputs = Vec::new();
    for _ in 0..arguments.runs {
        let start = Instant::now();
        outputs = session.run(&feeds)?;
        times.push(start.elapsed());
    }
    eprintln!("{}", report(&times));
    if arguments.profile {
        eprintln!("{}", session.profile(&feeds)?);
    }
    if let Some(directory) = &arguments.dump {
        std::fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
        for (index, output) in outputs.iter().enumerate() {
            npy::write(&directory.join(format!("{index}.npy")), output)?;
        }
    }
    list(&graph, &outputs)
}

/// The name and shape of each input, in the graph's order.
fn inputs(graph: &Graph) -> Result<Vec<(String, Shape)>> {
    let ends = graph.inputs().iter().map(|&input| Ok((graph.name(input)?.to_owned(), graph.shape(input)?)));
    ends.collect()
}

/// The file for each input of the model, in the model's order.
fn bind<'a>(names: &[&str], given: &'a [Input]) -> Result<Vec<&'a Path>> {
    let mut files: Vec<Option<&Path>> = vec![None; names.len()];
    let known = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    for input in given {
        let path = input.path.display();
        let place = match &input.name {
            Some(name) => names
                .iter()
                .zip(&mut files)
                .find_map(|(known, place)| (known == name).then_some(place))
                .with_context(|| format!("the model has no input {name:?}; it has {known}"))?,
            None => match &mut files[..] {
                [only] => only,
                _ => bail!("--input {path} needs a name, as NAME={path}: the model's inputs are {known}"),
            },
        };
        ensure!(place.is_none(), "--input {path} feeds an input that another --input feeds already");
        *place = Some(&input.path);
    }
    let pairs = names.iter().zip(files);
    pairs.map(|(name, file)| file.with_context(|| format!("no --input feeds {name:?}"))).collect()
}

/// The times of the runs, the first apart: it may include work that is done once.
fn report(times: &[Duration]) -> String {
    let milliseconds = |time: &Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    let Some((first, later)) = times.split_first() else { return "no runs".to_owned() };
    let mut later = later.to_vec();
    later.sort_unstable();
    match (later.first(), later.get(later.len() / 2), later.last()) {
        (Some(fastest), Some(median), Some(slowest)) => format!(
            "first run {}, then {} runs: fastest {}, median {}, slowest {}, copies included",
            milliseconds(first),
            later.len(),
            milliseconds(fastest),
            milliseconds(median),
            milliseconds(slowest)
        ),
        _ => format!("first run {}, copies included", milliseconds(first)),
    }
}

/// One line for each output: index, name, shape.
fn list(graph: &Graph, outputs: &[HostTensor]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    for (index, (&value, output)) in graph.outputs().iter().zip(outputs).enumerate() {
        writeln!(stdout, "{index}, {}, {}", graph.name(value)?, output.shape())?;
    }
    Ok(stdout.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(inputs: &[&str]) -> Vec<Input> {
        inputs.iter().map(|text| Input::parse(text.into()).expect("a valid input")).collect()
    }

    fn refused(names: &[&str], inputs: &[&str]) -> String {
        format!("{:#}", bind(names, &given(inputs)).expect_err("a wrong binding"))
    }

    #[test]
    fn files_are_bound_by_name_in_the_models_order() {
        let inputs = given(&["b=y.npy", "a=x.npy"]);
        assert_eq!(bind(&["a", "b"], &inputs).expect("bound"), [Path::new("x.npy"), Path::new("y.npy")]);
        let inputs = given(&["x.npy"]);
        assert_eq!(bind(&["image"], &inputs).expect("bound"), [Path::new("x.npy")]);
    }

    #[test]
    fn wrong_bindings_list_the_models_inputs() {
        for (names, inputs, words) in [
            (&["a", "b"][..], &["x.npy"][..], "--input x.npy needs a name, as NAME=x.npy"),
            (&["a", "b"], &["x.npy"], "\"a\", \"b\""),
            (&["a"], &["c=x.npy"], "the model has no input \"c\"; it has \"a\""),
            (&["a"], &["x.npy", "a=y.npy"], "--input y.npy feeds an input that another"),
            (&["a", "b"], &["a=x.npy"], "no --input feeds \"b\""),
        ] {
            let text = refused(names, inputs);
            assert!(text.contains(words), "no {words:?} in: {text}");
        }
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

    #[test]
    fn times_report_the_median_of_the_later_runs() {
        let times: Vec<_> = [90, 3, 1, 2].map(Duration::from_millis).to_vec();
        let wanted = "first run 90.000 ms, then 3 runs: fastest 1.000 ms, median 2.000 ms, slowest 3.000 ms";
        assert!(report(&times).starts_with(wanted), "{}", report(&times));
        assert_eq!(report(&times[..1]), "first run 90.000 ms, copies included");
    }
}
