//! Global means with the products behind them, and the maps that these weigh, in few launches on devices.

use crate::machine::{in_turns, noise};
use diptych::{
    Activation, Backend, Dim, Extras, Function, Gemm, Graph, HostTensor, Pointwise, Pool, Pooling, Precision,
    Reduction, Right, Session, SessionOptions, Shape, Value,
};

/// Channels of the map, and of what lies between the two convolutions.
const SIZES: [usize; 2] = [10, 6];

fn pointwise(graph: &mut Graph, name: &str, x: Value, [c, oc]: [usize; 2], options: Pointwise) -> Value {
    let weights = noise(Shape::nhwc(oc, 1, 1, c), oc as u32);
    let bias = noise(Shape::nhwc(1, 1, 1, oc), 7);
    graph.pointwise(name, x, weights, Extras::bias(bias), options).expect("a convolution")
}

/// How a network of the tests is written.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// The mean is a pooling, and not a reduction.
    pool: bool,
    /// What is made of the factors: a function, or a hard sigmoid as converters write it out.
    last: Option<Function>,
    /// Something else reads the mean.
    shown: bool,
    sizes: [usize; 2],
}

/// A map of `shape`, weighted by what two convolutions make of its means.
fn excited(shape: Shape, way: Way) -> Graph {
    let [c, r] = way.sizes;
    let mut graph = Graph::new();
    let x = graph.input("x", shape).expect("an input");
    let mean = if way.pool {
        graph.pool("mean", x, Pool::new(Pooling::Average, [shape.h, shape.w])).expect("a pooling")
    } else {
        graph.reduce("mean", x, Reduction::Mean, &[1, 2], true).expect("a mean")
    };
    let relu = Pointwise { activation: Activation::Relu };
    let hidden = pointwise(&mut graph, "first", mean, [c, r], relu);
    let factor = pointwise(&mut graph, "second", hidden, [r, c], Pointwise::default());
    let factor = match way.last {
        Some(function) => graph.elementwise("last", function, &[factor.into()]).expect("a function"),
        None => {
            let moved =
                graph.elementwise("moved", Function::Add, &[factor.into(), 3.0.into()]).expect("a sum");
            let cut = graph.elementwise("cut", Function::Relu6, &[moved.into()]).expect("a function");
            graph.elementwise("sixth", Function::Div, &[cut.into(), 6.0.into()]).expect("a quotient")
        }
    };
    let y = graph.elementwise("y", Function::Mul, &[x.into(), factor.into()]).expect("a product");
    graph.output(y).expect("an output");
    if way.shown {
        graph.output(mean).expect("an output");
    }
    graph
}

/// The ops of a session's steps but for changes of form, and the first output's values.
fn run(context: &diptych::Context, graph: &Graph, x: &HostTensor) -> (Vec<&'static str>, Vec<f32>) {
    let mut session = Session::new(context, graph, SessionOptions::default()).expect("a session");
    let ops = session.steps().iter().map(|step| step.op).filter(|op| *op != "convert").collect();
    // Twice: the scratch memory of the second run is what the first one left.
    let first = session.run(&[("x", x)]).expect("a run")[0].to_f32().into_owned();
    let second = session.run(&[("x", x)]).expect("a run")[0].to_f32().into_owned();
    assert_eq!(first, second, "{}", context.info().backend);
    (ops, first)
}

/// Runs `graph` everywhere and compares with the CPU; a device's ops are `ops`.
fn check(graph: &Graph, shape: Shape, ops: &[&str]) {
    let x = noise(shape, 3);
    let cpu = diptych::Context::new(Backend::Cpu).expect("the CPU");
    let (_, wanted) = run(&cpu, graph, &x);
    for context in in_turns() {
        let (found, values) = run(&context, graph, &x);
        let backend = context.info().backend;
        if backend != Backend::Cpu {
            assert_eq!(found, ops, "{backend} {shape}");
        }
        for (place, (found, wanted)) in values.iter().zip(&wanted).enumerate() {
            assert!((found - wanted).abs() <= 1e-5, "{backend} {shape}: {place}: {found} for {wanted}");
        }
    }
}

#[test]
fn a_map_weighted_by_what_is_made_of_its_means_takes_two_launches() {
    let way = Way { pool: false, last: Some(Function::Sigmoid), shown: false, sizes: SIZES };
    // A work-group for each image, and several of which the last to arrive goes on.
    for (h, w) in [(5, 7), (65, 67)] {
        let shape = Shape::nhwc(2, h, w, SIZES[0]);
        for pool in [false, true] {
            for last in [Some(Function::Sigmoid), Some(Function::HardSigmoid), None] {
                check(&excited(shape, Way { pool, last, ..way }), shape, &["squeeze", "gate"]);
            }
        }
    }
}

