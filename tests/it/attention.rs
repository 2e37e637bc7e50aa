//! A block of attention as converters write it out: what becomes one step, with the result of the same block of which
//! every value leaves the network.

use crate::machine::{everywhere, in_turns, noise};
use diptych::{
    AttentionInputs, Dims, Extras, Function, Gemm, Graph, HostTensor, Layout, Picking, Place, Rewrite, Right,
    Session, SessionOptions, Shape, Softmax, Value,
    nn::{Attention, AxisRange},
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
        assert!(apart.len() > 7, "{}: {apart:#?}", context.info());
    }
}

/// How an attention is written out.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// Both factors scaled, and a bias of each query and key.
    Biased,
    /// A choice between scores and negative infinity.
    Chosen,
    /// Heads of queries that share one of keys are rows of one product.
    Grouped,
    /// A soft cap.
    Capped,
    /// Windows, with a bias of each head and another one of each window.
    Windows,
    /// The scores leave the network.
    Seen,
    /// What is added is multiplied too.
    Late,
}

/// Windows, heads of queries and of keys, queries, keys, features.
const EXTENTS: [usize; 6] = [2, 4, 2, 5, 7, 4];

fn values(extents: &[usize], seed: u32) -> HostTensor {
    let dims = Dims::new(extents).expect("small");
    noise(Shape::nhwc(1, 1, 1, dims.elements()), seed).reshaped(dims).expect("as many")
}

/// The graph, with inputs `q`, `k` and `v` of `windows places (heads features)`.
fn written_out(way: Way) -> Graph {
    let [windows, many, few, rows, keys, depth] = EXTENTS;
    let few = if way == Way::Grouped { few } else { many };
    let mut graph = Graph::new();
    let mut heads = |name: &str, places: usize, heads: usize| {
        let x = graph.input(name, Dims::new(&[windows, places, heads * depth]).expect("small"));
        let split = [windows.into(), places.into(), heads.into(), depth.into()];
        let x = graph.reshape(&format!("{name} split"), x.expect("an input"), &split).expect("a view");
        graph.transpose(&format!("{name} heads"), x, &[0, 2, 1, 3]).expect("a transpose")
    };
    let [q, k, v] = [heads("q", rows, many), heads("k", keys, few), heads("v", keys, few)];
    let number = |graph: &mut Graph, name: &str, function, x: Value, by: f32| {
        graph.elementwise(name, function, &[x.into(), by.into()]).expect("a function")
    };
    let (mut q, mut k) = (q, graph.transpose("turned", k, &[0, 1, 3, 2]).expect("a transpose"));
    if way == Way::Biased {
        q = number(&mut graph, "half q", Function::Mul, q, 0.5);
        k = number(&mut graph, "half k", Function::Mul, k, 0.5);
    }
    let matrices = |graph: &mut Graph, name: &str, x: Value, batch: usize, rows: usize, columns: usize| {
        graph.reshape(name, x, &[batch.into(), rows.into(), columns.into()]).expect("a view")
    };
    let batch = windows * few;
    let each = many / few * rows;
    let q = matrices(&mut graph, "queries", q, batch, each, depth);
    let k = matrices(&mut graph, "keys", k, batch, depth, keys);
    let v = matrices(&mut graph, "values", v, batch, keys, depth);
    let plain = |graph: &mut Graph, name: &str, a: Value, b: Value| {
        graph.gemm(name, a, Right::Value(b), Extras::default(), Gemm::default()).expect("a product")
    };
    let mut scores = plain(&mut graph, "scores", q, k);
    if way == Way::Seen {
        graph.output(scores).expect("an output");
    }
    let all = [windows.into(), many.into(), rows.into(), keys.into()];
    scores = graph.reshape("of heads", scores, &all).expect("a view");
    match way {
        Way::Biased => {
            let bias = graph.input("bias", Dims::new(&[windows, 1, 1, keys]).expect("small"));
            let terms = [scores.into(), bias.expect("an input").into()];
            scores = graph.elementwise("biased", Function::Add, &terms).expect("a sum");
        }
        Way::Chosen => {
            scores = number(&mut graph, "fourth", Function::Div, scores, 4.0);
            let mask = graph.input("bias", Dims::new(&[windows, 1, 1, keys]).expect("small"));
            let terms = [mask.expect("an input").into(), 0.0.into()];
            let mask = graph.elementwise("above", Function::Greater, &terms).expect("a comparison");
            let terms = [mask.into(), scores.into(), f32::NEG_INFINITY.into()];
            scores = graph.elementwise("chosen", Function::Select, &terms).expect("a choice");
        }
        Way::Capped => {
            scores = number(&mut graph, "below", Function::Mul, scores, 2.0);
            scores = graph.elementwise("bounded", Function::Tanh, &[scores.into()]).expect("a function");
            scores = number(&mut graph, "above", Function::Mul, scores, 3.0);
        }
        Way::Windows => {
            for (name, extents, seed) in
                [("of head", [1, many, rows, keys], 7), ("of window", [windows, 1, rows, keys], 8)]
            {
                let bias = graph.constant(&format!("{name} bias"), values(&extents, seed));
                scores =
                    graph.elementwise(name, Function::Add, &[scores.into(), bias.into()]).expect("a sum");
            }
        }
        Way::Late => {
            let bias = graph.constant("early bias", values(&[1, 1, rows, keys], 9));
            scores = graph.elementwise("sum", Function::Add, &[scores.into(), bias.into()]).expect("a sum");
            scores = number(&mut graph, "late", Function::Mul, scores, 2.0);
        }
        Way::Grouped | Way::Seen => {}
    }
    let shares = graph.softmax("shares", scores, Softmax::default()).expect("a softmax");
    let shares = matrices(&mut graph, "rows", shares, batch, each, keys);
    let mixed = plain(&mut graph, "mixed", shares, v);
    let of_heads = [windows.into(), many.into(), rows.into(), depth.into()];
    let mixed = graph.reshape("mixed heads", mixed, &of_heads).expect("a view");
    let y = graph.transpose("places", mixed, &[0, 2, 1, 3]).expect("a transpose");
    graph.output(y).expect("an output");
    graph
}

