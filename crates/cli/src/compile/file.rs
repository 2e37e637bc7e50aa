//! What a report keeps: kernels, what became of each, and what runs them.

use anyhow::{Context as _, Result, ensure};
use diptych_device::device::CompiledProgram;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version of the file.
const SCHEMA: u32 = 1;

/// The kernels of one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) schema: u32,
    /// The version of this program.
    pub(super) version: String,
    pub(super) device: Device,
    /// By which means the driver was asked; nothing, if it has none.
    pub(super) means: Option<String>,
    pub(super) kernels: Vec<Kernel>,
    pub(super) uses: Vec<Use>,
    pub(super) refused: Vec<Refused>,
}

/// A device and its driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) api: String,
    pub(super) driver: String,
    pub(super) family: String,
}

/// A text that was compiled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kernel {
    pub(super) label: String,
    pub(super) op: String,
    pub(super) variant: String,
    pub(super) work_group: [u32; 3],
    pub(super) outcome: Outcome,
}

/// What became of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The driver compiled it.
    Compiled { seconds: f64, programs: Vec<Program> },
    /// The driver refused it.
    Failed { reason: String },
    /// The process ended.
    Crashed { reason: String },
    /// It took longer than it was given.
    TimedOut { seconds: f64 },
}

/// A program of the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) name: String,
    /// Invocations of a subgroup, or 0.
    pub(super) subgroup: u32,
    pub(super) statistics: Vec<Statistic>,
}

/// A number that a driver told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Statistic {
    pub(super) name: String,
    pub(super) value: f64,
}

/// What runs a kernel: a step of a model, or an op's problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Use {
    /// The model's file, or the op.
    pub(super) subject: String,
    /// The step, or the problem.
    pub(super) case: String,
    /// Its place in the list of kernels.
    pub(super) kernel: usize,
    /// Whether an untuned session runs it.
    pub(super) untuned: bool,
}

/// Choices that no device of these limits is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refused {
    pub(super) op: String,
    pub(super) variant: String,
    pub(super) reason: String,
    /// How many choices there are like that.
    pub(super) choices: usize,
}

impl Report {
    pub(super) fn new(device: Device) -> Self {
        Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device,
            means: None,
            kernels: Vec::new(),
            uses: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// # Errors
    /// If there is no such file, or it is no report of this version.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = diptych_base::file::read(path, 1 << 30).with_context(|| path.display().to_string())?;
        let report: Report = serde_json::from_slice(&bytes)
            .with_context(|| format!("{}: no report of `diptych compile --json`", path.display()))?;
        let (found, file) = (report.schema, path.display());
        ensure!(found == SCHEMA, "{file}: a report of version {found}, wanted {SCHEMA}");
        let kernels = report.kernels.len();
        let lost = report.uses.iter().find(|used| used.kernel >= kernels);
        ensure!(
            lost.is_none(),
            "{file}: kernel {} is used, and there are {kernels}",
            lost.map_or(0, |used| used.kernel)
        );
        Ok(report)
    }

    /// The uses of a kernel.
    pub(super) fn uses_of(&self, kernel: usize) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(move |used| used.kernel == kernel)
    }
}

impl Outcome {
    /// Why there is no such kernel, in a line; `None` if there is.
    pub(super) fn obstacle(&self) -> Option<String> {
        match self {
            Outcome::Compiled { .. } => None,
            Outcome::Failed { reason } => Some(format!("refused by the driver: {reason}")),
            Outcome::Crashed { reason } => Some(format!("the compiler crashed: {reason}")),
            Outcome::TimedOut { seconds } => {
                Some(format!("the compiler took more than {seconds} s, and was ended"))
            }
        }
    }

    pub(super) fn programs(&self) -> &[Program] {
        match self {
            Outcome::Compiled { programs, .. } => programs,
            _ => &[],
        }
    }
}

impl From<CompiledProgram> for Program {
    fn from(program: CompiledProgram) -> Self {
        let statistics = program
            .statistics
            .into_iter()
            // JSON has no others.
            .filter(|told| told.value.is_finite())
            .map(|told| Statistic { name: told.name, value: told.value });
        Program { name: program.name, subgroup: program.subgroup, statistics: statistics.collect() }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report of three kernels: one that is fine, one that spills, one that crashed.
    pub(in crate::compile) fn report(device: &str) -> Report {
        let device = Device {
            name: device.to_owned(),
            api: "Vulkan".to_owned(),
            driver: "a driver".to_owned(),
            family: "AMD".to_owned(),
        };
        let compiled = |numbers: [(&str, f64); 3]| {
            let statistics = numbers.map(|(name, value)| Statistic { name: name.to_owned(), value });
            let program = Program { name: "CS".to_owned(), subgroup: 64, statistics: statistics.into() };
            Outcome::Compiled { seconds: 0.25, programs: vec![program] }
        };
        let kernel = |variant: &str, outcome: Outcome| Kernel {
            label: format!("gemm_{variant}_f32_t4x4x1_wg8x8x1"),
            op: "gemm".to_owned(),
            variant: variant.to_owned(),
            work_group: [8, 8, 1],
            outcome,
        };
        let used = |case: &str, kernel: usize, untuned: bool| Use {
            subject: "gemm".to_owned(),
            case: case.to_owned(),
            kernel,
            untuned,
        };
        Report {
            means: Some("VK_KHR_pipeline_executable_properties".to_owned()),
            kernels: vec![
                kernel(
                    "direct",
                    compiled([("VGPRs", 40.0), ("Spilled VGPRs", 0.0), ("Instructions", 300.0)]),
                ),
                kernel(
                    "tiled",
                    compiled([("VGPRs", 256.0), ("Spilled VGPRs", 12.0), ("Instructions", 900.0)]),
                ),
                kernel("split", Outcome::Crashed { reason: "signal: 6 <abort>".to_owned() }),
            ],
            uses: vec![used("m5 n7 k9", 0, false), used("m64 n64 k64", 1, true), used("m5 n7 k9", 2, false)],
            refused: vec![Refused {
                op: "gemm".to_owned(),
                variant: "matrix".to_owned(),
                reason: "the device has no matrix units".to_owned(),
                choices: 7,
            }],
            ..Report::new(device)
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("one.json");
        let written = report("one");
        std::fs::write(&file, serde_json::to_string(&written).expect("JSON")).expect("written");
        assert_eq!(Report::read(&file).expect("read"), written);
    }

    #[test]
    fn what_is_no_report_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("one.json");
        let mut wrong = report("one");
        wrong.uses[0].kernel = 3;
        let newer = Report { schema: 9, ..report("one") };
        for (text, wanted) in [
            ("{}".to_owned(), "no report of `diptych compile --json`"),
            (serde_json::to_string(&wrong).expect("JSON"), "kernel 3 is used, and there are 3"),
            (serde_json::to_string(&newer).expect("JSON"), "version 9, wanted 1"),
        ] {
            std::fs::write(&file, text).expect("written");
            let error = format!("{:#}", Report::read(&file).expect_err(wanted));
            assert!(error.contains(wanted) && error.contains("one.json"), "{error}");
        }
        assert!(Report::read(&folder.path().join("none")).is_err());
    }
}
