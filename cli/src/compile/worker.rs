//! The process that compiles, and the one that watches it: a driver's compiler may crash, or not come to an end.

use super::file::{Outcome, Program};
use super::list::List;
use crate::output::say;
use anyhow::{Context as _, Result, bail};
use diptych::Error;
use diptych::internals::device::Device;
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
    /// It is about to compile this kernel.
    Begin(usize),
    /// What became of it, and by which means the driver was asked.
    End { kernel: usize, outcome: Outcome, means: Option<String> },
    /// All are compiled.
    Done,
}

/// Compiles the kernels from `first` on, and says what became of each.
///
/// # Errors
/// If nobody listens.
pub(super) fn work(list: &List, first: usize, device: &dyn Device) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let mut tell = |line: &Line| -> Result<()> {
        writeln!(stdout, "{}", serde_json::to_string(line)?)?;
        Ok(stdout.flush()?)
    };
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

/// What became of all kernels.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) means: Option<String>,
}

/// Has `count` kernels compiled by processes that `command` makes: another one wherever one ended. `limit` is how long a
/// kernel may take; `progress` is told how many are done.
///
/// # Errors
/// If no process can be started, or one ends before it compiles anything.
pub(super) fn watch(
    command: &dyn Fn(usize) -> Result<Command>,
    count: usize,
    limit: Duration,
    progress: &dyn Fn(usize),
) -> Result<Judged> {
    let mut judged = Judged::default();
    while judged.outcomes.len() < count {
        let first = judged.outcomes.len();
        let mut worker = Worker::start(command(first)?)?;
        worker.listen(limit, &mut judged, progress)?;
        if judged.outcomes.len() == first {
            bail!("the process that compiles ended: {}", worker.last_words());
        }
    }
    Ok(judged)
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
    fn listen(&mut self, limit: Duration, judged: &mut Judged, progress: &dyn Fn(usize)) -> Result<()> {
        let mut under_way = None;
        loop {
            let line = match self.lines.recv_timeout(if under_way.is_some() { limit } else { START }) {
                Ok(line) => line?,
                Err(RecvTimeoutError::Timeout) if under_way.is_some() => {
                    judged.outcomes.push(Outcome::TimedOut { seconds: limit.as_secs_f64() });
                    progress(judged.outcomes.len());
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    drop(self.child.kill());
                    return Ok(());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if under_way.is_some() {
                        judged.outcomes.push(Outcome::Crashed { reason: self.last_words() });
                        progress(judged.outcomes.len());
                    }
                    return Ok(());
                }
            };
            match serde_json::from_str(&line) {
                Ok(Line::Begin(kernel)) if kernel == judged.outcomes.len() => under_way = Some(kernel),
                Ok(Line::End { kernel, outcome, means }) if under_way == Some(kernel) => {
                    judged.outcomes.push(outcome);
                    judged.means = judged.means.take().or(means);
                    under_way = None;
                    progress(judged.outcomes.len());
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

    /// A worker that is a shell's script; `$1` is the first kernel.
    fn judged(script: &str, count: usize, limit: Duration) -> Result<Judged> {
        let command = |first: usize| {
            let mut command = Command::new("sh");
            command.args(["-c", script, "worker", &first.to_string()]);
            Ok(command)
        };
        watch(&command, count, limit, &|_| {})
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
        let judged = judged(script, 4, SECONDS).expect("judged");
        let fine = Outcome::Compiled { seconds: 0.5, programs: Vec::new() };
        assert_eq!([0, 2, 3].map(|kernel| judged.outcomes[kernel] == fine), [true; 3]);
        let Outcome::Crashed { reason } = &judged.outcomes[1] else { panic!("{judged:?}") };
        assert!(reason.contains("signal: 11") && reason.contains("ir3_ra.c:12: assertion"), "{reason}");
        assert_eq!(judged.means.as_deref(), Some("asked"));
    }

    #[test]
    fn a_kernel_that_takes_too_long_is_ended() {
        let script = r#"
            echo "{\"begin\":$1}"
            [ $1 = 0 ] && exec sleep 600
            echo "{\"end\":{\"kernel\":$1,\"outcome\":{\"failed\":{\"reason\":\"no\"}},\"means\":null}}"
            echo '"done"'"#;
        let judged = judged(script, 2, Duration::from_millis(300)).expect("judged");
        assert_eq!(judged.outcomes[0], Outcome::TimedOut { seconds: 0.3 });
        assert_eq!(judged.outcomes[1], Outcome::Failed { reason: "no".to_owned() });
    }

    #[test]
    fn a_worker_that_compiles_nothing_is_an_error_with_its_words() {
        let error = judged("echo 'no device' >&2; exit 3", 1, SECONDS).expect_err("it ended");
        let error = error.to_string();
        assert!(error.contains("exit status: 3") && error.contains("no device"), "{error}");
    }
}
