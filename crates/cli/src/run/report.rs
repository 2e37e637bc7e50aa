//! The report of `diptych run`: times, memory, outputs; as text and as JSON.

use super::classes::Class;
use super::inputs::{InputFile, Port};
use super::number::Number;
use crate::table::{Rows, node_name};
use diptych::internals::tune::statistics::percentile;
use diptych::{HostTensor, MemoryUse, Profile, TensorElement, TimedStep};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::time::Duration;

/// A run's device, times and outputs.
pub(super) struct Report<'a> {
    pub(super) device: String,
    pub(super) inputs: Vec<(&'a Port, Option<&'a InputFile<'a>>)>,
    pub(super) outputs: Vec<(&'a diptych::Port, &'a HostTensor)>,
    /// The most likely classes of each image, for each output.
    pub(super) classes: Vec<Vec<Vec<Class>>>,
    pub(super) times: &'a [Duration],
    /// How many of the first times do not count.
    pub(super) warmup: usize,
    pub(super) profile: Option<&'a Profile>,
    pub(super) memory: MemoryUse,
    pub(super) steps: usize,
}

/// Extremes, mean and standard deviation of an output's numbers; what is no number is counted apart.
#[derive(Debug, PartialEq)]
struct Statistics {
    least: Number,
    largest: Number,
    mean: f64,
    deviation: f64,
    not_finite: usize,
}

impl Statistics {
    /// The statistics of an output's elements, read where they lie: an output may be as large as the memory that is left.
    fn of(output: &HostTensor) -> Self {
        fn integers<T: TensorElement + Into<i64>>(output: &HostTensor) -> Option<Statistics> {
            output
                .elements::<T>()
                .map(|all| Statistics::of_integers(|| all.iter().map(|&value| value.into())))
        }
        let narrow = integers::<i8>(output).or_else(|| integers::<u8>(output));
        let narrow = narrow.or_else(|| integers::<i16>(output)).or_else(|| integers::<u16>(output));
        let wide = || integers::<i32>(output).or_else(|| integers::<u32>(output));
        let found =
            narrow.or_else(wide).or_else(|| integers::<i64>(output)).or_else(|| integers::<bool>(output));
        let halves = || {
            let all = output.elements::<half::f16>()?;
            Some(Statistics::of_floats(all.len(), || all.iter().map(|value| value.to_f32())))
        };
        found.or_else(halves).unwrap_or_else(|| {
            let all = output.elements::<f32>().unwrap_or_default();
            Statistics::of_floats(all.len(), || all.iter().copied())
        })
    }

    fn of_integers<I: ExactSizeIterator<Item = i64>>(values: impl Fn() -> I) -> Self {
        let count = values().len().max(1) as f64;
        let mean = values().map(|value| value as f64).sum::<f64>() / count;
        let variance = values().map(|value| (value as f64 - mean).powi(2)).sum::<f64>() / count;
        let [least, largest] = [values().min(), values().max()]
            .map(|value| value.map_or(Number::Float(f32::NAN), Number::Integer));
        Statistics { least, largest, mean, deviation: variance.sqrt(), not_finite: 0 }
    }

