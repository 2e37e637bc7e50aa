//! Tensors without elements in TensorFlow Lite files. What is right is as numpy has it.

use super::super::options;
use super::operators::{fields, none};
use super::writer::{Field, FileSpec, OptionsSpec, code};
use crate::dims::Dims;
use crate::host::HostTensor;
use crate::model::tflite::names::element;
use Field::{Bool, Int};
use diptych::{Backend, Context, LoadOptions, Model, ModelFile, Session, SessionOptions};

/// A file of `x`, 2 by 3, whose first rows are cut to none; and that value.
fn cut() -> (FileSpec, i32) {
    let mut file = FileSpec::with_input("x", &[2, 3]);
    let begin = file.integers("begin", &[2], &[1, 0]);
    let size = file.integers("size", &[2], &[0, 3]);
    let cut = file.map("cut", &[0, 3]);
    file.op(code("SLICE"), &[0, begin, size], &[cut], none());
    (file, cut)
}

fn run(file: &FileSpec, x: &[f32]) -> diptych::Result<Vec<(Vec<usize>, Vec<f32>)>> {
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default())?;
    let context = Context::new(Backend::Cpu)?;
    let mut session = Session::new(&context, &model.graph, SessionOptions::default())?;
    let x = HostTensor::new(Dims::new(&[2, 3])?, x.to_vec())?;
    let outputs = session.run(&[("x", &x)])?;
    Ok(outputs.iter().map(|own| (own.dims().extents().to_vec(), own.to_f32().into_owned())).collect())
}

#[test]
fn operators_of_nothing_write_what_numpy_does() {
    type Make = fn(&mut FileSpec, i32) -> (Vec<i32>, OptionsSpec);
    fn dense(file: &mut FileSpec, columns: i32, terms: i32) -> i32 {
        let data = (0..columns * terms).flat_map(|at| (at as f32).to_le_bytes()).collect();
        file.constant_of("weights", &[columns, terms], element::FLOAT32, data)
    }
    fn axis(file: &mut FileSpec, axis: i32) -> i32 {
        file.integers("axis", &[1], &[axis])
    }
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    type Wanted<'w> = (&'w [usize], &'w [f32]);
    let cases: Vec<(&str, Make, Wanted<'_>)> = vec![
        (
            "CONCATENATION",
            |_, cut| (vec![cut, 0], fields(options::ConcatenationOptions::TAG, &[(0, Int(0))])),
            (&[2, 3], &x),
        ),
        ("RESHAPE", |file, cut| (vec![cut, file.integers("to", &[2], &[-1, 3])], none()), (&[0, 3], &[])),
        (
            "RESHAPE",
            |file, cut| (vec![cut, file.integers("to", &[3], &[5, 0, 2])], none()),
            (&[5, 0, 2], &[]),
        ),
        ("TRANSPOSE", |file, cut| (vec![cut, file.integers("to", &[2], &[1, 0])], none()), (&[3, 0], &[])),
        (
            "ADD",
            |file, cut| (vec![cut, dense(file, 1, 3)], fields(options::AddOptions::TAG, &[])),
            (&[0, 3], &[]),
        ),
        ("EXP", |_, cut| (vec![cut], none()), (&[0, 3], &[])),
        (
            "FULLY_CONNECTED",
            |file, cut| (vec![cut, dense(file, 4, 3), -1], fields(options::FullyConnectedOptions::TAG, &[])),
            (&[0, 4], &[]),
        ),
        (
            "BATCH_MATMUL",
            |_, cut| (vec![cut, cut], fields(options::BatchMatmulOptions::TAG, &[(0, Bool(true))])),
            (&[3, 3], &[0.0; 9]),
        ),
        (
            "SUM",
            |file, cut| (vec![cut, axis(file, 0)], fields(options::ReducerOptions::TAG, &[])),
            (&[3], &[0.0; 3]),
        ),
        (
            "REDUCE_PROD",
            |file, cut| (vec![cut, axis(file, 0)], fields(options::ReducerOptions::TAG, &[])),
            (&[3], &[1.0; 3]),
        ),
        (
            "MEAN",
            |file, cut| (vec![cut, axis(file, 0)], fields(options::ReducerOptions::TAG, &[])),
            (&[3], &[f32::NAN; 3]),
        ),
        (
            "SUM",
            |file, cut| (vec![cut, axis(file, 1)], fields(options::ReducerOptions::TAG, &[])),
            (&[0], &[]),
        ),
        (
            "PAD",
            |file, cut| (vec![cut, file.integers("pads", &[2, 2], &[1, 0, 0, 1])], none()),
            (&[1, 4], &[0.0; 4]),
        ),
        ("TILE", |file, _| (vec![0, file.integers("repeats", &[2], &[2, 0])], none()), (&[4, 0], &[])),
        ("GATHER", |file, _| (vec![0, file.integers("ids", &[0], &[])], none()), (&[0, 3], &[])),
        (
            "SOFTMAX",
            |_, cut| (vec![cut], fields(options::SoftmaxOptions::TAG, &[(0, Field::Float(1.0))])),
            (&[0, 3], &[]),
        ),
    ];
    let mut failures = Vec::new();
    for (name, make, (extents, values)) in cases {
        let (mut file, cut) = cut();
        let (inputs, options) = make(&mut file, cut);
        let shape: Vec<i32> = extents.iter().map(|&extent| extent as i32).collect();
        let y = file.map("y", &shape);
        file.op(code(name), &inputs, &[y], options);
        file.outputs = vec![y];
        match run(&file, &x) {
            Ok(found) => {
                let alike = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
                let (dims, found) = &found[0];
                if dims != extents || !found.iter().zip(values).all(alike) {
                    failures.push(format!("{name}: found {dims:?} {found:?}, wanted {extents:?} {values:?}"));
                }
            }
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn inputs_of_a_session_may_have_no_elements() {
    let mut file = FileSpec::with_input("x", &[1, 3]);
    let data = [0.5f32; 6].iter().flat_map(|value| value.to_le_bytes()).collect();
    let weights = file.constant_of("weights", &[2, 3], element::FLOAT32, data);
    let y = file.map("y", &[1, 2]);
    file.op(
        code("FULLY_CONNECTED"),
        &[0, weights, -1],
        &[y],
        fields(options::FullyConnectedOptions::TAG, &[]),
    );
    file.outputs = vec![y];
    file.tensors[0].signature = Some(vec![-1, 3]);
    file.tensors[y as usize].signature = Some(vec![-1, 2]);
    let file = ModelFile::from_bytes(file.bytes(), &LoadOptions::default()).expect("a file");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = file.session(&context, SessionOptions::default()).expect("a session");
    for rows in [0, 2, 0] {
        let x = HostTensor::new(Dims::new(&[rows, 3]).expect("small"), vec![1.0; 3 * rows]).expect("as many");
        let found = session.run(&[("x", &x)]).expect("a run").remove(0);
        assert_eq!((found.dims().extents(), &*found.to_f32()), (&[rows, 2][..], &vec![1.5; 2 * rows][..]));
    }
}
