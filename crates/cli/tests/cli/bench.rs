//! `diptych bench` from end to end: one small case on every backend, and what it writes.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn diptych(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_diptych")).args(arguments).output().expect("the program starts")
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("bench.jsonl");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON value")).collect()
}

/// The backends of this machine, as `diptych devices` has them.
fn backends() -> Vec<String> {
    let output = diptych(&["devices", "--json"]);
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list");
    let mut backends: Vec<String> = listed
        .iter()
        .filter(|entry| entry.get("error").is_none_or(Value::is_null) && !entry["device"].is_null())
        .filter_map(|entry| entry["backend"].as_str().map(str::to_owned))
        .collect();
    backends.dedup();
    if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() {
        assert_eq!(backends.len(), 3, "{listed:?}");
    }
    backends
}

#[test]
fn one_case_is_measured_on_every_backend_and_reported() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().to_str().expect("text");
    let case = "depthwise_f32 n1 h17";
    let run = |folder: &str| {
        // However busy the machine is, no round is left out.
        let rounds = ["--rounds", "6", "--each", "3600"];
        diptych(&[&["bench", "--suite", "ops", "--case", case], &rounds[..], &["--report", folder]].concat())
    };
    let output = run(path);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");

    let lines = lines(&folder.path().join("bench.jsonl"));
    let of_kind = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of_kind("machine").len(), 1);
    for backend in backends() {
        let of = |suite: &str| {
            let rows = of_kind("row").into_iter();
            rows.filter(|row| row["suite"] == suite && row["device"]["backend"] == backend.as_str()).count()
        };
        assert_eq!((of("ops"), of("baseline")), (1, 2), "{backend}");
    }
    for row in of_kind("row") {
        assert_eq!(row["samples"].as_array().map(Vec::len), Some(6), "{row}");
        assert!(row["median"].as_f64().is_some_and(|median| median > 0.0), "{row}");
        for field in ["kernel", "clock", "checked", "version", "command"] {
            assert!(row[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {row}");
        }
        if row["suite"] == "ops" {
            assert!(row["roofline"].as_f64().is_some_and(|share| share > 0.0), "{row}");
        }
        assert!(!row["command"].as_str().unwrap_or_default().contains('/'), "a folder in {row}");
    }

    let page = std::fs::read_to_string(folder.path().join("bench.html")).expect("bench.html");
    assert!(page.contains("<svg") && page.contains(case) && !page.contains(path), "the page");
    let table = std::fs::read_to_string(folder.path().join("bench.txt")).expect("bench.txt");
    assert_eq!(table, String::from_utf8_lossy(&output.stdout), "the file is what was printed");

    // The same file twice has no differences; drawing it anew needs no device.
    let file = folder.path().join("bench.jsonl");
    let file = file.to_str().expect("text");
    let same = diptych(&["bench", "--compare", file, file, "--fail-on-regression"]);
    let text = String::from_utf8_lossy(&same.stdout);
    assert!(same.status.success() && text.contains("0 slower, 0 faster"), "{text}");
    let again = folder.path().join("again");
    let drawn = diptych(&["bench", "--draw", "--include", file, "--report", again.to_str().expect("text")]);
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    assert_eq!(std::fs::read_to_string(again.join("bench.html")).expect("bench.html"), page);
}

#[test]
fn a_regression_fails_the_comparison_that_asks_for_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let line = |time: f64| {
        let samples: Vec<f64> = (0..20).map(|round| time + f64::from(round % 5) / 100.0).collect();
        serde_json::json!({
            "kind": "row", "schema": 1, "suite": "ops", "case": "a", "metric": "device", "node": null,
            "engine": "diptych", "precision": "f32", "kernel": "k", "work_group": [8, 8, 1],
            "device": {"backend": "wgpu", "api": "Vulkan", "name": "a GPU", "driver": "1", "is_cpu": false},
            "chosen_by": "rule", "clock": "GPU timestamps", "checked": "yes", "samples": samples,
            "repeats": 1, "median": time, "p10": time, "p90": time, "flops": 1, "bytes": 1,
            "gflops": null, "roofline": null, "bound": null, "version": "0.1.0", "commit": null,
            "command": "diptych bench",
        })
        .to_string()
    };
    let [a, b] = [("a", 10.0), ("b", 11.0)].map(|(name, time)| {
        let path = folder.path().join(format!("{name}.jsonl"));
        std::fs::write(&path, line(time)).expect("a file");
        path.to_str().expect("text").to_owned()
    });
    for (arguments, code, words) in [
        (vec!["--compare", &a, &b], 0, "1 slower"),
        (vec!["--compare", &a, &b, "--fail-on-regression"], 1, "1 slower"),
        (vec!["--compare", &b, &a, "--fail-on-regression"], 0, "1 faster"),
        (vec!["--compare", &a, &b, "--fail-on-regression", "--minimum-effect", "20"], 0, "1 noise"),
    ] {
        let output = diptych(&[&["bench"], &arguments[..]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn wrong_usage_is_reported() {
    for (arguments, words) in [
        (&["bench", "--suite", "speed"][..], "work-groups"),
        (&["bench", "--draw", "--report", "x"], "--include"),
        (&["bench", "--fail-on-regression"], "--compare"),
        (&["bench", "--compare", "a.jsonl"], "2"),
        (&["bench", "--backend", "cpu", "--suite", "ops", "--case", "lstm", "--rounds", "5"], "lstm"),
        (&["bench", "--compare", "no-a.jsonl", "no-b.jsonl"], "no-a.jsonl"),
    ] {
        let output = diptych(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(words), "{arguments:?}: {errors}");
    }
}
