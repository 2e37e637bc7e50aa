//! Files that are not what they should be, and what the loader makes of small ones.

mod attention;
mod bytes;
mod control;
mod operators;
mod orders;
mod random;
mod without_elements;
mod writer;

use crate::error::Error;
use crate::host::HostTensor;
use diptych::Session;
use diptych::SessionOptions;
use diptych::{Backend, Context};
use diptych::{LoadOptions, Model};
use writer::{Attribute, File, Node, external, floats, integers};

fn refused(bytes: &[u8]) -> String {
    match Model::from_bytes(bytes, &LoadOptions::default()) {
        Err(Error::Model { message, .. }) => message,
        Err(other) => other.to_string(),
        Ok(model) => panic!("taken: {:?}", model.outputs),
    }
}

/// What the outputs of a file are for one input.
fn run(file: &File<'_>, input: &HostTensor) -> Vec<HostTensor> {
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &model.graph, SessionOptions::default()).expect("a session");
    session.run(&[("x", input)]).expect("a run")
}

/// What the outputs of a file without inputs are.
fn computed(file: &File<'_>) -> Vec<HostTensor> {
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &model.graph, SessionOptions::default()).expect("a session");
    session.run(&[]).expect("a run")
}

fn tensor(extents: &[usize], values: Vec<f32>) -> HostTensor {
    HostTensor::new(crate::dims::Dims::new(extents).expect("small"), values).expect("as many")
}

/// A convolution whose normalisation, factor and summand are taken into its weights.
fn normalised() -> File<'static> {
    File {
        inputs: vec![("x", vec![1, 1, 2, 2])],
        outputs: vec!["y"],
        constants: vec![
            floats("w", &[2, 1, 1, 1], &[1.0, 2.0]),
            floats("scale", &[2], &[2.0, 3.0]),
            floats("bias", &[2], &[1.0, -1.0]),
            floats("mean", &[2], &[0.5, 0.0]),
            floats("variance", &[2], &[4.0, 1.0]),
            floats("more", &[1, 2, 1, 1], &[10.0, 20.0]),
        ],
        nodes: vec![
            Node::new("Conv", &["x", "w"], &["a"]),
            Node {
                attributes: vec![Attribute::Float("epsilon", 0.0)],
                ..Node::new("BatchNormalization", &["a", "scale", "bias", "mean", "variance"], &["b"])
            },
            Node::new("Add", &["b", "more"], &["y"]),
        ],
        ..File::default()
    }
}

#[test]
fn what_follows_a_convolution_per_channel_is_taken_into_its_weights() {
    let file = normalised();
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
    let ops: Vec<&str> = model.graph.nodes().iter().map(|node| node.operator().name()).collect();
    // The file's order of axes at both ends.
    assert_eq!(ops, ["transpose", "pointwise", "transpose"]);
    let found = run(&file, &tensor(&[1, 1, 2, 2], vec![0.0, 1.0, 2.0, 3.0]));
    // (x - 1/2) / 2 * 2 + 1 + 10, and 2 x * 3 - 1 + 20.
    assert_eq!(*found[0].to_f32(), [10.5, 11.5, 12.5, 13.5, 19.0, 25.0, 31.0, 37.0]);
}

#[test]
fn shapes_are_worked_out_while_the_file_is_read() {
    let file = File {
        inputs: vec![("x", vec![2, 3, 4])],
        outputs: vec!["y"],
        constants: vec![
            integers("one", &[], &[1]),
            integers("rest", &[1], &[-1]),
            integers("axis", &[1], &[0]),
        ],
        nodes: vec![
            Node::new("Shape", &["x"], &["shape"]),
            Node {
                attributes: vec![Attribute::Int("axis", 0)],
                ..Node::new("Gather", &["shape", "one"], &["extent"])
            },
            Node::new("Unsqueeze", &["extent", "axis"], &["list"]),
            Node {
                attributes: vec![Attribute::Int("axis", 0)],
                ..Node::new("Concat", &["list", "rest"], &["target"])
            },
            Node::new("Reshape", &["x", "target"], &["y"]),
        ],
        ..File::default()
    };
    let found = run(&file, &tensor(&[2, 3, 4], (0..24).map(|value| value as f32).collect()));
    assert_eq!(found[0].dims().extents(), [3, 8]);
}

