//! What a benchmark run writes: JSON lines, one value a line, distinguished by `kind`.
//!
//! | kind | is | how often |
//! |---|---|---|
//! | `machine` | where and how the run was made | first, once for each run |
//! | `row` | one quantity, with every sample | for each case, backend and metric |
//! | `note` | what was not measured, and why | as needed |
//!
//! Times are microseconds. Two rows of two runs are of the same quantity if their [`Row::key`] is
//! equal. A reader ignores fields that it does not know, and refuses a newer [`SCHEMA`].

use anyhow::{Context as _, Result, ensure};
use diptych::internals::tune::statistics::percentile;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;

/// Goes up when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// Bytes of the largest file that is read; a row has about a kilobyte.
const LARGEST_RECORD: u64 = 256 << 20;

/// Where and how a run was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The operating system and the processor's architecture.
    pub system: String,
    /// The processor's name, as the system gives it, and its threads.
    pub processor: String,
    /// When the run began, in UTC: `2026-11-21 05:30`.
    pub date: String,
    /// The command, without the folders of its paths.
    pub command: String,
    /// The crate's version.
    pub version: String,
    /// `DIPTYCH_COMMIT` of the build, or the commit of the checkout that the program lies in.
    pub commit: Option<String>,
    /// Whether the program was built without optimisation: host times are then worth little.
    pub debug_build: bool,
}

/// Who ran a row's kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// `wgpu`, `opencl` or `cpu`.
    pub backend: String,
    /// `Vulkan`, `Metal`, `DX12`, `OpenCL` or `CPU`.
    pub api: String,
    /// Its name.
    pub name: String,
    /// The driver's name and version; empty for the CPU backend.
    pub driver: String,
    /// Whether the device is a CPU.
    pub is_cpu: bool,
}

/// One quantity on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The suite: `baseline`, `gemm`, `ops`, `work-groups`, `posenet`, `start` or `peers`.
    pub suite: String,
    /// What was run: the op, its precision and the problem, as the tuner's record words it.
    pub case: String,
    /// `device` (one run, device time), `chain` (one of many runs that wait for each other), `host` (host to host), `node` (device time of one node),
    /// `process` (from the start of a process to its first result), `wall` (one of many launches, host
    /// clock).
    pub metric: String,
    /// The node, if it is one, with its place before it.
    pub node: Option<String>,
    /// Who is measured: `diptych`, or another engine's name and version.
    pub engine: String,
    /// The device.
    pub device: Device,
    /// `f32`, `f16s` (f16 storage, f32 sums) or `f16`.
    pub precision: String,
    /// The kernel's label.
    pub kernel: String,
    /// Invocations of a work-group; zeros where there is none.
    pub work_group: [u32; 3],
    /// Where the kernel came from: `rule`, or which row of the tuner's record.
    pub chosen_by: String,
    /// The clock.
    pub clock: String,
    /// What the output was compared with before the first sample, and the result.
    pub checked: String,
    /// Every sample, in microseconds, in the order of the rounds.
    pub samples: Vec<f64>,
    /// Runs inside each sample; a sample is their average.
    pub repeats: u32,
    /// Their median.
    pub median: f64,
    /// A tenth of them are below.
    pub p10: f64,
    /// A tenth of them are above.
    pub p90: f64,
    /// Kernels that one run of a network starts on a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<usize>,
    /// Floating-point operations of one run, a multiply and an add counting two.
    pub flops: u64,
    /// Bytes that one run must at least move: each operand once.
    pub bytes: u64,
    /// The median's rate in GFLOP/s, where there are operations.
    pub gflops: Option<f64>,
    /// The least time that the measured baselines of this device allow over the median; 1 is the
    /// roofline. None without baselines.
    pub roofline: Option<f64>,
    /// Which baseline bounds it: `compute` or `memory`.
    pub bound: Option<String>,
    /// The crate's version.
    pub version: String,
    /// The commit that was measured: [`Machine::commit`].
    pub commit: Option<String>,
    /// The command that measured it: [`Machine::command`].
    pub command: String,
}

/// What was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The suite.
    pub suite: String,
    /// The case.
    pub case: String,
    /// The backend, if it is about one.
    pub backend: String,
    /// Why.
    pub text: String,
    /// Whether a result was wrong or a run failed, rather than left out.
    pub failure: bool,
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Line {
    /// Where and how.
    Machine(Machine),
    /// A quantity.
    Row(Box<Row>),
    /// What is missing.
    Note(Note),
}

impl Row {
    /// What says that two rows are of the same quantity.
    pub fn key(&self) -> String {
        let mut key = String::new();
        for part in [&self.suite, &self.case, &self.metric, &self.engine, &self.device.backend] {
            key.push_str(part);
            key.push('|');
        }
        key.push_str(self.node.as_deref().unwrap_or_default());
        key
    }

    /// Whether operands are stored as halves.
    pub fn is_of_halves(&self) -> bool {
        matches!(self.precision.as_str(), "f16s" | "f16")
    }

    /// Sets what follows from the samples.
    pub fn summarise(&mut self) {
        // A tenth of a nanosecond: what more there is, is noise, and takes room.
        let rounded = |value: f64| (value * 1e4).round() / 1e4;
        self.samples.iter_mut().for_each(|sample| *sample = rounded(*sample));
        let at = |share: f64| rounded(percentile(&self.samples, share).unwrap_or_default());
        (self.p10, self.median, self.p90) = (at(0.1), at(0.5), at(0.9));
        self.gflops =
            (self.flops > 0 && self.median > 0.0).then(|| rounded(self.flops as f64 / self.median / 1e3));
    }
}

