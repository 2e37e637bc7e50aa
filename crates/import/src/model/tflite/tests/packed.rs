//! Weights of 4 and 8 bits of layers of floats: results worked out by hand, and what stays packed.

use super::super::options;
use super::operators::{fields, none};
use super::writer::{Field, FileSpec, Scales, code};
use crate::dims::Dims;
use crate::host::HostTensor;
use crate::model::tflite::names::element;
use diptych::Session;
use diptych::tflite::from_bytes;
use diptych::{LoadOptions, Model};

/// `x` of 2x3 by weights of two rows, of a type and with scales; a bias, and ReLU6.
fn dense(kind: i8, data: &[u8], scales: Scales) -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3]);
    let weights = file.constant_of("weights", &[2, 3], kind, data.to_vec());
    file.tensors[weights as usize].quantised = Some(scales);
    let bias = [0.5f32, -1.0].into_iter().flat_map(f32::to_le_bytes).collect();
    let bias = file.constant_of("bias", &[2], element::FLOAT32, bias);
    let y = file.map("y", &[2, 2]);
    let options = fields(options::FullyConnectedOptions::TAG, &[(0, Field::Byte(3))]);
    file.op(code("FULLY_CONNECTED"), &[0, weights, bias], &[y], options);
    file.outputs = vec![y];
    file
}

/// The operators of the graph, and its result.
fn run(file: &FileSpec) -> (Vec<&'static str>, Vec<f32>) {
    let options = LoadOptions { dequantize: true, ..LoadOptions::default() };
    let graph = Model::from_bytes(&file.bytes(), &options).expect("a valid file").graph;
    let ops = graph.nodes().iter().map(|node| node.operator().name()).collect();
    let x = [1.0, 2.0, 3.0, -1.0, 0.5, 1.0].to_vec();
    let x = HostTensor::new(Dims::new(&[2, 3]).expect("small"), x).expect("six");
    let y = Session::on_cpu(&graph).and_then(|session| session.compute(&[("x", &x)])).expect("a run");
    (ops, y[0].to_f32().into_owned())
}

#[test]
fn rows_of_floats_are_multiplied_by_packed_weights() {
    let each = || Scales(vec![0.5, 0.25], vec![0, 0], 0);
    // Rows of 1 -2 3 and -8 7 0, the first of two in the lower half.
    let four = dense(element::INT4, &[0xe1, 0x83, 0x07], each());
    // (1 - 4 + 9) / 2 + 0.5 and (-8 + 14) / 4 - 1; (-1 - 1 + 3) / 2 + 0.5 and (8 + 3.5) / 4 - 1.
    assert_eq!(run(&four), (vec!["quantized_gemm"], vec![3.5, 0.5, 1.0, 1.875]));
    // 1 -2 3 and -128 127 0, of which one is beyond six and the other below zero.
    let eight = dense(element::INT8, &[1, 254, 3, 128, 127, 0], each());
    // (-128 + 254) / 4 - 1 and (128 + 63.5) / 4 - 1.
    assert_eq!(run(&eight), (vec!["quantized_gemm"], vec![3.5, 6.0, 1.0, 6.0]));
    // Less a zero point of 3: -2 0 1 and 2 1 0.
    let unsigned = dense(element::UINT8, &[1, 3, 4, 5, 4, 3], Scales(vec![0.5], vec![3], 0));
    // (-2 + 3) / 2 + 0.5 and (2 + 2) / 2 - 1; (2 + 1) / 2 + 0.5 and (-2 + 0.5) / 2 - 1.
    assert_eq!(run(&unsigned), (vec!["quantized_gemm"], vec![1.0, 1.0, 2.0, 0.0]));
    let apart = dense(element::INT8, &[1, 0, 1, 3, 2, 3], Scales(vec![1.0, 0.5], vec![1, 2], 0));
    // -2 + 0.5 and (1 + 3) / 2 - 1; -0.5 + 0.5 and 0 - 1.
    assert_eq!(run(&apart), (vec!["quantized_gemm"], vec![0.0, 1.0, 0.0, 0.0]));
}

#[test]
fn other_weights_and_rows_become_floats() {
    let scales = || Scales(vec![0.5], vec![0], 0);
    let data = [1, 2, 3, 4, 5, 6];
    // A scale for each column.
    let columns = dense(element::INT8, &data, Scales(vec![0.5, 0.5, 0.5], vec![0; 3], 1));
    assert!(!run(&columns).0.contains(&"quantized_gemm"));
    // Rows that are integers themselves.
    let mut integers = dense(element::INT8, &data, scales());
    let whole = integers.map("whole", &[2, 3]);
    integers.tensors[whole as usize].element_type = element::INT8;
    integers.tensors[whole as usize].quantised = Some(Scales(vec![0.5], vec![0], 0));
    let mut layer = integers.ops.remove(0);
    integers.op(code("QUANTIZE"), &[0], &[whole], none());
    layer.inputs[0] = whole;
    integers.ops.push(layer);
    assert!(!run(&integers).0.contains(&"quantized_gemm"));
    // Too few bytes are refused as before.
    let short = dense(element::INT8, &data[..5], scales());
    let found = from_bytes(&short.bytes()).expect_err("five bytes").to_string();
    assert!(found.contains("found 5 bytes, wanted 6"), "{found}");
}
