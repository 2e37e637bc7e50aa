//! The command line with files that are not what they should be: it says so at once, and leaves them
//! as they are.
#![cfg(unix)]

use crate::npy;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const MODEL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/posenet/data/posenet_figures.tflite");
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/posenet_figures.png");

/// Far more than a refusal takes.
const LIMIT: Duration = Duration::from_secs(60);

/// What `diptych` says with these words, which must not take longer than [`LIMIT`].
fn diptych<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_diptych"))
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > LIMIT {
            child.kill().expect("killed");
            panic!("no answer after {LIMIT:?}: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("its output")
}

/// Standard error of `diptych` with these words, which must fail.
fn refused<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> String {
    let output = diptych(words);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    errors
}

fn grey(path: &Path) {
    npy::write(path, &[1, 257, 257, 3], &vec![0.5; 257 * 257 * 3]);
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo starts").success());
}

#[test]
fn a_picture_is_no_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, picture) = (folder.path().join("grey.npy"), folder.path().join("picture.png"));
    grey(&input);
    std::fs::copy(PICTURE, &picture).expect("copied");
    let (before, input) = (std::fs::read(&picture).expect("the picture"), input.to_str().expect("text"));
    let picture = picture.to_str().expect("text");
    for words in [
        &["tune", "pointwise", "--search", "table", "--db", picture][..],
        &["run", MODEL, "--backend", "cpu", "--input", input, "--db", picture],
        &["db", "show", "--db", picture],
        &["db", "merge", picture, "--db", folder.path().to_str().expect("text")],
        &["compare", MODEL, "--db", picture, "--with", picture],
    ] {
        let errors = refused(words);
        assert!(errors.contains("picture.png: found a file without rows"), "{words:?}: {errors}");
        assert_eq!(std::fs::read(picture).expect("the picture"), before, "{words:?}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("listed").collect();
    assert_eq!(left.len(), 2, "nothing was written beside the picture: {left:?}");
}

#[test]
fn pipes_and_devices_are_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    pipe(&path);
    let input = folder.path().join("grey.npy");
    grey(&input);
    let input = input.to_str().expect("text");
    for (special, found) in [(path.to_str().expect("text"), "a pipe"), ("/dev/zero", "a character device")] {
        let wanted = format!("{special}: found {found}, wanted a regular file");
        for words in [
            &["run", special, "--backend", "cpu", "--input", input][..],
            &["run", MODEL, "--backend", "cpu", "--input", special],
            &["run", MODEL, "--backend", "cpu", "--input", input, "--db", special],
            &["db", "show", "--db", special],
            &["bench", "--draw", "--include", special, "--report", folder.path().to_str().expect("text")],
        ] {
            let errors = refused(words);
            assert!(errors.contains(&wanted), "{words:?}: {errors}");
        }
    }
}

#[test]
fn a_nested_header_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nested.npy");
    std::fs::write(&path, [&b"\x93NUMPY\x01\x00\x11\x00"[..], &[b'{'; 16], b"\n"].concat()).expect("written");
    let path = path.to_str().expect("text");
    let errors = refused(["run", MODEL, "--backend", "cpu", "--input", path]);
    assert!(errors.contains("nested.npy: found \"{{{"), "{errors}");
}

#[test]
fn an_input_need_not_have_a_name_in_utf_8() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(OsStr::from_bytes(b"grey\xff.npy"));
    grey(&path);
    for prefix in ["", "sub_2="] {
        let mut input = OsStr::new(prefix).to_owned();
        input.push(&path);
        let words = ["run", MODEL, "--backend", "cpu", "--input"].map(OsStr::new);
        let output = diptych(words.into_iter().chain([input.as_os_str()]));
        let errors = String::from_utf8_lossy(&output.stderr);
        match prefix {
            "" => assert!(output.status.success(), "{errors}"),
            _ => assert!(errors.contains("input") && !errors.contains("UTF-8"), "{errors}"),
        }
    }
}
