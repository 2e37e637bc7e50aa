//! What each target does with an input. A panic, a time or an amount of memory beyond its bound is a finding.

use super::graph::{self, values};
use super::heap::bounded;
use diptych::{
    Backend, Caches, Context, Custom, Database, Dims, Graph, HostTensor, LoadOptions, Model, ModelFile, Node,
    Port, Precision, Session, SessionOptions, Value,
};
use diptych_device::device::cache::{CacheKey, KernelCache};
use diptych_emit::emit::opencl;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How many times its length a file may take in memory, beyond what its shapes justify.
const TIMES: u64 = 10;

/// What may be taken for any file: tables, errors' texts and the like.
const FIXED: u64 = 1 << 20;

/// What a node takes, with its names. An operator may stand for many: a recurrent one for some of each step.
const NODE: u64 = 4 << 10;

/// What no file may take beside 42 times its length, be it refused in the end: of TensorFlow Lite, whose transforms are
/// matrices, and of ONNX, whose files compute constants from shapes (`LEAST_WORK` of the loader).
const MOST: [u64; 2] = [(64 << 20) + (3 << 29), 5 << 28];

/// The largest that a network's values may be in all, for it to be run, and its sums.
const MOST_ELEMENTS: u64 = 1 << 17;
const MOST_FLOPS: u64 = 1 << 22;

/// What a run of such a network may take in memory.
const RUN_BYTES: u64 = 256 << 20;

/// Reads a TensorFlow Lite file.
pub fn tflite(bytes: &[u8]) -> Option<Graph> {
    let (graph, peak) = load(bytes, MOST[0])?;
    let (length, nodes) = (bytes.len() as u64, graph.nodes().len() as u64);
    let tensors = 4 * elements(&graph, true);
    let most = TIMES * length + 2 * tensors + NODE * nodes + FIXED;
    assert!(
        peak <= most,
        "{length} bytes took {peak}, wanted at most {most}: {tensors} of tensors, {nodes} nodes"
    );
    Some(graph)
}

/// Reads an ONNX file.
pub fn onnx(bytes: &[u8]) -> Option<Graph> {
    load(bytes, MOST[1]).map(|(graph, _)| graph)
}

/// The graph of a file, and how much memory it took to read it.
fn load(bytes: &[u8], most: u64) -> Option<(Graph, u64)> {
    let read = || Model::from_bytes(bytes, &LoadOptions::default());
    let (model, peak) = bounded(42 * bytes.len() as u64 + most, read);
    Some((model.ok()?.graph, peak))
}

/// How many elements the graph's values have, or its constants alone; as many as can be counted.
fn elements(graph: &Graph, constants: bool) -> u64 {
    let nodes = graph.nodes().iter();
    let of_nodes =
        nodes.flat_map(|node| node.inputs().iter().map(|&(_, value)| value).chain(node.outputs().to_vec()));
    let all: BTreeSet<Value> =
        of_nodes.chain(graph.inputs().to_vec()).chain(graph.outputs().to_vec()).collect();
    let counted = all.into_iter().filter(|&value| !constants || matches!(graph.tensor(value), Ok(Some(_))));
    counted.fold(0u64, |sum, value| {
        sum.saturating_add(graph.dims(value).map_or(u64::MAX, |dims| dims.elements() as u64))
    })
}

/// Reads a TensorFlow Lite file, and runs what it holds.
pub fn run_tflite(bytes: &[u8]) {
    tflite(bytes).map(|graph| run(&graph));
}

/// Reads an ONNX file, and runs what it holds.
pub fn run_onnx(bytes: &[u8]) {
    onnx(bytes).map(|graph| run(&graph));
}

/// Extents that runs of one session have, turn by turn: the last are the first ones again.
const TURNS: usize = 4;

/// Opens an ONNX file whose extents each run decides, and runs it at several extents in one session: what it gives at
/// those of the first run again, it gave then. Caches that the file has are kept, too. Whether it ran, and whether with
/// caches that several runs have filled.
pub fn open_onnx(bytes: &[u8]) -> [bool; 2] {
    let most = 42 * bytes.len() as u64 + MOST[1];
    let (ran, _) = bounded(most + RUN_BYTES, || run_open(bytes));
    ran
}