#[test]
fn what_a_file_says_of_itself_is_kept() {
    let mut bytes = normalised().bytes();
    // A producer, a domain, a version, a property, and one that is cut short.
    bytes.extend(b"\x12\x02me\x22\x02ai\x28\x07\x72\x06\x0a\x01k\x12\x01v\x72\x02\x0a\x05");
    let info = Model::from_bytes(&bytes, &LoadOptions::default()).expect("a file that is read").info;
    assert_eq!((info.producer.as_str(), info.domain.as_str(), info.version), ("me", "ai", 7));
    assert_eq!(info.properties, [("k".to_owned(), "v".to_owned())].into());
    let file = diptych::ModelFile::from_bytes(bytes, &LoadOptions::default()).expect("a file that is read");
    assert_eq!((file.info().version, &file.info().properties), (7, &info.properties));
}

#[test]
fn operators_that_are_not_supported_are_reported_all_at_once() {
    let file = File {
        inputs: vec![("x", vec![1])],
        outputs: vec!["y"],
        nodes: vec![
            Node::new("StringNormalizer", &["x"], &["a"]),
            Node::new("NonMaxSuppressionX", &["a"], &["b"]),
            Node::new("StringNormalizer", &["b"], &["y"]),
        ],
        ..File::default()
    };
    let told = refused(&file.bytes());
    assert!(
        told.contains("StringNormalizer (2, first op 0)") && told.contains("NonMaxSuppressionX (1, op 1)"),
        "{told}"
    );
}

#[test]
fn an_open_extent_is_wanted_by_name() {
    let mut file = normalised();
    file.open = vec![("x", 2, "height"), ("x", 3, "width")];
    assert!(refused(&file.bytes()).contains("\"height\""));
    let dimensions = [("height".to_owned(), 3), ("x.3".to_owned(), 5)].into();
    let options = LoadOptions { dimensions, ..LoadOptions::default() };
    let model = Model::from_bytes(&file.bytes(), &options).expect("both extents are given");
    assert_eq!(model.outputs[0].dims.extents(), [1, 2, 3, 5]);
    let options = LoadOptions { dimensions: [("depth".to_owned(), 3)].into(), ..LoadOptions::default() };
    assert!(Model::from_bytes(&file.bytes(), &options).is_err());
}

#[test]
fn every_cut_and_every_changed_byte_is_survived() {
    let bytes = normalised().bytes();
    for length in 0..bytes.len() {
        let _ = Model::from_bytes(&bytes[..length], &LoadOptions::default());
    }
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 0x10] {
            let mut changed = bytes.clone();
            changed[at] = value;
            let _ = diptych::onnx::from_bytes(&changed);
        }
    }
}

#[test]
fn a_small_file_cannot_ask_for_much() {
    let huge = 1 << 20;
    for file in [
        File {
            inputs: vec![("x", vec![1])],
            outputs: vec!["y"],
            constants: vec![integers("shape", &[3], &[1 << 10, 1 << 10, 1 << 10])],
            nodes: vec![
                Node::new("ConstantOfShape", &["shape"], &["a"]),
                Node::new("Add", &["a", "x"], &["y"]),
            ],
            ..File::default()
        },
        File {
            inputs: vec![("x", vec![1])],
            outputs: vec!["y"],
            constants: vec![
                integers("zero", &[], &[0]),
                integers("end", &[], &[huge * huge]),
                integers("one", &[], &[1]),
            ],
            nodes: vec![Node::new("Range", &["zero", "end", "one"], &["y"])],
            ..File::default()
        },
        File {
            inputs: vec![("x", vec![1])],
            outputs: vec!["y"],
            nodes: vec![Node::new("Relu", &["y"], &["y"])],
            ..File::default()
        },
        File {
            inputs: vec![("x", vec![1])],
            outputs: vec!["z"],
            nodes: vec![Node::new("Relu", &["x"], &["y"])],
            ..File::default()
        },
        File {
            inputs: vec![("x", vec![1]), ("x", vec![1])],
            outputs: vec!["y"],
            nodes: vec![Node::new("Relu", &["x"], &["y"])],
            ..File::default()
        },
    ] {
        assert!(!refused(&file.bytes()).is_empty());
    }
    // Graphs in each other without end.
    let mut body = Vec::new();
    for _ in 0..64 {
        body = writer::nested(&body);
    }
    assert!(refused(&writer::model(&body)).contains("deep in each other"));
}

