//! Operators of int8 and int16, against what TensorFlow Lite gives for them, to the integer: LiteRT 2.3 with its default
//! kernels. Scales are such that many results lie halfway between two integers.

use super::super::options;
use super::operators::{compare, fields, none};
use super::quantised_expected::EXPECTED;
use super::writer::{Field, FileSpec, OptionsSpec, Scales, Window, code};
use crate::model::tflite::names::element;
use Field::{Bool, Byte, Float, Int};

/// A type, a scale and the integer that stands for 0.
#[derive(Clone, Copy)]
pub(super) struct Kind(pub(super) i8, pub(super) f32, pub(super) i64);

pub(super) fn map(file: &mut FileSpec, name: &str, shape: &[i32], Kind(kind, scale, zero): Kind) -> i32 {
    let tensor = file.map(name, shape);
    file.tensors[tensor as usize].element_type = kind;
    file.tensors[tensor as usize].quantised = Some(Scales(vec![scale], vec![zero], 0));
    tensor
}

/// Floats to integers, an operator of one or two of them, and floats again.
fn between(
    name: &str,
    (shape, from): (&[i32], &[Kind]),
    more: &[i32],
    (result, to): (&[i32], Kind),
    options: OptionsSpec,
) -> FileSpec {
    let mut file = FileSpec::with_input("x", shape);
    let mut inputs = Vec::new();
    for (index, &kind) in from.iter().enumerate() {
        let x = if index == 0 { 0 } else { file.map(&format!("x{index}"), shape) };
        if index > 0 {
            file.inputs.push(x);
        }
        let whole = map(&mut file, &format!("whole{index}"), shape, kind);
        file.op(code("QUANTIZE"), &[x], &[whole], none());
        inputs.push(whole);
    }
    if !more.is_empty() {
        inputs.push(file.integers("more", &[more.len() as i32], more));
    }
    let whole = map(&mut file, "result", result, to);
    file.op(code(name), &inputs, &[whole], options);
    let y = file.map("y", result);
    file.op(code("DEQUANTIZE"), &[whole], &[y], none());
    file.outputs = vec![y];
    file
}

const A: Kind = Kind(element::INT8, 0.25, -3);
const B: Kind = Kind(element::INT8, 0.5, 4);
const C: Kind = Kind(element::INT8, 0.037, -9);
const D: Kind = Kind(element::INT8, 0.045, 11);
const U: Kind = Kind(element::UINT8, 0.25, 120);

/// A convolution of int16 whose bias has no scale, as some writers leave it.
fn bare_bias() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[1, 3, 3, 2]);
    let whole = map(&mut file, "whole", &[1, 3, 3, 2], Kind(element::INT16, 0.001, 0));
    let sums = map(&mut file, "sums", &[1, 3, 3, 2], Kind(element::INT16, 0.0023, 0));
    let weights: Vec<u8> = [40i8, -90, 25, 77].iter().map(|&value| value as u8).collect();
    let weights = file.constant_of("weights", &[2, 1, 1, 2], element::INT8, weights);
    file.tensors[weights as usize].quantised = Some(Scales(vec![0.01, 0.02], vec![0; 2], 0));
    let bias = [30_000i64, -50_000].iter().flat_map(|value| value.to_le_bytes()).collect();
    let bias = file.constant_of("bias", &[2], element::INT64, bias);
    file.op(code("QUANTIZE"), &[0], &[whole], none());
    file.op(code("CONV_2D"), &[whole, weights, bias], &[sums], OptionsSpec::Conv2d(Window::default()));
    let y = file.map("y", &[1, 3, 3, 2]);
    file.op(code("DEQUANTIZE"), &[sums], &[y], none());
    file.outputs = vec![y];
    file
}

