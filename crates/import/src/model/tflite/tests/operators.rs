//! Files of one operator or a few, against what TensorFlow Lite computes of them.

use super::super::options;
use super::expected::EXPECTED;
use super::writer::{Field, FileSpec, Level, OptionsSpec, Scales, Sparse, TensorSpec, VALID, Window, code};
use crate::host::HostTensor;
use crate::model::tflite::names::element;
use Field::{Bool, Byte, Float, Int, Ints};
use diptych::Session;
use diptych::SessionOptions;
use diptych::{Backend, Context};
use diptych::{LoadOptions, Model};

/// Extents and elements that TensorFlow Lite gives.
type ExpectedOutputs = (&'static str, &'static [(&'static [usize], &'static [f32])]);

/// The elements of an input: the same in any language.
fn ramp(input: usize, elements: usize) -> Vec<f32> {
    (0..elements).map(|index| ((index * 7 + input * 3) % 11) as f32 * 0.5 - 2.25).collect()
}

/// An input of an operator.
pub(super) enum TestInput<'v> {
    /// A further input of the network, of this shape.
    Input(&'v [i32]),
    Floats(&'v [i32], &'v [f32]),
    Integers(&'v [i32], &'v [i32]),
}
use TestInput::{Floats, Input, Integers};

/// The ops of the steps that the CPU runs for a file.
pub(super) fn steps(bytes: &[u8], load: &LoadOptions, session: SessionOptions) -> Vec<&'static str> {
    let graph = Model::from_bytes(bytes, load).expect("a valid file").graph;
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let session = Session::new(&context, &graph, session).expect("a session");
    session.steps().iter().map(|step| step.op).collect()
}

pub(super) fn none() -> OptionsSpec {
    OptionsSpec::None
}

pub(super) fn fields(tag: u8, fields: &[(u16, Field)]) -> OptionsSpec {
    OptionsSpec::Fields(tag, fields.to_vec())
}

