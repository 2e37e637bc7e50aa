//! Quantised operators on bytes.

use super::writer::{Attribute, File, Node, floats, of_type, small};
use super::{run, tensor};
use crate::host::HostTensor;
use diptych::Session;
use diptych::SessionOptions;
use diptych::{Backend, Context};
use diptych::{LoadOptions, Model};

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
    let file = file_of(nodes);
    let found = run(&file, &input());
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

/// A convolution of integers, and what reads its result.
fn linear(last: Node) -> Vec<Node> {
    let inputs = ["q", "half", "middle", "w", "quarter", "none", "half", "least", "b"];
    vec![
        Node::new("QuantizeLinear", &["x", "half", "middle"], &["q"]),
        Node::new("QLinearConv", &inputs, &["p"]),
        last,
    ]
}

fn file_of(nodes: Vec<Node>) -> File<'static> {
    File {
        inputs: vec![("x", vec![1, 2, 1, 2])],
        outputs: vec!["y"],
        constants: constants(),
        nodes,
        ..File::default()
    }
}

fn input() -> HostTensor {
    tensor(&[1, 2, 1, 2], vec![1.0, -2.0, 0.5, 3.0])
}

#[test]
fn operators_on_integers_are_computed_on_bytes() {
    let nodes = linear(Node::new("DequantizeLinear", &["p", "half", "least"], &["y"]));
    check(nodes, &["quantize", "quantized_conv2d", "dequantize"]);
}

#[test]
fn integers_become_floats_where_that_is_asked_for() {
    let file = file_of(linear(Node::new("DequantizeLinear", &["p", "half", "least"], &["y"])));
    let options = LoadOptions { dequantize: true, ..LoadOptions::default() };
    let graph = Model::from_bytes(&file.bytes(), &options).expect("a file that is read").graph;
    assert!(graph.nodes().iter().all(|node| !node.operator().name().contains("quantize")));
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
    assert_eq!(*session.run(&[("x", &input())]).expect("a run")[0].to_f32(), WANTED);
}

#[test]
fn what_is_read_as_floats_too_comes_from_the_bytes() {
    let mut nodes = linear(Node::new("DequantizeLinear", &["p", "half", "least"], &["d"]));
    nodes.push(Node::new("Exp", &["d"], &["y"]));
    let file = file_of(nodes);
    for (found, wanted) in run(&file, &input())[0].to_f32().iter().zip(WANTED) {
        assert!((found - wanted.exp()).abs() <= 1e-4 * wanted.exp(), "{found}");
    }
    let steps = steps(&file);
    assert!(steps.contains(&"quantized_conv2d".to_owned()), "{steps:?}");
    assert!(!steps.iter().any(|step| step == "conv2d" || step == "pointwise"), "{steps:?}");
}

#[test]
fn integers_that_no_operator_on_bytes_reads_are_not_packed() {
    let to_u8 = || Node { attributes: vec![Attribute::Int("to", 2)], ..Node::new("Cast", &["x"], &["q"]) };
    let floats = || Node::new("DequantizeLinear", &["q", "half", "least"], &["d"]);
    let file = file_of(vec![to_u8(), floats(), Node::new("Neg", &["d"], &["y"])]);
    let found = run(&file, &tensor(&[1, 2, 1, 2], vec![1.0, 2.0, 0.0, 255.0]));
    assert_eq!(*found[0].to_f32(), [-0.5, -1.0, 0.0, -127.5]);
    let without = steps(&file);
    assert!(!without.iter().any(|step| step.contains("quantize")), "{without:?}");
    // Where one reads them they are.
    let weights = Node::new("DequantizeLinear", &["w", "quarter", "none"], &["v"]);
    let sums = Node::new("Conv", &["d", "v"], &["s"]);
    let last = Node::new("QuantizeLinear", &["s", "half", "least"], &["p"]);
    let back = Node::new("DequantizeLinear", &["p", "half", "least"], &["y"]);
    let with = steps(&file_of(vec![to_u8(), floats(), weights, sums, last, back]));
    assert!(with.contains(&"quantized_conv2d".to_owned()), "{with:?}");
}