#[test]
fn data_outside_of_the_models_folder_are_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("model");
    std::fs::create_dir(&inner).expect("a folder");
    let secret: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(folder.path().join("secret"), &secret).expect("a file");
    std::fs::write(inner.join("weights"), &secret).expect("a file");
    let absolute = folder.path().join("secret").display().to_string();
    let mut places = vec![
        ("weights", true),
        ("../secret", false),
        (absolute.as_str(), false),
        ("", false),
        ("missing", false),
    ];
    if cfg!(unix) {
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("secret"), inner.join("link")).expect("a link");
        places.push(("link", false));
    }
    for (place, taken) in places {
        let file = File {
            inputs: vec![("x", vec![2])],
            outputs: vec!["y"],
            constants: vec![external("w", &[2], place)],
            nodes: vec![Node::new("Add", &["x", "w"], &["y"])],
            ..File::default()
        };
        let path = inner.join("model.onnx");
        std::fs::write(&path, file.bytes()).expect("a file");
        let found = Model::load(&path, &LoadOptions::default());
        assert_eq!(found.is_ok(), taken, "{place:?}: {found:?}");
        assert!(Model::from_bytes(&file.bytes(), &LoadOptions::default()).is_err(), "{place:?} in memory");
    }
}

/// A file that adds constants of a file beside it to its input.
fn with_data(place: &'static str) -> Vec<u8> {
    File {
        inputs: vec![("x", vec![2])],
        outputs: vec!["y"],
        constants: vec![external("w", &[2], place)],
        nodes: vec![Node::new("Add", &["x", "w"], &["y"])],
        ..File::default()
    }
    .bytes()
}

/// Each constant is read from its own file, whatever was read before, and another length than its extents want is refused.
#[test]
fn constants_of_several_files_are_read_in_any_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.onnx");
    let places = ["one", "two", "one", "three", "two"];
    for (index, place) in ["one", "two", "three"].into_iter().enumerate() {
        let values = [1.0f32, 10.0].map(|value| value * 100f32.powi(index as i32));
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        std::fs::write(folder.path().join(place), bytes).expect("a file");
    }
    let names = ["a", "b", "c", "d", "e"];
    let constants = names.iter().zip(places).map(|(name, place)| external(name, &[2], place)).collect();
    let sums = [["x", "a", "s1"], ["s1", "b", "s2"], ["s2", "c", "s3"], ["s3", "d", "s4"], ["s4", "e", "y"]];
    let nodes = sums.iter().map(|[a, b, y]| Node::new("Add", &[a, b], &[y])).collect();
    let file = File { inputs: vec![("x", vec![2])], outputs: vec!["y"], constants, nodes, ..File::default() };
    std::fs::write(&path, file.bytes()).expect("a file");
    let model = Model::load(&path, &LoadOptions::default()).expect("a model");
    let context = diptych::Context::new(diptych::Backend::Cpu).expect("the CPU");
    let mut session =
        diptych::Session::new(&context, &model.graph, diptych::SessionOptions::default()).expect("a session");
    let x = diptych::HostTensor::new(diptych::Dims::new(&[2]).expect("small"), vec![0.5, 0.25]).expect("two");
    let found = session.run(&[("x", &x)]).expect("a run");
    assert_eq!(*found[0].to_f32(), [10202.5, 102_020.25]);
    std::fs::write(folder.path().join("two"), [0; 4]).expect("a file");
    let error = Model::load(&path, &LoadOptions::default()).expect_err("too short").to_string();
    assert!(error.contains("found 4 bytes"), "{error}");
}

