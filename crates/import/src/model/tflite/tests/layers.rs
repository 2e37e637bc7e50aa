//! Recurrent layers, detections, loops, variables and other operators that become several nodes, against what
//! TensorFlow Lite computes of them.

use super::super::flexbuffer::tests::map;
use super::super::options;
use super::layers_expected::EXPECTED;
use super::operators::{TestInput, compare, fields, float, none, of};
use super::writer::{Field, FileSpec, NetworkSpec, OpSpec, OptionsSpec, TensorSpec, code};
use crate::dims::Dims;
use crate::host::HostTensor;
use crate::model::tflite::names::element;
use Field::{Bool, Byte, Float, Floats, Int, Text};
use TestInput::{Input, Integers};
use diptych::Session;
use diptych::SessionOptions;
use diptych::{Backend, Context};
use diptych::{LoadOptions, Model};

/// Numbers of both signs, other ones for another seed.
fn weights(seed: usize, count: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 5 + seed * 3) % 13) as f32 * 0.125 - 0.75).collect()
}

/// An input of a layer.
enum Part<'s> {
    None,
    Weights(&'s [i32]),
    Variable(&'s [i32]),
}
use Part::{Variable, Weights};

/// One operator of `x`, weights and variables, with outputs of these shapes.
fn layer(name: &str, x: &[i32], parts: &[Part<'_>], options: OptionsSpec, outputs: &[&[i32]]) -> FileSpec {
    let mut file = FileSpec::with_input("x", x);
    let mut inputs = vec![0];
    for (index, part) in parts.iter().enumerate() {
        inputs.push(match part {
            Part::None => -1,
            Weights(shape) => {
                let values = weights(index, shape.iter().product::<i32>() as usize);
                let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                file.constant_of(&format!("w{index}"), shape, element::FLOAT32, data)
            }
            Variable(shape) => {
                let tensor = file.map(&format!("v{index}"), shape);
                file.tensors[tensor as usize].variable = true;
                tensor
            }
        });
    }
    let outputs: Vec<i32> =
        outputs.iter().enumerate().map(|(index, shape)| file.map(&format!("y{index}"), shape)).collect();
    file.op(code(name), &inputs, &outputs, options);
    file.outputs = outputs;
    file
}

/// What a cell has beside its gates.
#[derive(Clone, Copy, Default)]
struct Cell {
    no_input_gate: bool,
    peepholes: bool,
    projection: bool,
    norms: bool,
}

/// The weights of a cell of 4 units over 3 features.
fn cell(Cell { no_input_gate, peepholes, projection, .. }: Cell) -> Vec<Part<'static>> {
    let outputs: &[i32] = if projection { &[4, 2] } else { &[4, 4] };
    let first = |shape| if no_input_gate { Part::None } else { Weights(shape) };
    let mut parts = vec![first(&[4, 3][..])];
    parts.extend((0..3).map(|_| Weights(&[4, 3])));
    parts.push(if no_input_gate { Part::None } else { Weights(if projection { &[4, 2] } else { &[4, 4] }) });
    parts.extend((0..3).map(|_| Weights(if outputs[1] == 2 { &[4, 2] } else { &[4, 4] })));
    for gate in 0..3 {
        let there = peepholes && !(gate == 0 && no_input_gate);
        parts.push(if there { Weights(&[4]) } else { Part::None });
    }
    parts.push(first(&[4]));
    parts.extend((0..3).map(|_| Weights(&[4])));
    for shape in [&[2, 4][..], &[2]] {
        parts.push(if projection { Weights(shape) } else { Part::None });
    }
    parts
}

fn sequence_lstm(kind: Cell, clips: [f32; 2]) -> FileSpec {
    let mut parts = cell(kind);
    let units: &[i32] = if kind.projection { &[2, 2] } else { &[2, 4] };
    parts.extend([Variable(units), Variable(&[2, 4])]);
    if kind.norms {
        parts.push(if kind.no_input_gate { Part::None } else { Weights(&[4]) });
        parts.extend((0..3).map(|_| Weights(&[4])));
    }
    let ids = [(0, Byte(4)), (1, Float(clips[0])), (2, Float(clips[1]))];
    let options = fields(options::SequenceLstmOptions::TAG, &ids);
    let outputs: &[i32] = if kind.projection { &[2, 3, 2] } else { &[2, 3, 4] };
    layer("UNIDIRECTIONAL_SEQUENCE_LSTM", &[2, 3, 3], &parts, options, &[outputs])
}

fn recurrent(put: &mut dyn FnMut(&str, FileSpec)) {
    let all = Cell { no_input_gate: true, peepholes: true, projection: true, norms: true };
    for (name, kind, clips) in [
        ("plain", Cell::default(), [0.0; 2]),
        ("without an input gate", Cell { no_input_gate: true, ..Cell::default() }, [0.0; 2]),
        ("with peepholes", Cell { peepholes: true, ..Cell::default() }, [0.0; 2]),
        ("with a projection", Cell { projection: true, ..Cell::default() }, [0.0; 2]),
        ("with norms", Cell { norms: true, ..Cell::default() }, [0.0; 2]),
        ("with everything", all, [0.5, 0.25]),
    ] {
        put(&format!("sequence LSTM {name}"), sequence_lstm(kind, clips));
    }
    let mut parts = cell(Cell::default());
    parts.extend([Variable(&[2, 4]), Variable(&[2, 4])]);
    let options = fields(options::LstmOptions::TAG, &[(0, Byte(4))]);
    put("LSTM of one step", layer("LSTM", &[2, 3], &parts, options, &[&[2, 4]]));
    let parts = [Variable(&[2, 4]), Weights(&[16, 7]), Weights(&[16]), Variable(&[2, 4])];
    let options = fields(options::LstmOptions::TAG, &[(0, Byte(4)), (3, Byte(1))]);
    put("LSTM basic", layer("LSTM", &[2, 3], &parts, options, &[&[2, 4], &[2, 4], &[2, 7], &[2, 16]]));
    let both = || {
        let mut parts = cell(Cell::default());
        parts.extend(cell(Cell::default()));
        parts.extend((0..4).map(|_| Variable(&[1, 4])));
        parts.extend((0..9).map(|_| Part::None));
        parts
    };
    let tag = options::BidirectionalLstmOptions::TAG;
    let joined = fields(tag, &[(0, Byte(4)), (3, Bool(true)), (4, Bool(false))]);
    let name = "BIDIRECTIONAL_SEQUENCE_LSTM";
    put("LSTM both ways", layer(name, &[1, 3, 3], &both(), joined, &[&[1, 3, 8]]));
    let apart = fields(tag, &[(0, Byte(4)), (4, Bool(true))]);
    put("LSTM both ways apart", layer(name, &[3, 1, 3], &both(), apart, &[&[3, 1, 4], &[3, 1, 4]]));
    let cell = || vec![Weights(&[4, 3]), Weights(&[4, 4]), Weights(&[4]), Variable(&[2, 4])];
    let options = fields(options::RnnOptions::TAG, &[(0, Byte(4))]);
    put("RNN", layer("RNN", &[2, 3], &cell(), options, &[&[2, 4]]));
    let options = fields(options::SequenceRnnOptions::TAG, &[(0, Bool(true)), (1, Byte(1))]);
    put("sequence RNN", layer("UNIDIRECTIONAL_SEQUENCE_RNN", &[3, 2, 3], &cell(), options, &[&[3, 2, 4]]));
    let mut parts = cell();
    parts.extend(cell());
    parts.extend((0..3).map(|_| Part::None));
    let ids = [(0, Bool(false)), (1, Byte(4)), (2, Bool(true))];
    let options = fields(options::BidirectionalRnnOptions::TAG, &ids);
    put("RNN both ways", layer("BIDIRECTIONAL_SEQUENCE_RNN", &[2, 3, 3], &parts, options, &[&[2, 3, 8]]));
    let parts = [Weights(&[4, 3]), Weights(&[4, 5]), Weights(&[2]), Variable(&[2, 20])];
    let options = fields(options::SvdfOptions::TAG, &[(0, Int(2)), (1, Byte(1))]);
    put("SVDF", layer("SVDF", &[2, 3], &parts, options, &[&[2, 2]]));
}

/// `TFLite_Detection_PostProcess` over 6 anchors and 3 classes, one of them the background.
fn detection(regular: bool, each: i64) -> FileSpec {
    let mut file = FileSpec::with_input("boxes", &[1, 6, 4]);
    let scores = file.map("scores", &[1, 6, 3]);
    file.inputs.push(scores);
    let anchors: Vec<f32> =
        (0..24).map(|at| [0.3, 0.4, 0.25, 0.5][at % 4] + (at / 8) as f32 * 0.125).collect();
    let data = anchors.iter().flat_map(|value| value.to_le_bytes()).collect();
    let anchors = file.constant_of("anchors", &[6, 4], element::FLOAT32, data);
    let count = 4 * each as i32;
    let outputs = [&[1, count, 4][..], &[1, count], &[1, count], &[1]];
    let outputs: Vec<i32> =
        outputs.iter().enumerate().map(|(index, shape)| file.map(&format!("y{index}"), shape)).collect();
    let custom_options = map(&[
        ("detections_per_class", 2.0, true),
        ("h_scale", 5.0, false),
        ("max_classes_per_detection", each as f32, true),
        ("max_detections", 4.0, true),
        ("nms_iou_threshold", 0.5, false),
        ("nms_score_threshold", -1.5, false),
        ("num_classes", 2.0, true),
        ("use_regular_nms", f32::from(u8::from(regular)), true),
        ("w_scale", 5.0, false),
        ("x_scale", 10.0, false),
        ("y_scale", 10.0, false),
    ]);
    file.ops.push(OpSpec {
        code: 32,
        custom: Some("TFLite_Detection_PostProcess".to_owned()),
        custom_options: Some(custom_options),
        inputs: vec![0, scores, anchors],
        outputs: outputs.clone(),
        ..Default::default()
    });
    file.outputs = outputs;
    file
}

fn detections(put: &mut dyn FnMut(&str, FileSpec)) {
    put("detection", detection(false, 1));
    put("detection of two classes each", detection(false, 2));
    put("detection class by class", detection(true, 1));
    for (name, last) in [("NON_MAX_SUPPRESSION_V4", false), ("NON_MAX_SUPPRESSION_V5", true)] {
        let mut file = FileSpec::with_input("boxes", &[8, 4]);
        let scores = file.map("scores", &[8]);
        file.inputs.push(scores);
        let mut inputs = vec![0, scores, file.integers("count", &[], &[5])];
        let numbers: &[f32] = if last { &[0.75, -2.0, 0.5] } else { &[0.25, -1.0] };
        for (index, number) in numbers.iter().enumerate() {
            let data = number.to_le_bytes().to_vec();
            inputs.push(file.constant_of(&format!("n{index}"), &[], element::FLOAT32, data));
        }
        let shapes: &[&[i32]] = if last { &[&[5], &[5], &[]] } else { &[&[5], &[]] };
        let outputs: Vec<i32> =
            shapes.iter().enumerate().map(|(index, shape)| file.map(&format!("y{index}"), shape)).collect();
        for (index, &output) in outputs.iter().enumerate() {
            let score = last && index == 1;
            file.tensors[output as usize].element_type =
                if score { element::FLOAT32 } else { element::INT32 };
        }
        file.op(code(name), &inputs, &outputs, fields(if last { 96 } else { 95 }, &[]));
        file.outputs = outputs;
        put(name, file);
    }
}

fn scatters(put: &mut dyn FnMut(&str, FileSpec)) {
    // `SCATTER_ND` has its indices before the values.
    let mut file = FileSpec::with_input("x", &[4, 3]);
    let indices = file.integers("indices", &[4, 1], &[0, 3, 2, 3]);
    let shape = file.integers("shape", &[2], &[5, 3]);
    let y = file.map("y", &[5, 3]);
    file.op(code("SCATTER_ND"), &[indices, 0, shape], &[y], none());
    file.outputs = vec![y];
    put("SCATTER_ND", file);
    let mut file = FileSpec::with_input("x", &[3]);
    let indices = file.integers("indices", &[3, 2], &[0, 1, 2, 3, 3, 0]);
    let shape = file.integers("shape", &[2], &[4, 5]);
    let other = file.constant_of("other", &[], element::FLOAT32, 0.25f32.to_le_bytes().to_vec());
    let y = file.map("y", &[4, 5]);
    file.op(code("SPARSE_TO_DENSE"), &[indices, shape, 0, other], &[y], fields(50, &[]));
    file.outputs = vec![y];
    put("SPARSE_TO_DENSE", file);
    put("SEGMENT_SUM", float("SEGMENT_SUM", &[4, 3], &[Integers(&[4], &[0, 0, 1, 1])], none()));
    for name in ["SUM", "PROD", "MAX", "MIN"] {
        let name = format!("UNSORTED_SEGMENT_{name}");
        let others = [Integers(&[4], &[2, 0, 0, 2]), Integers(&[], &[3])];
        put(&name, float(&name, &[4, 3], &others, none()));
    }
    let options = fields(options::ReverseSequenceOptions::TAG, &[(0, Int(2)), (1, Int(0))]);
    let lengths = [Integers(&[2], &[3, 2])];
    put("REVERSE_SEQUENCE", float("REVERSE_SEQUENCE", &[2, 3, 4], &lengths, options));
    put("MATRIX_DIAG", float("MATRIX_DIAG", &[2, 3], &[], none()));
    put("MATRIX_SET_DIAG", float("MATRIX_SET_DIAG", &[2, 3, 4], &[Input(&[2, 3])], none()));
    let others = [Input(&[2, 3, 3]), Integers(&[3], &[2, 5, 0])];
    put("DYNAMIC_UPDATE_SLICE", float("DYNAMIC_UPDATE_SLICE", &[5, 6, 3], &others, none()));
    put("DYNAMIC_UPDATE_SLICE computed", updated());
    put("ATAN2", float("ATAN2", &[5, 7], &[Input(&[5, 7])], none()));
    put("WHERE", places());
    let ids = [(0, Float(-1.5)), (1, Float(2.0)), (2, Int(4))];
    put("FAKE_QUANT", float("FAKE_QUANT", &[3, 5], &[], fields(options::FakeQuantOptions::TAG, &ids)));
    let bounds = [(0, Floats(vec![-1.0, 0.25, 1.5]))];
    let bounds = fields(options::BucketizeOptions::TAG, &bounds);
    put("BUCKETIZE", of("BUCKETIZE", &[3, 5], &[], bounds, 1, element::INT32));
}

/// An update at a place that is computed.
fn updated() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[5, 6]);
    let (update, given) = (file.map("update", &[3, 4]), file.map("given", &[2]));
    file.inputs.extend([update, given]);
    let (whole, place, y) = (file.map("whole", &[2]), file.map("place", &[2]), file.map("y", &[5, 6]));
    for tensor in [whole, place] {
        file.tensors[tensor as usize].element_type = element::INT32;
    }
    let more = file.integers("more", &[2], &[1, 3]);
    file.op(code("CAST"), &[given], &[whole], none());
    file.op(code("ADD"), &[whole, more], &[place], fields(options::AddOptions::TAG, &[]));
    file.op(code("DYNAMIC_UPDATE_SLICE"), &[0, update, place], &[y], none());
    file.outputs = vec![y];
    file
}

