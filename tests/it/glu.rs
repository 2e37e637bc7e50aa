//! Two products of one input and the function of their results, as one product and a gated linear unit on devices.

use crate::machine::{in_turns, noise};
use diptych::nn::QuantizedGemm;
use diptych::{
    Activation, Backend, Context, Dim, Dims, Extras, Function, Gemm, Graph, HostTensor, QuantizedMatrix,
    Rewrite, Right, Session, SessionOptions, Shape, Value,
};

/// Rows, terms and columns.
const M: usize = 3;
const K: usize = 32;
const N: usize = 12;

fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("small")
}

fn product(graph: &mut Graph, name: &str, x: Value, options: Gemm, bias: bool) -> Value {
    let seed = name.len() as u32;
    let extents = if options.transpose_b { [N, K] } else { [K, N] };
    let weights = noise(Shape::nhwc(1, 1, K, N), seed).reshaped(dims(&extents)).expect("as many");
    let extras =
        if bias { Extras::bias(noise(Shape::nhwc(1, 1, 1, N), seed + 1)) } else { Extras::default() };
    graph.gemm(name, x, Right::Constant(weights), extras, options).expect("a product")
}

fn node(graph: &mut Graph, name: &str, function: Function, inputs: &[Value]) -> Value {
    let terms: Vec<_> = inputs.iter().map(|&value| value.into()).collect();
    graph.elementwise(name, function, &terms).expect("a function")
}

fn run(context: &Context, graph: &Graph, x: &HostTensor) -> (Vec<&'static str>, Vec<f32>) {
    // What comes before the products stays apart.
    let options = SessionOptions { without_rewrites: [Rewrite::Prologues].into(), ..Default::default() };
    let mut session = Session::new(context, graph, options).expect("a session");
    let ops = session.steps().iter().map(|step| step.op).collect();
    (ops, session.run(&[("x", x)]).expect("a run")[0].to_f32().into_owned())
}

/// Compares all backends with the CPU; a device's ops are `ops`.
fn check(graph: &Graph, ops: &[&str]) {
    let x = noise(Shape::nhwc(1, 1, M, K), 3).reshaped(dims(&[M, K])).expect("as many");
    let (_, wanted) = run(&Context::new(Backend::Cpu).expect("the CPU"), graph, &x);
    for context in in_turns() {
        let (found, values) = run(&context, graph, &x);
        let backend = context.info().backend;
        if backend != Backend::Cpu {
            assert_eq!(found, ops, "{backend}");
        }
        for (place, (found, wanted)) in values.iter().zip(&wanted).enumerate() {
            let most = 1e-5 * wanted.abs().max(1.0);
            assert!((found - wanted).abs() <= most, "{backend}: {place}: {found} for {wanted}");
        }
    }
}

#[test]
fn a_gate_and_what_it_lets_through_are_one_product() {
    for (transpose_b, biases) in [(false, [false; 2]), (true, [true; 2]), (false, [true, false])] {
        for act in 0..4 {
            let mut graph = Graph::new();
            let x = graph.input("x", dims(&[M, K])).expect("an input");
            let activation = if act == 3 { Activation::Tanh } else { Activation::None };
            let options = Gemm { transpose_b, ..Gemm::default() };
            let gate = product(&mut graph, "gate", x, Gemm { activation, ..options }, biases[0]);
            let up = product(&mut graph, "up", x, options, biases[1]);
            let gate = match act {
                0 => {
                    let share = node(&mut graph, "share", Function::Sigmoid, &[gate]);
                    node(&mut graph, "silu", Function::Mul, &[gate, share])
                }
                1 => node(&mut graph, "gelu", Function::Gelu, &[gate]),
                _ => gate,
            };
            let inputs = if act == 1 { [up, gate] } else { [gate, up] };
            let y = node(&mut graph, "y", Function::Mul, &inputs);
            graph.output(y).expect("an output");
            check(&graph, &["gemm", "glu"]);
        }
    }
}

#[test]
fn products_see_their_input_and_are_seen_in_other_dimensions() {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[M, K])).expect("an input");
    let x = node(&mut graph, "moved", Function::Neg, &[x]);
    let seen = |graph: &mut Graph, name: &str| {
        let flat = graph.reshape(&format!("{name}.flat"), x, &[1, M, K].map(Dim::Fixed)).expect("a view");
        let y = product(graph, name, flat, Gemm::default(), false);
        graph.reshape(&format!("{name}.seen"), y, &[M, 1, N].map(Dim::Fixed)).expect("a view")
    };
    let (gate, up) = (seen(&mut graph, "gate"), seen(&mut graph, "up"));
    let gate = node(&mut graph, "act", Function::Sigmoid, &[gate]);
    let y = node(&mut graph, "y", Function::Mul, &[gate, up]);
    graph.output(y).expect("an output");
    check(&graph, &["elementwise", "gemm", "glu"]);
}

