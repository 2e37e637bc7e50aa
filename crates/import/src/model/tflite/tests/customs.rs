//! MediaPipe's operators, against results that were worked out from their definitions in float64: LiteRT has no kernels
//! for them.

use super::expected::Outputs;
use super::operators::compare;
use super::writer::{FileSpec, OpSpec};
use crate::model::tflite::names::element;

/// Options as a writer of flexible buffers gives them: landmarks 0 and 2, a crop of 4 by 3, scaled by 1.5 and 1.25,
/// turned by 0.5, of landmarks 0, 1, 3 and 4.
const CROP: &[u8] = b"left_rotation_idx\x00right_rotation_idx\x00output_width\x00output_height\x00scale_x\x00scale_y\x00target_rotation_radians\x00subset_idxs\x00\x04\x00\x01\x03\x04\x08zIWk>7\x181\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00\x00\x00\xc0?\x00\x00\xa0?3\x00\x00\x00\x00\x00\x00?\x06\x06\x06\x06\x0e\x0e,\x0e(&\x01";

/// The first two rows of a matrix that turns, scales and moves.
const MATRIX: [f32; 16] = [0.8, -0.3, 0.0, 1.2, 0.25, 0.9, 0.0, 0.4, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];

fn custom(file: &mut FileSpec, name: &str, inputs: &[i32], options: &[u8], outputs: &[i32]) {
    file.ops.push(OpSpec {
        code: 32,
        custom: Some(name.to_owned()),
        custom_options: Some(options.to_vec()),
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
        ..Default::default()
    });
}

/// One operator of `x`, and of the matrix where it takes one.
fn single(name: &str, x: &[i32], takes_matrix: bool, output: &[i32]) -> FileSpec {
    let mut file = FileSpec::with_input("x", x);
    let mut inputs = vec![0];
    if takes_matrix {
        let data = MATRIX.iter().flat_map(|value| value.to_le_bytes()).collect();
        inputs.push(file.constant_of("matrix", &[1, 4, 4], element::FLOAT32, data));
    }
    let y = file.map("y", output);
    custom(&mut file, name, &inputs, CROP, &[y]);
    file.outputs = vec![y];
    file
}

/// A pooling of squares of two pixels, and its reverse.
fn pooled() -> FileSpec {
    let options: Vec<u8> = [1i32, 2, 2, 2, 2, 0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut file = FileSpec::with_input("x", &[1, 5, 6, 2]);
    let [values, places] = ["values", "places"].map(|name| file.map(name, &[1, 3, 3, 2]));
    let whole = file.map("whole", &[1, 6, 6, 2]);
    custom(&mut file, "MaxPoolingWithArgmax2D", &[0], &options, &[values, places]);
    custom(&mut file, "MaxUnpooling2D", &[values, places], &options, &[whole]);
    file.outputs = vec![values, places, whole];
    file
}

#[rustfmt::skip]
const EXPECTED: &[(&str, Outputs)] = &[
    ("Landmarks2TransformMatrix", &[(&[1, 4, 4], &[1.1551626, 0.7998194, 0.0, -3.260054, -1.0104388, 0.91437644, 0.0, 1.649313, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0])]),
    ("MaxPoolingWithArgmax2D", &[(&[1, 3, 3, 2], &[2.75, 2.75, 2.25, 2.25, 1.75, 1.75, 2.75, 2.75, 2.25, 1.75, 1.25, 2.75, 2.25, 0.25, -0.25, 1.75, 2.75, 0.75]), (&[1, 3, 3, 2], &[3.1, 1.1, 1.1, 2.1, 2.1, 0.1, 2.1, 0.1, 0.1, 1.1, 1.1, 3.1, 1.1, 1.1, 1.1, 0.1, 1.1, 1.1]), (&[1, 6, 6, 2], &[0.0, 0.0, 0.0, 2.75, 0.0, 0.0, 2.25, 0.0, 0.0, 1.75, 0.0, 0.0, 0.0, 0.0, 2.75, 0.0, 0.0, 2.25, 0.0, 0.0, 1.75, 0.0, 0.0, 0.0, 0.0, 2.75, 0.0, 0.0, 2.25, 0.0, 0.0, 1.75, 0.0, 0.0, 1.25, 0.0, 2.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.75, 0.0, 0.0, 2.25, 0.25, 0.0, 1.75, -0.25, 0.0, 0.0, 0.0, 2.75, 0.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])]),
    ("TransformLandmarks", &[(&[1, 5, 3], &[-0.97500014, 0.9625, -0.75, 3.1750002, 1.7624999, -1.25, 2.9250002, 1.1875, -1.75, 2.6750002, 0.6125, -2.25, 2.4250002, 0.037500054, 2.75])]),
    ("TransformTensorBilinear", &[(&[1, 3, 4, 2], &[0.83750004, 1.7250001, -0.07812514, 1.290625, -0.37499988, 0.03812472, 0.32500014, -0.87062496, 1.4750001, 0.19687498, 1.2468749, 0.17500013, 0.98437476, 0.70312506, -1.271875, 1.3343748, 0.20812492, 1.3293749, -0.07499984, 0.3793748, 0.6250002, -1.161875, 1.3250002, -0.6406249])]),
];

#[test]
fn operators_of_landmarks_and_places_of_maxima_are_as_defined() {
    let files = [
        ("Landmarks2TransformMatrix", single("Landmarks2TransformMatrix", &[1, 5, 3], false, &[1, 4, 4])),
        ("MaxPoolingWithArgmax2D", pooled()),
        ("TransformLandmarks", single("TransformLandmarks", &[1, 5, 3], true, &[1, 5, 3])),
        ("TransformTensorBilinear", single("TransformTensorBilinear", &[1, 5, 6, 2], true, &[1, 3, 4, 2])),
    ];
    let files: Vec<(String, FileSpec)> = files.map(|(name, file)| (name.to_owned(), file)).into();
    compare(&files, EXPECTED);
}
