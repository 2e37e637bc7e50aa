//! `diptych check`: every kernel of a network, again and again, against the oracle and against itself.

use crate::output::{print, say};
use crate::tune::{PrecisionName, bar};
use anyhow::{Context as _, Result, bail};
use diptych::internals::{Checked, Finding};
use diptych::{
    ComparedRewrites, Context, DeviceInfo, HostTensor, Model, Precision, Rewrite, Session, SessionOptions,
    Tuner,
};
use diptych_kernels::ops;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A TensorFlow Lite or ONNX model; without one, the examples of every op.
    pub(crate) model: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) on: crate::flags::Gpus,

    #[command(flatten)]
    pub(crate) load: crate::flags::Load,

    /// How often each kernel runs.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,

    /// Every kernel and tile of each problem, and not only the one that a session takes.
    #[arg(long)]
    pub(crate) every: bool,

    /// These ops only.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) op: Vec<String>,

    /// Storage and arithmetic.
    #[arg(long, value_enum, default_value_t = PrecisionName::F32)]
    pub(crate) precision: PrecisionName,

    /// The record whose choices are checked: a directory or a file. Without it, what an untuned session runs.
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) db: Option<PathBuf>,

    /// Compare the model's results with and without each rewrite of the network, on random inputs, instead of its kernels.
    #[arg(long, requires = "model", conflicts_with_all = ["every", "op", "db", "json", "report"])]
    pub(crate) rewrites: bool,

    /// Print JSON: an object for each device.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write the report to this file too: as Markdown, or as JSON with --json.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// What was found on one device.
struct CheckedDevice {
    device: DeviceInfo,
    checked: Vec<Checked>,
}

impl CheckedDevice {
    fn bad(&self) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(|checked| checked.is_bad())
    }
}

/// How far a network's results may be from those without rewrites, in proportion to the largest of an output.
pub(crate) fn tolerance(precision: Precision) -> f32 {
    if precision == Precision::F32 { 1e-3 } else { 5e-2 }
}

/// What rewrites change, in a line.
pub(crate) fn rewrites_in_words(found: &ComparedRewrites) -> String {
    let ComparedRewrites { difference, tolerance, .. } = found;
    let named: Vec<&str> = found.at_fault().map(Rewrite::name).collect();
    match named.as_slice() {
        _ if found.agrees() => {
            format!(
                "with and without rewrites the results differ by {difference:.1e}; {tolerance:.0e} may be rounding"
            )
        }
        [] => format!(
            "with and without rewrites the results differ by {difference:.1e}, more than {tolerance:.0e}, and no rewrite alone \
             is the reason"
        ),
        named => format!(
            "with and without rewrites the results differ by {difference:.1e}, more than {tolerance:.0e}; at fault: {}",
            named.join(", ")
        ),
    }
}