/// The elements of `x` where a constant is not 0.
fn places() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3]);
    let condition = file.integers("condition", &[2, 3], &[0, 1, 0, 2, 0, 1]);
    let (places, y) = (file.map("places", &[3, 2]), file.map("y", &[3]));
    file.tensors[places as usize].element_type = element::INT64;
    file.op(code("WHERE"), &[condition], &[places], none());
    file.op(code("GATHER_ND"), &[0, places], &[y], none());
    file.outputs = vec![y];
    file
}

/// A convolution of volumes, or a transposed one to these extents.
fn volume(x: &[i32], kernel: &[i32], to: Option<&[i32]>, window: [i32; 3], same: bool) -> FileSpec {
    let mut file = FileSpec::with_input("x", x);
    let values = weights(1, kernel.iter().product::<i32>() as usize);
    let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let kernels = file.constant_of("weights", kernel, element::FLOAT32, data);
    let outputs = kernel[if to.is_some() { 3 } else { 4 }];
    let data = weights(2, outputs as usize).iter().flat_map(|value| value.to_le_bytes()).collect();
    let bias = file.constant_of("bias", &[outputs], element::FLOAT32, data);
    let y = file.map("y", to.unwrap_or(&[]));
    let [d, w, h] = window;
    let table = [(0, Byte(i8::from(!same))), (1, Int(d)), (2, Int(w)), (3, Int(h)), (4, Byte(1))];
    let table = fields(options::VolumeOptions::TAG, &table);
    match to {
        Some(to) => {
            let shape = file.integers("shape", &[5], to);
            file.op(code("CONV_3D_TRANSPOSE"), &[shape, kernels, 0, bias], &[y], table);
        }
        None => file.op(code("CONV_3D"), &[0, kernels, bias], &[y], table),
    }
    file.outputs = vec![y];
    file
}