/// `x` of a shape, the operator's other inputs, and as many outputs of a type.
pub(super) fn of(
    name: &str,
    x: &[i32],
    others: &[TestInput<'_>],
    options: OptionsSpec,
    outputs: usize,
    kind: i8,
) -> FileSpec {
    let mut file = FileSpec::with_input("x", x);
    let mut inputs = vec![0];
    for (index, other) in others.iter().enumerate() {
        inputs.push(add(&mut file, index, other));
    }
    finish(file, name, &inputs, options, outputs, kind)
}

pub(super) fn add(file: &mut FileSpec, index: usize, from: &TestInput<'_>) -> i32 {
    let name = format!("in{index}");
    match from {
        Input(shape) => {
            let tensor = file.map(&name, shape);
            file.inputs.push(tensor);
            tensor
        }
        Floats(shape, values) => {
            let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            file.constant_of(&name, shape, element::FLOAT32, data)
        }
        Integers(shape, values) => file.integers(&name, shape, values),
    }
}

fn finish(
    mut file: FileSpec,
    name: &str,
    inputs: &[i32],
    options: OptionsSpec,
    outputs: usize,
    kind: i8,
) -> FileSpec {
    let outputs: Vec<i32> = (0..outputs).map(|index| file.map(&format!("y{index}"), &[])).collect();
    for &output in &outputs {
        file.tensors[output as usize].element_type = kind;
    }
    file.op(code(name), inputs, &outputs, options);
    file.outputs = outputs;
    file
}

/// One float output.
pub(super) fn float(name: &str, x: &[i32], others: &[TestInput<'_>], options: OptionsSpec) -> FileSpec {
    of(name, x, others, options, 1, element::FLOAT32)
}

/// An operator with its constants before `x`.
fn behind(name: &str, x: &[i32], before: &[TestInput<'_>], options: OptionsSpec, outputs: usize) -> FileSpec {
    let mut file = FileSpec::with_input("x", x);
    let mut inputs: Vec<i32> =
        before.iter().enumerate().map(|(index, from)| add(&mut file, index, from)).collect();
    inputs.push(0);
    finish(file, name, &inputs, options, outputs, element::FLOAT32)
}

fn slice(begin: &[i32], end: &[i32], step: &[i32], masks: [i32; 5]) -> FileSpec {
    let n = [begin.len() as i32];
    let masks: Vec<(u16, Field)> = (0..5).map(|id| (id as u16, Int(masks[id]))).collect();
    let others = [Integers(&n, begin), Integers(&n, end), Integers(&n, step)];
    float("STRIDED_SLICE", &[2, 3, 4, 2], &others, fields(options::StridedSliceOptions::TAG, &masks))
}

fn window(w: Window) -> Window {
    Window { padding: VALID, ..w }
}

/// The extents of `x`, taken apart and put together again: `[x.0, -1, x.3]`.
fn shape_arithmetic() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[1, 3, 4, 2]);
    file.tensors[0].signature = Some(vec![-1, 3, 4, 2]);
    let mut int = |shape: &[i32]| {
        file.tensors.push(TensorSpec {
            shape: shape.to_vec(),
            element_type: element::INT32,
            ..Default::default()
        });
        file.tensors.len() as i32 - 1
    };
    let (shape, first, last, packed) = (int(&[4]), int(&[]), int(&[]), int(&[3]));
    let rest = file.integers("rest", &[], &[-1]);
    let [zero, one, three, four] = [0, 1, 3, 4].map(|value| file.integers("", &[1], &[value]));
    let integers = fields(55, &[(0, Byte(element::INT32))]);
    file.op(code("SHAPE"), &[0], &[shape], integers);
    let shrink = || fields(options::StridedSliceOptions::TAG, &[(4, Int(1))]);
    file.op(code("STRIDED_SLICE"), &[shape, zero, one, one], &[first], shrink());
    file.op(code("STRIDED_SLICE"), &[shape, three, four, one], &[last], shrink());
    file.op(code("PACK"), &[first, rest, last], &[packed], fields(options::PackOptions::TAG, &[(0, Int(3))]));
    finish(file, "RESHAPE", &[0, packed], none(), 1, element::FLOAT32)
}

/// A cell of two units over three steps; its states are variables.
fn lstm(time_major: bool) -> FileSpec {
    let mut file = FileSpec::with_input("x", if time_major { &[3, 2, 4] } else { &[2, 3, 4] });
    let mut inputs = vec![0];
    for (name, shape) in [("inner", &[2, 4][..]), ("recurrent", &[2, 2])] {
        for gate in 0..4 {
            let values: Vec<f32> =
                (0..shape[0] * shape[1]).map(|i| ((i * 5 + gate * 3) % 7) as f32 * 0.25 - 0.75).collect();
            let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            inputs.push(file.constant_of(name, shape, element::FLOAT32, data));
        }
    }
    inputs.extend([-1; 3]);
    inputs.extend((0..4).map(|_| file.constant("bias", &[2])).collect::<Vec<_>>());
    inputs.extend([-1; 2]);
    for name in ["output", "cell"] {
        let state = file.map(name, &[2, 2]);
        file.tensors[state as usize].variable = true;
        inputs.push(state);
    }
    inputs.extend([-1; 4]);
    let options = [(0, Byte(4)), (1, Float(1.5)), (3, Bool(time_major))];
    let options = fields(options::SequenceLstmOptions::TAG, &options);
    finish(file, "UNIDIRECTIONAL_SEQUENCE_LSTM", &inputs, options, 1, element::FLOAT32)
}

/// Floats to int8, a convolution, a pooling, a sum, and floats again; `x` has no elements between two integers.
fn quantised() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[1, 4, 4, 2]);
    let map = |file: &mut FileSpec, name: &str, shape: &[i32], scale: f32, zero: i64| {
        let tensor = file.map(name, shape) as usize;
        file.tensors[tensor].element_type = element::INT8;
        file.tensors[tensor].quantised = Some(Scales(vec![scale], vec![zero], 0));
        tensor as i32
    };
    let whole = map(&mut file, "whole", &[1, 4, 4, 2], 0.03, 7);
    let sums = map(&mut file, "sums", &[1, 4, 4, 3], 0.057, -20);
    let pooled = map(&mut file, "pooled", &[1, 2, 2, 3], 0.057, -20);
    let twice = map(&mut file, "twice", &[1, 2, 2, 3], 0.083, 3);
    let values: Vec<u8> = (0..6).map(|index| (index * 37 % 100 - 50) as i8 as u8).collect();
    let weights = file.constant_of("weights", &[3, 1, 1, 2], element::INT8, values);
    file.tensors[weights as usize].quantised = Some(Scales(vec![0.013, 0.021, 0.017], vec![0; 3], 0));
    let bias = file.integers("bias", &[3], &[100, -250, 400]);
    let scales = [0.013f32, 0.021, 0.017].map(|scale| scale * 0.03).to_vec();
    file.tensors[bias as usize].quantised = Some(Scales(scales, vec![0; 3], 0));
    file.op(code("QUANTIZE"), &[0], &[whole], none());
    file.op(code("CONV_2D"), &[whole, weights, bias], &[sums], OptionsSpec::Conv2d(Window::default()));
    let half = [(0, Byte(1)), (1, Int(2)), (2, Int(2)), (3, Int(2)), (4, Int(2))];
    file.op(code("MAX_POOL_2D"), &[sums], &[pooled], fields(options::PoolOptions::TAG, &half));
    file.op(code("ADD"), &[pooled, pooled], &[twice], fields(options::AddOptions::TAG, &[(0, Byte(1))]));
    finish(file, "DEQUANTIZE", &[twice], none(), 1, element::FLOAT32)
}

