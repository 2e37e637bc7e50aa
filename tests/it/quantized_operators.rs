//! Operators between quantized values are computed on bytes: with the same integers on every backend, and within a step of floats.

use crate::machine::{in_turns, noise};
use diptych::nn::{Concat, Quantization, Reduction, TransposedConv2d};
use diptych::{
    Activation, Backend, Context, Conv2d, Depthwise, Dims, Extras, Function, Gemm, Graph, HostTensor,
    Padding, Pointwise, Pool, Pooling, Precision, Right, Session, SessionOptions, Shape, Value,
};

const STEPS: Quantization = Quantization::signed(0.02, -5);
const WIDE: Quantization = Quantization::unsigned(0.05, 100);

fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("small")
}

/// Integers from -`most` to `most` times the scales of an axis.
fn weights(extents: &[usize], axis: usize, each: bool, most: i32, seed: u32) -> HostTensor {
    let dims = dims(extents);
    let count = if each { extents[axis] } else { 1 };
    let scales: Vec<f32> = (0..count).map(|index| 0.01 + 0.003 * (index % 5) as f32).collect();
    let inner: usize = extents[axis + 1..].iter().product();
    let values = noise(Shape::nhwc(1, 1, 1, dims.elements()), seed);
    let values = values.to_f32();
    let values = values.iter().enumerate().map(|(at, value)| {
        let scale = scales[if each { at / inner % count } else { 0 }];
        (value * most as f32).round().clamp(-most as f32, most as f32) * scale
    });
    HostTensor::new(dims, values.collect::<Vec<f32>>()).expect("as many").with_scales(scales, axis)
}

/// Integers times the scales of input and weights.
fn bias(weights: &HostTensor, axis: usize, input: f32) -> HostTensor {
    let extents = weights.dims();
    let count = extents.extents()[axis];
    let scale = |output: usize| 0.01 + 0.003 * (output % 5) as f32;
    HostTensor::vector(
        (0..count).map(|output| (output as f32 * 37.0 - 90.0) * (scale(output) * input)).collect::<Vec<_>>(),
    )
    .expect("a bias")
}

/// `x` of these extents, rounded.
fn input(graph: &mut Graph, name: &str, extents: &[usize], steps: Quantization) -> Value {
    let x = graph.input(name, dims(extents)).expect("an input");
    rounded(graph, &format!("{name}/rounded"), x, steps)
}

fn rounded(graph: &mut Graph, name: &str, x: Value, steps: Quantization) -> Value {
    let q = graph.quantize_linear(&format!("{name}/q"), x, steps).expect("integers");
    graph.dequantize_linear(name, q, steps).expect("numbers")
}

/// What runs on a context: the ops of its steps and its results.
fn run(
    context: &Context,
    graph: &Graph,
    options: SessionOptions,
    inputs: &[(&str, &HostTensor)],
) -> (Vec<&'static str>, Vec<f32>) {
    let mut session = Session::new(context, graph, options).expect("a session");
    let ops = session.steps().iter().map(|step| step.op).collect();
    (ops, session.run(inputs).expect("a run")[0].to_f32().into_owned())
}

