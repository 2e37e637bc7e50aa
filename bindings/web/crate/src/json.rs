//! What goes to JavaScript as JSON.

use diptych::{Backend, ContextInfo, FileInput, Port, Profile, Session, Step};
#[cfg(all(feature = "cpu", feature = "gpu"))]
use diptych::{ProblemReport, TunerProgress};
use serde_json::{Value, json};

/// The device, and why it is this one.
pub(crate) fn info(info: &ContextInfo) -> Value {
    let backend = match info.backend {
        Backend::Wgpu => "webgpu".to_owned(),
        other => other.to_string(),
    };
    let device = info.device.as_ref().map(|device| {
        json!({
            "name": device.name,
            "software": device.is_cpu,
            "halves": device.limits.native_half,
            "timestamps": device.timestamps,
        })
    });
    json!({ "backend": backend, "device": device, "reason": info.reason })
}

fn ports(ports: &[Port]) -> Value {
    let port = |port: &Port| {
        let (dims, dtype) = (port.dims.extents(), port.dtype.to_string());
        let open = port.open.iter().map(|open| json!({ "axis": open.axis, "name": open.name }));
        json!({ "name": port.name, "dims": dims, "dtype": dtype, "open": open.collect::<Value>() })
    };
    ports.iter().map(port).collect()
}

/// Inputs that have a value in the file.
pub(crate) fn optional(inputs: &[FileInput]) -> Value {
    let one = |input: &FileInput| {
        let dims: Vec<usize> = input.extents.iter().flatten().map(|extent| extent.unwrap_or(1)).collect();
        let open = input.open.iter().map(|open| json!({ "axis": open.axis, "name": open.name }));
        json!({ "name": input.name, "dims": dims, "dtype": input.dtype.to_string(), "open": open.collect::<Value>() })
    };
    inputs.iter().filter(|input| input.is_optional).map(one).collect()
}

fn step(step: &Step) -> Value {
    json!({
        "name": step.name,
        "op": step.op,
        "kernel": step.kernel,
        "workGroup": step.work_group,
        "source": step.source,
        "flops": step.flops,
    })
}

/// Inputs, outputs, steps and memory of a session.
pub(crate) fn session(session: &Session) -> Value {
    let memory = session.memory();
    json!({
        "inputs": ports(session.inputs()),
        "outputs": ports(session.outputs()),
        "steps": session.steps().iter().map(step).collect::<Value>(),
        "memory": { "values": memory.planned, "constants": memory.constants },
    })
}

/// The time of each step.
pub(crate) fn profile(profile: &Profile) -> Value {
    let timed = profile.steps.iter().map(|timed| {
        let mut step = step(&timed.step);
        step["us"] = json!(timed.time.as_secs_f64() * 1e6);
        step
    });
    json!({
        "clock": profile.clock,
        "us": profile.total().as_secs_f64() * 1e6,
        "steps": timed.collect::<Value>(),
    })
}

/// How far the tuner is.
#[cfg(all(feature = "cpu", feature = "gpu"))]
pub(crate) fn progress(progress: &TunerProgress) -> Value {
    json!({
        "done": progress.done,
        "visited": progress.visited,
        "problems": progress.problems,
        "tried": progress.tried,
        "candidates": progress.candidates,
        "finished": progress.is_finished(),
    })
}

/// The verdict on one problem.
#[cfg(all(feature = "cpu", feature = "gpu"))]
pub(crate) fn verdict(problem: &ProblemReport) -> Value {
    let us = |time: Option<std::time::Duration>| time.map(|time| time.as_secs_f64() * 1e6);
    json!({
        "op": problem.op,
        "problem": problem.problem,
        "nodes": problem.nodes,
        "default": problem.default.to_string(),
        "choice": problem.choice.as_ref().map(ToString::to_string),
        "defaultUs": us(problem.default_time),
        "us": us(problem.time),
        "speedUp": problem.speed_up,
        "tried": problem.trials.len(),
        "cutShort": problem.cut_short,
        "ms": problem.spent.as_secs_f64() * 1e3,
    })
}
