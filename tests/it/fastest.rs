//! The fastest backend of a network: measured once, found in the record from then on.

use crate::machine::noise;
use diptych::{
    Backend, Context, ContextBuilder, Conv2d, Database, Extras, FastestOptions, Graph, HostTensor, Precision,
    Session, SessionOptions, Shape, SharedDatabase,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A small convolution of a map so wide.
fn network(width: usize) -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 4, width, 3)).expect("an input");
    let weights = noise(Shape::nhwc(5, 3, 3, 3), 7);
    let y = graph.conv2d("conv", x, weights, Extras::default(), Conv2d::default()).expect("a node");
    graph.output(y).expect("an output");
    graph
}

fn shared(database: Database) -> SharedDatabase {
    Arc::new(Mutex::new(database))
}

fn on(backend: Backend) -> ContextBuilder {
    Context::builder().backend(backend).without_kernel_cache()
}

/// The CPU, the drivers of this machine whatever they are, and one that is not there.
fn options(record: &SharedDatabase) -> FastestOptions {
    FastestOptions {
        record: Some(Arc::clone(record)),
        candidates: vec![
            on(Backend::Wgpu),
            on(Backend::OpenCl),
            on(Backend::Wgpu).name("no such GPU"),
            on(Backend::Cpu),
        ],
        budget: Duration::from_millis(200),
        ..Default::default()
    }
}

fn text(record: &SharedDatabase) -> String {
    record.lock().expect("not poisoned").text().expect("text")
}

#[test]
fn a_verdict_is_measured_once_and_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = shared(Database::open(folder.path()).expect("opened"));
    let (graph, options) = (network(9), options(&record));
    let fastest = Context::fastest(&graph, &options).expect("the CPU at least");
    assert!(!fastest.from_record);
    let names: Vec<&str> = fastest.measured.iter().map(|one| &*one.candidate).collect();
    assert_eq!(names, ["wgpu", "opencl", "wgpu:no such GPU", "cpu"]);
    let required = std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1");
    for one in &fastest.measured {
        let is_there = one.candidate == "cpu" || required && one.candidate != "wgpu:no such GPU";
        assert!(!is_there || one.time.is_some() && one.runs > 0, "{one}");
        assert!(one.time.is_some() || !one.reason.is_empty(), "{one}");
    }
    // The one that is not there says so.
    let missing = &fastest.measured[2];
    assert!(missing.time.is_none() && missing.reason.contains("\"no such GPU\""), "{missing}");
    let least = fastest.measured.iter().filter_map(|one| one.time).min();
    let chosen = &fastest.measured[fastest.chosen];
    assert_eq!(chosen.time, least);
    assert_eq!(fastest.context.info().backend.to_string(), chosen.candidate);
    assert!(fastest.context.info().reason.contains("measured now"), "{}", fastest.context.info());

    // It runs there.
    let mut session = Session::new(&fastest.context, &graph, SessionOptions::default()).expect("a session");
    assert_eq!(session.run(&[("x", &noise(Shape::nhwc(1, 4, 9, 3), 1))]).expect("outputs").len(), 1);

    // From now on nothing is run, in another process too.
    let again = Context::fastest(&graph, &options).expect("known");
    assert!(again.from_record && again.to_string().ends_with("from the record"), "{again}");
    assert_eq!((again.measured, again.chosen), (fastest.measured.clone(), fastest.chosen));
    let record = shared(Database::open(folder.path()).expect("opened"));
    let options = FastestOptions { record: Some(record), ..options };
    assert!(Context::fastest(&network(9), &options).expect("known").from_record);

    // Until it is to be measured anew, or something is another one.
    let others = [
        (graph.clone(), FastestOptions { anew: true, ..options.clone() }),
        (network(10), options.clone()),
        (graph.clone(), FastestOptions { candidates: vec![on(Backend::Cpu)], ..options.clone() }),
    ];
    let session = SessionOptions { precision: Precision::F16Storage, ..Default::default() };
    let precise = (graph, FastestOptions { session, ..options.clone() });
    for (graph, options) in others.into_iter().chain([precise]) {
        assert!(!Context::fastest(&graph, &options).expect("measured").from_record);
    }
}