    fn of_floats<I: Iterator<Item = f32>>(len: usize, values: impl Fn() -> I) -> Self {
        let finite = || values().filter(|value| value.is_finite());
        let count = finite().count();
        let mean_of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count.max(1) as f64;
        let mean = mean_of(&mut finite().map(f64::from));
        let variance = mean_of(&mut finite().map(|value| (f64::from(value) - mean).powi(2)));
        let (least, largest) = match count {
            0 => (f32::NAN, f32::NAN),
            _ => (finite().fold(f32::INFINITY, f32::min), finite().fold(f32::NEG_INFINITY, f32::max)),
        };
        let [least, largest] = [least, largest].map(Number::Float);
        Statistics { least, largest, mean, deviation: variance.sqrt(), not_finite: len - count }
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

/// The time of each step: no wider than the terminal.
pub(super) fn profile(profile: &Profile) -> String {
    let total = profile.total().as_secs_f64();
    let terminal = std::io::stdout().is_terminal();
    let mut steps = Rows::new(["#", "name", "op", "kernel", "us", "%", "GFLOP/s", "source"]);
    steps = steps.numbers(&[0, 4, 5, 6]).names(&[1]).labels(&[3]);
    for (index, TimedStep { step, time }) in profile.steps.iter().enumerate() {
        let seconds = time.as_secs_f64();
        let share = if total > 0.0 { 100.0 * seconds / total } else { 0.0 };
        let rate = if seconds > 0.0 { step.flops as f64 / seconds / 1e9 } else { 0.0 };
        steps.add([
            (index + 1).to_string(),
            node_name(&step.name, terminal),
            step.op.to_owned(),
            step.kernel.clone(),
            format!("{:.1}", seconds * 1e6),
            format!("{share:.1}"),
            format!("{rate:.1}"),
            step.source.clone(),
        ]);
    }
    let steps = steps.text();
    format!("{steps}\ntotal {:.1} us ({})", total * 1e6, profile.clock)
}

impl Report<'_> {
    /// The milliseconds of the runs that count.
    fn counted(&self) -> Vec<f64> {
        self.times.iter().skip(self.warmup).map(milliseconds).collect()
    }

    /// The times of the runs, those of the warm-up apart.
    pub(super) fn times(&self) -> String {
        let Some(first) = self.times.first() else { return "no runs".to_owned() };
        let first = format!("first run {:.3} ms", milliseconds(first));
        let counted = self.counted();
        let at = |share| percentile(&counted, share).unwrap_or(f64::NAN);
        let [fastest, median, p90, p99, slowest] = [0.0, 0.5, 0.9, 0.99, 1.0].map(at);
        let runs = match (counted.len(), self.warmup) {
            (0, _) => return format!("{first}, copies included"),
            (count, 1) => format!("{first}, then {count} runs"),
            (count, 0) => format!("{count} runs"),
            (count, warmup) => format!("{first}, {warmup} for warm-up, then {count} runs"),
        };
        format!(
            "{runs}: fastest {fastest:.3} ms, median {median:.3} ms, p90 {p90:.3} ms, p99 {p99:.3} ms, slowest \
             {slowest:.3} ms, copies included"
        )
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

    /// For each output a line, with index, name, shape, type and its numbers, and one for each of its most likely classes.
    pub(super) fn outputs(&self) -> String {
        let line = |(index, (port, tensor)): (usize, &(&diptych::Port, &HostTensor))| {
            let Statistics { least, largest, mean, deviation, not_finite } = Statistics::of(tensor);
            let odd = if not_finite > 0 { format!(", {not_finite} not finite") } else { String::new() };
            let line = format!(
                "{index}, {}, {} {}, from {least} to {largest}, mean {mean:.6}, deviation {deviation:.6}{odd}",
                port.name, port.dims, port.dtype
            );
            let lists = self.classes.get(index).map(Vec::as_slice).unwrap_or_default();
            let several = lists.len() > 1;
            let class = |(image, class): (usize, &Class)| {
                let image = if several { format!("image {image}, ") } else { String::new() };
                let name = class.name.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
                format!("\n   {image}class {}{name}: {}", class.index, class.value)
            };
            let classes =
                lists.iter().enumerate().flat_map(|(image, list)| list.iter().map(move |one| (image, one)));
            line + &classes.map(class).collect::<String>()
        };
        self.outputs.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn json(&self) -> Value {
        let inputs = self.inputs.iter().map(|(port, source)| {
            let source = match source {
                Some(InputFile::Tensor(path)) => json!({ "tensor": path.to_string_lossy() }),
                Some(InputFile::Picture(path)) => json!({ "picture": path.to_string_lossy() }),
                None => json!("random"),
            };
            let (shape, dtype) = (port.of.dims.extents(), port.of.dtype.to_string());
            json!({ "name": port.name, "shape": shape, "dtype": dtype, "source": source })
        });
        let outputs = self.outputs.iter().enumerate().map(|(index, (port, tensor))| {
            let lists = self.classes.get(index).map(Vec::as_slice).unwrap_or_default();
            let class =
                |class: &Class| json!({ "index": class.index, "value": class.value, "name": class.name });
            let classes: Vec<Vec<Value>> =
                lists.iter().map(|list| list.iter().map(class).collect()).collect();
            let Statistics { least, largest, mean, deviation, not_finite } = Statistics::of(tensor);
            json!({
                "name": port.name, "shape": port.dims.extents(), "dtype": port.dtype.to_string(), "min": least,
                "max": largest, "mean": mean, "deviation": deviation, "not_finite": not_finite, "classes": classes,
            })
        });
        let MemoryUse { planned, unshared, least, constants, .. } = self.memory;
        let counted = self.counted();
        let at = |share| percentile(&counted, share);
        let step = |TimedStep { step, time }: &TimedStep| {
            json!({
                "name": step.name, "op": step.op, "kernel": step.kernel, "precision": step.precision.to_string(),
                "work_group": step.work_group, "tile": step.choice.map(|choice| choice.tile),
                "variant": step.choice.map(|choice| choice.variant), "source": step.source, "us": time.as_secs_f64() * 1e6,
                "flops": step.flops,
            })
        };
        let profile = self.profile.map(|profile| {
            json!({ "clock": profile.clock, "steps": profile.steps.iter().map(step).collect::<Vec<_>>() })
        });
        json!({
            "device": self.device,
            "steps": self.steps,
            "inputs": inputs.collect::<Vec<_>>(),
            "outputs": outputs.collect::<Vec<_>>(),
            "first_ms": self.times.first().map(milliseconds),
            "warmup": self.warmup,
            "median_ms": at(0.5),
            "p90_ms": at(0.9),
            "p99_ms": at(0.99),
            "times_ms": self.times.iter().map(milliseconds).collect::<Vec<_>>(),
            "profile": profile,
            "memory": { "planned": planned, "unshared": unshared, "least": least, "constants": constants,
                "downloads": self.memory.downloads, "uploads": self.memory.uploads },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(times: &[Duration]) -> Report<'_> {
        Report {
            device: "none".to_owned(),
            inputs: vec![],
            outputs: vec![],
            classes: vec![],
            times,
            warmup: 1,
            profile: None,
            memory: MemoryUse::default(),
            steps: 3,
        }
    }

    #[test]
    fn times_report_the_median_of_the_later_runs() {
        let times: Vec<_> = [90, 3, 1, 2].map(Duration::from_millis).to_vec();
        let wanted = "first run 90.000 ms, then 3 runs: fastest 1.000 ms, median 2.000 ms, p90 2.800 ms, p99 2.980 ms, \
                      slowest 3.000 ms, copies included";
        assert_eq!(report(&times).times(), wanted);
        let warm = Report { warmup: 2, ..report(&times) }.times();
        assert!(
            warm.starts_with("first run 90.000 ms, 2 for warm-up, then 2 runs: fastest 1.000 ms"),
            "{warm}"
        );
        let cold = Report { warmup: 0, ..report(&times) }.times();
        assert!(
            cold.starts_with("4 runs: fastest 1.000 ms, median 2.500 ms") && cold.contains("slowest 90"),
            "{cold}"
        );
        assert_eq!(report(&times[..1]).times(), "first run 90.000 ms, copies included");
        assert_eq!(report(&times).json()["median_ms"], 2.0);
    }

    #[test]
    fn statistics_leave_out_what_is_no_number() {
        let of = |values: &[f32]| Statistics::of(&HostTensor::vector(values).expect("some"));
        let [least, largest] = [1.0, 3.0].map(Number::Float);
        let wanted = Statistics { least, largest, mean: 2.0, deviation: 1.0, not_finite: 2 };
        assert_eq!(of(&[1.0, f32::NAN, 3.0, f32::INFINITY]), wanted);
        assert!(of(&[f32::NAN]).least.is_nan());
    }

    #[test]
    fn integers_are_reported_as_integers() {
        let dims = diptych::Dims::new(&[2]).expect("small");
        let tensor = HostTensor::of(dims, vec![(1i64 << 53) + 1, 1]).expect("two");
        let port = diptych::Port {
            name: "ids".to_owned(),
            shape: dims.shape(),
            dims,
            dtype: diptych::DType::I64,
            open: Vec::new(),
        };
        let report = Report { outputs: vec![(&port, &tensor)], ..report(&[]) };
        let text = report.outputs();
        assert!(text.starts_with("0, ids, 2 i64, from 1 to 9007199254740993, mean "), "{text}");
        let found = &report.json()["outputs"][0];
        assert_eq!((&found["dtype"], &found["max"]), (&json!("i64"), &json!((1i64 << 53) + 1)), "{found}");
    }

    #[test]
    fn a_profile_has_each_step_with_its_share() {
        let timed = |name: &str, time| {
            let step = diptych::Step {
                name: name.to_owned(),
                inserted: false,
                op: "copy",
                kernel: "copy_rows_f32".to_owned(),
                precision: diptych::Precision::F32,
                work_group: [64, 1, 1],
                choice: None,
                source: "rule".to_owned(),
                flops: 3000,
            };
            TimedStep { step, time: Duration::from_micros(time) }
        };
        let text =
            profile(&Profile { clock: "host clock", steps: vec![timed("first", 3), timed("second", 1)] });
        for words in ["first", "75.0", "25.0", "copy_rows_f32", "rule", "total 4.0 us (host clock)"] {
            assert!(text.contains(words), "{words} in\n{text}");
        }
    }

    #[test]
    fn bytes_are_reported_in_units() {
        assert_eq!([12, 1536, 3 << 20].map(bytes), ["12 B", "1.5 KiB", "3.0 MiB"]);
    }
}
