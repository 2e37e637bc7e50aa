//! Commands whose reader stops reading, as `head` does: they end, and that is no failure.
#![cfg(unix)]

use crate::network::small_network;
use std::process::{Command, Stdio};

/// How a command ends whose standard output nobody reads, and what it says on standard error, if somebody reads that.
fn unread(words: &[&str], reads_errors: bool) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_diptych"))
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    if !reads_errors {
        drop(child.stderr.take());
    }
    let output = child.wait_with_output().expect("an end");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_reader_may_stop_reading() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = small_network(folder.path());
    let (model, replay) = (model.to_str().expect("text"), folder.path().join("replay"));
    let replay = replay.to_str().expect("text");
    let on_cpu = ["--backend", "cpu", "--runs", "1"];
    for words in [
        &["run", model, "--replay-out", replay, on_cpu[0], on_cpu[1], on_cpu[2], on_cpu[3]][..],
        &["run", model, "--json", "--profile", on_cpu[0], on_cpu[1], on_cpu[2], on_cpu[3]],
        &["replay", replay, "--backend", "cpu"],
        &["inspect", model, "--backend", "cpu", "--nodes"],
        &["devices"],
        &["devices", "--json"],
        &["candidates", "--generator", "tflite-exhaustive", "--grid", "64,64,64"],
        &["emit", "gemm", "--backend", "wgsl"],
        &["--help"],
        &["run", "--help"],
    ] {
        for reads_errors in [true, false] {
            let (code, errors) = unread(words, reads_errors);
            assert_eq!(code, Some(0), "{words:?}: {errors}");
            for complaint in ["panicked", "roken pipe", "os error"] {
                assert!(!errors.contains(complaint), "{words:?}: {errors}");
            }
        }
    }
    // What fails for another reason still fails.
    assert_eq!(unread(&["run", "no/such.tflite"], false).0, Some(1));
}