/// Compares backends with each other and with floats: results are within `most` steps of these. `ops` are what bytes run.
fn check(name: &str, graph: &Graph, ops: &[&str], steps: Quantization, most: f32) {
    let tensors: Vec<(String, HostTensor)> = graph
        .inputs()
        .iter()
        .enumerate()
        .map(|(seed, &value)| {
            let (name, dims) = (graph.name(value).expect("a name"), graph.dims(value).expect("dims"));
            let values = noise(Shape::nhwc(1, 1, 1, dims.elements()), seed as u32 + 7);
            let values: Vec<f32> = values.to_f32().iter().map(|value| 2.5 * value).collect();
            (name.to_owned(), HostTensor::new(dims, values).expect("as many"))
        })
        .collect();
    let inputs: Vec<(&str, &HostTensor)> = tensors.iter().map(|(name, own)| (name.as_str(), own)).collect();
    let cpu = Context::new(Backend::Cpu).expect("the CPU");
    let floats = SessionOptions::new().with_dequantize(true);
    let (plain, wanted) = run(&cpu, graph, floats, &inputs);
    assert!(!plain.iter().any(|op| op.starts_with("quantized")), "{name}: {plain:?}");
    let (_, bytes) = run(&cpu, graph, SessionOptions::new(), &inputs);
    let spread =
        wanted.iter().fold((f32::MAX, f32::MIN), |(low, high), &value| (low.min(value), high.max(value)));
    assert!(spread.1 - spread.0 > 4.0 * steps.scale.0, "{name}: nothing to compare in {spread:?}");
    for (at, (found, wanted)) in bytes.iter().zip(&wanted).enumerate() {
        let off = (found - wanted).abs() / steps.scale.0;
        assert!(off <= most + 1e-3, "{name}: {at}: {found} for {wanted} in floats, {off} steps");
    }
    for context in in_turns() {
        let backend = context.info().backend;
        for precision in [Precision::F32, Precision::F16Storage] {
            if backend == Backend::Cpu && precision != Precision::F32 {
                continue;
            }
            let options = SessionOptions::new().with_precision(precision);
            let (found, values) = run(&context, graph, options, &inputs);
            for op in ops {
                let composed = ["quantize", "dequantize"].contains(op) && found.contains(&"loops");
                let there = composed || found.contains(op);
                assert!(there, "{name} on {backend} in {precision}: no {op} in {found:?}");
            }
            // Halves of what enters are rounded before they are quantized.
            let allowed = if precision == Precision::F32 { 0.0 } else { 3.0 };
            for (at, (found, wanted)) in values.iter().zip(&bytes).enumerate() {
                let off = (found - wanted).abs() / steps.scale.0;
                assert!(
                    off <= allowed + 1e-3,
                    "{name} on {backend} in {precision}: {at}: {found} for {wanted}, {off} steps"
                );
            }
        }
    }
}

/// A network of one operator between quantized values.
fn between(
    extents: &[usize],
    to: Quantization,
    operator: impl FnOnce(&mut Graph, Value) -> diptych::Result<Value>,
) -> Graph {
    let mut graph = Graph::new();
    let x = input(&mut graph, "x", extents, STEPS);
    let y = operator(&mut graph, x).expect("an operator");
    let y = rounded(&mut graph, "y", y, to);
    graph.output(y).expect("an output");
    graph
}

#[test]
fn convolutions_run_on_bytes() {
    let stride = [2, 2];
    for each in [false, true] {
        for activation in [Activation::None, Activation::Relu, Activation::Relu6] {
            let own = weights(&[7, 3, 3, 6], 0, each, 127, 3);
            let extras = || if each { Extras::bias(bias(&own, 0, STEPS.scale.0)) } else { Extras::default() };
            let options = Conv2d { stride, padding: Padding::Same, activation, ..Conv2d::default() };
            let graph =
                between(&[2, 9, 8, 6], WIDE, |graph, x| graph.conv2d("c", x, own.clone(), extras(), options));
            check("conv2d", &graph, &["quantized_conv2d"], WIDE, 1.0);
            let own = weights(&[9, 1, 1, 6], 0, each, 127, 4);
            let options = Pointwise { activation };
            let graph = between(&[1, 5, 4, 6], WIDE, |graph, x| {
                graph.pointwise("c", x, own.clone(), Extras::default(), options)
            });
            check("pointwise", &graph, &["quantized_conv2d"], WIDE, 1.0);
            let own = weights(&[1, 3, 3, 6], 3, each, 127, 5);
            let options = Depthwise { padding: Padding::Same, activation, ..Depthwise::default() };
            let graph = between(&[1, 5, 4, 6], WIDE, |graph, x| {
                graph.depthwise("c", x, own.clone(), Extras::default(), options)
            });
            check("depthwise", &graph, &["quantized_depthwise"], WIDE, 1.0);
        }
    }
    // Several outputs of one channel are a convolution of all.
    let own = weights(&[1, 3, 3, 5], 3, true, 127, 5);
    let graph = between(&[1, 6, 6, 1], WIDE, |graph, x| {
        graph.depthwise("c", x, own, Extras::default(), Depthwise::default())
    });
    check("depthwise of one channel", &graph, &["quantized_conv2d"], WIDE, 1.0);
}

