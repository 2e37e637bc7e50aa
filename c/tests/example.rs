//! The example in C, compiled against the header and the shared library, on the bundled network.

use diptych::{Backend, Context, HostTensor, LoadOptions, Model, Session, SessionOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/posenet/data/posenet_figures.tflite");

/// The folder of the shared library that was built with this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let name = format!("{}diptych_c{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let found = test.ancestors().skip(1).take(2).find(|folder| folder.join(&name).is_file());
    found.unwrap_or_else(|| panic!("no {name} beside {}", test.display())).to_owned()
}

/// A program of C, compiled into `folder`.
fn compiled(source: &Path, folder: &Path) -> PathBuf {
    let (library, program) = (library(), folder.join("program"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(&compiler)
        .args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"])
        .arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg("-ldiptych_c")
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().expect("the program")
}

/// What the example prints of each output, computed by the library itself.
fn wanted() -> Vec<String> {
    let model = Model::load(MODEL, &LoadOptions::default()).expect("the bundled network");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &model.graph, SessionOptions::default()).expect("a session");
    let port = session.inputs()[0].clone();
    let elements = port.dims.elements();
    let numbers: Vec<f32> = (0..elements).map(|k| k as f32 / elements as f32).collect();
    let input = HostTensor::new(port.dims, numbers).expect("an input");
    let outputs = session.run(&[(port.name.as_str(), &input)]).expect("outputs");
    let line = |(port, output): (&diptych::Port, &HostTensor)| {
        let extents: Vec<String> = port.dims.extents().iter().map(ToString::to_string).collect();
        format!("output {} [{}]: first {:.3e}", port.name, extents.join(" "), output.to_f32()[0])
    };
    session.outputs().iter().zip(&outputs).map(line).collect()
}

#[test]
fn the_example_prints_what_the_library_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/posenet.c");
    let program = compiled(&source, folder.path());

    let output = run(&program, &[MODEL, "cpu"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.starts_with("cpu: "), "{text}");
    let printed: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("output "))
        .map(|line| {
            let (head, rest) = line.split_once("first ").expect("a first element");
            let first: f32 = rest.split(',').next().and_then(|text| text.parse().ok()).expect("a number");
            format!("{head}first {first:.3e}")
        })
        .collect();
    assert_eq!(printed, wanted());
    let total: f64 = text
        .lines()
        .find_map(|line| line.strip_suffix(" us in all"))
        .and_then(|time| time.parse().ok())
        .expect("the profile's total");
    assert!(total > 0.0, "{text}");

    let missing = run(&program, &["no such file", "cpu"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).starts_with("open: no such file: "), "{missing:?}");
    let tuned = run(&program, &[MODEL, "cpu", "1"]);
    assert!(String::from_utf8_lossy(&tuned.stderr).contains("tuning is not supported"), "{tuned:?}");
}
