use super::*;
use crate::emit::Activation;
use crate::ops::conv2d::Conv2d;
use crate::ops::elementwise::Function;
use crate::ops::gemm::Gemm;
use crate::ops::pointwise::Pointwise;
use crate::shape::Padding;

fn zeros(shape: Shape) -> HostTensor {
    HostTensor::new(shape, vec![0.0; shape.elements()]).expect("zeros")
}

#[test]
fn a_wrong_weight_shape_names_the_node_and_both_shapes() {
    let mut graph = Graph::new();
    let x = graph.input("image", Shape::nhwc(1, 8, 8, 3)).expect("an input");
    let error = graph
        .conv2d("stem", x, zeros(Shape::nhwc(4, 3, 3, 5)), Extras::default(), Conv2d::default())
        .expect_err("5 channels against 3");
    let text = error.to_string();
    assert!(text.contains("stem") && text.contains("4x3x3x5") && text.contains("1x8x8x3"), "{text}");
    assert!(graph.nodes().is_empty() && graph.values.len() == 1, "nothing was added");
}

#[test]
fn a_residual_or_bias_of_another_shape_is_refused() {
    let mut graph = Graph::new();
    let x = graph.input("image", Shape::nhwc(1, 8, 8, 4)).expect("an input");
    let extras = Extras { residual: Some(x), ..Default::default() };
    let options = Conv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
    let error = graph.conv2d("down", x, zeros(Shape::nhwc(4, 3, 3, 4)), extras, options);
    let text = error.expect_err("8x8 against 4x4").to_string();
    assert!(text.contains("residual 1x8x8x4") && text.contains("residual 1x4x4x4"), "{text}");
    let bias = Extras::bias(zeros(Shape::nhwc(1, 1, 1, 5)));
    let error = graph.conv2d("down", x, zeros(Shape::nhwc(4, 3, 3, 4)), bias, options);
    assert!(error.expect_err("5 against 4").to_string().contains("bias 1x1x1x4"));
}

#[test]
fn prelu_wants_its_slopes_and_nothing_else_does() {
    let mut graph = Graph::new();
    let x = graph.input("image", Shape::nhwc(1, 2, 2, 4)).expect("an input");
    let weights = || zeros(Shape::nhwc(4, 1, 1, 4));
    let options = Pointwise { activation: Activation::PRelu };
    let missing = graph.pointwise("p", x, weights(), Extras::default(), options);
    assert!(missing.expect_err("no slope").to_string().contains("no slope"));
    let slope = Extras { slope: Some(zeros(Shape::nhwc(1, 1, 1, 4))), ..Default::default() };
    assert!(graph.pointwise("p", x, weights(), slope, Pointwise::default()).is_err());
}

#[test]
fn a_value_of_another_graph_is_refused() {
    let mut other = Graph::new();
    let foreign = other.input("a", Shape::nhwc(1, 1, 1, 1)).expect("an input");
    let mut graph = Graph::new();
    graph.input("a", Shape::nhwc(1, 1, 1, 1)).expect("an input");
    // Its index is one of this graph's too.
    assert!(graph.output(foreign).expect_err("foreign").to_string().contains("another graph"));
    assert!(graph.shape(foreign).is_err());
    let right = Right::Value(foreign);
    assert!(graph.gemm("g", foreign, right, Extras::default(), Gemm::default()).is_err());
    // A clone, and a graph with another batch, have the same values.
    assert!(other.clone().output(foreign).is_ok());
    assert!(other.with_batch(3).expect("a batch").output(foreign).is_ok());
}

#[test]
fn named_dimensions_reach_every_shape() {
    let mut graph = Graph::new();
    graph.dimension("batch", 1).expect("a dimension");
    graph.dimension("side", 8).expect("a dimension");
    assert!(graph.dimension("batch", 2).is_err());
    assert!(graph.input_of("no", &["depth".into()]).expect_err("unknown").to_string().contains("depth"));
    let x = graph.input_of("x", &["batch".into(), "side".into(), 6.into(), 4.into()]).expect("an input");
    let weights = zeros(Shape::nhwc(5, 1, 1, 4));
    let y = graph.pointwise("p", x, weights, Extras::default(), Pointwise::default()).expect("a node");
    let rows = graph.reshape("rows", y, &["batch".into(), Dim::Rest, 5.into()]).expect("rows");
    graph.output(rows).expect("an output");
    assert_eq!(graph.dims(rows).expect("rows").extents(), [1, 48, 5]);
    let other = graph.with_dimensions(&[("batch", 3), ("side", 2)]).expect("dimensions");
    assert_eq!(other.dims(rows).expect("rows").extents(), [3, 12, 5]);
    assert_eq!(other.outputs(), graph.outputs());
    assert!(graph.with_dimensions(&[("batch", 0)]).is_err());
    assert!(graph.with_dimensions(&[("depth", 1)]).is_err());
}

#[test]
fn weights_that_are_computed_are_refused() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 2, 2, 4)).expect("an input");
    let w = graph.input("w", Shape::nhwc(5, 1, 1, 4)).expect("an input");
    let inputs = [(Operand::Src, x), (Operand::Weights, w)];
    let error = graph.add("p", Arc::new(Pointwise::default()), &inputs).expect_err("weights of a run");
    assert!(error.to_string().contains("a constant weights"), "{error}");
}

#[test]
fn a_concatenation_of_booleans_and_numbers_is_of_numbers() {
    let mut graph = Graph::new();
    let dims = Dims::new(&[1, 2]).expect("small");
    let [x, y] = ["x", "y"].map(|name| graph.input(name, dims).expect("an input"));
    let told = graph.elementwise("told", Function::Less, &[x.into(), y.into()]).expect("a comparison");
    let both = graph.concat("both", &[told, x], 0).expect("a concatenation");
    let truths = graph.concat("truths", &[told, told], 0).expect("a concatenation");
    assert_eq!(graph.dtype(both), Some(DType::F32));
    assert_eq!(graph.dtype(truths), Some(DType::Bool));
}