/// A model in memory takes what it keeps in other files from the options, and one that is too short is refused.
#[test]
fn weights_in_other_files_come_with_a_model_in_memory() {
    let with = |name: &str, values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        LoadOptions { files: [(name.to_owned(), bytes.into())].into(), ..Default::default() }
    };
    let file = with_data("weights");
    let found = diptych::ModelFile::from_bytes(file.clone(), &with("weights", &[1.0, 2.0]));
    assert!(found.is_ok(), "{found:?}");
    assert!(Model::from_bytes(&file, &with("weights", &[1.0, 2.0])).is_ok());
    for (options, says) in [
        (with("weights", &[1.0]), "found 4 bytes"),
        (with("other", &[1.0, 2.0]), "or the file by LoadOptions::files"),
    ] {
        let error = Model::from_bytes(&file, &options).expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// The hub's cache: `REPOSITORY/snapshots/REVISION` has links to `REPOSITORY/blobs`.
#[cfg(unix)]
#[test]
fn weights_of_the_hubs_cache_are_read_and_nothing_else_behind_links() {
    use std::os::unix::fs::symlink;
    let cache = tempfile::tempdir().expect("a folder");
    let make = |path: &std::path::Path| std::fs::create_dir_all(path).expect("a folder");
    let [repository, other] = ["models--a--b", "models--c--d"].map(|name| cache.path().join(name));
    let (blobs, revision) = (repository.join("blobs"), repository.join("snapshots").join("1f2e"));
    for path in [&blobs.join("inner"), &revision.join("onnx"), &other.join("blobs")] {
        make(path);
    }
    let weights: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    for path in [
        blobs.join("77aa"),
        blobs.join("inner").join("77aa"),
        other.join("blobs").join("77aa"),
        cache.path().join("secret"),
    ] {
        std::fs::write(path, &weights).expect("weights");
    }
    symlink(cache.path().join("secret"), blobs.join("moved")).expect("a link");
    // A link, and whether a model that is a link into the blobs reads it.
    for (target, taken) in [
        ("../../blobs/77aa", true),
        ("../../blobs/inner/77aa", false),
        ("../../blobs/moved", false),
        ("../../../models--c--d/blobs/77aa", false),
        ("../../../secret", false),
    ] {
        let data = revision.join("model.onnx_data");
        let _ = std::fs::remove_file(&data);
        symlink(target, &data).expect("a link");
        std::fs::write(blobs.join("00ff"), with_data("model.onnx_data")).expect("a model");
        let model = revision.join("model.onnx");
        for linked in [true, false] {
            let _ = std::fs::remove_file(&model);
            match linked {
                true => symlink("../../blobs/00ff", &model).expect("a link"),
                false => std::fs::write(&model, with_data("model.onnx_data")).expect("a model"),
            }
            let found = Model::load(&model, &LoadOptions::default());
            assert_eq!(found.is_ok(), taken && linked, "{target} {linked}: {found:?}");
        }
    }
    // In a folder of the snapshot.
    symlink("../../../blobs/77aa", revision.join("onnx").join("model.onnx_data")).expect("a link");
    symlink("../../../blobs/00ff", revision.join("onnx").join("model.onnx")).expect("a link");
    Model::load(revision.join("onnx").join("model.onnx"), &LoadOptions::default())
        .expect("a model of the hub");
    // A folder of that name alone is no cache.
    let plain = cache.path().join("plain");
    make(&plain);
    symlink("../models--a--b/blobs/00ff", plain.join("model.onnx")).expect("a link");
    symlink("../models--a--b/blobs/77aa", plain.join("model.onnx_data")).expect("a link");
    Model::load(plain.join("model.onnx"), &LoadOptions::default()).expect_err("no snapshot");
}

#[test]
fn nodes_lie_in_any_order() {
    let mut file = normalised();
    let wanted = run(&file, &tensor(&[1, 1, 2, 2], vec![0.0, 1.0, 2.0, 3.0]));
    file.nodes.reverse();
    let found = run(&file, &tensor(&[1, 1, 2, 2], vec![0.0, 1.0, 2.0, 3.0]));
    assert_eq!(found[0].to_f32(), wanted[0].to_f32());
    // An operator is named by its place in the file.
    file.nodes[0].op = "Nothing";
    let told = refused(&file.bytes());
    assert!(told.contains("Nothing (1, op 0)"), "{told}");
}

#[test]
fn values_of_the_file_are_replaced_where_they_are_inputs_too() {
    let file = File {
        inputs: vec![("x", vec![2]), ("w", vec![2])],
        outputs: vec!["y"],
        constants: vec![floats("w", &[2], &[10.0, 20.0])],
        nodes: vec![Node::new("Add", &["x", "w"], &["y"])],
        ..File::default()
    };
    let bytes = file.bytes();
    let ones = tensor(&[2], vec![1.0, 1.0]);
    let of = |options: &LoadOptions, feeds: &[(&str, &HostTensor)]| {
        let model = Model::from_bytes(&bytes, options).expect("a file that is read");
        let session = Session::on_cpu(&model.graph).expect("a session");
        session.compute(feeds).expect("a run")[0].to_f32().into_owned()
    };
    assert_eq!(of(&LoadOptions::default(), &[("x", &ones)]), [11.0, 21.0]);
    let more = tensor(&[2], vec![3.0, 4.0]);
    let options = LoadOptions { values: [("w".to_owned(), more.clone())].into(), ..Default::default() };
    assert_eq!(of(&options, &[("x", &ones)]), [4.0, 5.0]);
    let options = LoadOptions { inputs: ["w".to_owned()].into(), ..Default::default() };
    assert_eq!(of(&options, &[("x", &ones), ("w", &more)]), [4.0, 5.0]);
    let options = LoadOptions { inputs: ["v".to_owned()].into(), ..Default::default() };
    let told = Model::from_bytes(&bytes, &options).expect_err("no such input").to_string();
    assert!(told.contains("\"v\"") && told.contains("[\"w\"]"), "{told}");
    let options = LoadOptions { signature: Some("serve".to_owned()), ..Default::default() };
    let told = Model::from_bytes(&bytes, &options).expect_err("no signatures").to_string();
    assert!(told.contains("\"serve\"") && told.contains("no signatures"), "{told}");
}

#[test]
fn functions_that_call_each_other_are_survived_however_many_there_are() {
    // On the stack that a browser's page has.
    let told = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(|| refused(&writer::chained(20_000)))
        .expect("a thread")
        .join()
        .expect("no panic");
    assert!(told.contains("deep in each other"), "{told}");
}

#[test]
fn a_number_that_decides_a_branch_is_named_where_it_would_help() {
    let branch = |op: &'static str| writer::network(&[], &[Node::new(op, &["x"], &["z"])], &["z"]);
    let file = File {
        inputs: vec![("x", vec![2, 3]), ("sr", vec![1])],
        outputs: vec!["y"],
        constants: vec![floats("least", &[1], &[8_000.0])],
        nodes: vec![
            Node::new("Greater", &["sr", "least"], &["fast"]),
            Node {
                attributes: vec![
                    Attribute::Graph("then_branch", branch("Transpose")),
                    Attribute::Graph("else_branch", branch("Relu")),
                ],
                ..Node::new("If", &["fast"], &["y"])
            },
        ],
        ..File::default()
    };
    let told = refused(&file.bytes());
    assert!(
        told.contains("(LoadOptions::values)") && told.contains("\"sr\"") && told.contains("one shape"),
        "{told}"
    );
    // A front end can say its own option.
    let error = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect_err("no value");
    let own = error.told(&|setting| Some(format!("{setting:?}").into()));
    assert!(own.contains("Values([\"sr\"])") && !own.contains("LoadOptions"), "{own}");
    let values = [("sr".to_owned(), tensor(&[1], vec![16_000.0]))].into();
    let options = LoadOptions { values, ..Default::default() };
    let model = Model::from_bytes(&file.bytes(), &options).expect("the branch is known");
    assert_eq!(model.outputs[0].dims.extents(), [3, 2]);
}

#[test]
fn what_other_outputs_alone_need_is_not_read() {
    let file = File {
        inputs: vec![("x", vec![2])],
        outputs: vec!["z", "w", "y"],
        nodes: vec![
            Node::new("Neg", &["x"], &["y"]),
            Node::new("NoSuchOperator", &["y"], &["z"]),
            Node::new("Neg", &["y"], &["w"]),
        ],
        ..File::default()
    };
    let chosen = |names: &[&str]| LoadOptions {
        outputs: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    };
    let bytes = file.bytes();
    let model = Model::from_bytes(&bytes, &chosen(&["y", "w"])).expect("a file that is read");
    // In the order of the file.
    let names: Vec<&str> = model.outputs.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["w", "y"]);
    let one = Model::from_bytes(&bytes, &chosen(&["y"])).expect("a file that is read");
    assert_eq!(one.graph.nodes().len(), 1, "what `w` needs is not there");
    for names in [&[][..], &["z"]] {
        let error = Model::from_bytes(&bytes, &chosen(names)).expect_err("refused").to_string();
        assert!(error.contains("NoSuchOperator"), "{names:?}: {error}");
    }
    let error = Model::from_bytes(&bytes, &chosen(&["v"])).expect_err("refused").to_string();
    assert!(error.contains("found no output \"v\""), "{error}");
}
