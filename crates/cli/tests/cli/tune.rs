//! `diptych tune` that is interrupted.
#![cfg(unix)]

use diptych::internals::tune::db::Verdict;
use diptych::{Backend, Context, Database, Journal};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Whether the machine has a device of this API; a missing one is printed, or fails if devices are required.
fn has(api: &str) -> bool {
    let backend = if api == "wgpu" { Backend::Wgpu } else { Backend::OpenCl };
    match Context::builder().backend(backend).without_kernel_cache().open() {
        Ok(_) => true,
        Err(error) if std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1") => {
            panic!("{api} is required: {error}")
        }
        Err(error) => {
            println!("skipping: {error}");
            false
        }
    }
}

#[test]
fn ctrl_c_ends_the_tuning_and_blames_no_candidate() {
    for api in ["wgpu", "opencl"].into_iter().filter(|api| has(api)) {
        let directory = tempfile::tempdir().expect("a directory");
        let child = Command::new(env!("CARGO_BIN_EXE_diptych"))
            .args(["tune", "pointwise", "--shape", "1,64,64,256,256", "--search", "exhaustive"])
            .args(["--backend", api, "--db"])
            .arg(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // Until a candidate is under way.
        let folder = directory.path().join("journal");
        let under_way = || {
            let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            files.into_iter().any(|file| file.metadata().is_ok_and(|file| file.len() > 0))
        };
        while !under_way() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let pressed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(pressed.expect("kill").success());
        let output = child.wait_with_output().expect("its output");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{api}: {errors}");
        assert!(errors.contains("interrupted; what was found is in the record"), "{api}: {errors}");
        let report = String::from_utf8_lossy(&output.stdout);
        // A long row goes on in the next line.
        let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("cut short"), "{api}: {report}");
        let mut database = Database::open(directory.path()).expect("opened");
        Journal::open(directory.path(), &mut database).expect("a journal");
        let bad = database.rows().filter(|row| row.verdict.bars() || row.verdict == Verdict::Winner);
        assert_eq!(bad.count(), 0, "{api}: nothing is barred, and no problem counts as tuned");
    }
}