fn volumes(put: &mut dyn FnMut(&str, FileSpec)) {
    let x = &[2, 5, 4, 6, 3];
    put("CONV_3D", volume(x, &[3, 2, 3, 3, 4], None, [1, 1, 1], true));
    put("CONV_3D strides", volume(x, &[2, 2, 3, 3, 4], None, [2, 1, 2], true));
    put("CONV_3D valid", volume(x, &[3, 2, 3, 3, 5], None, [2, 2, 1], false));
    let x = &[1, 3, 4, 2, 2];
    let same = volume(x, &[3, 3, 2, 3, 2], Some(&[1, 6, 4, 4, 3]), [2, 2, 1], true);
    put("CONV_3D_TRANSPOSE", same);
    let valid = volume(x, &[2, 3, 2, 3, 2], Some(&[1, 4, 9, 4, 3]), [1, 2, 2], false);
    put("CONV_3D_TRANSPOSE valid", valid);
}

/// A spectrum over two axes: its magnitude, its real and its imaginary part.
fn spectrum(extents: &[i32], lengths: &[i32], of: &[i32]) -> FileSpec {
    let mut file = FileSpec::with_input("x", extents);
    let lengths = file.integers("lengths", &[2], lengths);
    let whole = file.map("spectrum", of);
    file.tensors[whole as usize].element_type = element::COMPLEX64;
    file.op(code("RFFT2D"), &[0, lengths], &[whole], none());
    for name in ["COMPLEX_ABS", "REAL", "IMAG", "CAST"] {
        let y = file.map(name, of);
        file.op(code(name), &[whole], &[y], none());
        file.outputs.push(y);
    }
    file
}