#[test]
fn sums_that_floats_have_exactly_become_bytes() {
    let own = weights(&[6, 3, 3, 2], 0, true, 127, 3);
    let graph = between(&[1, 6, 5, 4], WIDE, |graph, x| {
        graph.conv2d("c", x, own, Extras::default(), Conv2d { groups: 2, ..Conv2d::default() })
    });
    check("groups", &graph, &["conv2d", "quantize"], WIDE, 1.0);
    let own = weights(&[4, 2, 2, 6], 0, true, 127, 3);
    let options = TransposedConv2d { stride: [2, 2], ..TransposedConv2d::default() };
    let graph = between(&[1, 4, 5, 6], WIDE, |graph, x| {
        graph.transposed_conv2d("c", x, own, Extras::default(), options)
    });
    check("transposed", &graph, &["transposed_conv2d", "quantize"], WIDE, 1.0);
    let mut graph = Graph::new();
    let (a, b) = (input(&mut graph, "a", &[3, 1, 5, 8], STEPS), input(&mut graph, "b", &[3, 1, 7, 8], WIDE));
    let options = Gemm { transpose_b: true, ..Gemm::default() };
    let y = graph.gemm("product", a, Right::Value(b), Extras::default(), options).expect("a product");
    let to = Quantization::signed(0.3, 1);
    let y = rounded(&mut graph, "y", y, to);
    graph.output(y).expect("an output");
    check("product of two", &graph, &["gemm", "quantize"], to, 1.0);
}

#[test]
fn products_run_on_bytes() {
    for transpose_b in [false, true] {
        let (extents, axis) = if transpose_b { ([5, 12], 0) } else { ([12, 5], 1) };
        let own = weights(&extents, axis, true, 127, 8);
        let extras = Extras::bias(bias(&own, axis, STEPS.scale.0));
        let options = Gemm { transpose_b, activation: Activation::Relu, ..Gemm::default() };
        let graph =
            between(&[6, 12], WIDE, |graph, x| graph.gemm("p", x, Right::Constant(own), extras, options));
        check("gemm", &graph, &["quantized_conv2d"], WIDE, 1.0);
    }
}

#[test]
fn functions_of_elements_run_on_bytes() {
    for function in [Function::Add, Function::Sub, Function::Mul] {
        for second in [&[2, 3, 4, 6][..], &[6], &[2, 1, 1, 6]] {
            let mut graph = Graph::new();
            let a = input(&mut graph, "a", &[2, 3, 4, 6], STEPS);
            let b = input(&mut graph, "b", second, WIDE);
            let y = graph.elementwise("sum", function, &[a.into(), b.into()]).expect("a function");
            let y = graph.elementwise("relu", Function::Relu, &[y.into()]).expect("a function");
            let y = rounded(&mut graph, "y", y, WIDE);
            graph.output(y).expect("an output");
            check("two values", &graph, &["quantized_binary"], WIDE, 1.0);
        }
        let graph = between(&[2, 3, 6], WIDE, |graph, x| {
            let c = graph.constant("c", weights(&[6], 0, false, 100, 4));
            graph.elementwise("sum", function, &[x.into(), c.into()])
        });
        check("a constant", &graph, &["quantized_binary"], WIDE, 1.0);
        let graph = between(&[2, 3, 6], WIDE, |graph, x| {
            let c = graph.constant("c", weights(&[1], 0, false, 100, 4));
            graph.elementwise("sum", function, &[c.into(), x.into()])
        });
        check("a number", &graph, &["quantized_lookup"], WIDE, 1.0);
    }
    // Functions that every device computes to the bit are tables where there are bytes.
    for function in [Function::Relu, Function::Abs, Function::Neg] {
        let graph = between(&[2, 3, 4, 6], STEPS, |graph, x| {
            let own = weights(&[6, 1, 1, 6], 0, true, 127, 4);
            let y = graph.pointwise("c", x, own, Extras::default(), Pointwise::default())?;
            let y = rounded(graph, "z", y, WIDE);
            graph.elementwise("f", function, &[y.into()])
        });
        check(function.name(), &graph, &["quantized_lookup"], STEPS, 5.0);
    }
    for function in [Function::Sigmoid, Function::Tanh, Function::HardSwish, Function::Exp] {
        let graph = between(&[2, 3, 6], STEPS, |graph, x| graph.elementwise("f", function, &[x.into()]));
        check(function.name(), &graph, &["quantized_lookup"], STEPS, 1.0);
    }
    // Several nodes are one table.
    let graph = between(&[2, 3, 6], STEPS, |graph, x| graph.silu("silu", x));
    check("silu", &graph, &["quantized_lookup"], STEPS, 1.0);
    let graph = between(&[2, 3, 6], WIDE, |graph, x| {
        let more = graph.elementwise("more", Function::Add, &[x.into(), 0.5.into()])?;
        graph.elementwise("bent", Function::Elu, &[more.into()])
    });
    check("another scale", &graph, &["quantized_lookup"], WIDE, 1.0);
}

