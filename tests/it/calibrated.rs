//! Calibrations, and `Precision::Auto` without one, of networks whose rewrites add values and join nodes.

#[cfg(all(feature = "onnx", feature = "tflite"))]
use crate::cases;
use crate::half_rows::{blocks, gains_by_halves, tensor};
use crate::machine::{gpus, noise};
use diptych::nn::Reduction;
use diptych::{
    Activation, Calibration, Context, Conv2d, Dims, Extras, Function, Gemm, Graph, HostTensor, Padding,
    Pointwise, Precision, Right, Session, SessionOptions, Shape, Softmax, Step, Value,
};

fn auto() -> SessionOptions {
    SessionOptions { precision: Precision::Auto, ..SessionOptions::default() }
}

fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("small")
}

fn of(graph: &mut Graph, name: &str, function: Function, terms: &[diptych::Term]) -> Value {
    graph.elementwise(name, function, terms).expect("a function")
}

/// A product with constant weights of magnitude `scale`.
fn product(graph: &mut Graph, name: &str, x: Value, to: usize, seed: u32, scale: f32) -> Value {
    let from = graph.dims(x).expect("a value").extents().last().copied().expect("columns");
    let weights = tensor(&[from, to], seed).to_f32().iter().map(|w| w * scale).collect::<Vec<f32>>();
    let weights = HostTensor::new(dims(&[from, to]), weights).expect("as many");
    let right = Right::Constant(weights);
    graph.gemm(name, x, right, Extras::default(), Gemm::default()).expect("a product")
}

/// A product, a bias that is added behind it, and a GELU in its parts.
fn written_out(graph: &mut Graph, name: &str, x: Value, to: usize, seed: u32) -> Value {
    let own = |part: &str| format!("{name} {part}");
    let y = product(graph, &own("product"), x, to, seed, 1.0);
    let bias = graph.constant(&own("bias"), tensor(&[to], seed + 1));
    let y = of(graph, &own("sum"), Function::Add, &[y.into(), bias.into()]);
    let e = of(graph, &own("scaled"), Function::Div, &[y.into(), std::f32::consts::SQRT_2.into()]);
    let e = of(graph, &own("erf"), Function::Erf, &[e.into()]);
    let e = of(graph, &own("one"), Function::Add, &[e.into(), 1.0f32.into()]);
    let y = of(graph, &own("gated"), Function::Mul, &[y.into(), e.into()]);
    of(graph, &own("half"), Function::Mul, &[y.into(), 0.5f32.into()])
}

/// A normalisation of the last axis in its parts.
fn normalised(graph: &mut Graph, name: &str, x: Value) -> Value {
    let own = |part: &str| format!("{name} {part}");
    let mean = graph.reduce(&own("mean"), x, Reduction::Mean, &[-1], true).expect("a mean");
    let y = of(graph, &own("centred"), Function::Sub, &[x.into(), mean.into()]);
    let s = of(graph, &own("squares"), Function::Pow, &[y.into(), 2.0f32.into()]);
    let s = graph.reduce(&own("variance"), s, Reduction::Mean, &[-1], true).expect("a mean");
    let s = of(graph, &own("epsilon"), Function::Add, &[s.into(), 1e-5f32.into()]);
    let s = of(graph, &own("root"), Function::Sqrt, &[s.into()]);
    of(graph, &own("quotient"), Function::Div, &[y.into(), s.into()])
}

fn begun(extents: &[usize]) -> (Graph, Value) {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(extents)).expect("an input");
    (graph, x)
}

fn ended(mut graph: Graph, outputs: &[Value]) -> Graph {
    outputs.iter().for_each(|&output| graph.output(output).expect("an output"));
    graph
}

fn dense() -> Graph {
    let (mut graph, x) = begun(&[40, 32]);
    let y = written_out(&mut graph, "first", x, 64, 3);
    let y = normalised(&mut graph, "norm", y);
    let y = written_out(&mut graph, "second", y, 24, 9);
    ended(graph, &[y])
}

