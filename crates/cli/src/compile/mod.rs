//! `diptych compile`: what a device's compiler says of the kernels.

mod costs;
mod file;
mod list;
mod page;
mod text;
mod worker;

use crate::output::{print, say};
use crate::tune::PrecisionName;
use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use diptych::{Backend, Context, DeviceSelector};
use diptych_kernels::ops;
use file::Report;
use indicatif::{ProgressBar, ProgressStyle};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Models, TensorFlow Lite or ONNX: the kernels of an untuned session of each.
    #[arg(value_name = "MODEL")]
    pub(crate) models: Vec<PathBuf>,

    /// An op, as `diptych emit` names it, or `all`: the kernels that an untuned session runs for the op's examples.
    #[arg(long, value_name = "NAME", value_parser = op_names())]
    op: Vec<String>,

    /// Every kernel, tile, layout and work-group of the ops' examples; of all ops, without `--op`.
    #[arg(long)]
    space: bool,

    /// Storage and arithmetic; several with commas [default: f32].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PRECISION,..")]
    precision: Vec<PrecisionName>,

    /// The API.
    #[arg(
        long,
        default_value = "wgpu",
        value_parser = PossibleValuesParser::new(["wgpu", "opencl"]).try_map(|text| text.parse::<Backend>())
    )]
    backend: Backend,

    /// The device instead: a PCI address, a UUID, a part of its name or its number, alone or after `wgpu:` or `opencl:`.
    #[arg(long, value_name = "DEVICE", conflicts_with = "backend")]
    device: Option<DeviceSelector>,

    #[command(flatten)]
    load: crate::flags::Load,

    /// Seconds that the compiler may take for one kernel.
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = crate::flags::seconds)]
    limit: Duration,

    /// Fail if a kernel is not compiled, or if one of an untuned session spills as far as the driver tells.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,..")]
    deny: Vec<Denied>,

    /// List every kernel, however many there are.
    #[arg(long)]
    all: bool,

    /// Print JSON: what `--with` reads.
    #[arg(long)]
    json: bool,

    /// Write a page that needs no other file: the kernels side by side on all devices.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// What `--json` printed on another device, for the page; again for others. Without models, `--op` and `--space` nothing is
    /// compiled here.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,

    /// Compile from this kernel on, and say what became of each: what a process of its own does.
    #[arg(long, value_name = "FIRST", hide = true)]
    worker: Option<usize>,
}

/// What a command fails for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Denied {
    /// A kernel that the driver refuses, or whose compiler crashes or takes too long.
    Failures,
    /// A kernel of an untuned session that spills.
    Spills,
}

/// The ops, and the word for all of them.
fn op_names() -> PossibleValuesParser {
    PossibleValuesParser::new(ops::all().iter().map(|entry| entry.name).chain([list::ALL]))
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let compiles = arguments.space || !arguments.op.is_empty() || !arguments.models.is_empty();
    ensure!(
        compiles || (!arguments.with.is_empty() && arguments.report.is_some()),
        "nothing to compile: wanted a MODEL, --op or --space, or a page by --report FILE of reports --with FILE"
    );
    if let Some(first) = arguments.worker {
        return work(arguments, first);
    }
    let mut reports = Vec::new();
    let mut denied = None;
    if compiles {
        let report = compiled(arguments)?;
        let text = match arguments.json {
            true => serde_json::to_string(&report)?,
            false => text::text(&report, arguments.all),
        };
        print(text.trim_end())?;
        denied = text::denied(
            &report,
            arguments.deny.contains(&Denied::Failures),
            arguments.deny.contains(&Denied::Spills),
        );
        reports.push(report);
    }
    for path in &arguments.with {
        reports.push(Report::read(path)?);
    }
    if let Some(path) = &arguments.report {
        let page = page::page(&reports)?;
        std::fs::write(path, page).with_context(|| path.display().to_string())?;
    }
    match denied {
        Some(denied) => bail!("{denied}"),
        None => Ok(()),
    }
}

/// What a process does that compiles for another one.
fn work(arguments: &Arguments, first: usize) -> Result<()> {
    let builder = Context::builder().without_kernel_cache().compiler_statistics(true);
    let context = match &arguments.device {
        Some(device) => builder.device(device.clone()).open()?,
        None => builder.backend(arguments.backend).open()?,
    };
    let device =
        context.device().context("the CPU compiles no kernels: wanted a device of wgpu or OpenCL")?;
    let list = list::list(arguments, &context, &device.info().limits)?;
    worker::work(&list, first, device)?;
    // What a driver does at its end is no longer of interest; the one of a device that is not there may crash.
    std::process::exit(0)
}

/// The report of this device.
fn compiled(arguments: &Arguments) -> Result<Report> {
    let style = ProgressStyle::with_template("{spinner} {wide_bar} {elapsed} {pos}/{len} kernels")?;
    let bar = ProgressBar::new(1).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(100));
    let progress = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let command = |first: usize| -> Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words(first));
        Ok(command)
    };
    let report = worker::watch(&command, arguments.limit, &progress)?;
    bar.finish_and_clear();
    if report.means.is_none() {
        say(format_args!("{}: the driver says only whether it takes a kernel", report.device.name));
    }
    Ok(report)
}

/// The words of a process that compiles from a kernel on: this one's.
fn words(first: usize) -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let command = words.iter().position(|word| word == "compile").map_or(0, |at| at + 1);
    words.splice(command..command, [format!("--{}", worker::WORKER).into(), first.to_string().into()]);
    words
}
