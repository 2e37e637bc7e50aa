//! The example in C, compiled against the header and the shared library, on the bundled network.

use diptych::{Backend, Context, HostTensor, LoadOptions, Model, Session, SessionOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MODEL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/posenet/data/posenet_figures.tflite");

/// The shared library.
const FILE: &str = "libdiptych_c.so";

/// The folder of the shared library that was built with this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let found = test.ancestors().skip(1).take(2).find(|folder| folder.join(FILE).is_file());
    found.unwrap_or_else(|| panic!("no {FILE} beside {}", test.display())).to_owned()
}

/// A program of C, compiled into `folder`.
fn compiled(source: &Path, folder: &Path) -> PathBuf {
    let program = folder.join("program");
    let library = folder.join("lib");
    std::fs::create_dir_all(&library).expect("a folder");
    // Under the name of its own that programs are loaded with (build.rs), and under that which they are linked with.
    let version = env!("CARGO_PKG_VERSION").split('.').collect::<Vec<_>>();
    let version = if version[0] == "0" { version[..2].join(".") } else { version[0].to_owned() };
    for name in [FILE.to_owned(), format!("libdiptych_c.so.{version}")] {
        let link = library.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(self::library().join(FILE), link).expect("a link");
        }
    }
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

/// An ONNX file of `y = x + x`, where x has any number of rows of three.
fn doubled() -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let port = |name: &[u8]| {
        let shape = [field(1, &field(2, b"rows")), field(1, &[1 << 3, 3])].concat();
        [field(1, name), field(2, &field(1, &[vec![1 << 3, 1], field(2, &shape)].concat()))].concat()
    };
    let node = [field(1, b"x"), field(1, b"x"), field(2, b"y"), field(4, b"Add")].concat();
    let graph =
        [field(1, &node), field(2, b"graph"), field(11, &port(b"x")), field(12, &port(b"y"))].concat();
    [vec![1 << 3, 8], field(7, &graph), field(8, &[2 << 3, 17])].concat()
}

#[test]
fn the_example_of_open_extents_prints_those_of_each_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/extents.c"), folder.path());
    let model = folder.path().join("doubled.onnx");
    std::fs::write(&model, doubled()).expect("a file");
    let output = run(&program, &[model.to_str().expect("UTF-8"), "cpu"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wanted = "output 0 [1 3]: 12 bytes\noutput 0 [2 3]: 24 bytes\noutput 0 [3 3]: 36 bytes\n";
    assert_eq!(String::from_utf8(output.stdout).expect("UTF-8"), wanted);
}

#[test]
fn the_example_of_streams_gives_each_frame_its_outputs_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/stream.c"), folder.path());
    let output = run(&program, &[MODEL, "cpu", "5"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = String::from_utf8(output.stdout).expect("UTF-8");

    let model = Model::load(MODEL, &LoadOptions::default()).expect("the bundled network");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &model.graph, SessionOptions::default()).expect("a session");
    let port = session.inputs()[0].clone();
    let mean = |frame: usize| {
        let bytes = (0..port.dims.elements()).map(|k| (k * (frame + 1) % 251) as u8);
        let floats: Vec<f32> = bytes.map(|byte| ((f64::from(byte) - 127.5) / 127.5) as f32).collect();
        let input = HostTensor::new(port.dims, floats).expect("an input");
        let outputs = session.run(&[(port.name.as_str(), &input)]).expect("outputs");
        let elements = outputs[0].to_f32();
        elements.iter().map(|&value| f64::from(value)).sum::<f64>() / elements.len() as f64
    };
    let wanted: Vec<f64> = (0..5).map(mean).collect();
    for (frame, (line, wanted)) in found.lines().zip(&wanted).enumerate() {
        let value = line.strip_prefix(&format!("frame {frame}: mean ")).expect(line);
        let value: f64 = value.parse().expect(line);
        assert!((value - wanted).abs() < 1e-4, "{line}: wanted {wanted}");
    }
    assert_eq!(found.lines().count(), 5, "{found}");
    let listed = run(&program, &[MODEL, "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("cpu: CPU, CPU, on the CPU"), "{listed:?}");
}

#[test]
fn the_example_of_batches_answers_every_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/batch.c"), folder.path());
    let output = run(&program, &[MODEL, "cpu", "cpu"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for request in 0..6 {
        assert!(text.contains(&format!("request {request}: ")), "{text}");
    }
    let refused = run(&program, &[MODEL, "no such device"]);
    assert!(String::from_utf8_lossy(&refused.stderr).starts_with("open: "), "{refused:?}");
}
