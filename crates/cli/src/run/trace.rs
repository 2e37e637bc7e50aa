//! A trace of a run in the Trace Event Format, which Perfetto and Chrome read.
//!
//! Source: *Trace Event Format* (the document of Chromium's tracing team). Times are in microseconds.

use anyhow::{Context as _, Result};
use diptych::{Profile, StageTimes, TimedStep};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Rows of the trace.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

/// Spans of time, in the order in which they were.
#[derive(Debug)]
pub(super) struct Trace {
    begin: Instant,
    last: Duration,
    events: Vec<Value>,
}

impl Trace {
    /// An empty trace that begins now.
    pub(super) fn new() -> Self {
        let name = |thread: u32, name: &str| json!({ "ph": "M", "name": "thread_name", "pid": 1, "tid": thread, "args": { "name": name } });
        let events = vec![name(HOST, "host"), name(DEVICE, "kernels, one after the other")];
        Trace { begin: Instant::now(), last: Duration::ZERO, events }
    }

    /// What was done since the last call is `name`.
    pub(super) fn lap(&mut self, name: &str) {
        let now = self.begin.elapsed();
        self.span(HOST, name, self.last, now - self.last, json!({}));
        self.last = now;
    }

    /// One run: its stages by the host's clock, and its kernels by the device's, begun with the network's
    /// stage.
    pub(super) fn run(&mut self, stages: &StageTimes, profile: &Profile) {
        let mut at = self.last;
        let mut network = at;
        for (name, time) in
            [("upload", stages.upload), ("network", stages.network), ("download", stages.download)]
        {
            if name == "network" {
                network = at;
            }
            self.span(HOST, name, at, time, json!({}));
            at += time;
        }
        for TimedStep { step, time } in &profile.steps {
            let details =
                json!({ "op": step.op, "kernel": step.kernel, "choice": step.source, "flops": step.flops });
            self.span(DEVICE, &step.name, network, *time, details);
            network += *time;
        }
    }

    fn span(&mut self, thread: u32, name: &str, begin: Duration, time: Duration, details: Value) {
        let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
        self.events.push(json!({
            "ph": "X", "name": name, "pid": 1, "tid": thread,
            "ts": microseconds(begin), "dur": microseconds(time), "args": details,
        }));
    }

    /// Writes it.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec(&json!({ "traceEvents": self.events }))?;
        std::fs::write(path, text).with_context(|| format!("{}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::{Precision, Step};

    #[test]
    fn kernels_follow_each_other_from_the_end_of_the_upload() {
        let mut trace = Trace::new();
        trace.lap("load");
        let begin = trace.last.as_secs_f64() * 1e6;
        let stage = Duration::from_micros;
        let stages = StageTimes { upload: stage(10), network: stage(50), download: stage(5) };
        let timed = |name: &str, time| {
            let step = Step {
                name: name.to_owned(),
                inserted: false,
                op: "copy",
                kernel: "copy_rows_f32".to_owned(),
                precision: Precision::F32,
                work_group: [64, 1, 1],
                choice: None,
                source: "rule".to_owned(),
                flops: 0,
            };
            TimedStep { step, time: stage(time) }
        };
        trace.run(&stages, &Profile { clock: "host clock", steps: vec![timed("a", 3), timed("b", 4)] });
        let spans: Vec<(&str, f64, f64)> = trace
            .events
            .iter()
            .filter(|event| event["ph"] == "X")
            .map(|event| {
                let number = |key: &str| event[key].as_f64().expect("a number");
                (event["name"].as_str().expect("a name"), number("ts") - begin, number("dur"))
            })
            .collect();
        let wanted = [
            ("upload", 0.0, 10.0),
            ("network", 10.0, 50.0),
            ("download", 60.0, 5.0),
            ("a", 10.0, 3.0),
            ("b", 13.0, 4.0),
        ];
        assert_eq!(spans.len(), 1 + wanted.len());
        for (found, wanted) in spans[1..].iter().zip(wanted) {
            assert_eq!(found.0, wanted.0);
            assert!((found.1 - wanted.1).abs() < 1e-3 && (found.2 - wanted.2).abs() < 1e-3, "{found:?}");
        }
    }
}