/// A tensor of a called network.
fn tensor(name: &str, shape: &[i32], element_type: i8, buffer: u32) -> TensorSpec {
    let (name, shape) = (Some(name.to_owned()), shape.to_vec());
    TensorSpec { name, shape, element_type, buffer, ..Default::default() }
}

fn call(name: &str, inputs: &[i32], outputs: &[i32], options: OptionsSpec) -> OpSpec {
    let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
    OpSpec { code: code(name), inputs, outputs, options, ..Default::default() }
}

/// Five passes that multiply by the number of the pass and add `x`, and write each result in a list.
fn repeated() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[1, 3]);
    let (zero, one) = (file.integers("zero", &[], &[0]), file.integers("one", &[1], &[1]));
    let many = file.integers("five", &[], &[5]);
    let begin = file.integers("begin", &[2], &[0, 0]);
    let rest = file.integers("rest", &[1], &[-1]);
    let last = file.integers("last", &[1], &[0]);
    let whole = file.integers("whole", &[2], &[-1, -1]);
    let list = file.constant_of("list", &[5, 3], element::FLOAT32, vec![0; 60]);
    let buffer = |tensor: i32, file: &FileSpec| file.tensors[tensor as usize].buffer;
    let [one, many, begin, rest, last, whole] =
        [one, many, begin, rest, last, whole].map(|t| buffer(t, &file));
    let outputs: Vec<i32> = [("pass", &[][..]), ("y", &[1, 3]), ("all", &[5, 3]), ("given", &[1, 3])]
        .iter()
        .map(|(name, shape)| file.map(name, shape))
        .collect();
    file.tensors[outputs[0] as usize].element_type = element::INT32;
    let ends = fields(options::WhileOptions::TAG, &[(0, Int(1)), (1, Int(2))]);
    file.op(code("WHILE"), &[zero, 0, list, 0], &outputs, ends);
    file.outputs = outputs[1..3].to_vec();
    let arguments = || {
        vec![
            tensor("pass", &[], element::INT32, 0),
            tensor("y", &[1, 3], element::FLOAT32, 0),
            tensor("list", &[5, 3], element::FLOAT32, 0),
            tensor("x", &[1, 3], element::FLOAT32, 0),
        ]
    };
    let mut tensors = arguments();
    tensors.extend([tensor("five", &[], element::INT32, many), tensor("goes on", &[], element::BOOL, 0)]);
    let ops = vec![call("LESS", &[0, 4], &[5], none())];
    file.called.push(NetworkSpec { tensors, ops, inputs: vec![0, 1, 2, 3], outputs: vec![5] });
    let mut tensors = arguments();
    tensors.extend([
        tensor("one", &[1], element::INT32, one),
        tensor("begin", &[2], element::INT32, begin),
        tensor("rest", &[1], element::INT32, rest),
        tensor("last", &[1], element::INT32, last),
        tensor("whole", &[2], element::INT32, whole),
        tensor("next", &[1], element::INT32, 0),
        tensor("row", &[1], element::INT32, 0),
        tensor("number", &[], element::FLOAT32, 0),
        tensor("scaled", &[1, 3], element::FLOAT32, 0),
        tensor("sum", &[1, 3], element::FLOAT32, 0),
        tensor("before size", &[2], element::INT32, 0),
        tensor("before", &[1, 3], element::FLOAT32, 0),
        tensor("behind begin", &[2], element::INT32, 0),
        tensor("behind", &[1, 3], element::FLOAT32, 0),
        tensor("joined", &[5, 3], element::FLOAT32, 0),
        tensor("scalar", &[], element::INT32, 0),
    ]);
    let joined = || fields(options::ConcatenationOptions::TAG, &[]);
    let shape = |extents: Vec<i32>| fields(options::ReshapeOptions::TAG, &[(0, Field::Ints(extents))]);
    let ops = vec![
        call("RESHAPE", &[0, 4], &[10], shape(vec![1])),
        call("ADD", &[10, 4], &[9], fields(options::AddOptions::TAG, &[])),
        call("CAST", &[0], &[11], none()),
        call("MUL", &[1, 11], &[12], fields(options::MulOptions::TAG, &[])),
        call("ADD", &[12, 3], &[13], fields(options::AddOptions::TAG, &[])),
        call("CONCATENATION", &[10, 6], &[14], joined()),
        call("SLICE", &[2, 5, 14], &[15], none()),
        call("CONCATENATION", &[9, 7], &[16], joined()),
        call("SLICE", &[2, 16, 8], &[17], none()),
        call("CONCATENATION", &[15, 13, 17], &[18], joined()),
        call("SQUEEZE", &[9], &[19], fields(options::SqueezeOptions::TAG, &[])),
    ];
    file.called.push(NetworkSpec { tensors, ops, inputs: vec![0, 1, 2, 3], outputs: vec![19, 13, 18, 3] });
    file
}

