//! Runs of which every value is kept, parts of graphs, and runs that are repeated from a file.

use crate::machine::{everywhere, noise};
use diptych::{
    Activation, Backend, Context, Conv2d, Dim, Extras, Function, Graph, HostTensor, Padding, Precision,
    Reduction, Session, SessionOptions, Shape, Softmax, Value,
};

const IMAGE: Shape = Shape::nhwc(1, 9, 10, 3);

/// A convolution, a function of it, two parts of that and their sum, a mean, a softmax.
fn network() -> (Graph, Vec<Value>) {
    let mut graph = Graph::new();
    let x = graph.input("x", IMAGE).expect("an input");
    let options = Conv2d { padding: Padding::Same, activation: Activation::Relu6, ..Default::default() };
    let weights = noise(Shape::nhwc(6, 3, 3, 3), 2);
    let map = graph.conv2d("map", x, weights, Extras::default(), options).expect("a convolution");
    let rows = graph.reshape("rows", map, &[Dim::Fixed(2), Dim::Fixed(270)]).expect("as many");
    let halves: Vec<Value> = (0..2)
        .map(|half| graph.slice(&format!("half {half}"), rows, 0, half..half + 1).expect("a slice"))
        .collect();
    let sum = graph.elementwise("sum", Function::Add, &[halves[0].into(), halves[1].into()]).expect("a sum");
    let mean = graph.reduce("mean", map, Reduction::Mean, &[1, 2], false).expect("a mean");
    let parts = graph.softmax("parts", mean, Softmax { axis: -1, ..Default::default() }).expect("a softmax");
    for output in [sum, parts] {
        graph.output(output).expect("an output");
    }
    (graph, vec![x, map, sum, mean, parts])
}