/// A gated product, and what it is added to.
fn gated() -> Graph {
    let (mut graph, x) = begun(&[5, 48]);
    let [gate, up] = [("gate", 3), ("up", 5)].map(|(name, seed)| product(&mut graph, name, x, 64, seed, 1.0));
    let s = of(&mut graph, "sigmoid", Function::Sigmoid, &[gate.into()]);
    let s = of(&mut graph, "silu", Function::Mul, &[gate.into(), s.into()]);
    let y = of(&mut graph, "gated", Function::Mul, &[s.into(), up.into()]);
    let y = product(&mut graph, "down", y, 48, 7, 1.0);
    let y = of(&mut graph, "residual", Function::Add, &[y.into(), x.into()]);
    ended(graph, &[y])
}

fn pointwise(graph: &mut Graph, name: &str, x: Value, to: usize, activation: Activation, seed: u32) -> Value {
    let from = graph.dims(x).expect("a value").shape().c;
    let weights = noise(Shape::nhwc(to, 1, 1, from), seed);
    let bias = Extras::bias(tensor(&[to], seed + 1));
    graph.pointwise(name, x, weights, bias, Pointwise { activation }).expect("a convolution")
}

/// Convolutions, a map whose channels are weighted, pixels and heads that are stacked, and a normalisation of a large map.
fn maps() -> Graph {
    let (mut graph, x) = begun(&[1, 100, 100, 3]);
    let options = Conv2d { padding: Padding::Same, activation: Activation::Relu, ..Conv2d::default() };
    let weights = noise(Shape::nhwc(16, 3, 3, 3), 5);
    let y = graph.conv2d("first", x, weights, Extras::default(), options).expect("a convolution");
    let options = diptych::nn::Normalize { axes: vec![1, 2], ..Default::default() };
    let y = graph.normalize("norm", y, options, None, None).expect("a normalisation");
    let mean = graph.reduce("mean", y, Reduction::Mean, &[1, 2], true).expect("a mean");
    let s = pointwise(&mut graph, "squeezed", mean, 4, Activation::Relu, 7);
    let s = pointwise(&mut graph, "factors", s, 16, Activation::Sigmoid, 9);
    let y = of(&mut graph, "weighted", Function::Mul, &[y.into(), s.into()]);
    // Two pixels of one input, which stay.
    let [one, two] = [("one", 11), ("two", 13)]
        .map(|(name, seed)| pointwise(&mut graph, name, mean, 8, Activation::None, seed));
    let z = of(&mut graph, "difference", Function::Sub, &[one.into(), two.into()]);
    let z = pointwise(&mut graph, "pixel", z, 4, Activation::None, 15);
    let heads = [("boxes", 4), ("scores", 2), ("points", 10)]
        .map(|(name, to)| pointwise(&mut graph, name, y, to, Activation::None, 17 + to as u32));
    ended(graph, &[&[z][..], &heads].concat())
}

/// A recurrent network: its state leaves for the next run.
fn recurrent() -> Graph {
    let (mut graph, x) = begun(&[1, 24]);
    let h = graph.state("h", HostTensor::new(dims(&[1, 24]), vec![0.25; 24]).expect("as many"));
    let [a, b] = [("of x", x, 3), ("of h", h, 5)].map(|(name, value, seed)| {
        let y = product(&mut graph, name, value, 24, seed, 1.0);
        let bias = graph.constant(&format!("{name} bias"), tensor(&[24], seed + 1));
        of(&mut graph, &format!("{name} sum"), Function::Add, &[y.into(), bias.into()])
    });
    let sum = of(&mut graph, "sum", Function::Add, &[a.into(), b.into()]);
    let next = of(&mut graph, "next", Function::Tanh, &[sum.into()]);
    graph.update(h, next).expect("one shape");
    let y = product(&mut graph, "out", next, 8, 7, 1.0);
    ended(graph, &[y])
}

/// Each network, and the extents of its input `x`.
fn networks() -> Vec<(&'static str, Graph, Vec<usize>)> {
    let of = |name, graph: Graph| {
        let extents = graph.dims(graph.inputs()[0]).expect("a value").extents().to_vec();
        (name, graph, extents)
    };
    vec![
        of("dense layers", dense()),
        of("a gated product", gated()),
        of("two blocks", blocks(2)),
        of("maps", maps()),
        of("a recurrent network", recurrent()),
        of("a shifted window", window(1.0)),
    ]
}