/// The result in f64.
fn wanted(way: Way, [q, k, v, bias]: [&[f32]; 4]) -> Vec<f64> {
    let [windows, many, few, rows, keys, depth] = EXTENTS;
    let few = if way == Way::Grouped { few } else { many };
    let of_constant = |extents: &[usize], seed| values(extents, seed).to_f32().to_vec();
    let (of_head, of_window) =
        (of_constant(&[many * rows * keys], 7), of_constant(&[windows * rows * keys], 8));
    let early = of_constant(&[rows * keys], 9);
    let mut result = vec![0.0; windows * rows * many * depth];
    for (index, result) in result.chunks_mut(depth).enumerate() {
        let (h, m, w) = (index % many, index / many % rows, index / many / rows);
        let at = |x: &[f32], places: usize, heads: usize, place: usize, head: usize, d: usize| {
            f64::from(x[((w * places + place) * heads + head) * depth + d])
        };
        let shared = h / (many / few);
        let score = |n: usize| {
            let product: f64 =
                (0..depth).map(|d| at(q, rows, many, m, h, d) * at(k, keys, few, n, shared, d)).sum();
            match way {
                Way::Biased => product * 0.25 + f64::from(bias[w * keys + n]),
                Way::Chosen if bias[w * keys + n] > 0.0 => product / 4.0,
                Way::Chosen => f64::NEG_INFINITY,
                Way::Capped => 3.0 * (2.0 * product).tanh(),
                Way::Windows => {
                    let place = m * keys + n;
                    product
                        + f64::from(of_head[h * rows * keys + place])
                        + f64::from(of_window[w * rows * keys + place])
                }
                Way::Late => 2.0 * (product + f64::from(early[m * keys + n])),
                Way::Grouped | Way::Seen => product,
            }
        };
        let powers: Vec<f64> = (0..keys).map(|n| score(n).exp()).collect();
        let sum: f64 = powers.iter().sum();
        for (d, value) in result.iter_mut().enumerate() {
            *value = (0..keys).map(|n| powers[n] / sum * at(v, keys, few, n, shared, d)).sum();
        }
    }
    result
}

