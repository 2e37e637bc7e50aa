//! The process that compiles, and the one that watches it: a driver's compiler may crash, or not come to an end. The one
//! that watches has nothing to do with the driver.

use super::file::{Device as Opened, Kernel, Outcome, Program, Refused, Report, Use};
use super::list::{KernelToCompile, List};
use crate::output::say;
use anyhow::{Context as _, Result, bail};
use diptych::Error;
use diptych_device::device::Device;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The flag of a process that compiles: the first kernel that it is to compile.
pub(super) const WORKER: &str = "worker";

/// A line that the worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// What there is to compile.
    Listed(Box<Listed>),
    /// It is about to compile this kernel.
    Begin(usize),
    /// What became of it, and by which means the driver was asked.
    End { kernel: usize, outcome: Outcome, means: Option<String> },
    /// All are compiled.
    Done,
}

/// A device and the kernels that are to be compiled on it.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    device: Opened,
    kernels: Vec<Head>,
    uses: Vec<Use>,
    refused: Vec<Refused>,
}

/// A kernel before it is compiled.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    label: String,
    op: String,
    variant: String,
    work_group: [u32; 3],
}

/// Compiles the kernels from `first` on, and says what became of each; the process that begins with the first says before
/// that what they are.
///
/// # Errors
/// If nobody listens, or the device is lost.
pub(super) fn work(list: &List, first: usize, device: &dyn Device) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let mut tell = |line: &Line| -> Result<()> {
        writeln!(stdout, "{}", serde_json::to_string(line)?)?;
        Ok(stdout.flush()?)
    };
    if first == 0 {
        let info = device.info();
        let head = |wanted: &KernelToCompile| Head {
            label: wanted.source.label.clone(),
            op: wanted.op.to_owned(),
            variant: wanted.variant.to_owned(),
            work_group: wanted.source.work_group,
        };
        tell(&Line::Listed(Box::new(Listed {
            device: Opened {
                name: info.name.clone(),
                api: info.api.to_owned(),
                driver: info.driver.clone(),
                family: info.limits.family.to_string(),
            },
            kernels: list.kernels.iter().map(head).collect(),
            uses: list.uses.clone(),
            refused: list.refused.clone(),
        })))?;
    }
    for (kernel, wanted) in list.kernels.iter().enumerate().skip(first) {
        tell(&Line::Begin(kernel))?;
        let start = Instant::now();
        let (outcome, means) = match device.examine(&wanted.source) {
            Ok(report) => {
                let programs = report.programs.into_iter().map(Program::from).collect();
                let seconds = start.elapsed().as_secs_f64();
                (Outcome::Compiled { seconds, programs }, report.means.map(str::to_owned))
            }
            Err(Error::Compile { log, .. }) => (Outcome::Failed { reason: log.trim().to_owned() }, None),
            // What follows on a device that is lost says nothing of its kernel.
            Err(error @ Error::DeviceLost { .. }) => bail!("{error}"),
            Err(error) => (Outcome::Failed { reason: error.to_string() }, None),
        };
        tell(&Line::End { kernel, outcome, means })?;
    }
    tell(&Line::Done)
}

/// What was said so far.
#[derive(Debug, Default)]
struct Said {
    listed: Option<Box<Listed>>,
    outcomes: Vec<Outcome>,
    means: Option<String>,
}

impl Said {
    /// How many kernels there are, once that is known.
    fn count(&self) -> Option<usize> {
        self.listed.as_ref().map(|listed| listed.kernels.len())
    }
}