fn run_open(bytes: &[u8]) -> [bool; 2] {
    let Ok(file) = ModelFile::from_bytes(bytes, &LoadOptions::default()) else { return [false; 2] };
    let Ok(context) = Context::new(Backend::Cpu) else { return [false; 2] };
    let seed = bytes.iter().fold(17usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    let pairs = file.cache_pairs();
    let (mut ran, mut kept) = (false, false);
    for keeps in [false, !pairs.is_empty()] {
        let Ok(mut session) = file.session(&context, SessionOptions::default()) else { return [ran, kept] };
        if keeps && session.cache(&Caches::new(&pairs, 9)).is_err() {
            continue;
        }
        let mut first = None;
        for turn in 0..TURNS {
            let turn = if turn + 1 == TURNS { 0 } else { turn };
            if turn == 0 && session.reset().is_err() {
                break;
            }
            let filled = keeps.then(|| session.cached());
            let one = |name: &str, past: usize| match filled {
                Some(_) if name.contains("batch") => 1 + seed % 2,
                Some(_) if name.contains("past") => past,
                Some(1..) => 1,
                _ => 1 + (seed / (7 * turn + 1) + name.len() * (turn + 3)) % 5,
            };
            // A mask has a place for each of the past and of the run.
            let of = |past: usize| -> BTreeMap<String, usize> {
                let extent = |name: &str| name.split(" + ").map(|name| one(name, past)).sum();
                let names = file.inputs().into_iter().flat_map(|input| input.open);
                names.map(|open| (open.name.clone(), extent(&open.name))).collect()
            };
            // What is small can be run; what wants values is refused here.
            let past = filled.unwrap_or(0);
            let (dimensions, longer) = (of(past), of(past.max(1)));
            if !file.model(&longer).is_ok_and(|model| is_small(&model.graph)) {
                continue;
            }
            let tensor = |port: &Port| {
                let mut extents = port.dims.extents().to_vec();
                for open in &port.open {
                    *extents.get_mut(open.axis)? = *dimensions.get(&open.name)?;
                }
                let dims = Dims::new(&extents).ok()?;
                let mut numbers = values(dims.elements());
                if !port.dtype.is_float() {
                    numbers.iter_mut().for_each(|value| *value = (3.0 * value.abs()).floor().min(3.0));
                }
                Some((port.name.clone(), HostTensor::new(dims, numbers).ok()?))
            };
            let given: Vec<(String, HostTensor)> = session.inputs().iter().filter_map(tensor).collect();
            let given: Vec<(&str, &HostTensor)> =
                given.iter().map(|(name, it)| (name.as_str(), it)).collect();
            let Ok(outputs) = session.run(&given) else { continue };
            ran |= !keeps || session.cached() > 0;
            kept |= session.cached() > 1;
            let bits = |value: &f32| if value.is_nan() { u32::MAX } else { value.to_bits() };
            let found: Vec<(Dims, Vec<u32>)> = outputs
                .iter()
                .map(|output| (output.dims(), output.to_f32().iter().map(bits).collect()))
                .collect();
            if turn == 0 {
                let wanted = first.get_or_insert_with(|| found.clone());
                assert_eq!(*wanted, found, "the first extents again");
            }
        }
    }
    [ran, kept]
}

/// Builds the graph that the bytes describe, and runs it.
pub fn build_and_run(bytes: &[u8]) {
    let graph = graph::graph(bytes);
    let _ = graph.with_batch(2);
    run(&graph);
}

/// Whether the network is small enough to be run often.
pub fn is_small(graph: &Graph) -> bool {
    elements(graph, false) <= MOST_ELEMENTS
        && graph.flops().is_ok_and(|flops| flops <= MOST_FLOPS)
        && !graph.nodes().iter().any(|node| turns(graph, node))
}

/// Whether a node runs others until a value says that it is enough: of some files that is never.
fn turns(graph: &Graph, node: &Node) -> bool {
    let op = graph.op(node, Precision::F32);
    op.is_ok_and(|op| op.is_some_and(|op| op.problem_key().starts_with("loop ")))
}

/// Runs a small network on the CPU twice; gives whether it ran.
pub fn run(graph: &Graph) -> bool {
    if !is_small(graph) {
        return false;
    }
    let (ran, _) = bounded(RUN_BYTES, || run_twice(graph));
    ran
}

fn run_twice(graph: &Graph) -> bool {
    let Ok(context) = Context::new(Backend::Cpu) else { return false };
    let Ok(mut session) = Session::new(&context, graph, SessionOptions::default()) else { return false };
    let inputs: Vec<(String, HostTensor)> = session
        .inputs()
        .iter()
        .filter_map(|port| {
            let tensor = HostTensor::new(port.dims, values(port.dims.elements())).ok()?;
            Some((port.name.clone(), tensor))
        })
        .collect();
    let inputs: Vec<(&str, &HostTensor)> =
        inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let first = session.run(&inputs);
    if let Ok(outputs) = &first {
        for (port, output) in session.outputs().iter().zip(outputs) {
            assert_eq!(port.dims, output.dims(), "of {}", port.name);
        }
    }
    let reset = session.reset();
    let second = session.run(&inputs);
    match (first, second) {
        (Ok(first), Ok(second)) if reset.is_ok() => {
            let bits = |outputs: &[HostTensor]| -> Vec<u32> {
                let values = outputs.iter().flat_map(|output| output.to_f32().to_vec());
                values.map(|value| if value.is_nan() { u32::MAX } else { value.to_bits() }).collect()
            };
            assert_eq!(bits(&first), bits(&second), "two runs of the same inputs");
            true
        }
        (first, second) => {
            assert_eq!(first.is_ok(), second.is_ok(), "two runs of the same inputs");
            false
        }
    }
}

/// Reads a record of the tuner; what is kept of it is read as it was written.
pub fn record(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (database, _) = bounded(64 * text.len() as u64 + FIXED, || Database::from_text(&text));
    let Ok(kept) = database.text() else { return };
    let again = Database::from_text(&kept);
    assert_eq!(database.len(), again.len(), "rows of {kept:?}");
    assert_eq!(again.text().ok(), Some(kept), "a record of what was kept");
    for row in database.rows().take(16) {
        assert_eq!(database.get(&row.key).map(|found| &found.key), Some(&row.key));
        let _ = row.key.choice.resolve(&row.key.problem.op);
        let _ = database.tried(&row.key.device, &row.key.problem).count();
        let _ = database.relatives(&row.key.device, &row.key.problem);
    }
    let _ = database.family_tables("note").text();
    let mut merged = again;
    merged.merge(&database, diptych::internals::tune::db::MergePolicy::default());
    assert_eq!(merged.len(), database.len(), "merged with itself");
}

/// Reads a kept kernel of the cache in `folder`, whose file the bytes are, and keeps it anew.
pub fn cache(folder: &Path, bytes: &[u8]) {
    let key = CacheKey::of(&["device", "driver", "text"]);
    let cache = KernelCache::within(folder);
    let whole = &b"what a driver gave"[..];
    cache.put(key, whole);
    assert_eq!(cache.get(key).as_deref(), Some(whole), "what was kept");
    let mut kept = std::fs::read_dir(folder.join("kernels")).into_iter().flatten().flatten();
    let Some(path) = kept.next().map(|entry| entry.path()) else { return };
    let Ok(valid) = std::fs::read(&path) else { return };
    if std::fs::write(&path, bytes).is_err() {
        return;
    }
    let (found, _) = bounded(4 * bytes.len() as u64 + FIXED, || cache.get(key));
    assert_eq!(found.as_deref(), (bytes == valid).then_some(whole), "of {}", bytes.escape_ascii());
}

/// Reads a shader of an application's, and prints it in OpenCL C in every way.
pub fn shader(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let checked = opencl::Options::checked();
    let (custom, _) = bounded((4096 * text.len() as u64) + 16 * FIXED, || Custom::new("shader", text));
    if let Ok(custom) = custom {
        let mut graph = Graph::new();
        if let Ok(x) = graph.input("x", diptych::Shape::nhwc(1, 2, 2, 4)) {
            let _ = graph.custom("shader", &custom, &[x]);
        }
    }
    for entry in entries(text).take(4) {
        for options in [
            checked,
            opencl::Options { checked: false, ..checked },
            opencl::Options { halves: true, fixed_work_group: false, ..checked },
        ] {
            if let Ok(printed) = opencl::print("shader", text, entry, options) {
                assert!(printed.text.contains("kernel"), "{}", printed.text);
            }
        }
    }
}

/// The names behind `fn`.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("fn ").filter_map(|(at, _)| {
        let rest = &text[at + 3..];
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
    })
}