#[test]
fn attention_that_is_written_out_runs_as_one_step() {
    let [windows, many, few, rows, keys, depth] = EXTENTS;
    for way in [Way::Biased, Way::Chosen, Way::Grouped, Way::Capped, Way::Windows, Way::Seen, Way::Late] {
        let heads = if way == Way::Grouped { few } else { many };
        let q = values(&[windows, rows, many * depth], 1);
        let k = values(&[windows, keys, heads * depth], 2);
        let v = values(&[windows, keys, heads * depth], 3);
        let bias = values(&[windows, 1, 1, keys], 4);
        let given = [q.to_f32(), k.to_f32(), v.to_f32(), bias.to_f32()];
        let wanted = wanted(way, [&given[0], &given[1], &given[2], &given[3]]);
        let graph = written_out(way);
        for context in in_turns() {
            let options = SessionOptions { without_rewrites: [Rewrite::Loops].into(), ..Default::default() };
            let mut session = Session::new(&context, &graph, options).expect("a session");
            let mut inputs = vec![("q", &q), ("k", &k), ("v", &v)];
            if matches!(way, Way::Biased | Way::Chosen) {
                inputs.push(("bias", &bias));
            }
            let outputs = session.run(&inputs).expect("a run");
            let found = outputs.last().expect("an output").to_f32().to_vec();
            for (place, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                let close = (f64::from(*found) - wanted).abs() <= 1e-5;
                assert!(close, "{way:?} {}: element {place}: {found} for {wanted}", context.info());
            }
            let ops: Vec<&str> = session.steps().into_iter().map(|step| step.op).collect();
            let one = ops.iter().filter(|op| **op == "attention").count() == 1
                && ops.iter().all(|op| !["gemm", "softmax", "remap"].contains(op));
            let stays = matches!(way, Way::Seen | Way::Late);
            assert_eq!(one, !stays, "{way:?} {}: {ops:?}", context.info());
            assert!(!stays || ops.contains(&"softmax"), "{way:?}: {ops:?}");
        }
    }
}

#[test]
fn attention_reads_and_writes_where_others_do() {
    let [batch, many, few, rows, keys, depth] = EXTENTS;
    let mut graph = Graph::new();
    let mut heads = |name: &str, places: usize, heads: usize| {
        let x = graph.input(name, Dims::new(&[batch, places, heads * depth]).expect("small"));
        let split = [batch.into(), places.into(), heads.into(), depth.into()];
        let x = graph.reshape(&format!("{name} split"), x.expect("an input"), &split).expect("a view");
        graph.transpose(&format!("{name} heads"), x, &[0, 2, 1, 3]).expect("a transpose")
    };
    let [q, k, v] = [heads("q", rows, many), heads("k", keys, few), heads("v", keys, few)];
    let begins = graph
        .constant("begins", HostTensor::of(Dims::new(&[2]).expect("small"), vec![2i32, 1]).expect("two"));
    let inputs = AttentionInputs { begins: Some(begins), ..AttentionInputs::default() };
    let causal = Attention { behind: Some(0), scale: Some(diptych::Bits(1.0)), ..Attention::default() };
    let y = graph.attention("attended", [q, k, v], inputs, causal).expect("an attention");
    let y = graph.transpose("places", y, &[0, 2, 1, 3]).expect("a transpose");
    graph.output(y).expect("an output");
    let q = values(&[batch, rows, many * depth], 1);
    let k = values(&[batch, keys, few * depth], 2);
    let v = values(&[batch, keys, few * depth], 3);
    let given = [q.to_f32(), k.to_f32(), v.to_f32()];
    for context in in_turns() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let ops: Vec<&str> = session.steps().into_iter().map(|step| step.op).collect();
        assert_eq!(ops.iter().filter(|op| **op != "convert").count(), 1, "{ops:?}");
        let found = session.run(&[("q", &q), ("k", &k), ("v", &v)]).expect("a run")[0].to_f32().to_vec();
        for (index, found) in found.chunks(depth).enumerate() {
            let (h, m, b) = (index % many, index / many % rows, index / many / rows);
            let at = |x: &[f32], places: usize, heads: usize, place: usize, head: usize, d: usize| {
                f64::from(x[((b * places + place) * heads + head) * depth + d])
            };
            let (shared, last) = (h / (many / few), m + [2, 1][b]);
            let power = |n: usize| -> f64 {
                let product: f64 = (0..depth)
                    .map(|d| at(&given[0], rows, many, m, h, d) * at(&given[1], keys, few, n, shared, d))
                    .sum();
                if n <= last { product.exp() } else { 0.0 }
            };
            let sum: f64 = (0..keys).map(power).sum();
            for (d, found) in found.iter().enumerate() {
                let wanted: f64 =
                    (0..keys).map(|n| power(n) / sum * at(&given[2], keys, few, n, shared, d)).sum();
                assert!(
                    (f64::from(*found) - wanted).abs() < 1e-5,
                    "{}: {found} for {wanted}",
                    context.info()
                );
            }
        }
    }
}

