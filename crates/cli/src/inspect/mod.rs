//! `diptych inspect`: a model's graph, shapes, operators and memory, and the kernels that would run it.

mod nodes;
mod open;
mod page;

use crate::output::print;
use crate::table::{Rows, node_name};
use crate::tune::PrecisionName;
use anyhow::{Context as _, Result};
use diptych::{
    Calibration, Graph, Model, ModelFile, Port, Precision, Session, SessionOptions, TensorInfo, Value,
};
use nodes::NodeRow;
use open::OpenExtent;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The model: a TensorFlow Lite or an ONNX file.
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) load: crate::flags::Load,

    #[command(flatten)]
    pub(crate) on: crate::flags::OnFastest,

    /// Storage and arithmetic.
    #[arg(long, value_enum, default_value_t = PrecisionName::F32)]
    pub(crate) precision: PrecisionName,

    /// The file that `diptych run --calibrate --calibration FILE` wrote, for `--precision auto`.
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,

    /// A node that the CPU computes in a session on a GPU.
    #[arg(long, value_name = "NODE")]
    pub(crate) on_cpu: Vec<String>,

    /// List every node, and the kernel of each step.
    #[arg(long)]
    pub(crate) nodes: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a page that shows the graph and what is known of each node; it needs no other file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// How the source of a step on the CPU begins.
const ON_CPU: &str = "on the CPU: ";

/// What runs: a kernel for one node, several, or none.
struct StepRow {
    name: String,
    op: &'static str,
    kernel: String,
    precision: Precision,
    source: String,
    flops: u64,
}

/// An input or output, with what the metadata say of it.
struct PortRow<'i> {
    what: &'static str,
    port: &'i Port,
    info: Option<&'i TensorInfo>,
}

fn port_rows<'i>(what: &'static str, ports: &'i [Port], infos: &'i [TensorInfo]) -> Vec<PortRow<'i>> {
    let row = |(index, port)| PortRow { what, port, info: infos.get(index) };
    ports.iter().enumerate().map(row).collect()
}

/// Everything that is reported of a model.
struct Inspection {
    file: String,
    model: Model,
    nodes: Vec<NodeRow>,
    parameters: usize,
    parameter_bytes: usize,
    flops: u64,
    device: String,
    steps: Vec<StepRow>,
    memory: diptych::MemoryUse,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    open: Vec<OpenExtent>,
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let file = ModelFile::load(&arguments.model, &arguments.load.options())?;
    let (model, open) = open::model(&file)?;
    let calibration = arguments.calibration.as_ref().map(Calibration::load).transpose()?;
    let precision = arguments.precision.precision();
    let on_cpu = arguments.on_cpu.iter().cloned().collect();
    let cpu_threads = arguments.load.threads;
    // As `diptych run` has them.
    let tuning = crate::tune::of_record(None)?;
    let options =
        SessionOptions { tuning, precision, calibration, on_cpu, cpu_threads, ..Default::default() };
    let context = arguments.on.context(&options, &[], None, |options| file.fastest(options))?;
    let session = Session::new(&context, &model.graph, options)?;
    let (parameters, parameter_bytes) = parameters(&model.graph)?;
    let steps = session.steps().into_iter().map(|step| StepRow {
        name: step.name,
        op: step.op,
        kernel: step.kernel,
        precision: step.precision,
        source: step.source,
        flops: step.flops,
    });
    let found = Inspection {
        file: arguments.model.display().to_string(),
        nodes: nodes::nodes(&model.graph)?,
        parameters,
        parameter_bytes,
        flops: model.graph.flops()?,
        device: context.info().to_string(),
        steps: steps.collect(),
        memory: session.memory(),
        inputs: session.inputs().to_vec(),
        outputs: session.outputs().to_vec(),
        open,
        model,
    };
    if let Some(file) = &arguments.html {
        let page = page::page(&found)?;
        std::fs::write(file, page).with_context(|| format!("{}", file.display()))?;
    }
    let text = if arguments.json {
        serde_json::to_string_pretty(&found.json())?
    } else {
        found.text(arguments.nodes)
    };
    print(text.trim_end())
}

