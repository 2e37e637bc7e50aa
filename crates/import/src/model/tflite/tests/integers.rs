//! Arithmetic of integers, on every backend.

use super::operators::none;
use super::writer::{FileSpec, code};
use crate::host::HostTensor;
use crate::model::tflite::names::element;
use diptych::Session;
use diptych::SessionOptions;
use diptych::{Backend, Context};
use diptych::{LoadOptions, Model};

/// What an operator makes of INT32 values on each backend that is there.
fn everywhere(file: &FileSpec, feeds: &[(&str, HostTensor)]) -> Vec<(Backend, Vec<f32>)> {
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
    let feeds: Vec<(&str, &HostTensor)> = feeds.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let mut found = Vec::new();
    for backend in [Backend::Cpu, Backend::Wgpu, Backend::OpenCl] {
        let context = match Context::new(backend) {
            Ok(context) => context,
            Err(error) if std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1") => {
                panic!("{backend} is required: {error}")
            }
            Err(error) => {
                println!("skipping {backend}: {error}");
                continue;
            }
        };
        let session = Session::new(&context, &model.graph, SessionOptions::default());
        let outputs = session.expect("a session").run(&feeds).expect("a run");
        found.push((backend, outputs[0].to_f32().to_vec()));
    }
    found
}

fn tensor(extents: &[usize], values: &[f32]) -> HostTensor {
    HostTensor::new(crate::dims::Dims::new(extents).expect("small"), values.to_vec()).expect("as many")
}

#[test]
fn a_mean_of_integers_is_cut_off_towards_zero() {
    let mut file = FileSpec::with_input("x", &[5, 3]);
    file.tensors[0].element_type = element::INT32;
    let axes = file.integers("axes", &[1], &[1]);
    let y = file.map("y", &[5]);
    file.tensors[y as usize].element_type = element::INT32;
    file.op(code("MEAN"), &[0, axes], &[y], none());
    file.outputs = vec![y];
    let x = [1.0, 2.0, 2.0, -1.0, -2.0, -2.0, 3.0, 3.0, 3.0, 7.0, 7.0, 7.0, -8.0, 0.0, 0.0];
    for (backend, found) in everywhere(&file, &[("x", tensor(&[5, 3], &x))]) {
        assert_eq!(found, [1.0, -1.0, 3.0, 7.0, -2.0], "{backend}");
    }
}

#[test]
fn a_mean_of_floats_is_not() {
    let mut file = FileSpec::with_input("x", &[1, 2]);
    let axes = file.integers("axes", &[1], &[1]);
    let y = file.map("y", &[1]);
    file.op(code("MEAN"), &[0, axes], &[y], none());
    file.outputs = vec![y];
    for (backend, found) in everywhere(&file, &[("x", tensor(&[1, 2], &[1.0, 2.0]))]) {
        assert_eq!(found, [1.5], "{backend}");
    }
}

#[test]
fn bits_are_those_of_the_type() {
    let of = |name: &str, element_type: i8, x: &[f32], other: &[i32], wanted: &[f32]| {
        let mut file = FileSpec::with_input("x", &[x.len() as i32]);
        file.tensors[0].element_type = element_type;
        let data = other.iter().flat_map(|&value| match element_type {
            element::INT8 => vec![value as u8],
            _ => value.to_le_bytes().to_vec(),
        });
        let constant = file.constant_of("other", &[other.len() as i32], element_type, data.collect());
        let y = file.map("y", &[x.len() as i32]);
        file.tensors[y as usize].element_type = element_type;
        file.op(code(name), &[0, constant], &[y], none());
        file.outputs = vec![y];
        for (backend, found) in everywhere(&file, &[("x", tensor(&[x.len()], x))]) {
            assert_eq!(found, wanted, "{name} on {backend}");
        }
    };
    of("BITWISE_XOR", element::INT32, &[6.0, -1.0, 0.0], &[3, 5, -9], &[5.0, -6.0, -9.0]);
    of("BITWISE_XOR", element::INT8, &[127.0, -128.0], &[-1, 1], &[-128.0, -127.0]);
    // Places are bounded by the bits that there are.
    of("RIGHT_SHIFT", element::INT32, &[12.0, -12.0, 7.0, -7.0], &[1, 1, -2, 40], &[6.0, -6.0, 7.0, -1.0]);
    of("RIGHT_SHIFT", element::INT8, &[100.0, -100.0], &[2, 9], &[25.0, -1.0]);
}