/// Has all kernels compiled by processes that `command` makes, which is told the first kernel of each: another one
/// wherever one ended. `limit` is how long a kernel may take; `progress` is told how many are done, and of how many.
///
/// # Errors
/// If no process can be started, or one ends before it compiles anything.
pub(super) fn watch(
    command: &dyn Fn(usize) -> Result<Command>,
    limit: Duration,
    progress: &dyn Fn(usize, usize),
) -> Result<Report> {
    let mut said = Said::default();
    let mut crashed = None;
    while said.count().is_none_or(|count| said.outcomes.len() < count) {
        let first = said.outcomes.len();
        let mut worker = Worker::start(command(first)?)?;
        worker.listen(limit, &mut said, progress)?;
        // A crash that does not come again is none of the kernel's.
        if matches!(said.outcomes.last(), Some(Outcome::Crashed { .. }))
            && crashed != Some(said.outcomes.len())
        {
            crashed = Some(said.outcomes.len());
            said.outcomes.pop();
            continue;
        }
        if said.outcomes.len() == first && said.count() != Some(first) {
            let words = worker.last_words();
            match words.rsplit_once("; error: ") {
                Some((_, error)) => bail!("{error}"),
                None => bail!("the process that compiles ended: {words}"),
            }
        }
    }
    let Some(listed) = said.listed else { bail!("the process that compiles did not say what it compiles") };
    let Listed { device, kernels, uses, refused } = *listed;
    let kernel = |(head, outcome): (Head, Outcome)| {
        let Head { label, op, variant, work_group } = head;
        Kernel { label, op, variant, work_group, outcome }
    };
    let kernels = kernels.into_iter().zip(said.outcomes).map(kernel).collect();
    Ok(Report { kernels, uses, refused, means: said.means, ..Report::new(device) })
}

/// A process that compiles.
struct Worker {
    child: Child,
    lines: Receiver<std::io::Result<String>>,
    errors: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

/// How much is kept of what a worker says of its errors.
const KEPT: usize = 1000;

/// How long a worker may take from its start to its first kernel: models are read and planned once more.
const START: Duration = Duration::from_secs(600);

impl Worker {
    fn start(mut command: Command) -> Result<Self> {
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().context("a process that compiles")?;
        let (tell, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines() {
                    if tell.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let errors = Arc::new(Mutex::new(String::new()));
        let reader = child.stderr.take().map(|mut stderr| {
            let errors = Arc::clone(&errors);
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = stderr.read(&mut bytes) {
                    let mut kept = errors.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.push_str(&String::from_utf8_lossy(&bytes[..read]));
                    let surplus = kept.len().saturating_sub(KEPT);
                    let from = (surplus..kept.len()).find(|&at| kept.is_char_boundary(at)).unwrap_or(0);
                    kept.drain(..from);
                }
            })
        });
        Ok(Worker { child, lines, errors, reader })
    }

    /// Takes what it says until it ends, or one kernel takes longer than `limit`.
    fn listen(&mut self, limit: Duration, said: &mut Said, progress: &dyn Fn(usize, usize)) -> Result<()> {
        let mut under_way = None;
        let judge = |said: &mut Said, outcome: Outcome| {
            said.outcomes.push(outcome);
            progress(said.outcomes.len(), said.count().unwrap_or_default());
        };
        loop {
            let line = match self.lines.recv_timeout(if under_way.is_some() { limit } else { START }) {
                Ok(line) => line?,
                Err(RecvTimeoutError::Timeout) if under_way.is_some() => {
                    judge(said, Outcome::TimedOut { seconds: limit.as_secs_f64() });
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    drop(self.child.kill());
                    return Ok(());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if under_way.is_some() {
                        judge(said, Outcome::Crashed { reason: self.last_words() });
                    }
                    return Ok(());
                }
            };
            match serde_json::from_str(&line) {
                Ok(Line::Listed(listed)) => said.listed = Some(listed),
                Ok(Line::Begin(kernel)) if kernel == said.outcomes.len() => under_way = Some(kernel),
                Ok(Line::End { kernel, outcome, means }) if under_way == Some(kernel) => {
                    said.means = said.means.take().or(means);
                    under_way = None;
                    judge(said, outcome);
                }
                Ok(Line::Done) => return Ok(()),
                // Some drivers print.
                _ => say(&line),
            }
        }
    }

