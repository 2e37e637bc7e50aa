//! Quantised operators on bytes.

use super::super::{LoadOptions, Model};
use super::writer::{File, Node, floats, of_type, small};
use super::{run, tensor};
use crate::context::{Backend, Context};
use crate::options::SessionOptions;
use crate::session::Session;

const I8: i64 = 3;
const I32: i64 = 6;

/// The ops of the steps that run.
fn steps(file: &File<'_>) -> Vec<String> {
    let model = Model::from_bytes(&file.bytes(), &LoadOptions::default()).expect("a file that is read");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let session = Session::new(&context, &model.graph, SessionOptions::default()).expect("a session");
    session.steps().iter().map(|step| step.op.to_string()).collect()
}

/// `x` of 2 channels on a grid of 1/2 around 128, a convolution to 2 channels with weights of 1/4, its positive part on a grid
/// of 1/2 around 0.
fn constants() -> Vec<Vec<u8>> {
    vec![
        floats("half", &[], &[0.5]),
        floats("quarter", &[], &[0.25]),
        floats("eighth", &[], &[0.125]),
        small("middle", &[], &[128]),
        small("least", &[], &[0]),
        of_type(I8, "w", &[2, 2, 1, 1], &[4, 8, (-4i8).cast_unsigned(), 4]),
        of_type(I8, "none", &[], &[0]),
        of_type(I32, "b", &[2], &[8i32.to_le_bytes(), (-16i32).to_le_bytes()].concat()),
    ]
}

/// For `x = [[1, -2], [0.5, 3]]` of two pixels: `x_0 + 2 x_1 + 1` and `-x_0 + x_1 - 2`.
const WANTED: [f32; 4] = [3.0, 5.0, 0.0, 3.0];

fn check(nodes: Vec<Node>, wanted: &[&str]) {
    let file = File {
        inputs: vec![("x", vec![1, 2, 1, 2])],
        outputs: vec!["y"],
        constants: constants(),
        nodes,
        ..File::default()
    };
    let found = run(&file, &tensor(&[1, 2, 1, 2], vec![1.0, -2.0, 0.5, 3.0]));
    assert_eq!(*found[0].to_f32(), WANTED);
    let steps = steps(&file);
    for op in wanted {
        assert!(steps.iter().any(|step| step == op), "no {op}: {steps:?}");
    }
    assert!(!steps.iter().any(|step| ["conv2d", "pointwise", "elementwise"].contains(&&**step)), "{steps:?}");
}

#[test]
fn operators_between_integers_are_computed_on_bytes() {
    let nodes = vec![
        Node::new("QuantizeLinear", &["x", "half", "middle"], &["q"]),
        Node::new("DequantizeLinear", &["q", "half", "middle"], &["d"]),
        Node::new("DequantizeLinear", &["w", "quarter", "none"], &["v"]),
        Node::new("DequantizeLinear", &["b", "eighth"], &["c"]),
        Node::new("Conv", &["d", "v", "c"], &["s"]),
        Node::new("Relu", &["s"], &["r"]),
        Node::new("QuantizeLinear", &["r", "half", "least"], &["p"]),
        Node::new("DequantizeLinear", &["p", "half", "least"], &["y"]),
    ];
    check(nodes, &["quantize", "quantized_conv2d", "dequantize"]);
}

#[test]
fn operators_on_integers_are_computed_on_bytes() {
    let inputs = ["q", "half", "middle", "w", "quarter", "none", "half", "least", "b"];
    let nodes = vec![
        Node::new("QuantizeLinear", &["x", "half", "middle"], &["q"]),
        Node::new("QLinearConv", &inputs, &["p"]),
        Node::new("DequantizeLinear", &["p", "half", "least"], &["y"]),
    ];
    check(nodes, &["quantize", "quantized_conv2d", "dequantize"]);
}

#[test]
fn integers_become_floats_where_that_is_asked_for() {
    let inputs = ["q", "half", "middle", "w", "quarter", "none", "half", "least", "b"];
    let file = File {
        inputs: vec![("x", vec![1, 2, 1, 2])],
        outputs: vec!["y"],
        constants: constants(),
        nodes: vec![
            Node::new("QuantizeLinear", &["x", "half", "middle"], &["q"]),
            Node::new("QLinearConv", &inputs, &["p"]),
            Node::new("DequantizeLinear", &["p", "half", "least"], &["y"]),
        ],
        ..File::default()
    };
    let options = LoadOptions { dequantize: true, ..LoadOptions::default() };
    let graph = Model::from_bytes(&file.bytes(), &options).expect("a file that is read").graph;
    assert!(graph.nodes().iter().all(|node| !node.operator().name().contains("quantize")));
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
    let found = session.run(&[("x", &tensor(&[1, 2, 1, 2], vec![1.0, -2.0, 0.5, 3.0]))]).expect("a run");
    assert_eq!(*found[0].to_f32(), WANTED);
}

#[test]
fn what_is_read_as_floats_too_comes_from_the_bytes() {
    let inputs = ["q", "half", "middle", "w", "quarter", "none", "half", "least", "b"];
    let file = File {
        inputs: vec![("x", vec![1, 2, 1, 2])],
        outputs: vec!["y"],
        constants: constants(),
        nodes: vec![
            Node::new("QuantizeLinear", &["x", "half", "middle"], &["q"]),
            Node::new("QLinearConv", &inputs, &["p"]),
            Node::new("DequantizeLinear", &["p", "half", "least"], &["d"]),
            Node::new("Exp", &["d"], &["y"]),
        ],
        ..File::default()
    };
    let found = run(&file, &tensor(&[1, 2, 1, 2], vec![1.0, -2.0, 0.5, 3.0]));
    for (found, wanted) in found[0].to_f32().iter().zip(WANTED) {
        assert!((found - wanted.exp()).abs() <= 1e-4 * wanted.exp(), "{found}");
    }
    let steps = steps(&file);
    assert!(steps.contains(&"quantized_conv2d".to_owned()), "{steps:?}");
    assert!(!steps.iter().any(|step| step == "conv2d" || step == "pointwise"), "{steps:?}");
}
