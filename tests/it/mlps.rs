//! Dense layers of few rows in few launches on devices.

use crate::machine::{in_turns, noise};
use diptych::nn::Normalize;
use diptych::{
    Activation, Backend, Dims, Extras, Gemm, Graph, HostTensor, Right, Session, SessionOptions, Shape, Value,
};

/// A dense layer to `o` values with a bias; its weights are `k o`, or transposed.
fn dense(graph: &mut Graph, name: &str, x: Value, [k, o]: [usize; 2], options: Gemm) -> Value {
    let extents = if options.transpose_b { [o, k] } else { [k, o] };
    let dims = Dims::new(&extents).expect("small");
    let weights = noise(Shape::nhwc(1, 1, k, o), (k + o) as u32).reshaped(dims).expect("as many");
    let bias = Extras::bias(noise(Shape::nhwc(1, 1, 1, o), 7));
    graph.gemm(name, x, Right::Constant(weights), bias, options).expect("a product")
}

/// A normalisation of rows of `k` values, with a scale and a bias.
fn normalized(graph: &mut Graph, x: Value, k: usize, centred: bool) -> Value {
    let options = Normalize { centred, ..Normalize::default() };
    let vector = |seed| HostTensor::vector(noise(Shape::nhwc(1, 1, 1, k), seed).to_f32().to_vec());
    let [scale, bias] = [5, 6].map(|seed| vector(seed).expect("a vector"));
    graph.normalize("norm", x, options, Some(scale), centred.then_some(bias)).expect("a normalisation")
}

fn matrix(rows: usize, k: usize) -> Dims {
    Dims::new(&[rows, k]).expect("small")
}

/// Runs `graph` on all backends and compares with the CPU; the ops of a device are `ops`.
fn check(graph: &Graph, dims: Dims, ops: &[&str], what: &str) {
    let x = noise(dims.shape(), 3).reshaped(dims).expect("as many");
    let run = |context: &diptych::Context| {
        let mut session = Session::new(context, graph, SessionOptions::default()).expect("a session");
        let ops: Vec<_> = session.steps().iter().map(|step| step.op).filter(|op| *op != "convert").collect();
        // Twice: the scratch memory of the second run is what the first one left.
        let first = session.run(&[("x", &x)]).expect("a run")[0].to_f32().into_owned();
        let second = session.run(&[("x", &x)]).expect("a run")[0].to_f32().into_owned();
        assert_eq!(first, second, "{what} {}", context.info().backend);
        (ops, first)
    };
    let (_, wanted) = run(&diptych::Context::new(Backend::Cpu).expect("the CPU"));
    for context in in_turns() {
        let (found, values) = run(&context);
        let backend = context.info().backend;
        if backend != Backend::Cpu {
            assert_eq!(found, ops, "{what} {backend}");
        }
        for (place, (found, wanted)) in values.iter().zip(&wanted).enumerate() {
            let off = (found - wanted).abs();
            assert!(off <= 1e-4 * wanted.abs().max(1.0), "{what} {backend}: {place}: {found} for {wanted}");
        }
    }
}

#[test]
fn a_normalisation_of_few_rows_goes_with_the_product_that_reads_it() {
    for (rows, ops) in [(1, &["mlp"][..]), (4, &["mlp"]), (5, &["normalize", "gemm"])] {
        for centred in [true, false] {
            for transpose_b in [true, false] {
                let mut graph = Graph::new();
                let x = graph.input("x", matrix(rows, 70)).expect("an input");
                let norm = normalized(&mut graph, x, 70, centred);
                let options = Gemm { activation: Activation::Gelu, transpose_b, ..Gemm::default() };
                let y = dense(&mut graph, "y", norm, [70, 37], options);
                graph.output(y).expect("an output");
                check(&graph, matrix(rows, 70), ops, &format!("{rows} rows, {centred}, {transpose_b}"));
            }
        }
    }
}