/// How far the results of `options` are off from those in f32, in three runs.
fn off(
    context: &Context,
    graph: &Graph,
    options: SessionOptions,
    samples: &[Vec<(&str, &HostTensor)>],
) -> f32 {
    let mut exact = Session::new(context, graph, SessionOptions::default()).expect("a session");
    let mut rounded = Session::new(context, graph, options).expect("a session");
    let mut worst = 0.0f32;
    for sample in samples {
        let [exact, rounded] = [&mut exact, &mut rounded].map(|session| session.run(sample).expect("a run"));
        for (exact, rounded) in exact.iter().zip(&rounded) {
            let (exact, rounded) = (exact.to_nhwc(), rounded.to_nhwc());
            let largest = exact.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            for (exact, rounded) in exact.iter().zip(rounded.iter()) {
                let off = (exact - rounded).abs() / largest;
                worst = if off <= worst || worst.is_nan() { worst } else { off };
            }
        }
    }
    worst
}

#[test]
fn every_network_can_be_calibrated() {
    for context in gpus().iter().filter(|context| gains_by_halves(context)) {
        for (name, graph, extents) in networks() {
            let given = [21, 22, 23].map(|seed| tensor(&extents, seed));
            let samples: Vec<Vec<(&str, &HostTensor)>> = given.iter().map(|x| vec![("x", x)]).collect();
            let found = Session::calibrate(context, &graph, &auto(), &samples, Calibration::TOLERANCE);
            let found = found.unwrap_or_else(|error| panic!("{name} on {}: {error}", context.info()));
            // Each step but for those that pieces of memory need has been seen, in f32 and in f16.
            assert!(found.nodes().iter().any(|node| node.largest > 0.0 && node.error.is_some()), "{found:?}");
            assert!(found.nodes().iter().all(|node| node.largest > 0.0), "{name}: {:?}", found.nodes());
            let options = SessionOptions { calibration: Some(found.clone()), ..auto() };
            let off = off(context, &graph, options, &samples);
            assert!(off <= Calibration::TOLERANCE, "{name} on {}: {off}", context.info());
        }
    }
}

/// All of a step but for why it was chosen.
fn shown(steps: &[Step]) -> Vec<String> {
    let shown = |step: &Step| {
        let Step { name, inserted, op, kernel, precision, work_group, .. } = step;
        format!("{name} {inserted} {op} {kernel} {precision} {work_group:?}")
    };
    steps.iter().map(shown).collect()
}

#[test]
fn a_calibration_that_keeps_all_gives_the_program_of_f32() {
    for context in gpus().iter().filter(|context| gains_by_halves(context)) {
        for (name, graph, extents) in networks() {
            let given = tensor(&extents, 21);
            // Less than any rounding is off by.
            let found = Session::calibrate(context, &graph, &auto(), &[vec![("x", &given)]], 1e-12);
            let options = SessionOptions { calibration: Some(found.expect("a calibration")), ..auto() };
            let kept = Session::new(context, &graph, options).expect("a session");
            let exact = Session::new(context, &graph, SessionOptions::default()).expect("a session");
            assert_eq!(shown(&kept.steps()), shown(&exact.steps()), "{name} on {}", context.info());
            assert_eq!(kept.memory(), exact.memory(), "{name} on {}", context.info());
        }
    }
}

/// The networks of cases whose rewrites add values, from files.
#[cfg(all(feature = "onnx", feature = "tflite"))]
#[test]
fn networks_of_files_can_be_calibrated() {
    const NAMES: [&str; 8] = [
        "attention_ends_causal",
        "bias_gelu",
        "embed_layer",
        "fused_next",
        "gqa_",
        "layer_norm",
        "skip_",
        "calibrate_",
    ];
    let root =
        std::env::var_os("DIPTYCH_SHARED").map_or_else(|| "../shared".into(), std::path::PathBuf::from);
    let mut count = 0;
    for folder in [root.join("cases"), "tests/cases".into()] {
        for case in
            cases::names(&folder).into_iter().filter(|case| NAMES.iter().any(|name| case.starts_with(name)))
        {
            let Ok((graph, feeds)) = cases::graph(&folder, &case) else { continue };
            let feeds: Vec<(&str, &HostTensor)> =
                feeds.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
            for context in gpus().iter().filter(|context| gains_by_halves(context)) {
                let found = Session::calibrate(
                    context,
                    &graph,
                    &auto(),
                    std::slice::from_ref(&feeds),
                    Calibration::TOLERANCE,
                );
                found.unwrap_or_else(|error| panic!("{case} on {}: {error}", context.info()));
                count += 1;
            }
        }
    }
    println!("{count} calibrations");
}

