//! `diptych bench`: the same work on every API of the machine, in interleaved rounds.
//!
//! Each case is checked before its first sample, timed on the device's clock, and compared with the
//! device's measured peak bandwidth and arithmetic. `row` is the format of the files.

mod baselines;
mod baselines_cpu;
mod baselines_matrix;
mod compare;
mod cpu;
mod machine;
mod measure;
mod network;
mod networks;
mod op;
mod report;
mod rounds;
mod row;
mod start;
mod subject;
mod suites;
#[cfg(test)]
mod tests;
mod work_groups;

use crate::output::print;
use anyhow::{Context as _, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use diptych::{Backend, DeviceSelector};
use row::Record;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to measure [default: all; with --model the suites of a network: posenet and start].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) suite: Vec<Suite>,

    /// Only on these backends; on all that the machine has, if it is left out.
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(["wgpu", "opencl", "cpu"])
            .try_map(|text| text.parse::<Backend>())
    )]
    pub(crate) backend: Vec<Backend>,

    /// The device instead: a PCI address, a UUID, a part of its name or its number, alone or after `wgpu:` or `opencl:`.
    #[arg(long, value_name = "DEVICE", conflicts_with = "backend")]
    pub(crate) device: Option<DeviceSelector>,

    /// Only cases whose name contains this, such as `gemm_f32` or `h9`.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) case: String,

    /// The network of the suites posenet and start, which alone are measured then if --suite names none; without it,
    /// $DIPTYCH_SHARED/posenet/posenet_mobilenet_v1_100_257x257_f32.tflite.
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,

    /// Write bench.jsonl, bench.txt and bench.html to this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,

    /// Samples of each row.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    pub(crate) rounds: u32,

    /// Seconds for the samples of each case on each backend; each has five at least.
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
    pub(crate) each: f64,

    /// Leave out what takes longer than this in one run.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub(crate) longest: f64,

    /// Cold and warm starts of a process on each backend.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) starts: u32,

    /// Take kernels from the tuner's record, where it has a verdict.
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) db: Option<PathBuf>,

    /// Add the rows of these files to the report, such as those of another engine.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) include: Vec<PathBuf>,

    /// Measure nothing: report on the files of --include.
    #[arg(long, requires = "include", requires = "report")]
    pub(crate) draw: bool,

    /// Measure nothing: report what changed from the first file to the second.
    #[arg(long, num_args = 2, value_names = ["A.jsonl", "B.jsonl"], conflicts_with_all = ["report", "include"])]
    pub(crate) compare: Vec<PathBuf>,

    /// With --compare: fail if a row is slower beyond noise.
    #[arg(long, requires = "compare")]
    pub(crate) fail_on_regression: bool,

    /// With --compare: the least change that matters, in percent.
    #[arg(long, default_value_t = 1.0, value_name = "PERCENT")]
    pub(crate) minimum_effect: f64,

    /// Load --model, run it once and say so: what the suite start starts.
    #[arg(
        long,
        hide = true,
        requires = "model",
        value_parser = PossibleValuesParser::new(["wgpu", "opencl", "cpu"])
            .try_map(|text| text.parse::<Backend>())
    )]
    pub(crate) first_result: Option<Backend>,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Suite {
    /// Convolutions of PoseNet's kind.
    Ops,
    /// Matrix products.
    Gemm,
    /// One kernel with many work-groups.
    WorkGroups,
    /// A network: host to host, on the device, node by node.
    Posenet,
    /// Networks of usual kinds: convolutions, bytes, transformers, a decoder's token.
    Networks,
    /// Networks of usual kinds at several batches, resolutions, lengths of sequences and widths.
    Growth,
    /// The first result of a new process.
    Start,
    /// All of them.
    All,
}

impl Arguments {
    /// Whether a suite is to be measured.
    fn wants(&self, suite: Suite) -> bool {
        match &self.suite[..] {
            [] => self.model.is_none() || matches!(suite, Suite::Posenet | Suite::Start),
            named => named.contains(&suite) || named.contains(&Suite::All),
        }
    }

    /// Whether all suites are measured that can be, and one that cannot is no failure.
    fn wants_all(&self) -> bool {
        self.suite.contains(&Suite::All) || (self.suite.is_empty() && self.model.is_none())
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    if let (Some(backend), Some(model)) = (arguments.first_result, &arguments.model) {
        return start::first_result(backend, model);
    }
    if let [before, after] = &arguments.compare[..] {
        return compare::files(before, after, arguments.minimum_effect, arguments.fail_on_regression);
    }
    let mut record = if arguments.draw { Record::default() } else { measure::all(arguments)? };
    for path in &arguments.include {
        let added = Record::load(path)?;
        record.machines.extend(added.machines);
        record.rows.extend(added.rows);
        record.notes.extend(added.notes);
    }
    let text = report::text(&record);
    print(text.trim_end())?;
    if let Some(folder) = &arguments.report {
        std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        for (name, content) in
            [("bench.jsonl", record.to_text()?), ("bench.txt", text), ("bench.html", report::page(&record)?)]
        {
            let path = folder.join(name);
            std::fs::write(&path, content).with_context(|| format!("{}", path.display()))?;
        }
    }
    match record.notes.iter().filter(|note| note.failure).count() {
        0 => Ok(()),
        failures => bail!("{failures} cases failed or gave a wrong result"),
    }
}