#[test]
fn tokens_in_three_dimensions_are_rows() {
    let mut graph = Graph::new();
    let dims = Dims::new(&[1, 2, 70]).expect("small");
    let x = graph.input("x", dims).expect("an input");
    let norm = normalized(&mut graph, x, 70, true);
    let rows = graph.reshape("rows", norm, &[2.into(), 70.into()]).expect("as many");
    let y = dense(&mut graph, "y", rows, [70, 37], Gemm::default());
    graph.output(y).expect("an output");
    check(&graph, dims, &["mlp"], "three dimensions");
}

/// Halves hold the weights and the scale, and not their products.
#[test]
fn a_scale_that_would_not_be_halves_with_the_weights_stays() {
    let mut graph = Graph::new();
    let x = graph.input("x", matrix(1, 4)).expect("an input");
    let vector = |value: f32| HostTensor::vector(vec![value; 4]).expect("a vector");
    let norm = graph.normalize("norm", x, Normalize::default(), Some(vector(300.0)), None).expect("a norm");
    let weights = HostTensor::new(Shape::nhwc(1, 1, 4, 1), vec![300.0, 1.0, 1.0, 1.0]).expect("four");
    let weights = weights.reshaped(matrix(4, 1)).expect("as many");
    let y = graph.gemm("y", norm, Right::Constant(weights), Extras::default(), Gemm::default());
    graph.output(y.expect("a product")).expect("an output");
    check(&graph, matrix(1, 4), &["normalize", "gemm"], "a large scale");
}

#[test]
fn small_layers_are_one_launch_and_large_ones_are_not() {
    let relu = Gemm { activation: Activation::Relu, ..Gemm::default() };
    // The rows, the input, what lies between, the outputs; a normalisation before them.
    for (extents, normal, ops) in [
        ([3, 10, 13, 5], false, &["mlp"][..]),
        ([1, 300, 130, 9], false, &["mlp"]),
        ([2, 300, 130, 9], true, &["mlp"]),
        ([60, 40, 30, 5], true, &["mlp"]),
        // The first layer is too large for a work-group, and there are many rows.
        ([60, 300, 130, 9], false, &["gemm", "gemm"]),
        // The second one has too many weights.
        ([1, 40, 400, 300], false, &["gemm", "gemm"]),
        ([1, 40, 400, 300], true, &["mlp", "gemm"]),
    ] {
        let [rows, k, hidden, o] = extents;
        let mut graph = Graph::new();
        let mut x = graph.input("x", matrix(rows, k)).expect("an input");
        if normal {
            x = normalized(&mut graph, x, k, true);
        }
        let between = dense(&mut graph, "first", x, [k, hidden], relu);
        let y = dense(&mut graph, "last", between, [hidden, o], Gemm::default());
        graph.output(y).expect("an output");
        check(&graph, matrix(rows, k), ops, &format!("{extents:?} {normal}"));
    }
}

#[test]
fn four_layers_are_two_launches() {
    let relu = Gemm { activation: Activation::Relu, ..Gemm::default() };
    let mut graph = Graph::new();
    let mut x = graph.input("x", matrix(2, 20)).expect("an input");
    for (at, sizes) in [[20, 30], [30, 40], [40, 30], [30, 4]].into_iter().enumerate() {
        x = dense(&mut graph, &format!("layer{at}"), x, sizes, relu);
    }
    graph.output(x).expect("an output");
    check(&graph, matrix(2, 20), &["mlp", "mlp"], "four layers");
}

#[test]
fn what_something_else_reads_stays() {
    let mut graph = Graph::new();
    let x = graph.input("x", matrix(1, 20)).expect("an input");
    let norm = normalized(&mut graph, x, 20, true);
    let y = dense(&mut graph, "y", norm, [20, 30], Gemm::default());
    let z = dense(&mut graph, "z", y, [30, 5], Gemm::default());
    for value in [z, norm, y] {
        graph.output(value).expect("an output");
    }
    check(&graph, matrix(1, 20), &["normalize", "gemm", "gemm"], "shown");
}
