//! The first result of a new process: with empty caches, and with those that it left behind.
//!
//! A sample is the time from the start of a child process of this program to the line in which it
//! says that its first outputs are there: loading, opening the device, compiling, one run. The
//! caches of the drivers that are known to keep some, and Diptych's own, lie in a fresh directory
//! for a cold start and in the same one for the warm start after it. The system's file cache is
//! warm in both.

use super::row::Row;
use super::subject::{Subject, Target};
use crate::output::print;
use anyhow::{Context as _, Result, bail};
use diptych::{Backend, Context, HostTensor, LoadOptions, Model, Session, SessionOptions};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a child says when its outputs are there.
const DONE: &str = "first outputs";
/// Where drivers and Diptych keep what they compiled.
const CACHES: [&str; 6] = [
    "DIPTYCH_CACHE_DIR",
    "XDG_CACHE_HOME",
    "MESA_SHADER_CACHE_DIR",
    "POCL_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "__GL_SHADER_DISK_CACHE_PATH",
];

/// Starts on one backend.
pub(super) struct Starts {
    model: PathBuf,
    backend: Backend,
    /// Cold, then warm.
    rows: [Row; 2],
}

impl Starts {
    pub(super) fn new(target: &Target, model: &Path) -> Self {
        let name = model.file_stem().unwrap_or_default().to_string_lossy();
        let row = |caches: &str| {
            let mut row = target.row("start", &format!("{name} f32, {caches} caches"), "process");
            row.checked = "the same session is checked in the suite posenet".to_owned();
            row.kernel = "process start to first outputs".to_owned();
            row
        };
        Starts {
            model: model.to_owned(),
            backend: target.context.info().backend,
            rows: [row("empty"), row("warm")],
        }
    }

    fn start(&self, caches: &Path) -> Result<f64> {
        let program = std::env::current_exe().context("the path of this program")?;
        let mut command = Command::new(program);
        command.args(["bench", "--first-result", &self.backend.to_string(), "--model"]).arg(&self.model);
        command.envs(CACHES.map(|name| (name, caches)));
        let start = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let time = start.elapsed();
        let output = child.wait_with_output()?;
        if line.trim_end() != DONE || !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("a child process gave no result: {}", errors.trim_end());
        }
        Ok(time.as_secs_f64() * 1e6)
    }
}

impl Subject for Starts {
    fn round(&mut self) -> Result<()> {
        let caches = tempfile::tempdir().context("a directory for caches")?;
        for index in 0..self.rows.len() {
            let time = self.start(caches.path())?;
            self.rows[index].samples.push(time);
        }
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        self.rows.to_vec()
    }
}

/// What the child does.
///
/// # Errors
/// If the model does not load or run.
pub(super) fn first_result(backend: Backend, model: &Path) -> Result<()> {
    let graph = Model::load(model, &LoadOptions::default())?.graph;
    let mut session = Session::new(&Context::new(backend)?, &graph, SessionOptions::default())?;
    let ports = session.inputs().to_vec();
    let zeros: Vec<HostTensor> = ports
        .iter()
        .map(|port| HostTensor::new(port.shape, vec![0.0; port.shape.elements()]))
        .collect::<diptych::Result<_>>()?;
    let feeds: Vec<(&str, &HostTensor)> =
        ports.iter().zip(&zeros).map(|(port, tensor)| (port.name.as_str(), tensor)).collect();
    session.run(&feeds)?;
    print(DONE)?;
    Ok(())
}