/// Compares a model's results with and without rewrites on each device.
fn check_rewrites(arguments: &Arguments, path: &std::path::Path) -> Result<()> {
    let model = Model::load(path, &arguments.load.options())?;
    let precision = arguments.precision.precision();
    let options = SessionOptions { precision, ..Default::default() };
    let inputs = crate::run::all_random(&model.graph)?;
    let feeds: Vec<(&str, &HostTensor)> =
        inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut wrong = Vec::new();
    for context in arguments.on.contexts()? {
        let found =
            Session::compare_rewrites(&context, &model.graph, &options, &feeds, tolerance(precision))?;
        print(format!("{}: {}", context.info(), rewrites_in_words(&found)))?;
        if !found.agrees() {
            wrong.push(context.info().backend.to_string());
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => bail!("rewrites of the network change its results on {}", wrong.join(" and ")),
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    if let Some(path) = arguments.model.as_ref().filter(|_| arguments.rewrites) {
        return check_rewrites(arguments, path);
    }
    for name in &arguments.op {
        if ops::all().iter().all(|entry| entry.name != name) {
            let names: Vec<&str> = ops::all().iter().map(|entry| entry.name).collect();
            bail!("--op: found {name}, wanted one of {}", names.join(", "));
        }
    }
    let mut found = Vec::new();
    for context in arguments.on.contexts()? {
        let device = context.info().device.clone().context("a backend without a device")?;
        let checked = check(arguments, &context)?;
        found.push(CheckedDevice { device, checked });
    }
    let text = match arguments.json {
        true => serde_json::to_string_pretty(
            &found.iter().map(|one| as_json(arguments, one)).collect::<Vec<_>>(),
        )?,
        false => found.iter().map(|one| as_text(arguments, one)).collect::<Result<Vec<_>>>()?.join("\n"),
    };
    if let Some(path) = &arguments.report {
        std::fs::write(path, format!("{}\n", text.trim_end())).with_context(|| path.display().to_string())?;
    }
    print(text.trim_end())?;
    let (bad, all) =
        found.iter().fold((0, 0), |(bad, all), one| (bad + one.bad().count(), all + one.checked.len()));
    match bad {
        0 => Ok(()),
        _ => bail!("{bad} of {all} kernels are wrong, flaky or do not run"),
    }
}

fn check(arguments: &Arguments, context: &Context) -> Result<Vec<Checked>> {
    let precision = arguments.precision.precision();
    let mut tuner = Tuner::new(context)?.precision(precision).retune(true);
    if let Some(path) = &arguments.db {
        let (database, _) = crate::tune::record(Some(path))?;
        tuner = tuner.database(Arc::new(Mutex::new(database)));
    }
    match &arguments.model {
        Some(path) => tuner.begin_all(&Model::load(path, &arguments.load.options())?.graph)?,
        None => line_up_examples(&mut tuner, arguments, precision)?,
    }
    let progress = bar(&context.info().backend.to_string(), None)?;
    let mut done = 0;
    let checked = tuner.check(arguments.runs, arguments.every, |one, left| {
        done += 1;
        progress.set_length((done + left) as u64);
        progress.set_position(done as u64);
        progress.set_message(format!("{done} of {} kernels", done + left));
        if one.is_bad() {
            progress.suspend(|| say(format_args!("{}", line(one))));
        }
    });
    progress.finish_and_clear();
    let wanted = |one: &Checked| arguments.op.is_empty() || arguments.op.iter().any(|name| name == one.op);
    Ok(checked?.into_iter().filter(wanted).collect())
}

fn line_up_examples(tuner: &mut Tuner, arguments: &Arguments, precision: Precision) -> Result<()> {
    for entry in ops::all() {
        if !arguments.op.is_empty() && arguments.op.iter().all(|name| name != entry.name) {
            continue;
        }
        for (index, op) in (entry.examples)(precision)?.into_iter().enumerate() {
            tuner.begin_problem(&format!("{} {index}", entry.name), Arc::from(op))?;
        }
    }
    Ok(())
}

/// What came of a kernel, in a line.
fn line(checked: &Checked) -> String {
    let Checked { op, problem, precision, choice, .. } = checked;
    format!("{op} {problem} {precision}: {choice}: {}", words(checked))
}

fn words(checked: &Checked) -> String {
    let repeats = checked.repeats;
    let worst = match checked.worst {
        worst if worst.is_infinite() => "an error without bound".to_owned(),
        worst => format!("{worst:.3} of the bound at most"),
    };
    match &checked.finding {
        Finding::Steady => format!("{} equal runs", repeats.runs),
        Finding::Wrong { detail } => format!("wrong in every run: {worst}: {detail}"),
        Finding::Flaky { detail } => format!("flaky: {repeats}: {worst}: {detail}"),
        Finding::Failed { message } => format!("failed: {message}"),
    }
}

/// The device and what it was asked, then what was found.
fn as_text(arguments: &Arguments, found: &CheckedDevice) -> Result<String> {
    let CheckedDevice { device, checked } = found;
    let mut text = String::new();
    writeln!(text, "# Kernels on {}\n", device.name)?;
    let what = arguments.model.as_ref().map_or("the examples of every op".to_owned(), |path| {
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    });
    let limits = &device.limits;
    let facts = [
        ("device", device.name.clone()),
        ("family", limits.family.to_string()),
        ("API", device.api.to_owned()),
        ("driver", device.driver.clone()),
        ("diptych", env!("CARGO_PKG_VERSION").to_owned()),
        ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("network", what),
        ("precision", arguments.precision.precision().to_string()),
        ("runs of each kernel", arguments.runs.to_string()),
    ];
    for (name, fact) in facts {
        writeln!(text, "- {name}: {fact}")?;
    }
    for fault in limits.faults.iter() {
        writeln!(text, "- known fault: {fault}")?;
    }
    let bad: Vec<&Checked> = found.bad().collect();
    writeln!(text, "\n{} of {} kernels are wrong, flaky or do not run\n", bad.len(), checked.len())?;
    for one in &bad {
        writeln!(text, "- {}", line(one))?;
        if !one.nodes.is_empty() {
            writeln!(text, "  nodes: {}", one.nodes.join(", "))?;
        }
    }
    if !bad.is_empty() {
        writeln!(text)?;
    }
    writeln!(text, "| op | problem | kernel | runs | differed |\n|---|---|---|---|---|")?;
    for Checked { op, problem, precision, choice, repeats, .. } in checked {
        let problem = problem.replace('|', "\\|");
        writeln!(
            text,
            "| {op} | {problem} {precision} | {choice} | {} | {} |",
            repeats.runs, repeats.differed
        )?;
    }
    Ok(text)
}

fn as_json(arguments: &Arguments, found: &CheckedDevice) -> Value {
    let kernels: Vec<Value> = found.checked.iter().map(kernel).collect();
    json!({
        "diptych": env!("CARGO_PKG_VERSION"),
        "system": [std::env::consts::OS, std::env::consts::ARCH],
        "device": crate::devices::device(&found.device),
        "model": arguments.model.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy()),
        "precision": arguments.precision.precision().to_string(),
        "runs": arguments.runs,
        "findings": found.bad().count(),
        "kernels": kernels,
    })
}

fn kernel(checked: &Checked) -> Value {
    let (finding, detail) = match &checked.finding {
        Finding::Steady => ("steady", None),
        Finding::Wrong { detail } => ("wrong", Some(detail)),
        Finding::Flaky { detail } => ("flaky", Some(detail)),
        Finding::Failed { message } => ("failed", Some(message)),
    };
    json!({
        "op": checked.op,
        "problem": checked.problem,
        "precision": checked.precision,
        "nodes": checked.nodes,
        "variant": checked.choice.variant,
        "tile": checked.choice.tile,
        "work_group": checked.choice.work_group,
        "layout": checked.choice.layout.to_string(),
        "finding": finding,
        "detail": detail,
        "runs": checked.repeats.runs,
        "differed": checked.repeats.differed,
        // JSON has no infinite numbers.
        "largest_error_over_bound": if checked.worst.is_finite() { Some(checked.worst) } else { None },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::internals::tune::Repeats;
    use diptych::{Choice, Limits};

    fn arguments(json: bool) -> Arguments {
        Arguments {
            model: Some("folder/pose.tflite".into()),
            on: crate::flags::Gpus { backend: None, device: None },
            load: crate::flags::Load::default(),
            runs: 64,
            every: false,
            op: Vec::new(),
            precision: PrecisionName::F32,
            db: None,
            rewrites: false,
            json,
            report: None,
        }
    }

    fn found() -> CheckedDevice {
        let device = DeviceInfo {
            api: "Vulkan",
            name: "Adreno (TM) 840".to_owned(),
            driver: "Qualcomm 512.842".to_owned(),
            pci: None,
            uuid: None,
            limits: Limits::webgpu(),
            is_cpu: false,
            timestamps: true,
        };
        let checked = |work_group, finding, differed, worst| Checked {
            nodes: vec!["head".to_owned()],
            op: "gemm",
            problem: "m1500 n384 k384".to_owned(),
            precision: "f32".to_owned(),
            choice: Choice::new("micro", [4, 4, 1], work_group),
            finding,
            repeats: Repeats { differed, runs: 64 },
            worst,
        };
        let flaky = Finding::Flaky { detail: "stored element 7 is 9, wanted 1".to_owned() };
        let checked =
            vec![checked([8, 8, 1], flaky, 7, f64::INFINITY), checked([16, 4, 1], Finding::Steady, 0, 0.0)];
        CheckedDevice { device, checked }
    }

    #[test]
    fn the_report_names_device_driver_kernel_and_how_often() {
        let text = as_text(&arguments(false), &found()).expect("text");
        for words in [
            "Adreno (TM) 840",
            "Qualcomm 512.842",
            "Vulkan",
            env!("CARGO_PKG_VERSION"),
            "pose.tflite",
            "1 of 2 kernels are wrong, flaky or do not run",
            "gemm m1500 n384 k384 f32: micro tile 4x4x1 work-group (8,8,1): flaky: its output differed in 7 of 64 runs: \
             an error without bound: stored element 7 is 9, wanted 1",
            "nodes: head",
            "work-group (16,4,1)",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        assert!(!text.contains("folder"), "{text}");
    }

    #[test]
    fn json_has_the_same_facts() {
        let value = as_json(&arguments(true), &found());
        assert_eq!(value["device"]["driver"], "Qualcomm 512.842");
        assert_eq!((&value["findings"], &value["runs"]), (&json!(1), &json!(64)));
        let kernel = &value["kernels"][0];
        assert_eq!(kernel["finding"], "flaky");
        assert_eq!((&kernel["differed"], &kernel["work_group"]), (&json!(7), &json!([8, 8, 1])));
        assert_eq!(kernel["largest_error_over_bound"], Value::Null);
        assert_eq!(value["kernels"][1]["largest_error_over_bound"], 0.0);
    }
}