/// A quotient of integers.
fn quotient() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3]);
    let whole = file.map("whole", &[2, 3]);
    file.tensors[whole as usize].element_type = element::INT32;
    file.op(code("CAST"), &[0], &[whole], none());
    let two = file.integers("two", &[], &[2]);
    finish(file, "DIV", &[whole, two], fields(29, &[]), 1, element::INT32)
}

/// Elements as integers, and these as vectors.
fn one_hot() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3]);
    let whole = file.map("whole", &[2, 3]);
    file.tensors[whole as usize].element_type = element::INT32;
    file.op(code("CAST"), &[0], &[whole], none());
    let depth = file.integers("depth", &[], &[3]);
    let on = file.constant_of("on", &[], element::FLOAT32, 2.0f32.to_le_bytes().to_vec());
    let off = file.constant_of("off", &[], element::FLOAT32, (-1.0f32).to_le_bytes().to_vec());
    let options = fields(options::OneHotOptions::TAG, &[(0, Int(1))]);
    finish(file, "ONE_HOT", &[whole, depth, on, off], options, 1, element::FLOAT32)
}

/// A convolution of phases, which is a dilated one.
fn phases() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[1, 5, 6, 2]);
    let block = file.integers("block", &[2], &[2, 2]);
    let pads = file.integers("pads", &[2, 2], &[2, 3, 2, 2]);
    let crops = file.integers("crops", &[2, 2], &[0, 1, 0, 0]);
    let weights = file.constant("weights", &[1, 3, 3, 2]);
    let (a, b) = (file.map("a", &[4, 5, 5, 2]), file.map("b", &[4, 3, 3, 2]));
    file.op(code("SPACE_TO_BATCH_ND"), &[0, block, pads], &[a], none());
    let bias = file.constant("bias", &[2]);
    let plain = OptionsSpec::Depthwise(window(Window::default()), 1);
    file.op(code("DEPTHWISE_CONV_2D"), &[a, weights, bias], &[b], plain);
    finish(file, "BATCH_TO_SPACE_ND", &[b, block, crops], none(), 1, element::FLOAT32)
}

/// A dense layer whose weights are stored in another way.
fn dense(
    kind: i8,
    data: Vec<u8>,
    scales: Option<Scales>,
    sparse: Option<Sparse>,
    through: Option<&str>,
) -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 4]);
    let mut weights = file.constant_of("weights", &[4, 4], kind, data);
    file.tensors[weights as usize].quantised = scales;
    file.tensors[weights as usize].sparse = sparse;
    if let Some(operator) = through {
        let plain = file.map("plain", &[4, 4]);
        file.op(code(operator), &[weights], &[plain], none());
        weights = plain;
    }
    let options = fields(options::FullyConnectedOptions::TAG, &[]);
    finish(file, "FULLY_CONNECTED", &[0, weights, -1], options, 1, element::FLOAT32)
}