#[test]
fn windows_means_and_moves_run_on_bytes() {
    let pool = Pool { padding: Padding::Same, ..Pool::new(Pooling::Max, [3, 3]) };
    let graph = between(&[1, 7, 6, 6], STEPS, |graph, x| graph.pool("p", x, pool));
    check("max", &graph, &["quantized_pool"], STEPS, 0.0);
    let graph =
        between(&[1, 6, 6, 6], STEPS, |graph, x| graph.pool("p", x, Pool::new(Pooling::Average, [2, 2])));
    check("mean of windows", &graph, &["quantized_pool"], STEPS, 1.0);
    for keeps in [false, true] {
        let graph =
            between(&[2, 4, 3, 6], STEPS, |graph, x| graph.reduce("m", x, Reduction::Mean, &[1, 2], keeps));
        check("mean", &graph, &["quantized_pool"], STEPS, 1.0);
    }
    // Parts of one scale behind each other, seen in other extents, and a product of that.
    let mut graph = Graph::new();
    let (a, b) = (input(&mut graph, "a", &[1, 2, 3, 4], STEPS), input(&mut graph, "b", &[1, 2, 3, 8], STEPS));
    let y = graph.add(
        "joined",
        std::sync::Arc::new(Concat { axis: 3 }),
        &[(diptych::Operand::Arg(0), a), (diptych::Operand::Arg(1), b)],
    );
    let y = graph.reshape("flat", y.expect("a concatenation")[0], &[6.into(), 12.into()]).expect("a view");
    let y = rounded(&mut graph, "again", y, STEPS);
    let own = weights(&[12, 5], 1, true, 127, 8);
    let y = graph.gemm("p", y, Right::Constant(own), Extras::default(), Gemm::default()).expect("a product");
    let y = rounded(&mut graph, "y", y, WIDE);
    graph.output(y).expect("an output");
    check("joined", &graph, &["concat", "quantized_conv2d"], WIDE, 1.0);
}

#[test]
fn operands_that_are_moved_before_are_rounded_to_the_same_integers() {
    type Move = fn(&mut Graph, Value) -> diptych::Result<Value>;
    let moves: [(&str, Move); 5] = [
        ("transposed", |graph, x| graph.transpose("move", x, &[0, 2, 1, 3])),
        ("sliced", |graph, x| graph.slice("move", x, 1, 1..4)),
        ("padded", |graph, x| graph.pad("move", x, &[0, 1, 1, 0], &[0, 1, 1, 0], diptych::nn::PadMode::Edge)),
        ("with zeros around", |graph, x| {
            let zeros = diptych::nn::PadMode::Constant(diptych::Bits(0.0));
            graph.pad("move", x, &[0, 1, 1, 0], &[0, 1, 0, 0], zeros)
        }),
        ("gathered", |graph, x| {
            let places = HostTensor::of::<i32>(Dims::new(&[3])?, vec![2, 0, 1])?;
            let places = graph.constant("places", places);
            graph.gather("move", x, places, 1, 0)
        }),
    ];
    for (name, moved) in moves {
        let own = weights(&[5, 2, 2, 8], 0, true, 127, 3);
        let graph = between(&[1, 5, 4, 8], WIDE, |graph, x| {
            let x = moved(graph, x)?;
            graph.conv2d("c", x, own, Extras::default(), Conv2d::default())
        });
        check(name, &graph, &["quantized_conv2d"], WIDE, 1.0);
    }
}

