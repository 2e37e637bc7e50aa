//! `diptych inspect` on the bundled network: as text, as JSON, and as a page.

use serde_json::Value;
use std::process::{Command, Output};

const MODEL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/posenet/data/posenet_figures.tflite");

/// `diptych inspect` with these words at the end.
fn inspect(model: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diptych"));
    command.args(["inspect", model, "--backend", "cpu"]).args(words).output().expect("the program starts")
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn operators_parameters_and_kernels_are_reported() {
    let report = text(&inspect(MODEL, &["--nodes"]));
    for words in ["input ", "output ", "parameters ", "FLOP a run", "depthwise", "chosen by"] {
        assert!(report.contains(words), "no {words:?} in: {report}");
    }
}

#[test]
fn json_has_every_node_and_step() {
    let output = inspect(MODEL, &["--json"]);
    let report: Value = serde_json::from_str(&text(&output)).expect("JSON");
    let list = |name: &str| report[name].as_array().unwrap_or_else(|| panic!("no {name}")).len();
    let graph = diptych::tflite::load(MODEL).expect("the bundled network");
    assert_eq!((list("nodes"), list("outputs")), (graph.nodes().len(), graph.outputs().len()));
    assert!(list("steps") > 0 && report["flops"].as_u64() == graph.flops().ok(), "{report}");
    let counted: u64 =
        report["operators"].as_object().expect("operators").values().filter_map(Value::as_u64).sum();
    assert_eq!(counted, graph.nodes().len() as u64);
    assert!(report["parameters"].as_u64() > Some(1000), "{report}");
}

#[test]
fn the_page_draws_every_node_and_needs_no_other_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("page.html");
    text(&inspect(MODEL, &["--html", file.to_str().expect("text")]));
    let page = std::fs::read_to_string(file).expect("a page");
    let graph = diptych::tflite::load(MODEL).expect("the bundled network");
    let boxes = graph.nodes().len() + graph.inputs().len() + graph.outputs().len();
    assert_eq!(page.matches("<rect ").count(), boxes);
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for word in ["src=", "<link", "<img", "http-equiv", "@import", "fetch("] {
        assert!(!page.contains(word), "{word}");
    }
    let data =
        page.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("data");
    let data: Vec<Value> = serde_json::from_str(data).expect("JSON");
    assert_eq!(data.len(), boxes);
    let fact = |node: &Value, what: &str| {
        let pairs = node["facts"].as_array().expect("facts").iter();
        pairs
            .filter(|pair| pair[0] == what)
            .map(|pair| pair[1].as_str().unwrap_or_default().to_owned())
            .next()
    };
    let first = data.iter().find(|node| node["lines"][0] == "conv2d").expect("a convolution");
    assert_eq!(fact(first, "stride").as_deref(), Some("[2, 2]"), "{first}");
    for what in ["name", "output", "weights", "padding", "kernel", "chosen by"] {
        assert!(fact(first, what).is_some(), "no {what} in {first}");
    }
    assert_eq!(first["reads"].as_array().map(Vec::len), Some(1), "{first}");
}

#[test]
fn wrong_models_and_dimensions_are_refused() {
    for (model, words, wanted) in [
        ("no/such.tflite", &[][..], "no/such.tflite"),
        (MODEL, &["--dimension", "batch=2"], "dimension \"batch\""),
    ] {
        let output = inspect(model, words);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(wanted), "{errors}");
    }
}