/// Twice `x` where its sum is above a number, else its negative.
fn branches(bound: f32) -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3]);
    let axes = file.integers("axes", &[2], &[0, 1]);
    let bound = file.constant_of("bound", &[], element::FLOAT32, bound.to_le_bytes().to_vec());
    let (sum, over, y) = (file.map("sum", &[]), file.map("over", &[]), file.map("y", &[2, 3]));
    file.tensors[over as usize].element_type = element::BOOL;
    file.op(code("SUM"), &[0, axes], &[sum], fields(options::ReducerOptions::TAG, &[]));
    file.op(code("GREATER"), &[sum, bound], &[over], none());
    let both = fields(options::IfOptions::TAG, &[(0, Int(1)), (1, Int(2))]);
    file.op(code("IF"), &[over, 0], &[y], both);
    file.outputs = vec![y];
    let ends = || {
        let end = |name: &str| tensor(name, &[2, 3], element::FLOAT32, 0);
        vec![end("x"), end("y")]
    };
    let twice = vec![call("ADD", &[0, 0], &[1], fields(options::AddOptions::TAG, &[]))];
    let negative = vec![call("NEG", &[0], &[1], none())];
    for ops in [twice, negative] {
        file.called.push(NetworkSpec { tensors: ends(), ops, inputs: vec![0], outputs: vec![1] });
    }
    file
}