#[test]
fn what_no_integers_are_stays_in_floats() {
    let floats = noise(Shape::nhwc(5, 2, 2, 8), 3);
    let graph = between(&[1, 5, 4, 8], WIDE, |graph, x| {
        graph.conv2d("c", x, floats, Extras::default(), Conv2d::default())
    });
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let x = noise(Shape::nhwc(1, 5, 4, 8), 5);
    let (ops, _) = run(&context, &graph, SessionOptions::new(), &[("x", &x)]);
    assert!(!ops.contains(&"quantized_conv2d"), "{ops:?}");
    // A node that something is said of stays what it is.
    let own = weights(&[5, 2, 2, 8], 0, true, 127, 3);
    let graph = between(&[1, 5, 4, 8], WIDE, |graph, x| {
        graph.conv2d("c", x, own, Extras::default(), Conv2d::default())
    });
    let options = SessionOptions::new().with_node_precision("c", Precision::F32);
    for context in in_turns().into_iter().filter(|context| context.info().backend != Backend::Cpu) {
        let (ops, _) = run(&context, &graph, options.clone(), &[("x", &x)]);
        assert!(ops.contains(&"conv2d"), "{ops:?}");
    }
}

#[test]
fn a_bias_that_is_no_integers_of_the_scales_is_added_in_floats() {
    let own = weights(&[5, 2, 2, 8], 0, true, 127, 3);
    let bias = HostTensor::vector((0..5).map(|output| 0.3 * output as f32 - 0.777).collect::<Vec<f32>>());
    let extras = Extras::bias(bias.expect("a bias"));
    let graph = between(&[1, 5, 4, 8], WIDE, |graph, x| graph.conv2d("c", x, own, extras, Conv2d::default()));
    let x = noise(Shape::nhwc(1, 5, 4, 8), 5);
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let (ops, found) = run(&context, &graph, SessionOptions::new(), &[("x", &x)]);
    assert!(!ops.contains(&"quantized_conv2d"), "{ops:?}");
    let (_, wanted) = run(&context, &graph, SessionOptions::new().with_dequantize(true), &[("x", &x)]);
    assert_eq!(found, wanted);
}

#[test]
fn what_is_said_of_a_step_of_bytes_leaves_it_one() {
    let own = weights(&[5, 2, 2, 8], 0, true, 127, 3);
    let graph = between(&[1, 5, 4, 8], WIDE, |graph, x| {
        graph.conv2d("c", x, own, Extras::default(), Conv2d::default())
    });
    for context in in_turns().into_iter().filter(|context| context.info().backend != Backend::Cpu) {
        let session = Session::new(&context, &graph, SessionOptions::new()).expect("a session");
        let steps = session.steps();
        let step = steps.iter().find(|step| step.op == "quantized_conv2d").expect("a convolution of bytes");
        let choice = step.choice.expect("a choice");
        // Every step keeps its name and its op under the choices of all.
        let all = steps.iter().filter_map(|step| Some((step.name.clone(), step.choice?)));
        let mut options = SessionOptions::new();
        options.choices.extend(all.filter(|(name, _)| name.contains("/bytes") || name.contains("/numbers")));
        assert!(options.choices.len() > 2, "{:?}", options.choices);
        let chosen = Session::new(&context, &graph, options).expect("a session");
        let names = |steps: &[diptych::Step]| -> Vec<(String, &'static str)> {
            steps.iter().map(|step| (step.name.clone(), step.op)).collect()
        };
        let own = chosen.steps();
        assert_eq!(names(&own), names(&steps));
        let own = own.iter().find(|own| own.name == step.name).expect("the step");
        assert_eq!((own.choice, own.source.as_str()), (Some(choice), "by hand"));
    }
}