const TOKENS: usize = 16;
const HEADS: usize = 2;
const EACH: usize = 8;
const WIDTH: usize = HEADS * EACH;

/// A window of a shifted-window transformer of the second version, whose last rows are padding: queries and keys are divided
/// by their lengths, scores have a factor of their head, a bias of relative positions and a mask, and normalisations
/// follow what they are of. Keys have no bias, so that those of padding are 0.
fn window(scale: f32) -> Graph {
    let (mut graph, x) = begun(&[TOKENS - 5, WIDTH]);
    let rows = graph
        .pad("padded", x, &[0, 0], &[5, 0], diptych::nn::PadMode::Constant(diptych::Bits(0.0)))
        .expect("a pad");
    let parts = [("q", true), ("k", false), ("v", true)].map(|(name, biased)| {
        let mut y = product(&mut graph, name, rows, WIDTH, 31 + name.as_bytes()[0] as u32, scale);
        if biased {
            let bias = graph.constant(&format!("{name} bias"), tensor(&[WIDTH], 41));
            y = of(&mut graph, &format!("{name} sum"), Function::Add, &[y.into(), bias.into()]);
        }
        let heads = [TOKENS.into(), HEADS.into(), EACH.into()];
        let y = graph.reshape(&format!("{name} heads"), y, &heads).expect("a view");
        graph.transpose(&format!("{name} order"), y, &[1, 0, 2]).expect("a transpose")
    });
    let [q, k] = [("q", parts[0]), ("k", parts[1])].map(|(name, y)| {
        let own = |part: &str| format!("{name} {part}");
        let s = of(&mut graph, &own("squares"), Function::Mul, &[y.into(), y.into()]);
        let s = graph.reduce(&own("squared"), s, Reduction::Sum, &[-1], true).expect("a sum");
        let s = of(&mut graph, &own("length"), Function::Sqrt, &[s.into()]);
        let s = of(&mut graph, &own("kept"), Function::Maximum, &[s.into(), 1e-12f32.into()]);
        of(&mut graph, &own("cosines"), Function::Div, &[y.into(), s.into()])
    });
    let k = graph.transpose("k turned", k, &[0, 2, 1]).expect("a transpose");
    let y = graph.gemm("scores", q, Right::Value(k), Extras::default(), Gemm::default()).expect("scores");
    let factors = HostTensor::new(dims(&[HEADS, 1, 1]), vec![2.3, 9.0]).expect("as many");
    let factors = graph.constant("factors", factors);
    let f = of(&mut graph, "at most", Function::Minimum, &[factors.into(), 100f32.ln().into()]);
    let f = of(&mut graph, "powers", Function::Exp, &[f.into()]);
    let y = of(&mut graph, "scaled", Function::Mul, &[y.into(), f.into()]);
    let table = graph.constant("positions", tensor(&[HEADS, TOKENS, TOKENS], 47));
    let table = of(&mut graph, "share", Function::Sigmoid, &[table.into()]);
    let table = of(&mut graph, "bias", Function::Mul, &[table.into(), 16.0f32.into()]);
    let y = of(&mut graph, "biased", Function::Add, &[y.into(), table.into()]);
    let region = |at: usize| at / (TOKENS / 2);
    let mask =
        (0..TOKENS * TOKENS).map(|at| if region(at / TOKENS) == region(at % TOKENS) { 0.0 } else { -100.0 });
    let mask = HostTensor::new(dims(&[1, TOKENS, TOKENS]), mask.collect::<Vec<f32>>()).expect("as many");
    let mask = graph.constant("mask", mask);
    let y = of(&mut graph, "masked", Function::Add, &[y.into(), mask.into()]);
    let y = graph.softmax("shares", y, Softmax::default()).expect("a softmax");
    let y =
        graph.gemm("mixed", y, Right::Value(parts[2]), Extras::default(), Gemm::default()).expect("a mix");
    let y = graph.transpose("tokens", y, &[1, 0, 2]).expect("a transpose");
    let y = graph.reshape("rows", y, &[TOKENS.into(), WIDTH.into()]).expect("a view");
    let y = product(&mut graph, "out", y, WIDTH, 53, 1.0);
    let y = normalised(&mut graph, "first norm", y);
    let y = of(&mut graph, "first sum", Function::Add, &[y.into(), rows.into()]);
    let z = written_out(&mut graph, "wide", y, 4 * WIDTH, 59);
    let z = product(&mut graph, "narrow", z, WIDTH, 61, 1.0);
    let z = graph.normalize("second norm", z, diptych::nn::Normalize::default(), None, None).expect("a norm");
    let z = of(&mut graph, "second sum", Function::Add, &[z.into(), y.into()]);
    ended(graph, &[z])
}