/// A variable that begins with numbers, and to which `x` is added: what it is before and after.
pub(super) fn variable() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[1, 3]);
    let data = [1.0f32, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let first = file.constant_of("first", &[1, 3], element::FLOAT32, data);
    let buffer = file.tensors[first as usize].buffer;
    let handle = file.map("handle", &[]);
    file.tensors[handle as usize].element_type = element::RESOURCE;
    let (before, after) = (file.map("before", &[1, 3]), file.map("after", &[1, 3]));
    let again = file.map("again", &[1, 3]);
    let named = || fields(options::VarHandleOptions::TAG, &[(1, Text("sum"))]);
    file.op(code("CALL_ONCE"), &[], &[], fields(options::CallOnceOptions::TAG, &[(0, Int(1))]));
    file.op(code("VAR_HANDLE"), &[], &[handle], named());
    file.op(code("READ_VARIABLE"), &[handle], &[before], none());
    file.op(code("ADD"), &[before, 0], &[after], fields(options::AddOptions::TAG, &[]));
    file.op(code("ASSIGN_VARIABLE"), &[handle, after], &[], none());
    file.op(code("READ_VARIABLE"), &[handle], &[again], none());
    file.outputs = vec![before, again];
    let tensors =
        vec![tensor("first", &[1, 3], element::FLOAT32, buffer), tensor("handle", &[], element::RESOURCE, 0)];
    let ops = vec![call("VAR_HANDLE", &[], &[1], named()), call("ASSIGN_VARIABLE", &[1, 0], &[], none())];
    file.called.push(NetworkSpec { tensors, ops, inputs: vec![], outputs: vec![] });
    file
}

fn files() -> Vec<(String, FileSpec)> {
    let mut files: Vec<(String, FileSpec)> = Vec::new();
    let mut put = |name: &str, file: FileSpec| files.push((name.to_owned(), file));
    recurrent(&mut put);
    detections(&mut put);
    scatters(&mut put);
    volumes(&mut put);
    put("spectrum of lines", spectrum(&[3, 1, 8], &[1, 8], &[3, 1, 5]));
    put("spectrum", spectrum(&[4, 8], &[4, 8], &[4, 5]));
    put("IF", branches(0.0));
    put("IF not", branches(100.0));
    put("variable", variable());
    files
}

#[test]
fn every_layer_gives_what_tensorflow_lite_gives() {
    compare(&files(), EXPECTED);
}

/// The outputs of one run after the other with the same inputs.
fn runs(file: &FileSpec, count: usize) -> Vec<Vec<Vec<f32>>> {
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a valid file");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &model.graph, SessionOptions::default()).expect("a session");
    let port = &model.inputs[0];
    let x = HostTensor::new(port.dims, vec![0.5; port.dims.elements()]).expect("as many");
    let mut run = || {
        let outputs = session.run(&[(&port.name, &x)]).expect("a run");
        outputs.iter().map(|tensor| tensor.to_nhwc().into_owned()).collect()
    };
    (0..count).map(|_| run()).collect()
}

