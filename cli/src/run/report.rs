//! The report of `diptych run`: times, memory, outputs; as text and as JSON.

use super::inputs::{Port, Source};
use crate::table::{node_name, numbers, table};
use comfy_table::presets;
use diptych::{HostTensor, MemoryUse, Profile};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::time::Duration;

/// A run's device, times and outputs.
pub(super) struct Report<'a> {
    pub(super) device: String,
    pub(super) inputs: Vec<(&'a Port, Option<&'a Source<'a>>)>,
    pub(super) outputs: Vec<(&'a diptych::Port, &'a HostTensor)>,
    pub(super) times: &'a [Duration],
    pub(super) memory: MemoryUse,
    pub(super) steps: usize,
}

/// Extremes, mean and standard deviation of an output's numbers; what is no number is counted apart.
#[derive(Debug, PartialEq)]
struct Statistics {
    least: f32,
    largest: f32,
    mean: f64,
    deviation: f64,
    not_finite: usize,
}

impl Statistics {
    fn of(values: &[f32]) -> Self {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let count = finite().count();
        let mean_of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count.max(1) as f64;
        let mean = mean_of(&mut finite().map(f64::from));
        let variance = mean_of(&mut finite().map(|value| (f64::from(value) - mean).powi(2)));
        let (least, largest) = match count {
            0 => (f32::NAN, f32::NAN),
            _ => (finite().fold(f32::INFINITY, f32::min), finite().fold(f32::NEG_INFINITY, f32::max)),
        };
        Statistics { least, largest, mean, deviation: variance.sqrt(), not_finite: values.len() - count }
    }
}