    /// How it ended, and the last of what it said of its errors.
    fn last_words(&mut self) -> String {
        let status = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = errors.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = &last[last.len().saturating_sub(3)..];
        if last.is_empty() { status } else { format!("{status}; {}", last.join("; ")) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// The line that names so many kernels.
    fn listed(count: usize) -> String {
        let head =
            |_| Head { label: String::new(), op: String::new(), variant: String::new(), work_group: [1; 3] };
        let device = Opened {
            name: "one".to_owned(),
            api: String::new(),
            driver: String::new(),
            family: String::new(),
        };
        let kernels = (0..count).map(head).collect();
        let line = Line::Listed(Box::new(Listed { device, kernels, uses: Vec::new(), refused: Vec::new() }));
        serde_json::to_string(&line).expect("JSON")
    }

    /// A worker that is a shell's script of `count` kernels; `$1` is the first kernel.
    fn report(script: &str, count: usize, limit: Duration) -> Result<Report> {
        let command = |first: usize| {
            let mut command = Command::new("sh");
            let script = format!("[ $1 = 0 ] && echo '{}'\n{script}", listed(count));
            command.args(["-c", &script, "worker", &first.to_string()]);
            Ok(command)
        };
        watch(&command, limit, &|_, _| {})
    }

    const SECONDS: Duration = Duration::from_secs(60);

    #[test]
    fn a_kernel_at_which_the_compiler_crashes_is_named_and_the_others_are_compiled() {
        let script = r#"
            for kernel in 0 1 2 3; do
                [ $kernel -lt $1 ] && continue
                echo "{\"begin\":$kernel}"
                if [ $kernel = 1 ]; then echo "ir3_ra.c:12: assertion" >&2; kill -SEGV $$; fi
                echo "noise of a driver"
                echo "{\"end\":{\"kernel\":$kernel,\"outcome\":{\"compiled\":{\"seconds\":0.5,\"programs\":[]}},\"means\":\"asked\"}}"
            done
            echo '"done"'"#;
        let report = report(script, 4, SECONDS).expect("a report");
        let fine = Outcome::Compiled { seconds: 0.5, programs: Vec::new() };
        assert_eq!([0, 2, 3].map(|kernel: usize| report.kernels[kernel].outcome == fine), [true; 3]);
        let Outcome::Crashed { reason } = &report.kernels[1].outcome else { panic!("{report:?}") };
        assert!(reason.contains("signal: 11") && reason.contains("ir3_ra.c:12: assertion"), "{reason}");
        assert_eq!((report.means.as_deref(), &*report.device.name), (Some("asked"), "one"));
    }

    #[test]
    fn a_crash_that_does_not_come_again_is_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            r#"for kernel in 0 1; do
                [ $kernel -lt $1 ] && continue
                echo "{{\"begin\":$kernel}}"
                if [ $kernel = 1 ] && mkdir {}/once 2>/dev/null; then kill -SEGV $$; fi
                echo "{{\"end\":{{\"kernel\":$kernel,\"outcome\":{{\"compiled\":{{\"seconds\":0.5,\"programs\":[]}}}},\"means\":null}}}}"
            done
            echo '"done"'"#,
            folder.path().display()
        );
        let report = report(&script, 2, SECONDS).expect("a report");
        let fine = Outcome::Compiled { seconds: 0.5, programs: Vec::new() };
        assert!(report.kernels.iter().all(|kernel| kernel.outcome == fine), "{report:?}");
        assert!(folder.path().join("once").exists(), "it crashed once");
    }

    #[test]
    fn a_kernel_that_takes_too_long_is_ended() {
        let script = r#"
            echo "{\"begin\":$1}"
            [ $1 = 0 ] && exec sleep 600
            echo "{\"end\":{\"kernel\":$1,\"outcome\":{\"failed\":{\"reason\":\"no\"}},\"means\":null}}"
            echo '"done"'"#;
        let report = report(script, 2, Duration::from_millis(300)).expect("a report");
        assert_eq!(report.kernels[0].outcome, Outcome::TimedOut { seconds: 0.3 });
        assert_eq!(report.kernels[1].outcome, Outcome::Failed { reason: "no".to_owned() });
    }

    #[test]
    fn a_worker_that_compiles_nothing_is_an_error_with_its_words() {
        let error = report("echo 'no device' >&2; exit 3", 1, SECONDS).expect_err("it ended").to_string();
        assert!(error.contains("exit status: 3") && error.contains("no device"), "{error}");
        // One that has nothing to compile has no such error.
        assert_eq!(report(r#"echo '"done"'"#, 0, SECONDS).expect("a report").kernels, []);
    }
}