#[test]
fn every_step_is_within_its_bound_on_every_backend() {
    let (graph, values) = network();
    let x = noise(IMAGE, 1);
    let mut first: Option<Vec<HostTensor>> = None;
    for context in everywhere() {
        for precision in [Precision::F32, Precision::F16Storage] {
            let options = SessionOptions { precision, ..Default::default() };
            let run = Session::observe(&context, &graph, &options, &[("x", &x)]).expect("a run");
            let what = format!("{} {precision}", context.info());
            let names: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
            assert_eq!(names, ["map", "sum", "mean", "parts"], "{what}");
            for step in &run.steps {
                let deviation = step.deviation.as_ref().unwrap_or_else(|why| panic!("{what}: {why}"));
                assert!(
                    deviation.ratio() <= 1.0 && deviation.beyond == 0,
                    "{what} {}: {deviation:?}",
                    step.name
                );
                let on_cpu = context.info().backend == Backend::Cpu;
                assert_eq!(step.texts.is_none(), on_cpu, "{what} {}", step.name);
                if let Some(texts) = &step.texts {
                    assert!(texts.wgsl.contains("@compute") && texts.opencl.contains("__kernel"), "{what}");
                    assert!(step.kernel.starts_with(step.op) && texts.grid[0] > 0, "{what}");
                }
            }
            let found: Vec<HostTensor> = values.iter().map(|value| run.values[value].clone()).collect();
            let tolerance = if precision == Precision::F32 { 1e-5 } else { 4e-3 };
            for (found, wanted) in found.iter().zip(first.get_or_insert_with(|| found.clone())) {
                for (found, wanted) in found.to_nhwc().iter().zip(wanted.to_nhwc().iter()) {
                    assert!((found - wanted).abs() <= tolerance * wanted.abs().max(1.0), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_part_of_a_graph_computes_the_same() {
    let (graph, values) = network();
    let &[_, map, sum, mean, _] = &values[..] else { panic!("five values") };
    let cpu = Context::new(Backend::Cpu).expect("the CPU");
    let x = noise(IMAGE, 1);
    let run = Session::observe(&cpu, &graph, &SessionOptions::default(), &[("x", &x)]).expect("a run");
    let part = graph.part(&[map], &[mean, sum]).expect("a part");
    let nodes: Vec<&str> = part.nodes().iter().map(|node| node.name()).collect();
    assert_eq!(nodes, ["rows", "half 0", "half 1", "sum", "mean"]);
    let name = format!("value {}", map.index());
    let mut session = Session::new(&cpu, &part, SessionOptions::default()).expect("a session");
    let found = session.run(&[(&name, &run.values[&map])]).expect("a run");
    for (found, value) in found.iter().zip([mean, sum]) {
        assert_eq!(found.to_nhwc(), run.values[&value].to_nhwc());
    }
    let error = graph.part(&[mean], &[sum]).expect_err("an input is missing");
    assert!(error.to_string().contains("\"x\""), "{error}");
}

#[cfg(feature = "cli")]
mod commands {
    use crate::machine::small_network;
    use diptych::{Model, Weights, with_random_weights};
    use std::path::Path;
    use std::process::{Command, Output};

    const KEY: &str = "diptych.replay";

    fn diptych(words: &[&str], file: &Path) -> Output {
        let command = Command::new(env!("CARGO_BIN_EXE_diptych")).args(words).arg(file).output();
        command.expect("the program starts")
    }

    /// One run of the model on the CPU that is kept in `file`.
    fn kept(model: &Path, words: &[&str], file: &Path) -> Output {
        let model = model.to_str().expect("a path");
        diptych(
            &[&["run", model, "--backend", "cpu", "--runs", "1"][..], words, &["--replay-out"]].concat(),
            file,
        )
    }

    fn record(model: &Path, words: &[&str], file: &Path) {
        let output = kept(model, words, file);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// What `diptych replay` prints, and whether it succeeds.
    fn replay(file: &Path) -> (bool, String) {
        let output = diptych(&["replay", "--backend", "cpu"], file);
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.success(), text.concat())
    }

    /// The file with other metadata.
    fn rewrite(file: &Path, change: impl Fn(&str) -> String) {
        let bytes = std::fs::read(file).expect("the file");
        let length = u64::from_le_bytes(*bytes.first_chunk().expect("a length")) as usize;
        let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).expect("a header");
        let saved = header["__metadata__"][KEY].as_str().expect("metadata").to_owned();
        header["__metadata__"][KEY] = change(&saved).into();
        let header = header.to_string();
        let parts = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes[8 + length..]];
        std::fs::write(file, parts.concat()).expect("written");
    }

    #[test]
    fn a_run_is_repeated_from_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("run.safetensors");
        record(&small_network(folder.path()), &[], &file);
        let (fine, text) = replay(&file);
        assert!(fine && text.contains("0.00e0") && text.contains(" 0 of "), "{text}");
        // A step that was off where the run was recorded, and what its result was there.
        let saved = Weights::open(&file).expect("safetensors").metadata()[KEY].clone();
        let saved: serde_json::Value = serde_json::from_str(&saved).expect("JSON");
        let step = &saved["steps"][3];
        rewrite(&file, |_| {
            let mut saved = saved.clone();
            saved["steps"][3]["beyond"] = true.into();
            saved["steps"][3]["deviation"] = "7.5 of the bound".into();
            saved.to_string()
        });
        let (fine, text) = replay(&file);
        let name = step["name"].as_str().expect("a name");
        assert!(!fine && text.contains(&format!("the results part at {name:?}")), "{text}");
        assert!(text.contains("is off by 7.5 of the bound"), "{text}");
        let place = step["writes"][0].as_u64().expect("a value");
        let tensor = Weights::open(&file)
            .expect("safetensors")
            .bytes(&format!("value/{place}"))
            .expect("a tensor")
            .to_vec();
        let mut bytes = std::fs::read(&file).expect("the file");
        let at = bytes.windows(64).rposition(|part| part == &tensor[..64]).expect("the tensor");
        bytes[at..at + 4].copy_from_slice(&1e6f32.to_le_bytes());
        std::fs::write(&file, bytes).expect("written");
        let (_, text) = replay(&file);
        assert!(text.contains("1.00e6"), "{text}");
    }

    /// A field of a protocol buffer's message.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    /// An ONNX model of one node: the product of the inputs `x` and `k` of two elements.
    fn product() -> Vec<u8> {
        let number = |number: u8, value: u8| vec![number << 3, value];
        let port = |name: &[u8]| {
            let shape = field(1, &number(1, 2));
            let tensor = field(1, &[number(1, 1), field(2, &shape)].concat());
            [field(1, name), field(2, &tensor)].concat()
        };
        let node = [field(1, b"x"), field(1, b"k"), field(2, b"y"), field(4, b"Mul")].concat();
        let graph = [
            field(1, &node),
            field(2, b"graph"),
            field(11, &port(b"x")),
            field(11, &port(b"k")),
            field(12, &port(b"y")),
        ];
        [number(1, 8), field(7, &graph.concat()), field(8, &number(2, 13))].concat()
    }

    #[test]
    fn what_was_known_is_known_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let [model, file] = ["product.onnx", "run"].map(|name| folder.path().join(name));
        std::fs::write(&model, product()).expect("written");
        let model = model.to_str().expect("a path");
        // JSON has no such number.
        let words = ["run", model, "--backend", "cpu", "--runs", "1", "--value", "k=inf,2", "--replay-out"];
        let output = diptych(&words, &file);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let kept = Weights::open(&file).expect("safetensors");
        assert_eq!(kept.get("known/k").expect("a tensor").to_nhwc()[..], [f32::INFINITY, 2.0]);
        let (fine, text) = replay(&file);
        assert!(fine && text.contains(" y ") && text.contains("0.00e0"), "{text}");
    }

    #[test]
    fn one_step_is_repeated_with_what_it_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let [all, one] = ["all", "one"].map(|name| folder.path().join(name));
        let model = small_network(folder.path());
        record(&model, &[], &all);
        let saved = Weights::open(&all).expect("safetensors").metadata()[KEY].clone();
        let saved: serde_json::Value = serde_json::from_str(&saved).expect("JSON");
        let name = saved["steps"][5]["name"].as_str().expect("a name");
        record(&model, &["--replay-node", name], &one);
        let values = Weights::open(&one)
            .expect("safetensors")
            .names()
            .filter(|name| name.starts_with("value/"))
            .count();
        assert_eq!(values, 2);
        let (fine, text) = replay(&one);
        assert!(fine && text.contains("0.00e0") && text.contains("1 steps, 0 of 1"), "{text}");
        let missing = kept(&model, &["--replay-node", "none"], &one);
        let text = String::from_utf8_lossy(&missing.stderr).into_owned();
        assert!(!missing.status.success() && text.contains("found no step \"none\""), "{text}");
    }

    #[test]
    fn a_file_without_the_models_weights_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("run.safetensors");
        let model = small_network(folder.path());
        record(&model, &["--random-weights"], &file);
        let own = std::fs::read(model).expect("the model");
        let kept = Weights::open(&file).expect("safetensors").bytes("model").expect("a model").to_vec();
        assert_eq!(kept, with_random_weights(&own, 0).expect("other weights"));
        assert_eq!(kept.len(), own.len());
        let [kept, own] =
            [kept, own].map(|bytes| Model::from_bytes(&bytes, &Default::default()).expect("a model"));
        let mut compared = 0;
        for (kept_node, node) in kept.graph.nodes().iter().zip(own.graph.nodes()) {
            for (&(_, kept_value), &(_, value)) in kept_node.inputs().iter().zip(node.inputs()) {
                let tensors = [(&kept, kept_value), (&own, value)]
                    .map(|(model, value)| model.graph.tensor(value).expect("a value"));
                let [Some(kept_tensor), Some(tensor)] = tensors else { continue };
                if tensor.dims().elements() < 8 {
                    continue;
                }
                let (one, other) = (kept_tensor.to_nhwc(), tensor.to_nhwc());
                let same = one.iter().zip(other.iter()).filter(|(one, other)| one == other).count();
                assert!(
                    same * 10 < one.len(),
                    "{}: {same} of {} weights are the model's",
                    node.name(),
                    one.len()
                );
                compared += 1;
            }
        }
        assert!(compared > 20, "{compared} constants");
        let (fine, text) = replay(&file);
        assert!(fine && text.contains("with random weights"), "{text}");
    }

    #[test]
    fn what_is_no_replay_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("run.safetensors");
        std::fs::write(&file, b"nothing").expect("written");
        let (fine, text) = replay(&file);
        assert!(!fine && text.contains("wanted a header"), "{text}");
        let header = br#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
        std::fs::write(&file, [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat())
            .expect("written");
        let (fine, text) = replay(&file);
        assert!(!fine && text.contains("run --replay-out writes"), "{text}");
        record(&small_network(folder.path()), &[], &file);
        rewrite(&file, |_| r#"{"format":3}"#.to_owned());
        let (fine, text) = replay(&file);
        assert!(!fine && text.contains("found format 3, wanted 2"), "{text}");
    }
}