/// A file's lines.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// The runs in it.
    pub machines: Vec<Machine>,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What was not.
    pub notes: Vec<Note>,
}

impl Record {
    /// The record as text, one JSON value a line.
    ///
    /// # Errors
    /// If a value has no JSON, which finite numbers rule out.
    pub fn to_text(&self) -> Result<String> {
        let mut text = String::new();
        let machines = self.machines.iter().cloned().map(Line::Machine);
        let rows = self.rows.iter().cloned().map(|row| Line::Row(Box::new(row)));
        for line in machines.chain(rows).chain(self.notes.iter().cloned().map(Line::Note)) {
            writeln!(text, "{}", serde_json::to_string(&line)?)?;
        }
        Ok(text)
    }

    /// Adds the lines of `text`.
    ///
    /// # Errors
    /// If a line is not of this format, or of a newer one.
    pub fn read(&mut self, text: &str) -> Result<()> {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let at = || format!("line {}", index + 1);
            let value: serde_json::Value = serde_json::from_str(line).with_context(at)?;
            let schema = value.get("schema").and_then(serde_json::Value::as_u64);
            ensure!(
                schema.is_none_or(|schema| schema <= u64::from(SCHEMA)),
                "{}: schema {}, wanted at most {SCHEMA}",
                at(),
                schema.unwrap_or_default()
            );
            match serde_json::from_value(value).with_context(at)? {
                Line::Machine(machine) => self.machines.push(machine),
                Line::Row(row) => self.rows.push(*row),
                Line::Note(note) => self.notes.push(note),
            }
        }
        Ok(())
    }

    /// The lines of a file.
    ///
    /// # Errors
    /// If it cannot be read, or holds no row.
    pub fn load(path: &Path) -> Result<Self> {
        let name = || format!("{}", path.display());
        let mut record = Record::default();
        let text = diptych_base::file::read(path, LARGEST_RECORD).with_context(name)?;
        record.read(std::str::from_utf8(&text).with_context(name)?).with_context(name)?;
        ensure!(!record.rows.is_empty(), "{}: no rows of a benchmark", name());
        Ok(record)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A row of a device that is not there.
    pub fn row(case: &str, samples: &[f64]) -> Row {
        let mut row = Row {
            schema: SCHEMA,
            suite: "ops".to_owned(),
            case: case.to_owned(),
            metric: "device".to_owned(),
            node: None,
            engine: "diptych".to_owned(),
            device: Device {
                backend: "wgpu".to_owned(),
                api: "Vulkan".to_owned(),
                name: "Some GPU".to_owned(),
                driver: "driver 1.2".to_owned(),
                is_cpu: false,
            },
            precision: "f32".to_owned(),
            kernel: "pointwise_direct_f32_t1x1x1_wg8x4x8".to_owned(),
            work_group: [8, 4, 8],
            chosen_by: "rule".to_owned(),
            clock: "GPU timestamps".to_owned(),
            checked: "right".to_owned(),
            samples: samples.to_vec(),
            repeats: 4,
            median: 0.0,
            p10: 0.0,
            p90: 0.0,
            launches: None,
            flops: 2_000_000,
            bytes: 1 << 20,
            gflops: None,
            roofline: Some(0.5),
            bound: Some("memory".to_owned()),
            version: "0.1.0".to_owned(),
            commit: None,
            command: "diptych bench".to_owned(),
        };
        row.summarise();
        row
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let machine = Machine {
            schema: SCHEMA,
            system: "linux x86_64".to_owned(),
            processor: "Some \"CPU\" <1>, 2 threads".to_owned(),
            date: "2026-11-21 05:30".to_owned(),
            command: "diptych bench".to_owned(),
            version: "0.1.0".to_owned(),
            commit: Some("abc".to_owned()),
            debug_build: false,
        };
        let note = Note {
            suite: "gemm".to_owned(),
            case: "gemm_f32 m4096 n4096 k4096".to_owned(),
            backend: "cpu".to_owned(),
            text: "left out".to_owned(),
            failure: false,
        };
        let rows = vec![row("a", &[1.25, 0.1 + 0.2, 1e7 / 3.0]), row("b", &[2.0])];
        let record = Record { machines: vec![machine], rows, notes: vec![note] };
        let text = record.to_text().expect("text");
        assert_eq!(text.lines().count(), 4);
        let mut read = Record::default();
        read.read(&text).expect("its own text");
        assert_eq!(read, record);
    }

    #[test]
    fn what_it_cannot_read_is_reported_with_its_line() {
        let text = serde_json::to_string(&Line::Row(Box::new(row("a", &[1.0])))).expect("text");
        for (text, words) in [
            (text.replace("\"schema\":1", "\"schema\":2"), "line 1: schema 2, wanted at most 1"),
            (format!("{text}\n{{\"kind\":\"row\"}}"), "line 2"),
            ("not json".to_owned(), "line 1"),
            ("{\"kind\":\"picture\"}".to_owned(), "picture"),
        ] {
            let error = Record::default().read(&text).expect_err(words);
            assert!(format!("{error:#}").contains(words), "no {words:?} in {error:#}");
        }
        // A field of a later version does not matter.
        let later = text.replace("\"kind\"", "\"colour\":\"red\",\"kind\"");
        Record::default().read(&later).expect("an unknown field");
    }

    #[test]
    fn percentiles_and_rates_follow_from_the_samples() {
        let row = row("a", &[5.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!((row.median, row.gflops), (3.0, Some(666.6667)));
        assert!((row.p10 - 1.4).abs() < 1e-12 && (row.p90 - 4.6).abs() < 1e-12);
    }
}