#[test]
fn the_least_of_a_record_counts_and_one_of_another_driver_does_not() {
    let record = shared(Database::in_memory());
    let (graph, options) = (network(9), options(&record));
    let first = Context::fastest(&graph, &options).expect("measured");
    let own = text(&record);
    assert_eq!(own.lines().count(), 1, "{own}");
    let found_in = |text: &str| {
        let record = shared(Database::from_text(text));
        let options = FastestOptions { record: Some(Arc::clone(&record)), ..options.clone() };
        Context::fastest(&graph, &options).expect("found or measured")
    };
    assert!(found_in(&own).from_record);

    // What the record says is taken, not measured: here that the CPU takes no time, and then that it takes an age.
    let cpu = first.measured.last().expect("the CPU").time.expect("it ran").as_nanos();
    for (nanos, by_cpu) in [(1, true), (u64::MAX / 2, false)] {
        let changed = own.replace(&format!("\"median_ns\":{cpu},"), &format!("\"median_ns\":{nanos},"));
        assert_ne!(changed, own);
        let found = found_in(&changed);
        let others = first.measured.iter().filter(|one| one.time.is_some()).count() > 1;
        assert!(found.from_record);
        assert_eq!(found.context.info().backend == Backend::Cpu, by_cpu || !others, "{found}");
    }

    // Of another driver, another number of threads, another version of the crate.
    let mut others = vec![
        own.replace(" threads\"", "0 threads\""),
        own.replace(concat!("\"crate\":\"", env!("CARGO_PKG_VERSION")), "\"crate\":\"0.0.1"),
    ];
    others.extend(
        own.contains("\"driver\":\"").then(|| own.replacen("\"driver\":\"", "\"driver\":\"older ", 1)),
    );
    for other in others {
        assert_ne!(other, own);
        assert!(!found_in(&other).from_record, "{other}");
    }
}

#[test]
fn drivers_on_the_cpu_are_left_out_and_what_runs_nowhere_is_an_error() {
    let graph = network(9);
    let fastest = Context::fastest(&graph, &FastestOptions::default()).expect("the CPU at least");
    for one in fastest.measured.iter().filter(|one| one.reason.contains("runs kernels on the CPU")) {
        assert!(one.time.is_none() && !one.device.is_empty(), "{one}");
    }
    let chosen = fastest.context.info();
    assert!(chosen.device.as_ref().is_none_or(|device| !device.is_cpu), "{chosen}");

    let record = shared(Database::in_memory());
    let nowhere = FastestOptions {
        candidates: vec![on(Backend::Wgpu).name("no such GPU"), on(Backend::OpenCl).name("no such GPU")],
        ..options(&record)
    };
    let error = Context::fastest(&graph, &nowhere).expect_err("nothing is there").to_string();
    for words in ["no candidate runs it", "wgpu:no such GPU (", "opencl:no such GPU ("] {
        assert!(error.contains(words), "no {words} in: {error}");
    }
    assert_eq!(text(&record), "");
    // An input that the network does not take.
    let wrong = FastestOptions {
        inputs: vec![("x".to_owned(), HostTensor::vector(vec![1.0]).expect("one"))],
        candidates: vec![on(Backend::Cpu)],
        ..options(&record)
    };
    let error = Context::fastest(&graph, &wrong).expect_err("another shape").to_string();
    assert!(error.contains("input \"x\""), "{error}");
}

#[cfg(feature = "onnx")]
#[test]
fn a_file_s_open_extents_are_those_of_given_inputs() {
    use diptych::{LoadOptions, ModelFile};
    let file = ModelFile::load("tests/cases/open_sentence.onnx", &LoadOptions::default()).expect("a file");
    let record = shared(Database::in_memory());
    let options = |inputs| FastestOptions { candidates: vec![on(Backend::Cpu)], inputs, ..options(&record) };
    let error = file.fastest(&options(vec![])).expect_err("open extents").to_string();
    assert!(error.contains("FastestOptions::inputs") && error.contains("axis 1"), "{error}");
    let given = |length: usize| {
        let tensor =
            |_| HostTensor::new(diptych::Dims::new(&[2, length]).expect("dims"), vec![1.0; 2 * length]);
        let named = |input: diptych::FileInput| (input.name, tensor(()).expect("ones"));
        file.inputs().into_iter().map(named).collect::<Vec<_>>()
    };
    assert!(!file.fastest(&options(given(7))).expect("measured").from_record);
    assert!(file.fastest(&options(given(7))).expect("known").from_record);
    assert!(!file.fastest(&options(given(5))).expect("measured").from_record);
}