#[test]
fn products_that_an_attention_alone_reads_are_one() {
    let (rows, heads, depth) = (9, 2, 4);
    let width = heads * depth;
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[1, rows, width]).expect("small")).expect("an input");
    let flat = graph.reshape("flat", x, &[rows.into(), width.into()]).expect("a view");
    let mut side = |name: &str, seed: u32| {
        let weights = Right::Constant(matrix(width, width, seed));
        let y = graph.gemm(name, flat, weights, Extras::default(), Gemm::default()).expect("a product");
        // The keys have no bias.
        let y = match seed {
            2 => y,
            _ => {
                let bias = graph.constant(&format!("{name} bias"), vector(width, 10 + seed));
                let terms = [y.into(), bias.into()];
                graph.elementwise(&format!("{name} sum"), Function::Add, &terms).expect("a sum")
            }
        };
        let split = [1.into(), rows.into(), heads.into(), depth.into()];
        let y = graph.reshape(&format!("{name} split"), y, &split).expect("a view");
        graph.transpose(&format!("{name} heads"), y, &[0, 2, 1, 3]).expect("a transpose")
    };
    let [q, k, v] = [side("q", 1), side("k", 2), side("v", 3)];
    let attended = graph.attention("attended", [q, k, v], AttentionInputs::default(), Attention::default());
    let y = graph.transpose("places", attended.expect("an attention"), &[0, 2, 1, 3]).expect("a transpose");
    graph.output(y).expect("an output");
    let x = values(&[1, rows, width], 5);
    let given = x.to_f32().to_vec();
    let of = |seed: u32, row: usize, column: usize| -> f64 {
        let weights = matrix(width, width, seed);
        let bias = if seed == 2 { 0.0 } else { f64::from(vector(width, 10 + seed).to_f32()[column]) };
        let weights = weights.to_f32();
        let terms =
            (0..width).map(|k| f64::from(given[row * width + k]) * f64::from(weights[k * width + column]));
        terms.sum::<f64>() + bias
    };
    for context in in_turns() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let ops: Vec<&str> = session.steps().into_iter().map(|step| step.op).collect();
        assert_eq!(
            ops.iter().filter(|op| **op != "convert").collect::<Vec<_>>(),
            [&"gemm", &"attention"],
            "{ops:?}"
        );
        let found = session.run(&[("x", &x)]).expect("a run")[0].to_f32().to_vec();
        for (place, found) in found.iter().enumerate() {
            let (row, h, d) = (place / width, place / depth % heads, place % depth);
            let score = |n: usize| -> f64 {
                let products = (0..depth).map(|d| of(1, row, h * depth + d) * of(2, n, h * depth + d));
                (products.sum::<f64>() / (depth as f64).sqrt()).exp()
            };
            let sum: f64 = (0..rows).map(score).sum();
            let wanted: f64 = (0..rows).map(|n| score(n) / sum * of(3, n, h * depth + d)).sum();
            assert!((f64::from(*found) - wanted).abs() < 1e-5, "{}: {found} for {wanted}", context.info());
        }
    }
}