/// Every file, by the name of its outputs in `EXPECTED`.
pub(super) fn files() -> Vec<(String, FileSpec)> {
    let mut files: Vec<(String, FileSpec)> = Vec::new();
    let mut put = |name: &str, file: FileSpec| files.push((name.to_owned(), file));
    let map = [1, 3, 4, 2];

    for name in [
        "RELU",
        "RELU6",
        "RELU_N1_TO_1",
        "LOGISTIC",
        "TANH",
        "HARD_SWISH",
        "ELU",
        "EXP",
        "NEG",
        "ABS",
        "SQUARE",
        "SIN",
        "COS",
        "FLOOR",
        "CEIL",
        "ROUND",
        "RELU_0_TO_1",
        "SIGN",
    ] {
        put(name, float(name, &map, &[], none()));
    }
    for name in ["LOG", "SQRT", "RSQRT"] {
        let mut file = FileSpec::with_input("x", &map);
        let square = file.map("square", &map);
        file.op(code("SQUARE"), &[0], &[square], none());
        put(name, finish(file, name, &[square], none(), 1, element::FLOAT32));
    }
    for name in
        ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD"]
    {
        put(name, float(name, &map, &[Input(&[3, 1, 2])], none()));
        put(&format!("{name} constant"), float(name, &map, &[Floats(&[2], &[0.75, -1.25])], none()));
        put(&format!("{name} number"), float(name, &map, &[Floats(&[], &[1.5])], none()));
    }
    put("ADD relu n1", float("ADD", &map, &[Input(&map)], fields(options::AddOptions::TAG, &[(0, Byte(2))])));
    put("MUL relu6", float("MUL", &map, &[Input(&map)], fields(options::MulOptions::TAG, &[(0, Byte(3))])));
    put("PRELU", float("PRELU", &map, &[Floats(&[1, 1, 2], &[0.25, -0.5])], none()));
    put("LEAKY_RELU", float("LEAKY_RELU", &map, &[], OptionsSpec::LeakyRelu(0.3)));
    put("GELU", float("GELU", &map, &[], fields(options::GeluOptions::TAG, &[])));
    put("GELU tanh", float("GELU", &map, &[], fields(options::GeluOptions::TAG, &[(0, Bool(true))])));
    for name in ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"] {
        put(name, of(name, &map, &[Input(&map)], none(), 1, element::BOOL));
    }

    let flat = fields(options::ReshapeOptions::TAG, &[(0, Ints(vec![4, -1]))]);
    put("RESHAPE", float("RESHAPE", &map, &[Integers(&[3], &[1, -1, 8])], none()));
    put("RESHAPE options", float("RESHAPE", &map, &[], flat));
    let squeezed = fields(options::SqueezeOptions::TAG, &[(0, Ints(vec![-4]))]);
    put("SQUEEZE", float("SQUEEZE", &[1, 3, 1, 2], &[], fields(options::SqueezeOptions::TAG, &[])));
    put("SQUEEZE axis", float("SQUEEZE", &[1, 3, 1, 2], &[], squeezed));
    put("EXPAND_DIMS", float("EXPAND_DIMS", &[3, 2], &[Integers(&[], &[-2])], none()));
    put("shape arithmetic", shape_arithmetic());

    let dense_of = |x: &[i32], id: &[(u16, Field)]| {
        let weights: Vec<f32> = (0..24).map(|index| index as f32 * 0.25 - 2.0).collect();
        let options = fields(options::FullyConnectedOptions::TAG, id);
        float("FULLY_CONNECTED", x, &[Floats(&[3, 8], &weights), Floats(&[3], &[1.0, -1.0, 0.5])], options)
    };
    put("FULLY_CONNECTED", dense_of(&[1, 3, 4, 2], &[]));
    put("FULLY_CONNECTED rows", dense_of(&[2, 3, 8], &[(2, Bool(true)), (0, Byte(1))]));
    put("FULLY_CONNECTED relu n1", dense_of(&[2, 8], &[(0, Byte(2))]));
    for (name, a, b, transposed) in [
        ("BATCH_MATMUL", [2, 3, 4], [2, 4, 5], [false, false]),
        ("BATCH_MATMUL a", [2, 4, 3], [2, 4, 5], [true, false]),
        ("BATCH_MATMUL b", [2, 3, 4], [2, 5, 4], [false, true]),
    ] {
        let options =
            fields(options::BatchMatmulOptions::TAG, &[(0, Bool(transposed[0])), (1, Bool(transposed[1]))]);
        put(name, float("BATCH_MATMUL", &a, &[Input(&b)], options.clone()));
        put(
            &format!("{name} rank 4"),
            float("BATCH_MATMUL", &[&[1][..], &a].concat(), &[Input(&[&[1][..], &b].concat())], options),
        );
    }
    put(
        "BATCH_MATMUL shared",
        float(
            "BATCH_MATMUL",
            &[2, 2, 3, 4],
            &[Input(&[4, 5])],
            fields(options::BatchMatmulOptions::TAG, &[]),
        ),
    );

    for (name, a, b) in [
        ("BATCH_MATMUL left once", &[1, 3, 4][..], &[2, 4, 5][..]),
        ("BATCH_MATMUL both", &[2, 1, 3, 4], &[1, 3, 4, 2]),
    ] {
        let options = fields(options::BatchMatmulOptions::TAG, &[]);
        put(name, float("BATCH_MATMUL", a, &[Input(b)], options));
    }
    for (name, axes) in [("SPLIT", 3), ("SPLIT rows", -2)] {
        let parts = fields(35, &[(0, Int(2))]);
        put(name, behind("SPLIT", &map, &[Integers(&[], &[axes])], parts, 2));
    }
    let sizes = [Integers(&[3], &[1, -1, 2]), Integers(&[], &[2])];
    put("SPLIT_V", of("SPLIT_V", &map, &sizes, fields(79, &[(0, Int(3))]), 3, element::FLOAT32));
    put(
        "UNPACK",
        of(
            "UNPACK",
            &map,
            &[],
            fields(options::UnpackOptions::TAG, &[(0, Int(3)), (1, Int(-3))]),
            3,
            element::FLOAT32,
        ),
    );
    put(
        "PACK",
        float("PACK", &map, &[Input(&map)], fields(options::PackOptions::TAG, &[(0, Int(2)), (1, Int(-2))])),
    );
    for axis in [0, 1, -2, 3] {
        let options = fields(options::ConcatenationOptions::TAG, &[(0, Int(axis))]);
        put(&format!("CONCATENATION {axis}"), float("CONCATENATION", &map, &[Input(&map)], options));
    }
    put("slice", slice(&[0, 1, 0, 0], &[2, 3, 4, 2], &[1, 1, 2, 1], [0; 5]));
    put("slice masks", slice(&[1, 1, 1, 1], &[1, -1, 1, 1], &[1, 1, 1, 1], [4 + 8, 4 + 8 + 1, 0, 0, 0]));
    put("slice backwards", slice(&[0, -1, 3, 0], &[2, -4, 0, 2], &[1, -1, -2, 1], [0; 5]));
    put("slice shrinks", slice(&[0, -1, 0, 0], &[0, 0, 4, 2], &[1, 1, 1, 1], [0, 0, 0, 0, 1 + 2]));
    put("slice ellipsis", slice(&[0, 1, 0], &[0, 2, 1], &[1, 1, 1], [0, 0, 1, 0, 4]));
    put("slice new axis", slice(&[0, 0, 1], &[2, 0, 3], &[1, 1, 1], [0, 0, 0, 2, 0]));
    put(
        "SLICE",
        float("SLICE", &map, &[Integers(&[4], &[0, 1, 2, 0]), Integers(&[4], &[-1, 2, -1, 1])], none()),
    );
    put("TRANSPOSE", float("TRANSPOSE", &map, &[Integers(&[4], &[0, 3, 1, 2])], none()));
    let pads = || Integers(&[4, 2], &[0, 0, 1, 2, 2, 1, 0, 1]);
    put("PAD", float("PAD", &map, &[pads()], none()));
    put("PADV2", float("PADV2", &map, &[pads(), Floats(&[], &[-3.5])], none()));
    for (name, mode) in [("reflect", 0), ("symmetric", 1)] {
        let options = fields(options::MirrorPadOptions::TAG, &[(0, Byte(mode))]);
        put(
            &format!("MIRROR_PAD {name}"),
            float("MIRROR_PAD", &map, &[Integers(&[4, 2], &[0, 0, 1, 2, 2, 1, 0, 1])], options),
        );
    }
    put("TILE", float("TILE", &map, &[Integers(&[4], &[2, 1, 2, 3])], none()));
    put("BROADCAST_TO", float("BROADCAST_TO", &[3, 1, 2], &[Integers(&[4], &[2, 3, 4, 2])], none()));
    put("REVERSE_V2", float("REVERSE_V2", &map, &[Integers(&[1], &[2])], none()));
    put(
        "DEPTH_TO_SPACE",
        float(
            "DEPTH_TO_SPACE",
            &[1, 2, 3, 8],
            &[],
            fields(options::DepthToSpaceOptions::TAG, &[(0, Int(2))]),
        ),
    );
    put(
        "SPACE_TO_DEPTH",
        float(
            "SPACE_TO_DEPTH",
            &[1, 4, 6, 2],
            &[],
            fields(options::SpaceToDepthOptions::TAG, &[(0, Int(2))]),
        ),
    );
    put(
        "SPACE_TO_BATCH_ND",
        float(
            "SPACE_TO_BATCH_ND",
            &map,
            &[Integers(&[2], &[2, 2]), Integers(&[2, 2], &[1, 0, 0, 2])],
            none(),
        ),
    );
    put(
        "BATCH_TO_SPACE_ND",
        float(
            "BATCH_TO_SPACE_ND",
            &[4, 2, 3, 2],
            &[Integers(&[2], &[2, 2]), Integers(&[2, 2], &[1, 0, 0, 2])],
            none(),
        ),
    );
    put("phases", phases());
    put(
        "GATHER",
        float(
            "GATHER",
            &map,
            &[Integers(&[2, 2], &[2, 0, 1, 1])],
            fields(options::GatherOptions::TAG, &[(0, Int(1))]),
        ),
    );
    put("GATHER_ND", float("GATHER_ND", &map, &[Integers(&[3, 2], &[0, 2, 0, 0, 0, 1])], none()));

    for (name, keeps, axes) in
        [("", false, &[-3, 1, 2][..]), (" kept", true, &[3]), (" all", false, &[0, 1, 2, 3])]
    {
        for reduction in ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"] {
            let options = fields(options::ReducerOptions::TAG, &[(0, Bool(keeps))]);
            let file = float(reduction, &map, &[Integers(&[axes.len() as i32], axes)], options);
            put(&format!("{reduction}{name}"), file);
        }
    }
    for name in ["ARG_MAX", "ARG_MIN"] {
        let integers = fields(if name == "ARG_MAX" { 40 } else { 57 }, &[(0, Byte(element::INT32))]);
        put(name, of(name, &map, &[Integers(&[], &[-2])], integers, 1, element::INT32));
    }
    put("SOFTMAX", float("SOFTMAX", &[2, 5], &[], fields(options::SoftmaxOptions::TAG, &[(0, Float(2.0))])));
    put("LOG_SOFTMAX", float("LOG_SOFTMAX", &[2, 5], &[], none()));
    put("L2_NORMALIZATION", float("L2_NORMALIZATION", &[1, 3, 4, 5], &[], fields(12, &[])));
    let local = [(0, Int(1)), (1, Float(1.5)), (2, Float(0.25)), (3, Float(0.75))];
    put(
        "LOCAL_RESPONSE_NORMALIZATION",
        float(
            "LOCAL_RESPONSE_NORMALIZATION",
            &[1, 3, 4, 5],
            &[],
            fields(options::LocalResponseOptions::TAG, &local),
        ),
    );
    for (name, id) in [
        ("CUMSUM", vec![]),
        ("CUMSUM exclusive", vec![(0, Bool(true))]),
        ("CUMSUM reverse", vec![(1, Bool(true))]),
    ] {
        put(name, float("CUMSUM", &map, &[Integers(&[], &[1])], fields(options::CumsumOptions::TAG, &id)));
    }
    put("ONE_HOT", one_hot());
    put("DIV integers", quotient());
    put("quantised", quantised());
    put("LSTM", lstm(false));
    put("LSTM time major", lstm(true));
    for (name, corners, centers) in [("", false, false), (" corners", true, false), (" centers", false, true)]
    {
        let id = |first: u16| vec![(first, Bool(corners)), (first + 1, Bool(centers))];
        for (size, what) in [([5, 9], "up"), ([2, 3], "down")] {
            let size = || Integers(&[2], &size);
            put(
                &format!("RESIZE_BILINEAR {what}{name}"),
                float(
                    "RESIZE_BILINEAR",
                    &map,
                    &[size()],
                    fields(options::ResizeBilinearOptions::TAG, &id(2)),
                ),
            );
            put(
                &format!("RESIZE_NEAREST_NEIGHBOR {what}{name}"),
                float(
                    "RESIZE_NEAREST_NEIGHBOR",
                    &map,
                    &[size()],
                    fields(options::ResizeNearestOptions::TAG, &id(0)),
                ),
            );
        }
    }
    let pool = |padding, activation| {
        let ids =
            [(0, Byte(padding)), (1, Int(2)), (2, Int(1)), (3, Int(3)), (4, Int(2)), (5, Byte(activation))];
        fields(options::PoolOptions::TAG, &ids)
    };
    for name in ["MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"] {
        put(name, float(name, &[1, 4, 5, 3], &[], pool(0, 0)));
        put(&format!("{name} valid"), float(name, &[1, 4, 5, 3], &[], pool(1, 2)));
    }
    for (name, padding, out) in
        [("same", 0, [1, 6, 8, 3]), ("same odd", 0, [1, 5, 7, 3]), ("valid", 1, [1, 7, 9, 3])]
    {
        let weights: Vec<f32> = (0..54).map(|index| (index % 13) as f32 * 0.25 - 1.5).collect();
        let before = [Integers(&[4], &out), Floats(&[3, 3, 3, 2], &weights)];
        let ids = [(0, Byte(padding)), (1, Int(2)), (2, Int(2))];
        put(
            &format!("TRANSPOSE_CONV {name}"),
            behind("TRANSPOSE_CONV", &map, &before, fields(options::TransposedConvOptions::TAG, &ids), 1),
        );
    }

    let bytes = |values: &[i8]| values.iter().map(|&value| value as u8).collect::<Vec<u8>>();
    let grid: Vec<i8> = (0..16).map(|index| (index * 5 % 17) as i8 - 8).collect();
    put(
        "int8",
        dense(element::INT8, bytes(&grid), Some(Scales(vec![0.5], vec![0], 0)), None, Some("DEQUANTIZE")),
    );
    let own = Scales(vec![0.5, 0.25, 2.0, 1.0], vec![0; 4], 0);
    put("int8 of channels", dense(element::INT8, bytes(&grid), Some(own), None, Some("DEQUANTIZE")));
    let halves =
        grid.iter().flat_map(|&value| half::f16::from_f32(f32::from(value) * 0.5).to_le_bytes()).collect();
    put("halves", dense(element::FLOAT16, halves, None, None, Some("DEQUANTIZE")));
    let stored =
        |count: usize| (1..=count).flat_map(|value| (value as f32).to_le_bytes()).collect::<Vec<u8>>();
    let rows = Level::Listed(1, vec![0, 1, 3, 3, 4], vec![2, 0, 3, 1]);
    let sparse = Sparse { order: vec![0, 1], blocks: vec![], levels: vec![Level::Dense(4), rows] };
    put("sparse", dense(element::FLOAT32, stored(4), None, Some(sparse), Some("DENSIFY")));
    let blocks = Level::Listed(4, vec![0, 1, 3], vec![1, 0, 1]);
    let levels = vec![Level::Dense(2), blocks, Level::Dense(2), Level::Dense(2)];
    let sparse = Sparse { order: vec![0, 1, 2, 3], blocks: vec![0, 1], levels };
    put("sparse blocks", dense(element::FLOAT32, stored(12), None, Some(sparse), Some("DENSIFY")));
    files
}

