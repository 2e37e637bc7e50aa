//! Files whose leading extents each run decides.

use super::super::options;
use super::layers::variable;
use super::operators::fields;
use super::writer::{FileSpec, code};
use crate::dims::Dims;
use crate::host::HostTensor;
use crate::model::tflite::names::element;
use diptych::LoadOptions;
use diptych::ModelFile;
use diptych::Session;
use diptych::SessionOptions;
use diptych::{Backend, Context};

/// The extent of the first axis is open.
fn leave_open(file: &mut FileSpec, tensor: i32, other: i32) {
    file.tensors[tensor as usize].signature = Some(vec![-1, other]);
}

fn session(file: &FileSpec) -> Session {
    let file = ModelFile::from_bytes(file.bytes(), &LoadOptions::default()).expect("a valid file");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    file.session(&context, SessionOptions::default()).expect("a session")
}

/// The first output of a run of so many rows of three halves.
fn run(session: &mut Session, rows: usize) -> HostTensor {
    let x = HostTensor::new(Dims::new(&[rows, 3]).expect("small"), vec![0.5; 3 * rows]).expect("as many");
    session.run(&[("x", &x)]).expect("a run").remove(0)
}

#[test]
fn a_variable_goes_on_at_other_extents() {
    let mut file = variable();
    // It grows by what it began with, and `x` is added to what is read of it.
    let add = file.ops.iter().position(|op| op.inputs.contains(&0)).expect("the sum");
    file.ops[add].inputs[1] = 1;
    let again = file.outputs[1];
    let y = file.map("y", &[1, 3]);
    file.op(code("ADD"), &[again, 0], &[y], fields(options::AddOptions::TAG, &[]));
    file.outputs = vec![y];
    leave_open(&mut file, 0, 3);
    leave_open(&mut file, y, 3);
    let mut session = session(&file);
    let found = [2, 1, 2, 3].map(|rows| run(&mut session, rows));
    assert_eq!(found.each_ref().map(|found| found.to_nhwc()[0]), [2.5, 3.5, 4.5, 5.5]);
    assert_eq!(found[3].dims().extents(), [3, 3]);
    session.reset().expect("reset");
    assert_eq!([2, 1].map(|rows| run(&mut session, rows).to_nhwc()[0]), [2.5, 3.5]);
}

#[test]
fn extents_share_one_copy_of_the_weights() {
    let mut file = FileSpec::with_input("x", &[1, 3]);
    let data = [0.25f32; 1200].iter().flat_map(|value| value.to_le_bytes()).collect();
    let weights = file.constant_of("weights", &[400, 3], element::FLOAT32, data);
    let y = file.map("y", &[1, 400]);
    file.op(
        code("FULLY_CONNECTED"),
        &[0, weights, -1],
        &[y],
        fields(options::FullyConnectedOptions::TAG, &[]),
    );
    file.outputs = vec![y];
    leave_open(&mut file, 0, 3);
    leave_open(&mut file, y, 400);
    let mut session = session(&file);
    assert_eq!(run(&mut session, 1).to_nhwc()[0], 0.375);
    let one = session.memory().constants;
    assert!(one >= 4 * 1200);
    for rows in 2..6 {
        assert_eq!(run(&mut session, rows).dims().extents(), [rows, 400]);
    }
    assert_eq!(session.memory().constants, one);
}