fn milliseconds(time: &Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Bytes as a person reads them.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// The time of each step, for standard error: no wider than the terminal.
pub(super) fn profile(profile: &Profile) -> String {
    let total = profile.total().as_secs_f64();
    let terminal = std::io::stderr().is_terminal();
    let mut steps = table(presets::UTF8_HORIZONTAL_ONLY);
    steps.use_stderr().set_header(["#", "name", "op", "kernel", "us", "%", "GFLOP/s", "source"]);
    for (index, node) in profile.nodes.iter().enumerate() {
        let seconds = node.time.as_secs_f64();
        let share = if total > 0.0 { 100.0 * seconds / total } else { 0.0 };
        let rate = if seconds > 0.0 { node.flops as f64 / seconds / 1e9 } else { 0.0 };
        steps.add_row([
            (index + 1).to_string(),
            node_name(&node.name, terminal),
            node.op.to_owned(),
            node.kernel.clone(),
            format!("{:.1}", seconds * 1e6),
            format!("{share:.1}"),
            format!("{rate:.1}"),
            node.source.clone(),
        ]);
    }
    numbers(&mut steps, &[0, 4, 5, 6]);
    format!("{steps}\ntotal {:.1} us ({})", total * 1e6, profile.clock)
}

impl Report<'_> {
    /// The times of the runs, the first apart: it may include work that is done once.
    pub(super) fn times(&self) -> String {
        let Some((first, later)) = self.times.split_first() else { return "no runs".to_owned() };
        let first = format!("first run {:.3} ms", milliseconds(first));
        let mut later = later.to_vec();
        later.sort_unstable();
        match (later.first(), later.get(later.len() / 2), later.last()) {
            (Some(fastest), Some(median), Some(slowest)) => format!(
                "{first}, then {} runs: fastest {:.3} ms, median {:.3} ms, slowest {:.3} ms, copies included",
                later.len(),
                milliseconds(fastest),
                milliseconds(median),
                milliseconds(slowest)
            ),
            _ => format!("{first}, copies included"),
        }
    }

    /// What the values take.
    pub(super) fn memory(&self) -> String {
        let MemoryUse { planned, unshared, least, constants, .. } = self.memory;
        let [planned, unshared, least, constants] = [planned, unshared, least, constants].map(bytes);
        let moved = match (self.memory.downloads, self.memory.uploads) {
            (0, 0) => String::new(),
            (down, up) => format!(
                "; each run, for nodes on the CPU: {} downloaded, {} uploaded",
                bytes(down),
                bytes(up)
            ),
        };
        format!(
            "values {planned} ({unshared} if none shared memory, {least} at least), constants {constants}{moved}"
        )
    }

    /// One line for each output: index, name, shape, and its numbers.
    pub(super) fn outputs(&self) -> String {
        let line = |(index, (port, tensor)): (usize, &(&diptych::Port, &HostTensor))| {
            let Statistics { least, largest, mean, deviation, not_finite } = Statistics::of(&tensor.to_f32());
            let odd = if not_finite > 0 { format!(", {not_finite} not finite") } else { String::new() };
            format!(
                "{index}, {}, {}, from {least:.6} to {largest:.6}, mean {mean:.6}, deviation {deviation:.6}{odd}",
                port.name, port.dims
            )
        };
        self.outputs.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn json(&self) -> Value {
        let inputs = self.inputs.iter().map(|(port, source)| {
            let source = match source {
                Some(Source::Tensor(path)) => json!({ "tensor": path.to_string_lossy() }),
                Some(Source::Picture(path)) => json!({ "picture": path.to_string_lossy() }),
                None => json!("random"),
            };
            json!({ "name": port.name, "shape": port.dims.extents(), "source": source })
        });
        let outputs = self.outputs.iter().map(|(port, tensor)| {
            let Statistics { least, largest, mean, deviation, not_finite } = Statistics::of(&tensor.to_f32());
            json!({
                "name": port.name, "shape": port.dims.extents(), "min": least, "max": largest, "mean": mean,
                "deviation": deviation, "not_finite": not_finite,
            })
        });
        let MemoryUse { planned, unshared, least, constants, .. } = self.memory;
        let mut later: Vec<f64> = self.times.iter().skip(1).map(milliseconds).collect();
        later.sort_by(f64::total_cmp);
        json!({
            "device": self.device,
            "steps": self.steps,
            "inputs": inputs.collect::<Vec<_>>(),
            "outputs": outputs.collect::<Vec<_>>(),
            "first_ms": self.times.first().map(milliseconds),
            "median_ms": later.get(later.len() / 2),
            "times_ms": self.times.iter().map(milliseconds).collect::<Vec<_>>(),
            "memory": { "planned": planned, "unshared": unshared, "least": least, "constants": constants,
                "downloads": self.memory.downloads, "uploads": self.memory.uploads },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::NodeTime;

    fn report(times: &[Duration]) -> Report<'_> {
        let memory = MemoryUse::default();
        Report { device: "none".to_owned(), inputs: vec![], outputs: vec![], times, memory, steps: 3 }
    }

    #[test]
    fn times_report_the_median_of_the_later_runs() {
        let times: Vec<_> = [90, 3, 1, 2].map(Duration::from_millis).to_vec();
        let wanted = "first run 90.000 ms, then 3 runs: fastest 1.000 ms, median 2.000 ms, slowest 3.000 ms";
        assert!(report(&times).times().starts_with(wanted), "{}", report(&times).times());
        assert_eq!(report(&times[..1]).times(), "first run 90.000 ms, copies included");
        assert_eq!(report(&times).json()["median_ms"], 2.0);
    }

    #[test]
    fn statistics_leave_out_what_is_no_number() {
        let found = Statistics::of(&[1.0, f32::NAN, 3.0, f32::INFINITY]);
        let wanted = Statistics { least: 1.0, largest: 3.0, mean: 2.0, deviation: 1.0, not_finite: 2 };
        assert_eq!(found, wanted);
        assert!(Statistics::of(&[f32::NAN]).least.is_nan());
    }

    #[test]
    fn a_profile_has_each_step_with_its_share() {
        let node = |name: &str, time| NodeTime {
            precision: diptych::Precision::F32,
            name: name.to_owned(),
            inserted: false,
            op: "copy",
            kernel: "copy_rows_f32".to_owned(),
            work_group: [64, 1, 1],
            source: "rule".to_owned(),
            time: Duration::from_micros(time),
            flops: 3000,
        };
        let text =
            profile(&Profile { clock: "host clock", nodes: vec![node("first", 3), node("second", 1)] });
        for words in ["first", "75.0", "25.0", "copy_rows_f32", "rule", "total 4.0 us (host clock)"] {
            assert!(text.contains(words), "{words} in\n{text}");
        }
    }

    #[test]
    fn bytes_are_reported_in_units() {
        assert_eq!([12, 1536, 3 << 20].map(bytes), ["12 B", "1.5 KiB", "3.0 MiB"]);
    }
}
