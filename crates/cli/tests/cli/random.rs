//! `diptych run` of a model that draws.

use crate::npy;
use std::path::Path;
use std::process::Command;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/random/extents.onnx");

/// The output's file after a run of a model that adds random numbers to `x`.
fn drawn(folder: &Path, words: &[&str]) -> Vec<u8> {
    let x = folder.join("x.npy");
    npy::write(&x, &[7], &[0.0; 7]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_diptych"));
    command.args(["run", MODEL, "--backend", "cpu", "--input"]).arg(&x).arg("--dump").arg(folder).args(words);
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(folder.join("0.npy")).expect("an output")
}

#[test]
fn a_seed_decides_what_is_drawn() {
    let folder = tempfile::tempdir().expect("a directory");
    let all = [&[][..], &["--seed", "0"], &["--seed", "18446744073709551615"]];
    let [unset, zero, most] = all.map(|words| drawn(folder.path(), words));
    assert_eq!(unset, zero);
    assert_ne!(zero, most);
    assert_eq!(drawn(folder.path(), &["--seed", "18446744073709551615"]), most);
}
