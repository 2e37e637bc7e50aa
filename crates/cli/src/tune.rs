//! `diptych tune`: time the kernels of a model or of one op on this machine's device.

use crate::emit::{op_named, problem};
use crate::interrupt::{Interrupt, Interrupted};
use crate::output::print;
use crate::table::{Rows, line};
use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use diptych::internals::tune::Search;
use diptych::internals::tune::db::Database;
use diptych::internals::tune::journal::Journal;
use diptych::{Choice, Layout, Model, Precision, ProblemReport, Report, Tuner, TunerProgress, Tuning};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A TensorFlow Lite or ONNX model, or an op, as `diptych emit` names it.
    pub(crate) what: OsString,

    /// The shape of an op, as `diptych emit` takes it.
    #[arg(long, value_name = "NUMBERS")]
    pub(crate) shape: Option<String>,

    #[command(flatten)]
    pub(crate) on: crate::flags::Gpus,

    /// How many candidates to try, without a budget.
    #[arg(long, value_enum, default_value_t = SearchName::Fast)]
    pub(crate) search: SearchName,

    /// The budgeted search instead, with this many seconds in all: the APIs share them.
    #[arg(long, value_name = "SECONDS", value_parser = crate::flags::seconds)]
    pub(crate) budget: Option<Duration>,

    #[command(flatten)]
    pub(crate) load: crate::flags::Load,

    /// Only these nodes of the model.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) nodes: Vec<String>,

    /// The record: a directory or a file; the platform's cache directory if it is left out.
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) db: Option<PathBuf>,

    /// Storage and arithmetic of the convolutions.
    #[arg(long, value_enum, default_value_t = PrecisionName::F32)]
    pub(crate) precision: PrecisionName,

    /// Layouts of feature maps to try beside c4: image2d keeps them in OpenCL images. The default
    /// depends on the GPU's family.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LAYOUT,..")]
    pub(crate) layouts: Vec<LayoutName>,

    /// Time again what the record already has.
    #[arg(long)]
    pub(crate) retune: bool,

    /// Decides the order of candidates and samples.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// A search without a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchName {
    /// Only the untuned choice is checked and timed.
    Table,
    /// Every kernel and tile with a handful of work-groups.
    Fast,
    /// Every kernel and tile with every work-group.
    Exhaustive,
}

/// A layout of feature maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutName {
    /// Slices of four channels in a buffer.
    C4,
    /// Slices side by side in an image.
    Image2d,
}

impl LayoutName {
    fn layout(self) -> Layout {
        match self {
            LayoutName::C4 => Layout::C4,
            LayoutName::Image2d => Layout::Image2d,
        }
    }
}

/// A precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionName {
    /// f32 storage and arithmetic.
    F32,
    /// For each node f16 storage where a calibration or the op's own bound allows it, else f32.
    Auto,
    /// f32 storage; matrix units may round matrices to ten bits of mantissa.
    Tf32,
    /// f32 storage; matrix units may multiply matrices as sums of two halves.
    Splitf16,
    /// f16 storage, f32 arithmetic.
    F16s,
    /// f16 storage and arithmetic.
    F16,
}

impl PrecisionName {
    pub(crate) fn precision(self) -> Precision {
        match self {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::Auto => Precision::Auto,
            PrecisionName::Tf32 => Precision::Tf32,
            PrecisionName::Splitf16 => Precision::SplitF16,
            PrecisionName::F16s => Precision::F16Storage,
            PrecisionName::F16 => Precision::F16,
        }
    }
}

/// The record at `path`, or the default one, and the directory of its journal. It need not exist.
pub(crate) fn record(path: Option<&Path>) -> Result<(Database, PathBuf)> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => Database::default_dir()?,
    };
    // Also a file without an extension, and what is no file at all: opening it says what it is.
    if !path.is_dir() && (path.exists() || path.extension().is_some()) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_owned);
        return Ok((Database::open_file(&path)?, folder));
    }
    Ok((Database::open(&path)?, path))
}

/// Kernels by the record at `path`, or by the user's own.
pub(crate) fn of_record(path: Option<&Path>) -> Result<Tuning> {
    let of = |database| Tuning::Database(Arc::new(Mutex::new(database)));
    if path.is_some() {
        return Ok(of(record(path)?.0));
    }
    // Nobody asked for this one: a system without a home directory has none, and one that cannot be read keeps nobody
    // from running a model.
    let Ok(folder) = Database::default_dir() else { return Ok(Tuning::Default) };
    Ok(Database::open(&folder).map_or_else(
        |error| {
            eprintln!("the tuner's record in {} is left aside: {error}", folder.display());
            Tuning::Default
        },
        of,
    ))
}