/// The elements of the constants that nodes read, and their bytes as they are stored in the file's precision.
fn parameters(graph: &Graph) -> Result<(usize, usize)> {
    let constants: BTreeSet<Value> =
        graph.nodes().iter().flat_map(|node| node.inputs()).map(|&(_, value)| value).collect();
    let mut sums = (0, 0);
    for value in constants {
        if let Some(tensor) = graph.tensor(value)? {
            sums = (sums.0 + tensor.dims().elements(), sums.1 + tensor.bytes().len());
        }
    }
    Ok(sums)
}

/// A number with a prefix: `1.23 M`.
fn short(number: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.into_iter().find(|(factor, _)| number >= *factor) {
        Some((factor, prefix)) => format!("{:.2} {prefix}", number / factor),
        None => format!("{number}"),
    }
}

/// Bytes with a binary prefix: `1.23 MiB`.
fn bytes(number: u64) -> String {
    let prefixes = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match prefixes.into_iter().find(|(factor, _)| number >= *factor) {
        Some((factor, prefix)) => format!("{:.2} {prefix}", number as f64 / factor as f64),
        None => format!("{number} B"),
    }
}

impl Inspection {
    /// How many nodes each operator has, and their operations.
    fn operators(&self) -> BTreeMap<&'static str, (usize, u64)> {
        let mut operators = BTreeMap::new();
        for node in &self.nodes {
            let entry: &mut (usize, u64) = operators.entry(node.op).or_default();
            *entry = (entry.0 + 1, entry.1 + node.flops);
        }
        operators
    }

    /// The inputs and outputs, with what the metadata say of them.
    fn ports(&self) -> Vec<PortRow<'_>> {
        let info = &self.model.info;
        let mut rows = port_rows("input", &self.inputs, &info.inputs);
        // Which of several outputs metadata describe does not follow from their order.
        let known = if self.outputs.len() == 1 { &info.outputs[..] } else { &[] };
        rows.extend(port_rows("output", &self.outputs, known));
        rows
    }

    /// The report's lines: a word and its meaning.
    fn summary(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("file", self.file.clone())];
        for (what, text) in [("name", &self.model.info.name), ("description", &self.model.info.description)] {
            if !text.is_empty() {
                lines.push((what, text.clone()));
            }
        }
        for PortRow { what, port, info } in self.ports() {
            lines.push((what, format!("{:?} {} {}{}", port.name, port.dims, port.dtype, described(info))));
        }
        if self.outputs.len() > 1 {
            for info in &self.model.info.outputs {
                lines.push(("metadata", format!("output {:?}{}", info.name, described(Some(info)))));
            }
        }
        for OpenExtent { name, shown, axes } in &self.open {
            let name = name.escape_debug();
            let text = format!(
                "{name} ({axes}); what follows is for {shown}, --dimension {name}=EXTENT for another"
            );
            lines.push(("open", text));
        }
        for (name, extent) in self.model.graph.dimensions() {
            lines.push(("dimension", format!("{} = {extent}", name.escape_debug())));
        }
        let memory = self.memory;
        let (parameters, stored) = (short(self.parameters as f64), bytes(self.parameter_bytes as u64));
        lines.push(("parameters", format!("{parameters} ({stored})")));
        lines.push(("operations", format!("{}FLOP a run", short(self.flops as f64))));
        lines.push(("device", self.device.clone()));
        lines.push(("steps", format!("{} for {} nodes", self.steps.len(), self.nodes.len())));
        if let Some(line) = self.on_cpu() {
            lines.push(("on the CPU", line));
        }
        let (converts, transposes) = self.conversions();
        lines.push(("conversions", format!("{converts} of layout, {transposes} of the order of axes")));
        lines.push((
            "memory",
            format!(
                "{} for values (at least {}), {} for constants",
                bytes(memory.planned),
                bytes(memory.least),
                bytes(memory.constants)
            ),
        ));
        lines
    }

    /// The nodes that the CPU computes in a session on a GPU, each with the reason, and what a run moves for them.
    fn on_cpu(&self) -> Option<String> {
        let own = self.steps.iter().filter(|step| step.source.starts_with(ON_CPU));
        let nodes: Vec<String> =
            own.map(|step| format!("{:?} ({})", step.name, &step.source[ON_CPU.len()..])).collect();
        let (down, up) = (bytes(self.memory.downloads), bytes(self.memory.uploads));
        let moved = format!("; each run downloads {down} and uploads {up} for them");
        (!nodes.is_empty()).then(|| nodes.join(", ") + &moved)
    }

    /// Steps that change a value's layout, and nodes that change the order of its axes for the file's sake.
    fn conversions(&self) -> (usize, usize) {
        let converts = self.steps.iter().filter(|step| step.op == "convert").count();
        (converts, self.model.info.transposes)
    }

    fn text(&self, all: bool) -> String {
        let mut text = String::new();
        for (what, line) in self.summary() {
            text.push_str(&format!("{what:12} {line}\n"));
        }
        let mut operators = Rows::new(["operator", "nodes", "operations"]).numbers(&[1, 2]);
        for (op, (count, flops)) in self.operators() {
            operators.add([op.to_owned(), count.to_string(), short(flops as f64)]);
        }
        text.push_str(&format!("\n{}\n", operators.text()));
        if all {
            let terminal = std::io::stdout().is_terminal();
            let heads = ["node", "operator", "output", "operations"];
            let mut nodes = Rows::new(heads).numbers(&[3]).names(&[0]);
            for node in &self.nodes {
                nodes.add([
                    node_name(&node.name, terminal),
                    node.op.to_owned(),
                    node.output.clone(),
                    short(node.flops as f64),
                ]);
            }
            let mut steps = Rows::new(["step", "kernel", "precision", "chosen by"]).names(&[0]).labels(&[1]);
            for step in &self.steps {
                let (name, precision) = (node_name(&step.name, terminal), step.precision.to_string());
                steps.add([name, step.kernel.clone(), precision, step.source.clone()]);
            }
            let [nodes, steps] = [nodes, steps].map(|table| table.text());
            text.push_str(&format!("\n{nodes}\n\n{steps}\n"));
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let none = TensorInfo::default();
        let ports = |wanted: &str| -> Vec<serde_json::Value> {
            let row = |PortRow { port, info, .. }: PortRow<'_>| {
                let info = info.unwrap_or(&none);
                json!({
                    "name": port.name, "dims": port.dims.to_string(), "dtype": port.dtype.to_string(),
                    "description": info.description, "normalisation": info.normalisation,
                    "labels": info.labels,
                })
            };
            self.ports().into_iter().filter(|row| row.what == wanted).map(row).collect()
        };
        let nodes: Vec<_> = self
            .nodes
            .iter()
            .map(|node| json!({"name": node.name, "op": node.op, "output": node.output, "flops": node.flops}))
            .collect();
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|step| {
                json!({
                    "name": step.name, "op": step.op, "kernel": step.kernel,
                    "precision": step.precision.to_string(),
                    "source": step.source, "flops": step.flops,
                })
            })
            .collect();
        let operators: BTreeMap<_, _> =
            self.operators().into_iter().map(|(op, (count, _))| (op, count)).collect();
        json!({
            "file": self.file,
            "name": self.model.info.name,
            "description": self.model.info.description,
            "inputs": ports("input"),
            "outputs": ports("output"),
            "output_metadata": self.model.info.outputs.iter().map(|info| json!({
                "name": info.name, "description": info.description,
                "normalisation": info.normalisation, "labels": info.labels,
            })).collect::<Vec<_>>(),
            "dimensions": self.model.graph.dimensions(),
            "open": self.open.iter().map(|open| (open.name.clone(), open.shown)).collect::<BTreeMap<_, _>>(),
            "operators": operators,
            "parameters": self.parameters,
            "parameter_bytes": self.parameter_bytes,
            "flops": self.flops,
            "device": self.device,
            "memory": {
                "planned": self.memory.planned, "least": self.memory.least,
                "constants": self.memory.constants,
                "downloads": self.memory.downloads, "uploads": self.memory.uploads,
            },
            "nodes": nodes,
            "steps": steps,
            "conversions": { "layout": self.conversions().0, "axes": self.conversions().1 },
        })
    }
}

/// What the metadata say of an input or output, in a line.
fn described(info: Option<&TensorInfo>) -> String {
    let Some(info) = info else { return String::new() };
    let mut text = String::new();
    if let Some((mean, deviation)) = info.normalisation.first() {
        text.push_str(&format!(", (x - {mean}) / {deviation}"));
    }
    if !info.labels.is_empty() {
        text.push_str(&format!(", {} labels", info.labels.len()));
    }
    if !info.description.is_empty() {
        text.push_str(&format!(": {}", info.description));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(1_234_567.0), "1.23 M");
        assert_eq!(short(12.0), "12");
        assert_eq!(bytes(3 << 20), "3.00 MiB");
        assert_eq!(bytes(17), "17 B");
    }
}
