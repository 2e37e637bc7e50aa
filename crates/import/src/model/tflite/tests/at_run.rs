//! Operators on floats with weights of int8 and int4, against what TensorFlow Lite gives for them: it rounds the floats to bytes at
//! each run.

use super::super::options;
use super::at_run_expected::EXPECTED;
use super::operators::{compare, fields};
use super::writer::{Field, FileSpec, OptionsSpec, Scales, Window, code};
use crate::model::tflite::names::element;
use diptych::{LoadOptions, Model};

/// A constant of int8 with these scales along an axis.
fn bytes(file: &mut FileSpec, shape: &[i32], scales: Vec<f32>, axis: i32) -> i32 {
    let count = shape.iter().product::<i32>() as usize;
    let values = (0..count).map(|at| ((at * 37 + at / 7) % 255) as u8).map(|byte| byte.wrapping_sub(127));
    let weights = file.constant_of("weights", shape, element::INT8, values.collect());
    let zeros = vec![0; scales.len()];
    file.tensors[weights as usize].quantised = Some(Scales(scales, zeros, axis));
    weights
}

fn scales(count: usize) -> Vec<f32> {
    (0..count).map(|at| 0.002 + 0.0003 * at as f32).collect()
}

fn floats(file: &mut FileSpec, name: &str, count: usize) -> i32 {
    let values = (0..count).flat_map(|at| (at as f32 * 0.25 - 0.5).to_le_bytes()).collect();
    file.constant_of(name, &[count as i32], element::FLOAT32, values)
}

/// One operator of `x` and weights, with a bias for each output.
fn layer(
    name: &str,
    [x, weights, y]: [&[i32]; 3],
    (scales, axis): (Vec<f32>, i32),
    options: OptionsSpec,
) -> FileSpec {
    let mut file = FileSpec::with_input("x", x);
    let weights = bytes(&mut file, weights, scales, axis);
    let bias = floats(&mut file, "bias", y[y.len() - 1] as usize);
    let y = file.map("y", y);
    file.op(code(name), &[0, weights, bias], &[y], options);
    file.outputs = vec![y];
    file
}

fn dense(activation: i8) -> OptionsSpec {
    fields(options::FullyConnectedOptions::TAG, &[(0, Field::Byte(activation))])
}

/// A layer with weights of four bits.
fn four_bits() -> FileSpec {
    let mut file = layer("FULLY_CONNECTED", [&[3, 10], &[5, 10], &[3, 5]], (scales(5), 0), dense(1));
    let weights = file.tensors[1].clone();
    file.buffers[weights.buffer as usize].data = Some((0..25).map(|at| (at * 29 + 3) as u8).collect());
    file.tensors[1].element_type = element::INT4;
    file
}

/// Products of `x` with constant matrices.
fn batches(weights: &[i32], transposed: bool) -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3, 4]);
    let weights = bytes(&mut file, weights, vec![0.006], 0);
    let y = file.map("y", &[2, 3, 7]);
    let options = [(1, Field::Bool(transposed)), (2, Field::Bool(true))];
    file.op(code("BATCH_MATMUL"), &[0, weights], &[y], fields(options::BatchMatmulOptions::TAG, &options));
    file.outputs = vec![y];
    file
}

/// A transposed convolution to twice the extents.
fn doubled() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3, 4, 5]);
    let shape = file.integers("shape", &[4], &[2, 6, 8, 3]);
    let weights = bytes(&mut file, &[3, 2, 2, 5], scales(3), 0);
    let y = file.map("y", &[2, 6, 8, 3]);
    let options = [(0, Field::Byte(1)), (1, Field::Int(2)), (2, Field::Int(2))];
    let options = fields(options::TransposedConvOptions::TAG, &options);
    file.op(code("TRANSPOSE_CONV"), &[shape, weights, 0], &[y], options);
    file.outputs = vec![y];
    file
}

fn files() -> Vec<(String, FileSpec)> {
    let mut files: Vec<(String, FileSpec)> = Vec::new();
    let mut put = |name: &str, file: FileSpec| files.push((name.to_owned(), file));
    let map: &[i32] = &[2, 5, 6, 3];
    let rows = [&[3, 19][..], &[7, 19], &[3, 7]];
    put("FULLY_CONNECTED", layer("FULLY_CONNECTED", rows, (scales(7), 0), dense(0)));
    put("FULLY_CONNECTED of one scale", layer("FULLY_CONNECTED", rows, (vec![0.004], 0), dense(1)));
    put("FULLY_CONNECTED of four bits", four_bits());
    let window = |stride| Window { stride: [stride; 2], activation: 1, ..Window::default() };
    let conv = [map, &[5, 3, 3, 3], &[2, 3, 3, 5]];
    put("CONV_2D", layer("CONV_2D", conv, (scales(5), 0), OptionsSpec::Conv2d(window(2))));
    let depthwise = [map, &[1, 3, 3, 3], &[2, 5, 6, 3]];
    let options = OptionsSpec::Depthwise(window(1), 1);
    put("DEPTHWISE_CONV_2D", layer("DEPTHWISE_CONV_2D", depthwise, (scales(3), 3), options));
    let several = [map, &[1, 3, 3, 6], &[2, 3, 3, 6]];
    let pixels = [map, &[6, 1, 1, 3], &[2, 5, 6, 6]];
    put("CONV_2D of pixels", layer("CONV_2D", pixels, (scales(6), 0), OptionsSpec::Conv2d(window(1))));
    let grouped = [&[2, 5, 6, 4][..], &[6, 3, 3, 2], &[2, 5, 6, 6]];
    put("CONV_2D of groups", layer("CONV_2D", grouped, (scales(6), 0), OptionsSpec::Conv2d(window(1))));
    for (name, weights, second) in [("BATCH_MATMUL", [2, 4, 7], false), ("BATCH_MATMUL b", [2, 7, 4], true)] {
        put(name, batches(&weights, second));
    }
    put("BATCH_MATMUL of rows", batches(&[7, 4], true));
    put("TRANSPOSE_CONV", doubled());
    let options = OptionsSpec::Depthwise(window(2), 2);
    put("DEPTHWISE_CONV_2D of two", layer("DEPTHWISE_CONV_2D", several, (scales(6), 3), options));
    files
}

#[test]
fn results_are_those_that_tensorflow_lite_gives() {
    compare(&files(), EXPECTED);
}

#[test]
fn rows_are_bytes_unless_floats_are_asked_for() {
    let ops = |file: &FileSpec, dequantize| {
        let options = LoadOptions { dequantize, ..LoadOptions::default() };
        let model = Model::from_bytes(&file.bytes(), &options).expect("a valid file");
        model.graph.nodes().iter().map(|node| node.operator().name()).collect::<Vec<_>>()
    };
    for (name, file) in files() {
        let has = |dequantize, op: &str| ops(&file, dequantize).contains(&op);
        assert!(has(false, "dynamic_range") && !has(true, "dynamic_range"), "{name}");
        let floats = ["DEPTHWISE", "TRANSPOSE", "four", "groups", "MATMUL b", "MATMUL"];
        let of_bytes = name.contains("rows") || !floats.iter().any(|part| name.contains(part));
        assert_eq!(has(false, "dynamic_conv2d"), of_bytes, "{name}");
    }
}