#[test]
fn variables_and_layers_of_one_step_are_kept_from_run_to_run() {
    let found = runs(&variable(), 3);
    assert_eq!(found[0], [[1.0, 2.0, 3.0], [1.5, 2.5, 3.5]]);
    assert_eq!(found[2], [[2.0, 3.0, 4.0], [2.5, 3.5, 4.5]]);
    let files = files();
    for (name, keeps) in [("RNN", true), ("SVDF", true), ("LSTM of one step", true), ("sequence RNN", false)]
    {
        let (_, file) = files.iter().find(|(own, _)| own == name).expect("a file");
        let found = runs(file, 2);
        assert_eq!(found[0] != found[1], keeps, "{name}");
    }
}

#[test]
fn a_small_layer_of_many_steps_is_read() {
    let gates = || (0..4).map(|_| Weights(&[1, 1]));
    let mut parts: Vec<Part<'_>> = gates().chain(gates()).collect();
    parts.extend((0..3).map(|_| Part::None));
    parts.extend((0..4).map(|_| Weights(&[1])));
    parts.extend((0..2).map(|_| Part::None));
    parts.extend((0..2).map(|_| Variable(&[1, 1])));
    parts.extend((0..4).map(|_| Part::None));
    let options = fields(options::SequenceLstmOptions::TAG, &[(0, Byte(4))]);
    let name = "UNIDIRECTIONAL_SEQUENCE_LSTM";
    let file = layer(name, &[1, 1000, 1], &parts, options.clone(), &[&[1, 1000, 1]]);
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a thousand steps");
    assert!(model.graph.nodes().len() > 10_000);
    let file = layer(name, &[1, 100_000, 1], &parts, options, &[&[1, 100_000, 1]]);
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a hundred thousand steps");
    assert!(model.graph.nodes().len() < 20, "{}", model.graph.nodes().len());
}

#[test]
fn a_loop_of_a_known_number_of_passes_is_unrolled() {
    let found = runs(&repeated(), 1);
    let times = |factor: f32| vec![0.5 * factor; 3];
    assert_eq!(found[0][0], times(65.0));
    assert_eq!(found[0][1], [1.0, 2.0, 5.0, 16.0, 65.0].map(times).concat());
}

#[test]
fn loops_without_a_known_end_and_calls_of_nothing_are_refused() {
    let refused = |file: FileSpec| {
        Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect_err("refused").to_string()
    };
    let mut endless = repeated();
    endless.called[0].ops = vec![call("LESS_EQUAL", &[4, 4], &[5], none())];
    endless.called[1].ops.clear();
    endless.called[1].outputs = vec![0, 1, 2, 3];
    assert!(refused(endless).contains("passes"));
    let mut unknown = repeated();
    unknown.called[0].tensors[5].shape = vec![1, 3];
    unknown.called[0].ops = vec![call("LESS", &[1, 3], &[5], none())];
    assert!(refused(unknown).contains("depends on values"));
    let mut missing = branches(0.0);
    missing.called.pop();
    assert!(refused(missing).contains("network 2"));
    let mut itself = repeated();
    let again = fields(options::WhileOptions::TAG, &[(0, Int(1)), (1, Int(2))]);
    itself.called[1].ops = vec![call("WHILE", &[0, 1, 2, 3], &[19, 13, 18, 3], again)];
    assert!(!refused(itself).is_empty());
}