/// How often a bar is drawn again, whatever a driver does meanwhile.
const TICK: Duration = Duration::from_millis(100);
/// Letters of a bar.
const BAR: usize = 20;
/// What a problem is on a bar, so that its candidates are seen.
const PARTS: u64 = 1000;

/// A bar on standard error, if that is a terminal: it shows how much of the budget is over, or without one how many problems.
pub(crate) fn bar(what: &str, budget: Option<Duration>) -> Result<ProgressBar> {
    let template = match budget {
        Some(_) => "{prefix} {spinner} {budget} {wide_msg}",
        None => "{prefix} {spinner} {bar:20} {elapsed} {wide_msg}",
    };
    let style = ProgressStyle::with_template(template).context("the progress bar's template")?;
    let of_budget = move |state: &ProgressState, text: &mut dyn fmt::Write| {
        // A bar that cannot be written is no reason to fail.
        let _ = text.write_str(&of_budget(state.elapsed(), budget.unwrap_or_default()));
    };
    let bar =
        ProgressBar::new(1).with_style(style.with_key("budget", of_budget)).with_prefix(what.to_owned());
    bar.enable_steady_tick(TICK);
    Ok(bar)
}

/// A bar of the time that is over, and in words.
fn of_budget(elapsed: Duration, budget: Duration) -> String {
    let part = elapsed.as_secs_f64() / budget.as_secs_f64().max(1e-9);
    let full = ((part * BAR as f64) as usize).min(BAR);
    let bar = "\u{2588}".repeat(full) + &"\u{2591}".repeat(BAR - full);
    format!("{bar} {:.0} of {:.0} s", elapsed.as_secs_f64(), budget.as_secs_f64())
}

/// Shows how far a tuner is.
fn show(bar: &ProgressBar, progress: TunerProgress) {
    let TunerProgress { done, visited, problems, tried, candidates, .. } = progress;
    // A budget passes over all problems before the first is done.
    bar.set_length(problems as u64 * PARTS);
    let part = (tried as u64 * PARTS).checked_div(candidates as u64).unwrap_or(0);
    bar.set_position((done as u64 * PARTS + part).min(problems as u64 * PARTS));
    bar.set_message(match candidates {
        0 => format!("{visited} of {problems} problems"),
        _ => format!("{visited} of {problems} problems, candidate {tried} of {candidates}"),
    });
}

/// Runs the tuner. Ctrl-C ends the present candidate and keeps what was found: the report then has what
/// there is, and comes with [`Interrupted`].
pub(crate) fn finish(
    tuner: &mut Tuner,
    bar: &ProgressBar,
    interrupt: &Interrupt,
) -> Result<(Report, Option<Interrupted>)> {
    loop {
        let progress = tuner.step(Duration::from_millis(50))?;
        show(bar, progress);
        let interrupted = interrupt.pressed().then_some(Interrupted);
        if interrupted.is_some() {
            tuner.cancel()?;
        }
        if interrupted.is_some() || progress.is_finished() {
            bar.finish_and_clear();
            return Ok((tuner.report().clone(), interrupted));
        }
    }
}

/// A choice in few words, and how it came about.
fn in_short(problem: &ProblemReport) -> String {
    let Some(Choice { variant, tile, work_group, layout, .. }) = problem.choice else {
        return "none gives the right result".to_owned();
    };
    let numbers = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let layout = if layout == Layout::Image2d { format!(" {layout}") } else { String::new() };
    let (tile, work_group) = (numbers(tile), numbers(work_group));
    let default = if problem.choice == Some(problem.default) { "default " } else { "" };
    let open = if problem.cut_short { " (cut short)" } else { "" };
    format!("{default}{variant}{layout} t{tile} wg{work_group}{open}")
}

/// A table with a row for each problem, and below it the candidates that failed.
fn text_of(report: &Report) -> String {
    let heads = ["nodes", "problem", "tried", "default us", "tuned us", "speed-up", "choice"];
    let mut problems = Rows::new(heads).numbers(&[0, 2, 3, 4, 5]);
    for problem in &report.problems {
        let [nodes, title, tried, default, tuned, speed_up, _] = problem.cells();
        problems.add([nodes, title, tried, default, tuned, speed_up, in_short(problem)]);
    }
    let problems = problems.text();
    let failures: String = report
        .problems
        .iter()
        .flat_map(|problem| problem.failures())
        .map(|text| line(&text) + "\n")
        .collect();
    let device = line(&format!("{} ({})", report.device, report.clock));
    format!("{device}\n{problems}\n{failures}{}", line(&report.summary()))
}

