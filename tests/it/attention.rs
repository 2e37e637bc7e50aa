//! A block of attention as converters write it out: what becomes one step, with the result of the same block of which
//! every value leaves the network.

use crate::machine::{everywhere, noise};
use diptych::{
    Dims, Extras, Function, Gemm, Graph, HostTensor, Right, Session, SessionOptions, Shape, Softmax, Value,
    nn::AxisRange,
};

const TOKENS: usize = 17;
const HEADS: usize = 3;
const EACH: usize = 6;
const WIDTH: usize = HEADS * EACH;

fn matrix(rows: usize, columns: usize, seed: u32) -> HostTensor {
    let dims = Dims::new(&[rows, columns]).expect("small");
    noise(Shape::matrix(1, rows, columns), seed).reshaped(dims).expect("as many")
}

fn vector(len: usize, seed: u32) -> HostTensor {
    let dims = Dims::new(&[len]).expect("small");
    noise(Shape::nhwc(1, 1, 1, len), seed).reshaped(dims).expect("as many")
}

/// Queries, keys or values: a third of the columns, by heads, in the order that `axes` says.
fn heads(graph: &mut Graph, x: Value, third: usize, axes: &[usize]) -> Value {
    let first = (third * WIDTH) as isize;
    let columns = AxisRange::new(first, first + WIDTH as isize);
    let part = graph.strided_slice(&format!("part {third}"), x, &[AxisRange::ALL, columns]).expect("a slice");
    let dims = [TOKENS.into(), HEADS.into(), EACH.into()];
    let part = graph.reshape(&format!("heads {third}"), part, &dims).expect("a view");
    graph.transpose(&format!("order {third}"), part, axes).expect("a transpose")
}

/// The block; if `open`, its values leave the network.
fn block(open: bool) -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[TOKENS, WIDTH]).expect("small")).expect("an input");
    let mut between = Vec::new();
    let bias = Extras::bias(vector(3 * WIDTH, 2));
    let all = graph.gemm("all", x, Right::Constant(matrix(WIDTH, 3 * WIDTH, 1)), bias, Gemm::default());
    let all = all.expect("a product");
    let [q, k, v] = [(0, [1, 0, 2]), (1, [1, 2, 0]), (2, [1, 0, 2])].map(|(third, axes)| {
        let part = heads(&mut graph, all, third, &axes);
        between.push(part);
        part
    });
    let q = graph.elementwise("scaled", Function::Mul, &[q.into(), 0.25.into()]).expect("a product");
    let plain = |graph: &mut Graph, name: &str, a: Value, b: Value| {
        graph.gemm(name, a, Right::Value(b), Extras::default(), Gemm::default()).expect("a product")
    };
    let scores = plain(&mut graph, "scores", q, k);
    let shares = graph.softmax("shares", scores, Softmax::default()).expect("a softmax");
    let mixed = plain(&mut graph, "mixed", shares, v);
    let tokens = graph.transpose("tokens", mixed, &[1, 0, 2]).expect("a transpose");
    let tokens = graph.reshape("rows", tokens, &[TOKENS.into(), WIDTH.into()]).expect("a view");
    let bias = Extras::bias(vector(WIDTH, 4));
    let out = graph.gemm("out", tokens, Right::Constant(matrix(WIDTH, WIDTH, 3)), bias, Gemm::default());
    let out = out.expect("a product");
    let scale = graph.constant("scale", vector(WIDTH, 5));
    let scaled =
        graph.elementwise("layer scale", Function::Mul, &[out.into(), scale.into()]).expect("a product");
    let sum = graph.elementwise("sum", Function::Add, &[scaled.into(), x.into()]).expect("a sum");
    let wide = matrix(WIDTH, 20, 6);
    let wide = graph.gemm("wide", sum, Right::Constant(wide), Extras::default(), Gemm::default());
    let wide = wide.expect("a product");
    let mut one = |name: &str, function, a: Value, b: f32| {
        graph.elementwise(name, function, &[a.into(), b.into()]).expect("a function of each element")
    };
    let part = one("part", Function::Div, wide, std::f32::consts::SQRT_2);
    let error = graph.elementwise("erf", Function::Erf, &[part.into()]).expect("a function");
    let mut one = |name: &str, function, a: Value, b: f32| {
        graph.elementwise(name, function, &[a.into(), b.into()]).expect("a function of each element")
    };
    let share = one("share", Function::Add, error, 1.0);
    let gelu = graph.elementwise("gelu", Function::Mul, &[wide.into(), share.into()]).expect("a product");
    let gelu = graph.elementwise("half", Function::Mul, &[gelu.into(), 0.5.into()]).expect("a product");
    graph.output(gelu).expect("an output");
    if open {
        between.extend([all, q, scores, tokens, out, scaled, sum, wide, part, error, share]);
        for value in between {
            graph.output(value).expect("an output");
        }
    }
    graph
}

#[test]
fn a_block_of_attention_takes_four_steps_with_the_result_of_all_its_nodes() {
    let x = matrix(TOKENS, WIDTH, 9);
    for context in &everywhere() {
        let run = |open: bool| {
            let mut session =
                Session::new(context, &block(open), SessionOptions::default()).expect("a session");
            let found = session.run(&[("x", &x)]).expect("a run");
            let steps: Vec<String> =
                session.steps().into_iter().map(|step| format!("{} {}", step.op, step.name)).collect();
            (found, steps)
        };
        let ((wanted, apart), (found, steps)) = (run(true), run(false));
        for (found, wanted) in found[0].to_f32().iter().zip(wanted[0].to_f32().iter()) {
            assert!(
                (found - wanted).abs() <= 1e-4 * wanted.abs().max(1.0),
                "{}: {found} {wanted}",
                context.info()
            );
        }
        // The attention, and three products of rows.
        assert_eq!(steps.len(), 4, "{}: {steps:#?}", context.info());
        assert!(apart.len() > 16, "{}: {apart:#?}", context.info());
    }
}
