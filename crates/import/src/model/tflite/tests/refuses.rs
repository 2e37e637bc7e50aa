//! Each reason to refuse a file, and the words that say so.

use super::writer::{BufferSpec, Field, FileSpec, OptionsSpec, Scales, Sparse, Window, code};
use crate::error::Error;
use diptych::tflite::from_bytes;

/// A change to the stem, and the words that its error must have.
type Case = (&'static str, fn(&mut FileSpec), &'static [&'static str]);

fn conv2d(window: Window) -> OptionsSpec {
    OptionsSpec::Conv2d(window)
}

/// Tensors of the stem: 0 the image, 1 the weights, 2 the bias, 3 the output.
const CASES: &[Case] = &[
    ("identifier", |f| f.identifier = "TFL2", &["identifier \"TFL2\"", "wanted \"TFL3\""]),
    ("version", |f| f.version = 2, &["version 2", "wanted 3"]),
    ("no network", |f| f.networks = 0, &["0 subgraphs", "at least 1"]),
    ("no inputs", |f| f.inputs.clear(), &["no inputs"]),
    ("no outputs", |f| f.outputs.clear(), &["no outputs"]),
    ("no operators", |f| f.ops.clear(), &["no operators"]),
    ("many inputs", |f| f.inputs = vec![0; 5000], &["5000 inputs", "at most 4096"]),
    ("input twice", |f| f.inputs.push(0), &["input tensor 0", "written already"]),
    ("input index", |f| f.inputs[0] = 9, &["tensor index 9", "0 to 3"]),
    ("negative output", |f| f.outputs[0] = -1, &["tensor index -1", "0 to 3"]),
    ("constant output", |f| f.outputs[0] = 1, &["output tensor 1 (\"weights\")", "found a constant"]),
    ("constant input", |f| f.inputs[0] = 1, &["input tensor 1 (\"weights\")", "found a constant"]),
    (
        "unwritten output",
        |f| {
            f.map("loose", &[1, 4, 4, 4]);
            f.outputs[0] = 4
        },
        &["\"loose\"", "not written"],
    ),
    ("op input index", |f| f.ops[0].inputs[0] = 77, &["op 0 (CONV_2D)", "tensor index 77"]),
    ("op input omitted", |f| f.ops[0].inputs[0] = -1, &["op 0 (CONV_2D)", "tensor index -1"]),
    ("op output index", |f| f.ops[0].outputs[0] = i32::MIN, &["op 0 (CONV_2D)", "tensor index -2147483648"]),
    ("op without outputs", |f| f.ops[0].outputs.clear(), &["op 0 (CONV_2D)", "0 outputs", "wanted 1"]),
    ("op without weights", |f| f.ops[0].inputs.truncate(1), &["op 0 (CONV_2D)", "1 inputs", "2 or 3"]),
    ("cycle", |f| f.ops[0].inputs[0] = 3, &["op 0 (CONV_2D)", "\"stem\"", "not written"]),
    ("writes its input", |f| f.ops[0].outputs[0] = 0, &["op 0", "\"image\"", "written already"]),
    (
        "writes a constant",
        |f| {
            f.tensors[1].shape = vec![1, 4, 9, 3];
            f.ops[0].outputs[0] = 1;
            f.ops[0].inputs[1] = 1
        },
        &["op 0"],
    ),
    ("no data", |f| f.tensors[1].buffer = 0, &["\"weights\"", "found no data"]),
    ("buffer index", |f| f.tensors[1].buffer = 44, &["\"weights\"", "buffer index 44", "below 3"]),
    (
        "outside",
        |f| f.buffers[1] = BufferSpec { data: None, outside: Some([4096, 432]) },
        &["\"weights\"", "432 bytes at offset 4096 of the file"],
    ),
    (
        "short data",
        |f| {
            f.buffers[1].data.as_mut().map(Vec::pop);
        },
        &["op 0 (CONV_2D)", "tensor 1 (\"weights\")", "431 bytes", "wanted 432", "4x3x3x3"],
    ),
    ("huge weights", |f| f.tensors[1].shape = vec![i32::MAX; 4], &["\"weights\"", "32-bit"]),
    ("rank 3", |f| f.tensors[0].shape = vec![8, 8, 3], &["op 0 (CONV_2D)", "rank 3", "8x8x3", "rank 4"]),
    ("rank 7", |f| f.tensors[0].shape = vec![1; 7], &["input tensor 0", "rank 7", "0 to 6"]),
    ("rank 1000", |f| f.tensors[1].shape = vec![1; 1000], &["\"weights\"", "rank 1000", "at most 8"]),
    (
        "open height",
        |f| {
            f.tensors[0].shape[1] = 1;
            f.tensors[0].signature = Some(vec![-1, -1, 8, 3])
        },
        &["\"image\"", "no extent of axis 1", "\"image.1\""],
    ),
    (
        "int8 input of channels",
        |f| {
            f.tensors[0].element_type = 9;
            f.tensors[0].quantised = Some(Scales(vec![0.5, 0.25, 1.0], vec![0; 3], 3))
        },
        &["tensors", "quantised INT8 of scales [0.5, 0.25]", "one scale", "(1, tensor 0 (\"image\"))"],
    ),
    ("int32 bias", |f| f.tensors[2].element_type = 2, &["op 0", "\"bias\"", "found INT32", "FLOAT32"]),
    ("unknown type", |f| f.tensors[0].element_type = 99, &["element type 99"]),
    ("text", |f| f.tensors[0].element_type = 5, &["found STRING", "tensor 0 (\"image\")"]),
    ("variable", |f| f.tensors[0].variable = true, &["\"image\"", "variable"]),
    ("sparse", |f| f.tensors[1].sparse = Some(Sparse::default()), &["op 0", "\"weights\"", "sparse"]),
    (
        "bias length",
        |f| {
            f.tensors[2].shape = vec![2, 1];
            f.buffers[2].data.as_mut().expect("bias").truncate(8)
        },
        &["op 0", "\"weights\"", "a bias of 2 for 4 channels"],
    ),
    (
        "channels",
        |f| f.tensors[0].shape[3] = 4,
        &["op 0", "weights [4, 3, 3, 3]", "4 input channels", "divide"],
    ),
    ("no options", |f| f.ops[0].options = OptionsSpec::None, &["op 0", "type 0", "Conv2DOptions"]),
    (
        "other options",
        |f| f.ops[0].options = OptionsSpec::Depthwise(Window::default(), 1),
        &["type 2", "Conv2DOptions"],
    ),
    (
        "stride 0",
        |f| f.ops[0].options = conv2d(Window { stride: [0, 1], ..Default::default() }),
        &["op 0", "stride 0 along height"],
    ),
    (
        "dilation",
        |f| f.ops[0].options = conv2d(Window { dilation: [1, -2], ..Default::default() }),
        &["dilation", "-2 along width"],
    ),
    (
        "large stride",
        |f| f.ops[0].options = conv2d(Window { stride: [i32::MAX, 1], ..Default::default() }),
        &["stride 2147483647"],
    ),
    (
        "padding",
        |f| f.ops[0].options = conv2d(Window { padding: 7, ..Default::default() }),
        &["padding 7", "SAME"],
    ),
    (
        "sign bit",
        |f| f.ops[0].options = conv2d(Window { activation: 5, ..Default::default() }),
        &["SIGN_BIT"],
    ),
    (
        "activation",
        |f| f.ops[0].options = conv2d(Window { activation: -3, ..Default::default() }),
        &["activation number -3"],
    ),
    ("max pool", |f| f.ops[0].code = 17, &["op 0 (MAX_POOL_2D)", "3 inputs", "wanted 1"]),
    ("unique", |f| f.ops[0].code = 103, &["not supported: UNIQUE (1, op 0)"]),
    ("unknown op", |f| f.ops[0].code = 9999, &["not supported: builtin operator 9999 (1, op 0)"]),
    (
        "custom",
        |f| {
            f.ops[0].code = 32;
            f.ops[0].custom = Some("Blaze".to_owned())
        },
        &["not supported: CUSTOM \"Blaze\" (1, op 0)"],
    ),
];

#[test]
fn every_reason_is_reported() {
    let mut failures = Vec::new();
    for (name, change, wanted) in CASES {
        let mut file = FileSpec::stem();
        change(&mut file);
        let found = from_bytes(&file.bytes());
        // What would help may be said beside what is wrong.
        let kind = match &found {
            Err(Error::Hinted { source, .. }) => Some(&**source),
            Err(error) => Some(error),
            Ok(_) => None,
        };
        let is_of_model = matches!(kind, Some(Error::Model { .. }));
        match found {
            Ok(_) => failures.push(format!("{name}: was accepted")),
            Err(error) if is_of_model => {
                let text = error.to_string();
                for words in wanted.iter().filter(|words| !text.contains(**words)) {
                    failures.push(format!("{name}: no {words:?} in: {text}"));
                }
            }
            Err(error) => failures.push(format!("{name}: another kind of error: {error:?}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn refused(file: &FileSpec) -> String {
    from_bytes(&file.bytes()).expect_err("an invalid file").to_string()
}

#[test]
fn a_wrong_multiplier_names_both_numbers() {
    let mut file = FileSpec::with_input("image", &[1, 4, 4, 2]);
    let weights = file.constant("w", &[1, 3, 3, 6]);
    let out = file.map("out", &[1, 4, 4, 6]);
    let options = OptionsSpec::Depthwise(Window::default(), 2);
    file.op(code("DEPTHWISE_CONV_2D"), &[0, weights], &[out], options);
    file.outputs.push(out);
    let text = refused(&file);
    assert!(text.contains("depth_multiplier 2 for 2 input channels and weights [1, 3, 3, 6]"), "{text}");
}

#[test]
fn operators_out_of_order_are_refused() {
    let mut file = FileSpec::stem();
    let weights = file.constant("w", &[2, 1, 1, 4]);
    let out = file.map("late", &[1, 4, 4, 2]);
    file.op(code("CONV_2D"), &[3, weights], &[out], OptionsSpec::Conv2d(Window::default()));
    file.outputs = vec![out];
    assert!(from_bytes(&file.bytes()).is_ok());
    file.ops.swap(0, 1);
    let text = refused(&file);
    assert!(text.contains("op 0") && text.contains("\"stem\"") && text.contains("not written"), "{text}");
}

#[test]
fn a_tensor_is_written_once() {
    let mut file = FileSpec::stem();
    file.ops.push(file.ops[0].clone());
    let text = refused(&file);
    assert!(text.contains("op 1") && text.contains("written already"), "{text}");
}

#[test]
fn everything_that_cannot_run_is_reported_at_once() {
    let mut file = FileSpec::stem();
    let (a, b) = (file.map("a", &[1, 4, 4, 4]), file.map("b", &[1, 4, 4, 4]));
    for (name, custom) in [("UNIQUE", None), ("BITCAST", None), ("UNIQUE", None), ("CUSTOM", Some("Blaze"))] {
        file.op(code(name), &[3], &[a], OptionsSpec::None);
        file.ops.last_mut().expect("an operator").custom = custom.map(str::to_owned);
    }
    file.tensors[a as usize].element_type = 5;
    file.op(code("RESHAPE"), &[a], &[b], OptionsSpec::None);
    file.tensors[b as usize].element_type = 5;
    let text = refused(&file);
    for words in ["UNIQUE (2, first op 1); BITCAST (1, op 2); CUSTOM \"Blaze\" (1, op 4)", "STRING", "\"b\""]
    {
        assert!(text.contains(words), "no {words:?} in: {text}");
    }
}

#[test]
fn an_activation_before_its_convolution_is_refused() {
    let mut file = FileSpec::stem();
    let after = file.map("activated", &[1, 4, 4, 4]);
    file.op(code("RELU"), &[3], &[after], OptionsSpec::None);
    file.outputs = vec![after];
    file.ops.swap(0, 1);
    assert!(refused(&file).contains("op 0 (RELU)"));
}

#[test]
fn a_missing_file_is_named() {
    let error = diptych::tflite::load("no/such/model.tflite").expect_err("no file");
    assert!(matches!(&error, Error::Io { path, .. } if path == "no/such/model.tflite"), "{error:?}");
}

/// Operators whose inputs or options cannot be read, and the words of the error.
#[test]
fn operators_say_what_they_cannot_take() {
    let map = [1, 3, 4, 2];
    let ints = |tag: u8, values: &[(u16, i32)]| {
        OptionsSpec::Fields(tag, values.iter().map(|&(id, value)| (id, Field::Int(value))).collect())
    };
    // The operator, its constants of integers behind the input, its options, and the words.
    type Row<'r> = (&'r str, Vec<(Vec<i32>, Vec<i32>)>, OptionsSpec, &'r [&'r str]);
    let none = || OptionsSpec::None;
    let rows: Vec<Row<'_>> = vec![
        ("RESHAPE", vec![(vec![2], vec![5, 5])], none(), &["[1, 3, 4, 2] to [5, 5]", "24 elements"]),
        ("RESHAPE", vec![(vec![2], vec![-1, -1])], none(), &["[-1, -1]"]),
        ("RESHAPE", vec![], none(), &["found no shape"]),
        (
            "SQUEEZE",
            vec![],
            OptionsSpec::Fields(30, vec![(0, Field::Ints(vec![1]))]),
            &["axis 1", "extent 1"],
        ),
        ("EXPAND_DIMS", vec![(vec![], vec![7])], none(), &["axis 7, wanted one of 5"]),
        ("TRANSPOSE", vec![(vec![4], vec![0, 1, 1, 2])], none(), &["[0, 1, 1, 2]", "each axis once"]),
        ("PAD", vec![(vec![4, 2], vec![0, 0, -1, 0, 0, 0, 0, 0])], none(), &["none below 0"]),
        ("PAD", vec![(vec![3, 2], vec![0; 6])], none(), &["[3, 2]", "wanted 4 pairs"]),
        ("MIRROR_PAD", vec![(vec![4, 2], vec![0; 8])], none(), &["type 0", "MirrorPadOptions"]),
        (
            "SLICE",
            vec![(vec![4], vec![0, 1, 0, 0]), (vec![4], vec![1, 3, 4, 2])],
            none(),
            &["3 elements from 1 of 3"],
        ),
        ("SLICE", vec![(vec![1], vec![0]), (vec![1], vec![1])], none(), &["one for each axis"]),
        (
            "STRIDED_SLICE",
            vec![(vec![1], vec![0]), (vec![1], vec![1]), (vec![1], vec![0])],
            ints(32, &[]),
            &["step of 0"],
        ),
        (
            "STRIDED_SLICE",
            vec![(vec![1], vec![5]), (vec![1], vec![6]), (vec![1], vec![1])],
            ints(32, &[(4, 1)]),
            &["beyond axis 0"],
        ),
        ("UNPACK", vec![], ints(64, &[(1, 1)]), &["1 outputs for axis 1"]),
        ("CONCATENATION", vec![], ints(10, &[(0, 4)]), &["axis 4, wanted one of 4"]),
        ("TILE", vec![(vec![2], vec![1, 2])], none(), &["[1, 2]", "one number for each axis"]),
        ("BROADCAST_TO", vec![(vec![4], vec![1, 3, 4, 5])], none(), &["[1, 3, 4, 2] and [1, 3, 4, 5]"]),
        ("DEPTH_TO_SPACE", vec![], ints(94, &[(0, 0)]), &["blocks of 0"]),
        ("DEPTH_TO_SPACE", vec![], ints(94, &[(0, 2)]), &["depth_to_space", "1x3x4x2"]),
        ("GATHER", vec![(vec![1], vec![0])], ints(23, &[(0, 9)]), &["axis 9"]),
        (
            "GATHER",
            vec![(vec![1], vec![-1])],
            ints(23, &[(0, 1)]),
            &["index -1 along axis 1 of 3", "from 0 to 2"],
        ),
        (
            "GATHER",
            vec![(vec![1, 1], vec![-1])],
            ints(23, &[(0, 2), (1, 1)]),
            &["index -1 along axis 2 of 4"],
        ),
        ("GATHER_ND", vec![(vec![1, 2], vec![0, -1])], none(), &["index -1 along axis 1 of 3"]),
        ("MEAN", vec![(vec![1], vec![4])], none(), &["axis 4, wanted one of 4"]),
        ("SOFTMAX", vec![], none(), &["type 0", "SoftmaxOptions"]),
        ("SOFTMAX", vec![], OptionsSpec::Fields(9, vec![(0, Field::Float(f32::NAN))]), &["beta NaN"]),
        ("RESIZE_BILINEAR", vec![(vec![3], vec![1, 2, 3])], none(), &["size [1, 2, 3]"]),
        ("RESIZE_BILINEAR", vec![(vec![2], vec![-1, 2])], none(), &["none below 0"]),
        ("ADD", vec![(vec![1, 5], vec![1; 5])], none(), &["1x3x4x2", "1x5"]),
        ("ADD", vec![], none(), &["1 inputs, wanted 2"]),
        ("SPLIT_V", vec![(vec![2], vec![1, 2]), (vec![], vec![3])], none(), &["[1, 2] for 1 outputs"]),
        ("LEAKY_RELU", vec![], OptionsSpec::LeakyRelu(f32::INFINITY), &["alpha inf"]),
        ("ONE_HOT", vec![(vec![], vec![0]), (vec![], vec![1]), (vec![], vec![0])], none(), &["depth 0"]),
        ("TOPK_V2", vec![(vec![], vec![1])], none(), &["1 outputs, wanted 2"]),
        ("CUSTOM", vec![(vec![], vec![1]), (vec![], vec![1])], none(), &["options of 0 bytes"]),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", vec![], none(), &["1 inputs, wanted 20 or 24"]),
    ];
    let mut failures = Vec::new();
    for (name, constants, options, words) in rows {
        let mut file = FileSpec::with_input("x", &map);
        let mut inputs = vec![0];
        inputs.extend(constants.iter().map(|(shape, values)| file.integers("c", shape, values)));
        let y = file.map("y", &[]);
        file.op(code(name), &inputs, &[y], options);
        file.ops[0].custom = (name == "CUSTOM").then(|| "Convolution2DTransposeBias".to_owned());
        file.outputs = vec![y];
        match from_bytes(&file.bytes()) {
            Ok(_) => failures.push(format!("{name} {constants:?}: was accepted")),
            Err(error) => {
                let text = error.to_string();
                let missing = words.iter().filter(|words| !text.contains(**words));
                failures.extend(missing.map(|words| format!("{name}: no {words:?} in: {text}")));
                if !text.contains(&format!("op 0 ({name}")) {
                    failures.push(format!("{name}: not named in: {text}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn dimensions_that_are_not_open_are_not_taken() {
    use diptych::{LoadOptions, Model};
    let options = LoadOptions { dimensions: [("height".to_owned(), 4)].into(), ..Default::default() };
    let text = Model::from_bytes(&FileSpec::stem().bytes(), &options).expect_err("no such").to_string();
    assert!(text.contains("dimension \"height\"") && text.contains("wanted one of []"), "{text}");
}