fn files() -> Vec<(String, FileSpec)> {
    let x: &[i32] = &[1, 4, 6, 3];
    let mut files: Vec<(String, FileSpec)> = Vec::new();
    let mut put = |name: &str, file: FileSpec| files.push((name.to_owned(), file));
    let add = |activation| fields(options::AddOptions::TAG, &[(0, Byte(activation))]);
    put("ADD of halves", between("ADD", (x, &[A, A]), &[], (x, B), add(0)));
    put("int8 ADD", between("ADD", (x, &[C, D]), &[], (x, Kind(element::INT8, 0.06, 5)), add(1)));
    put("ADD of bytes", between("ADD", (x, &[U, U]), &[], (x, Kind(element::UINT8, 0.5, 99)), add(0)));
    let sub = fields(options::SubOptions::TAG, &[(0, Byte(0))]);
    put("SUB of halves", between("SUB", (x, &[A, A]), &[], (x, B), sub));
    let mul = fields(options::MulOptions::TAG, &[(0, Byte(0))]);
    put("int8 MUL", between("MUL", (x, &[C, D]), &[], (x, Kind(element::INT8, 0.05, 2)), mul));
    let window = [(0, Byte(1)), (1, Int(2)), (2, Int(2)), (3, Int(2)), (4, Int(2))];
    let pool = || fields(options::PoolOptions::TAG, &window);
    for (name, kind) in [("signed", A), ("zero", Kind(element::INT8, 0.25, 0)), ("bytes", U)] {
        let file = between("AVERAGE_POOL_2D", (x, &[kind]), &[], (&[1, 2, 3, 3], kind), pool());
        put(&format!("AVERAGE_POOL_2D {name}"), file);
    }
    let centers = fields(options::ResizeBilinearOptions::TAG, &[(3, Bool(true))]);
    put(
        "int8 RESIZE_BILINEAR",
        between("RESIZE_BILINEAR", (x, &[A]), &[8, 12], (&[1, 8, 12, 3], A), centers),
    );
    for (name, to) in [("same", C), ("other", D), ("bytes", Kind(element::INT8, 0.1, 7))] {
        let slope = OptionsSpec::LeakyRelu(0.3);
        put(&format!("LEAKY_RELU {name}"), between("LEAKY_RELU", (x, &[C]), &[], (x, to), slope));
        put(&format!("QUANTIZE {name}"), between("QUANTIZE", (x, &[C]), &[], (x, to), none()));
    }
    let mean = fields(options::ReducerOptions::TAG, &[(0, Bool(true))]);
    put(
        "int8 MEAN",
        between("MEAN", (x, &[C]), &[1, 2], (&[1, 1, 1, 3], Kind(element::INT8, 0.01, 0)), mean),
    );
    let unit = Kind(element::INT8, 1.0 / 256.0, -128);
    let beta = fields(options::SoftmaxOptions::TAG, &[(0, Float(1.0))]);
    put("int8 SOFTMAX", between("SOFTMAX", (x, &[C]), &[], (x, unit), beta));
    put("int8 LOGISTIC", between("LOGISTIC", (x, &[C]), &[], (x, unit), none()));
    put("int8 TANH", between("TANH", (x, &[C]), &[], (x, Kind(element::INT8, 1.0 / 128.0, 0)), none()));
    put("CONV_2D without a scale of the bias", bare_bias());
    files
}

#[test]
fn integers_are_those_that_tensorflow_lite_gives() {
    compare(&files(), EXPECTED);
}

#[test]
fn a_file_says_what_its_inputs_integers_stand_for() {
    use crate::host::HostTensor;
    use diptych::{LoadOptions, ModelFile};

    let mut file = FileSpec::with_input("x", &[1, 3]);
    file.tensors[0].element_type = element::UINT8;
    file.tensors[0].quantised = Some(Scales(vec![0.25], vec![120], 0));
    let y = map(&mut file, "y", &[1, 3], U);
    file.op(code("RELU"), &[0], &[y], none());
    file.outputs = vec![y];
    let file = ModelFile::from_bytes(file.bytes(), &LoadOptions::default()).expect("a file");
    let quantised = file.info().quantised.get("x").copied().expect("bytes");
    assert_eq!((quantised.scale, quantised.zero), (0.25, 120));
    let stored =
        HostTensor::of(crate::dims::Dims::new(&[3]).expect("small"), vec![120u8, 124, 0]).expect("small");
    assert_eq!(*quantised.floats(&stored).expect("floats").to_f32(), [0.0, 1.0, -30.0]);
}
