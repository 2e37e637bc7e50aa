//! `diptych article`, `db` without a verb, and the version.

use std::process::{Command, Output};

fn diptych(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_diptych")).args(words).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn too_few_rounds_for_a_ratio_are_refused() {
    let refused = diptych(&["article", "m.tflite", "--rounds", "5"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("6..=1000"), "{}", text(&refused.stderr));
}

#[test]
fn the_record_is_shown_without_a_verb() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tuning.jsonl");
    let path = file.to_str().expect("text");
    diptych::Database::open(folder.path()).expect("a record");
    std::fs::write(&file, "").expect("written");
    let [shown, alone] = [&["db", "show", "--db", path][..], &["db", "--db", path]].map(diptych);
    assert!(alone.status.success(), "{}", text(&alone.stderr));
    assert_eq!(alone.stdout, shown.stdout);
}

#[test]
fn the_version_names_the_commit_where_there_is_one() {
    let version = text(&diptych(&["--version"]).stdout);
    let rest =
        version.trim().strip_prefix(concat!("diptych ", env!("CARGO_PKG_VERSION"))).expect("a version");
    let commit = rest.trim().trim_matches(['(', ')']);
    assert!(commit.chars().all(|letter| letter.is_ascii_hexdigit()), "{version}");
}

#[test]
fn a_profile_is_a_result_and_a_steps_kernel_takes_another_work_group() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/dynamic_conv_uint8.onnx");
    let backend = ["--backend", "opencl", "--untuned", "--runs", "1"];
    if diptych::Context::new(diptych::Backend::OpenCl).is_err() {
        assert!(std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_none(), "OpenCL is required");
        println!("skipping: no OpenCL device");
        return;
    }
    let shown = diptych(&[&["run", model, "--profile"][..], &backend].concat());
    assert!(text(&shown.stdout).contains("GFLOP/s"), "{}", text(&shown.stderr));
    let json = |words: &[&str]| -> serde_json::Value {
        let output = diptych(&[&["run", model, "--profile", "--json"][..], &backend, words].concat());
        serde_json::from_str(&text(&output.stdout)).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    };
    let steps = |report: &serde_json::Value| report["profile"]["steps"].as_array().cloned().expect("steps");
    let conv = |steps: Vec<serde_json::Value>| {
        steps.into_iter().find(|step| step["op"] == "dynamic_conv2d" || step["op"] == "quantized_conv2d")
    };
    let found = conv(steps(&json(&[]))).expect("a convolution");
    let name = found["name"].as_str().expect("a name");
    assert!(found["variant"].is_string() && found["work_group"] != serde_json::json!([2, 1, 1]), "{found}");
    let changed = conv(steps(&json(&["--work-group", &format!("{name}=2,1,1")]))).expect("the convolution");
    assert_eq!(changed["work_group"], serde_json::json!([2, 1, 1]), "{changed}");
    assert_eq!((&changed["source"], &changed["variant"]), (&serde_json::json!("by hand"), &found["variant"]));
    let refused = diptych(&[&["run", model, "--work-group", "nobody=2,1,1"][..], &backend].concat());
    assert!(text(&refused.stderr).contains("found no step \"nobody\""), "{}", text(&refused.stderr));
}