#[test]
fn dense_layers_weigh_a_map_as_convolutions_do() {
    let [c, r] = SIZES;
    for (n, ops) in [(1, &["squeeze", "gate"][..]), (2, &["squeeze", "gemm", "elementwise"])] {
        let shape = Shape::nhwc(n, 9, 13, c);
        let mut graph = Graph::new();
        let x = graph.input("x", shape).expect("an input");
        let mean = graph.reduce("mean", x, Reduction::Mean, &[1, 2], false).expect("a mean");
        let dense = |graph: &mut Graph, name: &str, x: Value, [k, n]: [usize; 2], options: Gemm| {
            let extents = if options.transpose_b { [n, k] } else { [k, n] };
            let dims = diptych::Dims::new(&extents).expect("small");
            let weights = noise(Shape::nhwc(1, 1, k, n), n as u32).reshaped(dims).expect("as many");
            let bias = Extras::bias(noise(Shape::nhwc(1, 1, 1, n), 7));
            graph.gemm(name, x, Right::Constant(weights), bias, options).expect("a product")
        };
        let relu = Gemm { activation: Activation::Relu, ..Gemm::default() };
        let sigmoid = Gemm { activation: Activation::Sigmoid, transpose_b: true, ..Gemm::default() };
        let hidden = dense(&mut graph, "first", mean, [c, r], relu);
        let factor = dense(&mut graph, "second", hidden, [r, c], sigmoid);
        let factor = graph.reshape("pixel", factor, &[n, 1, 1, c].map(Dim::Fixed)).expect("a map");
        let y = graph.elementwise("y", Function::Mul, &[x.into(), factor.into()]).expect("a product");
        graph.output(y).expect("an output");
        check(&graph, shape, ops);
    }
}

#[test]
fn a_mean_that_is_read_elsewhere_is_computed_by_itself() {
    let way = Way { pool: false, last: Some(Function::Sigmoid), shown: true, sizes: SIZES };
    let shape = Shape::nhwc(1, 9, 7, SIZES[0]);
    check(&excited(shape, way), shape, &["reduce", "gate"]);
}

#[test]
fn a_product_of_many_weights_is_computed_by_many_work_groups() {
    let sizes = [680, 240];
    let way = Way { pool: false, last: Some(Function::Sigmoid), shown: false, sizes };
    let shape = Shape::nhwc(1, 3, 5, sizes[0]);
    check(&excited(shape, way), shape, &["reduce", "pointwise", "gate"]);
}

#[test]
fn the_head_of_a_small_classifier_is_one_launch() {
    for (h, w, transpose_b, keep) in [(5, 7, true, true), (65, 67, false, false)] {
        let shape = Shape::nhwc(2, h, w, 10);
        let mut graph = Graph::new();
        let x = graph.input("x", shape).expect("an input");
        let mut mean = graph.reduce("mean", x, Reduction::Mean, &[1, 2], keep).expect("a mean");
        if keep {
            mean = graph.reshape("flat", mean, &[2, 10].map(Dim::Fixed)).expect("a matrix");
        }
        let weights = noise(Shape::nhwc(1, 1, 10, 7), 5);
        let dims = diptych::Dims::new(if transpose_b { &[7, 10] } else { &[10, 7] }).expect("small");
        let right = Right::Constant(weights.reshaped(dims).expect("as many"));
        let options = Gemm { transpose_b, activation: Activation::Relu, ..Gemm::default() };
        let extras = Extras::bias(noise(Shape::nhwc(1, 1, 1, 7), 9));
        let y = graph.gemm("y", mean, right, extras, options).expect("a product");
        graph.output(y).expect("an output");
        check(&graph, shape, &["squeeze"]);
    }
}

#[test]
fn halves_are_stored_between_the_launches() {
    let way = Way { pool: false, last: Some(Function::Sigmoid), shown: false, sizes: SIZES };
    let shape = Shape::nhwc(1, 65, 67, SIZES[0]);
    let (graph, x) = (excited(shape, way), noise(shape, 3));
    let cpu = diptych::Context::new(Backend::Cpu).expect("the CPU");
    let (_, wanted) = run(&cpu, &graph, &x);
    for context in in_turns() {
        let options = SessionOptions { precision: Precision::F16Storage, ..SessionOptions::default() };
        let mut session = Session::new(&context, &graph, options).expect("a session");
        let found = session.run(&[("x", &x)]).expect("a run")[0].to_f32().into_owned();
        for (place, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            assert!((found - wanted).abs() <= 5e-3, "{place}: {found} for {wanted}");
        }
    }
}
