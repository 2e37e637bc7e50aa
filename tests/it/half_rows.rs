//! Rows in halves: what a transformer's block keeps in them, and how far its result is from that in f32.

use crate::machine::{gpus, noise};
use diptych::nn::Normalize;
use diptych::{
    Activation, Bits, Context, Dims, Extras, Gemm, Graph, HostTensor, Precision, Right, Session,
    SessionOptions, Shape, Softmax, Step, Value,
};

const TOKENS: usize = 21;
const HEADS: usize = 3;
const EACH: usize = 8;
const WIDTH: usize = HEADS * EACH;

fn tensor(extents: &[usize], seed: u32) -> HostTensor {
    let dims = Dims::new(extents).expect("small");
    noise(Shape::nhwc(1, 1, 1, dims.elements()), seed).reshaped(dims).expect("as many")
}

fn dense(graph: &mut Graph, name: &str, x: Value, to: usize, seed: u32, activation: Activation) -> Value {
    let from = graph.dims(x).expect("a value").extents()[1];
    let bias = Extras::bias(tensor(&[to], seed + 1));
    let options = Gemm { activation, ..Gemm::default() };
    graph.gemm(name, x, Right::Constant(tensor(&[from, to], seed)), bias, options).expect("a product")
}

fn norm(graph: &mut Graph, name: &str, x: Value, seed: u32) -> Value {
    let options = Normalize { axes: vec![-1], epsilon: Bits(1e-5) };
    let [scale, bias] = [seed, seed + 1].map(|seed| Some(tensor(&[WIDTH], seed)));
    graph.normalize(name, x, options, scale, bias).expect("a normalisation")
}

fn sum(graph: &mut Graph, name: &str, a: Value, b: Value) -> Value {
    graph.elementwise(name, diptych::Function::Add, &[a.into(), b.into()]).expect("a sum")
}

/// Columns of `x` by heads, in the order that `axes` says.
fn heads(graph: &mut Graph, name: &str, x: Value, axes: &[usize]) -> Value {
    let dims = [TOKENS.into(), HEADS.into(), EACH.into()];
    let apart = graph.reshape(&format!("{name} heads"), x, &dims).expect("a view");
    graph.transpose(&format!("{name} order"), apart, axes).expect("a transpose")
}

/// A block before whose parts a normalisation stands.
fn block(graph: &mut Graph, name: &str, x: Value, seed: u32) -> Value {
    let plain = Activation::None;
    let own = |part: &str| format!("{name} {part}");
    let y = norm(graph, &own("norm"), x, seed);
    let [q, k, v] = [("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])].map(|(part, axes)| {
        let rows = dense(graph, &own(part), y, WIDTH, seed + u32::from(part.as_bytes()[0]), plain);
        heads(graph, &own(part), rows, &axes)
    });
    let mut product = |part: &str, a: Value, b: Value, alpha: f32| {
        let options = Gemm { alpha: Bits(alpha), ..Gemm::default() };
        graph.gemm(&own(part), a, Right::Value(b), Extras::default(), options).expect("a product")
    };
    let scores = product("scores", q, k, 0.35);
    let shares = graph.softmax(&own("shares"), scores, Softmax::default()).expect("a softmax");
    let options = Gemm::default();
    let mixed = graph.gemm(&own("mixed"), shares, Right::Value(v), Extras::default(), options);
    let tokens = graph.transpose(&own("tokens"), mixed.expect("a product"), &[1, 0, 2]).expect("a transpose");
    let rows = graph.reshape(&own("rows"), tokens, &[TOKENS.into(), WIDTH.into()]).expect("a view");
    let out = dense(graph, &own("out"), rows, WIDTH, seed + 7, plain);
    let x = sum(graph, &own("first sum"), out, x);
    let y = norm(graph, &own("second norm"), x, seed + 9);
    let wide = dense(graph, &own("wide"), y, 4 * WIDTH, seed + 11, Activation::Gelu);
    let narrow = dense(graph, &own("narrow"), wide, WIDTH, seed + 13, plain);
    sum(graph, &own("second sum"), narrow, x)
}

fn blocks(count: u32) -> Graph {
    let mut graph = Graph::new();
    let mut x = graph.input("x", Dims::new(&[TOKENS, WIDTH]).expect("small")).expect("an input");
    for index in 0..count {
        x = block(&mut graph, &format!("block {index}"), x, 1000 * (index + 1));
    }
    graph.output(x).expect("an output");
    graph
}

fn run(context: &Context, graph: &Graph, precision: Precision) -> (Vec<f32>, Vec<Step>) {
    let options = SessionOptions { precision, ..SessionOptions::default() };
    let mut session = Session::new(context, graph, options).expect("a session");
    let inputs = [("x", &tensor(&[TOKENS, WIDTH], 5))];
    // Twice: what the first run leaves behind must not matter.
    session.run(&inputs).expect("a run");
    let found = session.run(&inputs).expect("a run");
    (found[0].to_f32().to_vec(), session.steps())
}

/// The root of the mean square of what differs, relative to that of what is right.
fn off(exact: &[f32], found: &[f32]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|x| f64::from(x) * f64::from(x)).sum::<f64>();
    let differing = square(&mut exact.iter().zip(found).map(|(exact, found)| exact - found));
    (differing / square(&mut exact.iter().copied())).sqrt()
}

#[test]
fn a_transformers_blocks_stay_in_rows_of_halves_from_the_first_to_the_last() {
    let graph = blocks(2);
    for context in gpus() {
        let info = context.info();
        let (exact, plain) = run(&context, &graph, Precision::F32);
        let (found, steps) = run(&context, &graph, Precision::F16Storage);
        let told = |steps: &[Step]| -> Vec<String> {
            steps.iter().map(|step| format!("{} {} {}", step.op, step.precision, step.name)).collect()
        };
        assert!(plain.iter().all(|step| step.op != "convert"), "{info}: {:#?}", told(&plain));
        let converted: Vec<usize> =
            (0..steps.len()).filter(|&index| steps[index].op == "convert").collect();
        // What enters and what leaves.
        assert_eq!(converted, [0, steps.len() - 1], "{info}: {:#?}", told(&steps));
        assert_eq!(steps.len(), plain.len() + 2, "{info}: {:#?}", told(&steps));
        assert!(steps.iter().all(|step| step.precision == Precision::F16Storage), "{info}: {:#?}", told(&steps));
        // Each of some thirty roundings to halves in a row is off by at most 2^-11 of its result.
        let off = off(&exact, &found);
        assert!(off < 30.0 / 2048.0, "{info}: {off}");
        assert!(off > 1.0 / 65536.0, "{info}: nothing was rounded, {off}");
    }
}