/// Extents and elements.
type TestOutput = (Vec<usize>, Vec<f32>);

/// What the file gives on the CPU: the extents and elements of each output.
fn outputs(file: &FileSpec) -> Result<Vec<TestOutput>, String> {
    let model =
        Model::from_bytes(&file.bytes(), &LoadOptions::default()).map_err(|error| error.to_string())?;
    let context = Context::new(Backend::Cpu).map_err(|error| error.to_string())?;
    let session = Session::new(&context, &model.graph, SessionOptions::default());
    let mut session = session.map_err(|error| error.to_string())?;
    let inputs: Vec<HostTensor> = model
        .inputs
        .iter()
        .enumerate()
        .map(|(index, port)| HostTensor::new(port.dims, ramp(index, port.dims.elements())).expect("as many"))
        .collect();
    let named: Vec<(&str, &HostTensor)> =
        model.inputs.iter().zip(&inputs).map(|(port, tensor)| (port.name.as_str(), tensor)).collect();
    let outputs = session.run(&named).map_err(|error| error.to_string())?;
    Ok(outputs
        .iter()
        .map(|tensor| (tensor.dims().extents().to_vec(), tensor.to_nhwc().into_owned()))
        .collect())
}

/// The first difference, if there is one.
fn difference(found: &[TestOutput], wanted: &[(&[usize], &[f32])]) -> Option<String> {
    if found.len() != wanted.len() {
        return Some(format!("{} outputs, wanted {}", found.len(), wanted.len()));
    }
    for (index, ((dims, values), (wanted_dims, wanted))) in found.iter().zip(wanted).enumerate() {
        if dims != wanted_dims {
            return Some(format!("output {index} has {dims:?}, wanted {wanted_dims:?}"));
        }
        let close = |(a, b): (&f32, &f32)| {
            (a - b).abs() <= 2e-5 * b.abs().max(1.0) || a == b || a.is_nan() && b.is_nan()
        };
        if values.len() != wanted.len() || !values.iter().zip(*wanted).all(close) {
            return Some(format!("output {index} is {values:?}, wanted {wanted:?}"));
        }
    }
    None
}