/// What of a budget the devices took.
fn sum_of(spent: &[(String, Duration)], budget: Option<Duration>) -> String {
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let parts: Vec<String> = spent.iter().map(|(api, time)| format!("{api} {}", seconds(*time))).collect();
    let of = budget.map(|budget| format!(" of the budget of {}", seconds(budget))).unwrap_or_default();
    format!("{} in all{of}: {}", seconds(spent.iter().map(|(_, time)| *time).sum()), parts.join(", "))
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let interrupt = Interrupt::watch()?;
    let (mut database, folder) = record(arguments.db.as_deref())?;
    let journal = Journal::open(&folder, &mut database)?;
    let database = Arc::new(Mutex::new(database));
    let contexts = arguments.on.contexts()?;
    let mut spent: Vec<(String, Duration)> = Vec::new();
    for (index, context) in contexts.iter().enumerate() {
        let mut tuner = Tuner::new(context)?
            .database(Arc::clone(&database))
            .journal(journal.clone())
            .precision(arguments.precision.precision())
            .seed(arguments.seed)
            .retune(arguments.retune)
            .search(match arguments.search {
                SearchName::Table => Search::Table,
                SearchName::Fast => Search::Fast,
                SearchName::Exhaustive => Search::Exhaustive,
            });
        let so_far = spent.iter().map(|(_, time)| *time).sum();
        let own = |budget| crate::flags::share(budget, so_far, contexts.len() - index, contexts.len());
        let budget = arguments.budget.map(own);
        if let Some(budget) = budget {
            tuner = tuner.budget(budget);
        }
        if !arguments.layouts.is_empty() {
            let layouts: Vec<Layout> = arguments.layouts.iter().map(|name| name.layout()).collect();
            tuner = tuner.layouts(&layouts);
        }
        line_up(&mut tuner, arguments)?;
        let api = context.info().backend.to_string();
        let bar = bar(&api, budget)?;
        let (report, interrupted) = finish(&mut tuner, &bar, &interrupt)?;
        print(format_args!("{}\n", text_of(&report)))?;
        if let Some(interrupted) = interrupted {
            return Err(interrupted.into());
        }
        spent.push((api, report.spent));
    }
    match spent.len() > 1 || arguments.budget.is_some() {
        true => print(line(&sum_of(&spent, arguments.budget))),
        false => Ok(()),
    }
}

fn line_up(tuner: &mut Tuner, arguments: &Arguments) -> Result<()> {
    let what = arguments.what.as_os_str();
    if let Some((what, op)) = what.to_str().and_then(|what| Some((what, op_named(what)?))) {
        if !arguments.nodes.is_empty() {
            bail!("--nodes goes with a model, not with the op {what}");
        }
        let precision = arguments.precision.precision();
        return Ok(tuner.begin_problem(what, problem(op, arguments.shape.as_deref(), None, precision)?)?);
    }
    if arguments.shape.is_some() {
        let names: Vec<&str> = diptych_kernels::ops::all().iter().map(|entry| entry.name).collect();
        bail!("--shape goes with an op ({}), not with the model {}", names.join(", "), what.display());
    }
    let graph = Model::load(what, &arguments.load.options())?.graph;
    match arguments.nodes.as_slice() {
        [] => tuner.begin(&graph)?,
        names => tuner.begin_nodes(&graph, names)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_the_part_of_a_budget_that_is_over() {
        let second = Duration::from_secs(1);
        let bar = of_budget(5 * second, 20 * second);
        assert_eq!(bar.matches('\u{2588}').count(), 5);
        assert!(bar.ends_with(" 5 of 20 s"), "{bar}");
        assert!(of_budget(25 * second, 20 * second).ends_with(" 25 of 20 s"));
        assert_eq!(of_budget(second, Duration::ZERO).matches('\u{2588}').count(), BAR);
    }

    #[test]
    fn a_sum_says_of_what() {
        let spent =
            [("wgpu".to_owned(), Duration::from_millis(2100)), ("opencl".to_owned(), Duration::from_secs(2))];
        let told = sum_of(&spent, Some(Duration::from_secs(4)));
        assert_eq!(told, "4.1 s in all of the budget of 4.0 s: wgpu 2.1 s, opencl 2.0 s");
        assert_eq!(sum_of(&spent[1..], None), "2.0 s in all: opencl 2.0 s");
    }
}
