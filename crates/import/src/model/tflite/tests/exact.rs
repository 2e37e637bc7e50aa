//! Operators of int8 and uint8 whose sums are computed in f32, against what TensorFlow Lite gives for them, to the integer.

use super::super::options;
use super::exact_expected::EXPECTED;
use super::operators::{compare, fields, none, steps};
use super::quantised::{Kind, map};
use super::writer::{Field, FileSpec, OptionsSpec, Scales, Window, code};
use crate::model::tflite::names::element;
use diptych::{LoadOptions, SessionOptions};

const X: Kind = Kind(element::INT8, 0.031, -5);
const U: Kind = Kind(element::UINT8, 0.031, 117);

/// Weights of a type with scales along an axis, and a bias of 32 bits.
fn weights(
    file: &mut FileSpec,
    shape: &[i32],
    kind: i8,
    (scales, zero, axis): (Vec<f32>, i64, i32),
    x: f32,
) -> [i32; 2] {
    let count = shape.iter().product::<i32>() as usize;
    // No -128 among signed ones.
    let values = (0..count).map(|at| ((at * 37 + at / 7) % 255) as u8);
    let values = values.map(|byte| if kind == element::INT8 { byte.wrapping_sub(127) } else { byte });
    let weights = file.constant_of("weights", shape, kind, values.collect());
    let outputs = shape[axis as usize] as usize;
    let of_bias = scales.iter().map(|scale| x * scale).collect();
    let bias = (0..outputs).flat_map(|at| (at as i32 * 700 - 900).to_le_bytes()).collect();
    let zeros = vec![zero; scales.len()];
    file.tensors[weights as usize].quantised = Some(Scales(scales, zeros, axis));
    let none = vec![0; file.tensors[weights as usize].quantised.as_ref().map_or(1, |own| own.0.len())];
    let bias = file.constant_of("bias", &[outputs as i32], element::INT32, bias);
    file.tensors[bias as usize].quantised = Some(Scales(of_bias, none, 0));
    [weights, bias]
}

fn scales(count: usize) -> Vec<f32> {
    (0..count).map(|at| 0.004 + 0.0006 * at as f32).collect()
}

/// `x` rounded, a layer of it, and floats again.
fn layer(
    name: &str,
    (x, own): (&[i32], Kind),
    (shape, kind, steps): (&[i32], i8, (Vec<f32>, i64, i32)),
    (y, to): (&[i32], Kind),
    options: OptionsSpec,
) -> FileSpec {
    let mut file = FileSpec::with_input("x", x);
    let whole = map(&mut file, "whole", x, own);
    file.op(code("QUANTIZE"), &[0], &[whole], none());
    let [weights, bias] = weights(&mut file, shape, kind, steps, own.1);
    let result = map(&mut file, "result", y, to);
    let inputs = match name {
        "TRANSPOSE_CONV" => vec![file.integers("shape", &[4], y), weights, whole],
        _ => vec![whole, weights, bias],
    };
    file.op(code(name), &inputs, &[result], options);
    let floats = file.map("y", y);
    file.op(code("DEQUANTIZE"), &[result], &[floats], none());
    file.outputs = vec![floats];
    file
}

/// The product of two values.
fn product() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3, 5]);
    let other = file.map("x1", &[2, 4, 5]);
    file.inputs.push(other);
    let own =
        [map(&mut file, "a", &[2, 3, 5], X), map(&mut file, "b", &[2, 4, 5], Kind(element::INT8, 0.02, 9))];
    for (from, to) in [0, other].into_iter().zip(own) {
        file.op(code("QUANTIZE"), &[from], &[to], none());
    }
    let result = map(&mut file, "result", &[2, 3, 4], Kind(element::INT8, 0.09, 3));
    let options = fields(options::BatchMatmulOptions::TAG, &[(1, Field::Bool(true))]);
    file.op(code("BATCH_MATMUL"), &own, &[result], options);
    let y = file.map("y", &[2, 3, 4]);
    file.op(code("DEQUANTIZE"), &[result], &[y], none());
    file.outputs = vec![y];
    file
}

fn files() -> Vec<(String, FileSpec)> {
    let mut files: Vec<(String, FileSpec)> = Vec::new();
    let mut put = |name: &str, file: FileSpec| files.push((name.to_owned(), file));
    let (int8, uint8) = (element::INT8, element::UINT8);
    let conv = || OptionsSpec::Conv2d(Window { activation: 1, ..Window::default() });
    let stride = Window { stride: [2; 2], ..Window::default() };
    let y = Kind(int8, 0.11, 2);
    let groups = (&[6, 3, 3, 2][..], int8, (scales(6), 0, 0));
    put("CONV_2D of groups", layer("CONV_2D", (&[1, 5, 6, 4], X), groups, (&[1, 5, 6, 6], y), conv()));
    let several = (&[1, 3, 3, 6][..], int8, (scales(6), 0, 3));
    let depthwise = OptionsSpec::Depthwise(stride, 2);
    let file = layer("DEPTHWISE_CONV_2D", (&[1, 5, 6, 3], X), several, (&[1, 3, 3, 6], y), depthwise);
    put("DEPTHWISE_CONV_2D of two", file);
    let y = Kind(uint8, 0.11, 131);
    let wide = (&[5, 3, 3, 3][..], uint8, (vec![0.005], 101, 0));
    put("CONV_2D of 9 bits", layer("CONV_2D", (&[1, 5, 6, 3], U), wide, (&[1, 5, 6, 5], y), conv()));
    let wide = (&[1, 3, 3, 3][..], uint8, (vec![0.005], 170, 3));
    let depthwise = OptionsSpec::Depthwise(Window::default(), 1);
    let file = layer("DEPTHWISE_CONV_2D", (&[1, 5, 6, 3], U), wide, (&[1, 5, 6, 3], y), depthwise);
    put("DEPTHWISE_CONV_2D of 9 bits", file);
    let options = [(0, Field::Byte(0)), (1, Field::Int(2)), (2, Field::Int(2))];
    let options = fields(options::TransposedConvOptions::TAG, &options);
    let kernel = (&[3, 3, 3, 5][..], int8, (scales(3), 0, 0));
    let y = (&[1, 8, 6, 3][..], Kind(int8, 0.08, -7));
    put("TRANSPOSE_CONV", layer("TRANSPOSE_CONV", (&[1, 4, 3, 5], X), kernel, y, options));
    put("BATCH_MATMUL", product());
    files
}

#[test]
fn integers_are_those_that_tensorflow_lite_gives() {
    compare(&files(), EXPECTED);
}

#[test]
fn sums_are_of_whole_numbers() {
    for (name, file) in files() {
        let ops = steps(&file.bytes(), &LoadOptions::default(), SessionOptions::default());
        // Bytes in, and out again, without a step that rounds floats to a grid.
        let count = |wanted: &str| ops.iter().filter(|op| **op == wanted).count();
        assert_eq!(count("quantize"), file.inputs.len() + 1, "{name}: {ops:?}");
    }
}