/// Rows of a network whose products save more by halves than conversions cost.
const MANY: usize = 1024;

/// `x / y` where `y` is a share that halves would make 0, and a logarithm: nothing keeps it from there.
fn divided() -> Graph {
    let (mut graph, x) = begun(&[MANY, 512]);
    let y = product(&mut graph, "wide", x, 512, 3, 1.0);
    let y = of(&mut graph, "share", Function::Sigmoid, &[y.into()]);
    let z = of(&mut graph, "quotient", Function::Div, &[x.into(), y.into()]);
    let l = of(&mut graph, "logarithm", Function::Log, &[y.into()]);
    ended(graph, &[z, l])
}

/// Products by a constant that halves do not hold, of numbers of which some are 0, inside of a bound.
fn masked() -> Graph {
    let (mut graph, x) = begun(&[MANY, 512]);
    let y = product(&mut graph, "first", x, 512, 3, 0.1);
    let y = of(&mut graph, "positive", Function::Relu, &[y.into()]);
    let large = HostTensor::new(dims(&[512]), vec![3e5; 512]).expect("as many");
    let large = graph.constant("large", large);
    let y = of(&mut graph, "times", Function::Mul, &[y.into(), large.into()]);
    let y = of(&mut graph, "bounded", Function::Tanh, &[y.into()]);
    let y = product(&mut graph, "second", y, 512, 5, 0.1);
    ended(graph, &[y])
}

/// Products with numbers that halves hold: they are computed in halves.
fn plain() -> Graph {
    let (mut graph, x) = begun(&[MANY, 512]);
    let y = product(&mut graph, "first", x, 512, 3, 0.1);
    let y = of(&mut graph, "bounded", Function::Tanh, &[y.into()]);
    let y = product(&mut graph, "second", y, 512, 5, 0.1);
    ended(graph, &[y])
}

#[test]
fn auto_gives_numbers_where_f32_does() {
    let networks = [("quotients", divided()), ("constants", masked()), ("products", plain())];
    let all = networks.into_iter().chain(self::networks().into_iter().map(|(name, graph, _)| (name, graph)));
    for (name, graph) in all {
        let extents = graph.dims(graph.inputs()[0]).expect("a value").extents().to_vec();
        for scale in [1.0, 24.0] {
            let x = tensor(&extents, 71).to_f32().iter().map(|x| x * scale).collect::<Vec<f32>>();
            let x = HostTensor::new(dims(&extents), x).expect("as many");
            for context in gpus().iter().filter(|context| gains_by_halves(context)) {
                let [exact, rounded] = [Precision::F32, Precision::Auto].map(|precision| {
                    let options = SessionOptions { precision, ..SessionOptions::default() };
                    let mut session = Session::new(context, &graph, options).expect("a session");
                    (session.run(&[("x", &x)]).expect("a run"), session.steps())
                });
                let narrow = rounded.1.iter().any(|step| step.precision != Precision::F32);
                assert!(name != "products" || narrow, "{}: {:#?}", context.info(), rounded.1);
                for (exact, rounded) in exact.0.iter().zip(&rounded.0) {
                    for (exact, rounded) in exact.to_f32().iter().zip(rounded.to_f32().iter()) {
                        let same = !exact.is_finite() || rounded.is_finite();
                        assert!(same, "{name} on {}: {rounded}, in f32 {exact}", context.info());
                    }
                }
            }
        }
    }
}
