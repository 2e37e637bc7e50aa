//! `diptych check`: kernels again and again, without timing.

use diptych::{Backend, Context};
use std::path::Path;
use std::process::{Command, Output};

fn check(arguments: &[&str], record: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diptych"));
    command
        .arg("check")
        .args(arguments)
        .env("DIPTYCH_CACHE_DIR", record)
        .output()
        .expect("the program starts")
}

/// An API with a device; a missing one is printed, or fails if devices are required.
fn api() -> Option<&'static str> {
    let open = |backend| Context::builder().backend(backend).without_kernel_cache().open();
    match (open(Backend::OpenCl), open(Backend::Wgpu)) {
        (Ok(_), _) => Some("opencl"),
        (_, Ok(_)) => Some("wgpu"),
        (Err(error), _) if std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1") => {
            panic!("a device is required: {error}")
        }
        (Err(error), _) => {
            println!("skipping: {error}");
            None
        }
    }
}

#[test]
fn sound_kernels_pass_and_the_report_says_so() {
    let Some(api) = api() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report.md");
    let file = report.to_str().expect("UTF-8");
    let arguments = ["--op", "softmax,one_hot", "--runs", "20", "--backend", api, "--report", file];
    let output = check(&arguments, directory.path());
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    for words in ["driver: ", "runs of each kernel: 20", "0 of ", "softmax", "one_hot", "work-group"] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    assert_eq!(std::fs::read_to_string(report).expect("a report").trim_end(), text.trim_end());
    assert!(!directory.path().join("tuning.jsonl").exists(), "nothing is recorded");
    let output = check(&["--op", "softmax", "--runs", "9", "--backend", api, "--json"], directory.path());
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&value[0]["findings"], &value[0]["runs"]), (&0.into(), &9.into()));
    let kernels = value[0]["kernels"].as_array().expect("a list");
    assert!(!kernels.is_empty());
    for kernel in kernels {
        assert_eq!((&kernel["op"], &kernel["finding"]), (&"softmax".into(), &"steady".into()), "{kernel}");
        assert_eq!((&kernel["differed"], &kernel["runs"]), (&0.into(), &9.into()), "{kernel}");
    }
}

#[test]
fn what_is_no_op_is_refused_with_those_that_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = check(&["--op", "lstm"], directory.path());
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("found lstm, wanted one of") && errors.contains("pointwise"), "{errors}");
}