/// Rows of `x` one by one, each times a number that a state collects, and written in a list: as an export of a
/// recurrent layer has it whose lists stay TensorFlow's.
fn listed(prefix: &str) -> FileSpec {
    let mut file = FileSpec::with_input("x", &[4, 3]);
    let (zero, four) = (file.integers("zero", &[], &[0]), file.integers("four", &[], &[4]));
    let (one, extents) = (file.integers("one", &[], &[1]), file.integers("extents", &[1], &[3]));
    let state = file.constant_of("state", &[3], element::FLOAT32, vec![0; 12]);
    let buffer = |tensor: i32, file: &FileSpec| file.tensors[tensor as usize].buffer;
    let [many, one, extents_of] = [four, one, extents].map(|tensor| buffer(tensor, &file));
    let custom = |name: &str, inputs: &[i32], outputs: &[i32]| OpSpec {
        code: 32,
        custom: Some(format!("{prefix}{name}")),
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
        ..Default::default()
    };
    let names = ["rows", "results", "pass", "sum", "rows again", "results again", "all", "count", "second"];
    let shapes: [&[i32]; 9] = [&[], &[], &[], &[3], &[], &[], &[4, 3], &[], &[3]];
    let made: Vec<i32> = names.iter().zip(shapes).map(|(name, shape)| file.map(name, shape)).collect();
    for (index, kind) in
        [(0, element::VARIANT), (1, element::VARIANT), (2, element::INT32), (4, element::VARIANT)]
    {
        file.tensors[made[index] as usize].element_type = kind;
    }
    file.tensors[made[5] as usize].element_type = element::VARIANT;
    file.tensors[made[7] as usize].element_type = element::INT32;
    file.ops.push(custom("TensorListFromTensor", &[0, extents], &[made[0]]));
    file.ops.push(custom("TensorListReserve", &[extents, four], &[made[1]]));
    let ends = fields(options::WhileOptions::TAG, &[(0, Int(1)), (1, Int(2))]);
    let given = [zero, state, made[0], made[1]];
    file.op(code("WHILE"), &given, &[made[2], made[3], made[4], made[5]], ends);
    file.ops.push(custom("TensorListStack", &[made[5], extents], &[made[6]]));
    file.ops.push(custom("TensorListLength", &[made[5]], &[made[7]]));
    let second = file.integers("number of the second", &[], &[1]);
    file.ops.push(custom("TensorListGetItem", &[made[5], second, extents], &[made[8]]));
    let (float, scaled) = (file.map("count in floats", &[]), file.map("scaled", &[3]));
    file.op(code("CAST"), &[made[7]], &[float], none());
    file.op(code("MUL"), &[made[8], float], &[scaled], fields(options::MulOptions::TAG, &[]));
    file.outputs = vec![made[6], scaled, made[8], made[3]];
    let arguments = || {
        vec![
            tensor("pass", &[], element::INT32, 0),
            tensor("sum", &[3], element::FLOAT32, 0),
            tensor("rows", &[], element::VARIANT, 0),
            tensor("results", &[], element::VARIANT, 0),
        ]
    };
    let mut tensors = arguments();
    tensors.extend([tensor("four", &[], element::INT32, many), tensor("goes on", &[], element::BOOL, 0)]);
    let ops = vec![call("LESS", &[0, 4], &[5], none())];
    file.called.push(NetworkSpec { tensors, ops, inputs: vec![0, 1, 2, 3], outputs: vec![5] });
    let mut tensors = arguments();
    tensors.extend([
        tensor("extents", &[1], element::INT32, extents_of),
        tensor("one", &[], element::INT32, one),
        tensor("row", &[3], element::FLOAT32, 0),
        tensor("next sum", &[3], element::FLOAT32, 0),
        tensor("written", &[], element::VARIANT, 0),
        tensor("next pass", &[], element::INT32, 0),
    ]);
    let ops = vec![
        custom("TensorListGetItem", &[2, 0, 4], &[6]),
        call("ADD", &[1, 6], &[7], fields(options::AddOptions::TAG, &[])),
        custom("TensorListSetItem", &[3, 0, 7], &[8]),
        call("ADD", &[0, 5], &[9], fields(options::AddOptions::TAG, &[])),
    ];
    file.called.push(NetworkSpec { tensors, ops, inputs: vec![0, 1, 2, 3], outputs: vec![9, 7, 2, 8] });
    file
}

#[test]
fn a_loop_fills_a_list_of_tensors() {
    for prefix in ["Flex", ""] {
        let model = Model::from_bytes(&listed(prefix).bytes(), &LoadOptions::default()).expect("a file");
        let context = Context::new(Backend::Cpu).expect("the CPU");
        let mut session = Session::new(&context, &model.graph, SessionOptions::default()).expect("a session");
        let x: Vec<f32> = (0..12).map(|value| value as f32).collect();
        let x = HostTensor::new(Dims::new(&[4, 3]).expect("small"), x).expect("as many");
        let outputs = session.run(&[("x", &x)]).expect("a run");
        let sums = [0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 12.0, 15.0, 18.0, 22.0, 26.0];
        assert_eq!(*outputs[0].to_f32(), sums);
        assert_eq!(*outputs[1].to_f32(), [12.0, 20.0, 28.0]);
        assert_eq!((&*outputs[2].to_f32(), &*outputs[3].to_f32()), (&sums[3..6], &sums[9..]));
    }
    let mut given = FileSpec::with_input("x", &[4, 3]);
    given.tensors[0].element_type = element::VARIANT;
    let y = given.map("y", &[4, 3]);
    given.op(code("ABS"), &[0], &[y], none());
    given.outputs = vec![y];
    let refused = Model::from_bytes(&given.bytes(), &LoadOptions::default());
    let refused = refused.expect_err("a list as an input").to_string();
    assert!(refused.contains("found VARIANT as an input"), "{refused}");
    let mut beyond = listed("Flex");
    let second = beyond.integers("beyond", &[], &[4]);
    let read = beyond.ops.iter_mut().rev().find(|op| op.code == 32).expect("an operator of lists");
    read.inputs[1] = second;
    let refused = Model::from_bytes(&beyond.bytes(), &LoadOptions::default());
    let refused = refused.expect_err("no such element").to_string();
    assert!(refused.contains("element 4 of a list of 4"), "{refused}");
}