#[test]
fn every_file_gives_what_tensorflow_lite_gives() {
    compare(&files(), EXPECTED);
}

/// Each file's outputs with what is expected of it.
pub(super) fn compare(files: &[(String, FileSpec)], expected: &[ExpectedOutputs]) {
    if let Some(folder) = std::env::var_os("DIPTYCH_WRITE_FILES") {
        for (name, file) in files {
            let path = std::path::Path::new(&folder).join(format!("{name}.tflite"));
            std::fs::write(path, file.bytes()).expect("a folder to write to");
        }
    }
    let mut failures = Vec::new();
    for (name, file) in files {
        let Some((_, wanted)) = expected.iter().find(|(known, _)| known == name) else {
            failures.push(format!("{name}: no outputs of TensorFlow Lite"));
            continue;
        };
        match outputs(file) {
            Ok(found) => failures.extend(difference(&found, wanted).map(|text| format!("{name}: {text}"))),
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(files.len(), expected.len(), "files and outputs");
}

#[test]
fn phases_are_one_dilated_convolution() {
    let model = Model::from_bytes(&phases().bytes(), &LoadOptions::default()).expect("a valid file");
    let names: Vec<_> = model.graph.nodes().iter().map(|node| node.operator().name()).collect();
    assert_eq!(names, ["depthwise"]);
}

#[test]
fn phases_whose_crops_are_worked_out_behind_them_are_one_convolution() {
    let mut file = phases();
    let more = file.integers("more", &[2, 2], &[1, 2, 1, 1]);
    let less = file.integers("less", &[2, 2], &[1, 1, 1, 1]);
    let crops = file.map("crops_of_these", &[2, 2]);
    file.tensors[crops as usize].element_type = element::INT32;
    file.op(code("SUB"), &[more, less], &[crops], fields(options::SubOptions::TAG, &[]));
    let own = file.ops.pop().expect("an operator");
    file.ops.insert(2, own);
    file.ops[3].inputs[2] = crops;
    let [found, wanted] = [file, phases()].map(|file| {
        let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a valid file");
        let names: Vec<_> = model.graph.nodes().iter().map(|node| node.operator().name()).collect();
        assert_eq!(names, ["depthwise"]);
        let x: Vec<f32> = (0..60).map(|at| (at % 7) as f32 * 0.5).collect();
        let x = HostTensor::new(model.inputs[0].dims, x).expect("an input");
        let session = Session::on_cpu(&model.graph).expect("a session");
        session.compute(&[("x", &x)]).expect("a run")[0].to_f32().into_owned()
    });
    assert_eq!(found, wanted);
}

#[test]
fn arithmetic_on_shapes_is_done_while_reading_and_leaves_the_batch_open() {
    let file = shape_arithmetic();
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a valid file");
    let names: Vec<_> = model.graph.nodes().iter().map(|node| node.operator().name()).collect();
    assert_eq!(names, ["reshape"]);
    assert_eq!(model.outputs[0].dims.extents(), [1, 12, 2]);
    let three = model.graph.with_dimensions(&[("batch", 3)]).expect("another batch");
    assert_eq!(three.dims(three.outputs()[0]).expect("an output").extents(), [3, 12, 2]);
}

#[test]
fn operators_of_integers_are_computed_on_them_unless_floats_are_asked_for() {
    let bytes = quantised().bytes();
    let of_session = SessionOptions::default().with_dequantize(true);
    let load = |dequantize| LoadOptions { dequantize, ..LoadOptions::default() };
    let on_bytes = steps(&bytes, &load(false), SessionOptions::default());
    for op in ["quantized_conv2d", "quantized_pool", "quantized_binary", "dequantize"] {
        assert!(on_bytes.contains(&op), "no {op}: {on_bytes:?}");
    }
    assert!(!on_bytes.iter().any(|name| *name == "conv2d" || *name == "pointwise"), "{on_bytes:?}");
    for (load, session) in [(load(true), SessionOptions::default()), (load(false), of_session)] {
        let names = steps(&bytes, &load, session);
        assert!(!names.iter().any(|name| name.contains("quantize")), "{names:?}");
    }
}