/// A decoder's attention: few queries, many keys, of which an input says how many there are.
#[test]
fn few_queries_attend_many_keys_in_parts_on_a_gpu_with_the_result_of_the_cpu() {
    let (heads, keys, depth) = (4, 1100, 8);
    let q = values(&[1, 2 * heads, 1, depth], 1);
    let k = values(&[1, heads, keys, depth], 2);
    let v = values(&[1, heads, keys, depth], 3);
    let graph = || {
        let mut graph = Graph::new();
        let mut input = |name: &str, of: &HostTensor| graph.input(name, of.dims()).expect("an input");
        let [query, key, value] = [("q", &q), ("k", &k), ("v", &v)].map(|(name, of)| input(name, of));
        let ends = input("ends", &values(&[1], 0));
        let more = AttentionInputs { ends: Some(ends), ..AttentionInputs::default() };
        let causal = Attention { behind: Some(0), begin: keys, ..Attention::default() };
        let y = graph.attention("y", [query, key, value], more, causal);
        graph.output(y.expect("an attention")).expect("an output");
        graph
    };
    let one = Dims::new(&[1]).expect("small");
    let mut results: Vec<Vec<Vec<f32>>> = Vec::new();
    for context in &everywhere() {
        let mut session = Session::new(context, &graph(), SessionOptions::default()).expect("a session");
        let steps: Vec<_> = session.steps().into_iter().map(|step| step.op).collect();
        let gpu = context.info().backend != diptych::Backend::Cpu;
        let wanted = if gpu { &["attention", "attention_join"][..] } else { &["attention"] };
        assert_eq!(steps, wanted, "{}", context.info());
        // All keys; some of the second part's; none.
        let run = |count: usize| {
            let ends = HostTensor::new(one, vec![count as f32]).expect("one number");
            let given = [("q", &q), ("k", &k), ("v", &v), ("ends", &ends)];
            session.run(&given).expect("a run")[0].to_f32().to_vec()
        };
        results.push([keys, 300, 0].map(run).into());
    }
    let [wanted, others @ ..] = &results[..] else { panic!("no backend") };
    assert!(wanted[2].iter().all(|&value| value == 0.0));
    for found in others {
        for (found, wanted) in found.iter().flatten().zip(wanted.iter().flatten()) {
            assert!((found - wanted).abs() <= 1e-5, "{found} {wanted}");
        }
    }
}

/// A preference of layouts says nothing of what lies in rows.
#[test]
fn an_attention_runs_whatever_layout_a_session_prefers() {
    let (q, k, v) = (values(&[1, 2, 5, 4], 1), values(&[1, 2, 7, 4], 2), values(&[1, 2, 7, 4], 3));
    let mut graph = Graph::new();
    let inputs =
        [("q", &q), ("k", &k), ("v", &v)].map(|(name, of)| graph.input(name, of.dims()).expect("an input"));
    let y = graph.attention("y", inputs, AttentionInputs::default(), Attention::default());
    graph.output(y.expect("an attention")).expect("an output");
    for context in everywhere() {
        let run = |pick: Picking| {
            let options = SessionOptions { pick, ..SessionOptions::default() };
            let mut session = Session::new(&context, &graph, options).expect("a session");
            session.run(&[("q", &q), ("k", &k), ("v", &v)]).expect("a run")[0].to_f32().to_vec()
        };
        let wanted = run(Picking::default());
        for layout in [Layout::C4, Layout::Image2d, Layout::Nhwc] {
            let place = Place { layout: Some(layout), ..Place::default() };
            for (found, wanted) in run(Picking::Preference(vec![place])).iter().zip(&wanted) {
                assert!((found - wanted).abs() < 1e-5, "{layout} on {}: {found} {wanted}", context.info());
            }
        }
    }
}