#[test]
fn rows_that_are_taken_apart_are_read_where_they_lie() {
    for second in [false, true] {
        let mut graph = Graph::new();
        let x = graph.input("x", dims(&[M, K])).expect("an input");
        let both = product(&mut graph, "both", x, Gemm::default(), true);
        let halves = graph.split("halves", both, -1, &[N / 2, N / 2]).expect("two halves");
        let [gate, up] = if second { [halves[1], halves[0]] } else { [halves[0], halves[1]] };
        let gate = node(&mut graph, "act", Function::Sigmoid, &[gate]);
        let y = node(&mut graph, "y", Function::Mul, &[up, gate]);
        graph.output(y).expect("an output");
        check(&graph, &["gemm", "glu"]);
    }
}

#[test]
fn packed_weights_of_a_gate_are_one_product_too() {
    for (bits, block) in [(4, Some(16)), (8, None)] {
        let mut graph = Graph::new();
        let x = graph.input("x", dims(&[M, K])).expect("an input");
        let product = |graph: &mut Graph, name: &str| {
            let seed = name.len();
            let integers: Vec<u8> =
                (0..N * K).map(|place| (7 * place + seed * place % 11) as u8 % 16).collect();
            let blocks = block.map_or(1, |block| K.div_ceil(block));
            let scales = noise(Shape::nhwc(1, 1, N, blocks), seed as u32).to_f32().into_owned();
            let weights = QuantizedMatrix::pack(bits, [N, K], &integers, scales).expect("a matrix");
            let options = QuantizedGemm { block, ..QuantizedGemm::new(bits) };
            graph.quantized_gemm(name, x, weights, Extras::default(), options).expect("a product")
        };
        let (gate, up) = (product(&mut graph, "gate"), product(&mut graph, "up"));
        let gate = node(&mut graph, "act", Function::Tanh, &[gate]);
        let y = node(&mut graph, "y", Function::Mul, &[gate, up]);
        graph.output(y).expect("an output");
        check(&graph, &["quantized_gemm", "glu"]);
    }
}

#[test]
fn zero_points_of_one_side_keep_two_products_apart() {
    for second in [false, true] {
        let mut graph = Graph::new();
        let x = graph.input("x", dims(&[M, K])).expect("an input");
        let mut product = |name: &str, zeros: bool| {
            let integers: Vec<u8> = (0..N * K).map(|place| (5 * place + name.len()) as u8 % 16).collect();
            let scales = noise(Shape::nhwc(1, 1, N, 2), 7).to_f32().into_owned();
            let mut weights = QuantizedMatrix::pack(4, [N, K], &integers, scales).expect("a matrix");
            if zeros {
                let zeros: Vec<u8> = (0..2 * N).map(|place| place as u8 % 5).collect();
                weights = weights.with_zeros(4, &zeros).expect("as many");
            }
            let options = QuantizedGemm { block: Some(16), ..QuantizedGemm::new(4) };
            graph.quantized_gemm(name, x, weights, Extras::default(), options).expect("a product")
        };
        let (gate, up) = (product("gate", !second), product("up", second));
        let gate = node(&mut graph, "act", Function::Tanh, &[gate]);
        let y = node(&mut graph, "y", Function::Mul, &[gate, up]);
        graph.output(y).expect("an output");
        check(&graph, &["quantized_gemm", "quantized_gemm", "elementwise"]);
    }
}

#[test]
fn products_of_two_inputs_or_that_are_read_elsewhere_stay_two() {
    for shown in [false, true] {
        let mut graph = Graph::new();
        let x = graph.input("x", dims(&[M, K])).expect("an input");
        let other = node(&mut graph, "other", Function::Neg, &[x]);
        let gate = product(&mut graph, "gate", x, Gemm::default(), false);
        let up = product(&mut graph, "up", if shown { x } else { other }, Gemm::default(), false);
        let y = node(&mut graph, "y", Function::Mul, &[gate, up]);
        graph.output(y).expect("an output");
        if shown {
            graph.output(up).expect("an output");
        }
        let two = ["gemm", "gemm"];
        check(&graph, if shown { &two } else { &["elementwise", "gemm", "gemm"] });
    }
}
