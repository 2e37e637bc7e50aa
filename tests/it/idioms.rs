//! Normalisations, softmax and activations that are written out as many nodes run as the op that they are.

use crate::machine::{in_turns, noise};
use diptych::{
    Activation, Backend, Conv2d, Dims, Extras, Function, Gemm, Graph, HostTensor, Padding, Reduction,
    Rewrite, Right, Session, SessionOptions, Shape, Term, Value,
};

fn node(graph: &mut Graph, name: &str, function: Function, terms: &[Term]) -> Value {
    graph.elementwise(name, function, terms).expect("a function")
}

/// Mean, variance and `1 / sqrt(variance + 0.01)` of `x` over `axes`.
fn moments(graph: &mut Graph, x: Value, axes: &[isize]) -> [Value; 2] {
    let mean = graph.reduce("mean", x, Reduction::Mean, axes, true).expect("a mean");
    let squares = node(graph, "squares", Function::SquaredDifference, &[x.into(), mean.into()]);
    let variance = graph.reduce("variance", squares, Reduction::Mean, axes, true).expect("a mean");
    let sum = node(graph, "sum", Function::Add, &[variance.into(), 0.01.into()]);
    [mean, node(graph, "root", Function::Rsqrt, &[sum.into()])]
}

/// Runs `graph` on the CPU and a GPU API, compares its only output with `wanted`, and the ops of its steps with `ops`, but
/// for changes of form.
fn check(graph: &Graph, inputs: &[(&str, &HostTensor)], wanted: &[f64], ops: &[&str]) {
    for context in in_turns() {
        let backend = context.info().backend;
        // Without composition, which makes kernels of what idioms leave.
        let options = SessionOptions { without_rewrites: [Rewrite::Loops].into(), ..Default::default() };
        let mut session = Session::new(&context, graph, options).expect("a session");
        let steps = session.steps();
        let found: Vec<&str> = steps.iter().map(|step| step.op).filter(|op| *op != "convert").collect();
        assert_eq!(found, ops, "{backend}");
        let outputs = session.run(inputs).expect("a run");
        let found = outputs[0].to_f32();
        assert_eq!(found.len(), wanted.len());
        for (place, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let off = (f64::from(*found) - wanted).abs();
            assert!(off <= 2e-5 * wanted.abs().max(1.0), "{backend}: element {place}: {found} for {wanted}");
        }
    }
}

/// `x`, normalised over groups of elements that `group` distinguishes.
fn normalised(x: &[f32], group: impl Fn(usize) -> usize) -> Vec<f64> {
    let groups = (0..x.len()).map(&group).max().expect("elements") + 1;
    let mean_of = |values: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let mut sums = vec![(0.0, 0usize); groups];
        for place in 0..x.len() {
            let sum = &mut sums[group(place)];
            *sum = (sum.0 + values(place), sum.1 + 1);
        }
        sums.into_iter().map(|(sum, count)| sum / count as f64).collect()
    };
    let mean = mean_of(&|place| f64::from(x[place]));
    let centred = |place: usize| f64::from(x[place]) - mean[group(place)];
    let variance = mean_of(&|place| centred(place).powi(2));
    (0..x.len()).map(|place| centred(place) / (variance[group(place)] + 0.01).sqrt()).collect()
}

#[test]
fn a_layer_normalisation_with_a_constant_scale_is_one_step() {
    // x * g + (-m) * g, as TensorFlow's converter writes it.
    let dims = Dims::new(&[1, 7, 12]).expect("small");
    let (x, scale) = (noise(dims.shape(), 1), noise(Shape::nhwc(1, 1, 1, 12), 2));
    for with_bias in [false, true] {
        let mut graph = Graph::new();
        let input = graph.input("x", dims).expect("an input");
        let [mean, root] = moments(&mut graph, input, &[2]);
        let vector = Dims::new(&[1, 1, 12]).expect("small");
        let gamma = graph.constant("gamma", scale.clone().reshaped(vector).expect("as many"));
        let factor = node(&mut graph, "factor", Function::Mul, &[root.into(), gamma.into()]);
        let negative = node(&mut graph, "negative", Function::Neg, &[mean.into()]);
        let mut shift = node(&mut graph, "shift", Function::Mul, &[negative.into(), factor.into()]);
        if with_bias {
            let beta = graph.constant("beta", scale.clone().reshaped(vector).expect("as many"));
            shift = node(&mut graph, "shifted", Function::Add, &[beta.into(), shift.into()]);
        }
        let main = node(&mut graph, "main", Function::Mul, &[input.into(), factor.into()]);
        let y = node(&mut graph, "y", Function::Add, &[main.into(), shift.into()]);
        graph.output(y).expect("an output");
        let factors = scale.to_f32();
        let wanted = normalised(&x.to_f32(), |place| place / 12);
        let bias = |place: usize| if with_bias { f64::from(factors[place % 12]) } else { 0.0 };
        let scaled = wanted.iter().enumerate();
        let wanted: Vec<f64> =
            scaled.map(|(place, value)| value * f64::from(factors[place % 12]) + bias(place)).collect();
        let x = x.clone().reshaped(dims).expect("as many");
        check(&graph, &[("x", &x)], &wanted, &["normalize"]);
    }
}

#[test]
fn a_large_normalisation_that_is_written_out_is_computed_in_parts() {
    let (shape, vector) = (Shape::nhwc(1, 98, 97, 6), Shape::nhwc(1, 1, 1, 6));
    let (x, gamma, beta) = (noise(shape, 1), noise(vector, 2), noise(vector, 3));
    for follows in [false, true] {
        let mut graph = Graph::new();
        let input = graph.input("x", shape).expect("an input");
        let [mean, root] = moments(&mut graph, input, &[1, 2]);
        let centred = node(&mut graph, "centred", Function::Sub, &[input.into(), mean.into()]);
        let normal = node(&mut graph, "normal", Function::Mul, &[centred.into(), root.into()]);
        let [g, b] =
            [("gamma", &gamma), ("beta", &beta)].map(|(name, own)| graph.constant(name, own.clone()));
        let scaled = node(&mut graph, "scaled", Function::Mul, &[normal.into(), g.into()]);
        let mut y = node(&mut graph, "y", Function::Add, &[scaled.into(), b.into()]);
        if follows {
            y = node(&mut graph, "relu", Function::Relu, &[y.into()]);
        }
        graph.output(y).expect("an output");
        let (g, b) = (gamma.to_f32(), beta.to_f32());
        let values = normalised(&x.to_f32(), |place| place % 6).into_iter().enumerate();
        let wanted = values.map(|(at, value)| value * f64::from(g[at % 6]) + f64::from(b[at % 6]));
        let wanted: Vec<f64> = wanted.map(|value| if follows { value.max(0.0) } else { value }).collect();
        for context in in_turns() {
            let backend = context.info().backend;
            let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
            if backend != Backend::Cpu {
                let loops = session.steps().iter().filter(|step| step.op == "loops").count();
                assert_eq!(loops, 2, "{backend}");
            }
            let outputs = session.run(&[("x", &x)]).expect("a run");
            let found = outputs[0].to_f32();
            let near = |(found, wanted): (&f32, &f64)| {
                (f64::from(*found) - wanted).abs() <= 2e-5 * wanted.abs().max(1.0)
            };
            assert!(found.iter().zip(&wanted).all(near), "{backend}");
        }
    }
}

#[test]
fn an_instance_normalisation_with_computed_factors_is_one_step() {
    // x * g + (beta - m * g), as style transfer has it: the factors are inputs.
    let shape = Shape::nhwc(1, 5, 6, 9);
    let vector = Shape::nhwc(1, 1, 1, 9);
    let (x, gamma, beta) = (noise(shape, 1), noise(vector, 2), noise(vector, 3));
    let mut graph = Graph::new();
    let input = graph.input("x", shape).expect("an input");
    let [scale, bias] = ["gamma", "beta"].map(|name| graph.input(name, vector).expect("an input"));
    let [mean, root] = moments(&mut graph, input, &[1, 2]);
    let factor = node(&mut graph, "factor", Function::Mul, &[root.into(), scale.into()]);
    let main = node(&mut graph, "main", Function::Mul, &[input.into(), factor.into()]);
    let shift = node(&mut graph, "shift", Function::Mul, &[mean.into(), factor.into()]);
    let rest = node(&mut graph, "rest", Function::Sub, &[bias.into(), shift.into()]);
    let y = node(&mut graph, "y", Function::Add, &[main.into(), rest.into()]);
    graph.output(y).expect("an output");
    let (g, b) = (gamma.to_f32(), beta.to_f32());
    let wanted = normalised(&x.to_f32(), |place| place % 9);
    let scaled = wanted.iter().enumerate();
    let wanted: Vec<f64> =
        scaled.map(|(place, value)| value * f64::from(g[place % 9]) + f64::from(b[place % 9])).collect();
    let inputs = [("x", &x), ("gamma", &gamma), ("beta", &beta)];
    check(&graph, &inputs, &wanted, &["normalize"]);
}

/// `x`, each line of `width` divided by the root of its mean square, with the number that `moments` adds.
fn by_root_mean_square(x: &[f32], width: usize) -> Vec<f64> {
    let of_line = |line: &[f32]| {
        let squares: f64 = line.iter().map(|&x| f64::from(x).powi(2)).sum();
        let root = (squares / width as f64 + 0.01).sqrt();
        line.iter().map(|&x| f64::from(x) / root).collect::<Vec<f64>>()
    };
    x.chunks(width).flat_map(of_line).collect()
}

/// `x` divided by the root of its mean square over its last axis, as exporters write it out in several ways, with the root
/// and what is made of `x`.
fn divided_by_root(graph: &mut Graph, x: Value, way: usize, gamma: Option<Value>) -> [Value; 2] {
    use Function::{Add, Div, Mul, Pow, Reciprocal, Rsqrt, Sqrt};
    let squares = match way % 2 {
        0 => node(graph, "squares", Pow, &[x.into(), 2.0.into()]),
        _ => node(graph, "squares", Mul, &[x.into(), x.into()]),
    };
    let mean = graph.reduce("mean", squares, Reduction::Mean, &[-1], true).expect("a mean");
    let terms: [Term; 2] = if way < 3 { [mean.into(), 0.01.into()] } else { [0.01.into(), mean.into()] };
    let sum = node(graph, "sum", Add, &terms);
    let root = match way {
        // What has no sign has roots for powers.
        0 => node(graph, "root", Pow, &[sum.into(), (-0.5).into()]),
        1 => node(graph, "root", Pow, &[sum.into(), 0.5.into()]),
        4 => node(graph, "root", Rsqrt, &[sum.into()]),
        _ => node(graph, "root", Sqrt, &[sum.into()]),
    };
    let mut product = |name: &str, a: Value, b: Value| node(graph, name, Mul, &[a.into(), b.into()]);
    let y = match (way, gamma) {
        (0, _) => product("y", x, root),
        // The scale is a part of the factor.
        (4, Some(gamma)) => {
            let factor = product("factor", root, gamma);
            return [root, product("y", x, factor)];
        }
        (4, None) => product("y", root, x),
        (1, _) => node(graph, "y", Div, &[x.into(), root.into()]),
        (2, _) => {
            let inverse = node(graph, "inverse", Reciprocal, &[root.into()]);
            node(graph, "y", Mul, &[x.into(), inverse.into()])
        }
        _ => {
            let inverse = node(graph, "inverse", Div, &[1.0.into(), root.into()]);
            node(graph, "y", Mul, &[inverse.into(), x.into()])
        }
    };
    let scaled = gamma.map(|gamma| node(graph, "scaled", Mul, &[gamma.into(), y.into()]));
    [root, scaled.unwrap_or(y)]
}

#[test]
fn a_normalisation_by_the_root_of_the_mean_square_is_one_step() {
    let dims = Dims::new(&[2, 7, 19]).expect("small");
    let (x, gamma) = (noise(dims.shape(), 1), noise(Shape::nhwc(1, 1, 1, 19), 2));
    let vector = gamma.clone().reshaped(Dims::new(&[19]).expect("small")).expect("as many");
    let (factors, tensor) = (gamma.to_f32(), x.clone().reshaped(dims).expect("as many"));
    for way in 0..5 {
        for scaled in [false, true] {
            let mut graph = Graph::new();
            let input = graph.input("x", dims).expect("an input");
            let gamma = scaled.then(|| graph.constant("gamma", vector.clone()));
            let [_, y] = divided_by_root(&mut graph, input, way, gamma);
            // The sum with what is normalised, as a block has it, is no part of it.
            let y = node(&mut graph, "residual", Function::Add, &[y.into(), input.into()]);
            graph.output(y).expect("an output");
            let factor = |place: usize| if scaled { f64::from(factors[place % 19]) } else { 1.0 };
            let normal =
                by_root_mean_square(&x.to_f32(), 19).into_iter().zip(x.to_f32().to_vec()).enumerate();
            let wanted: Vec<f64> =
                normal.map(|(place, (normal, x))| normal * factor(place) + f64::from(x)).collect();
            check(&graph, &[("x", &tensor)], &wanted, &["normalize", "elementwise"]);
        }
    }
}

#[test]
fn differences_from_a_mean_by_the_root_of_their_mean_square_are_a_layer_normalisation() {
    // (x - m) / sqrt(mean((x - m)^2) + epsilon) * gamma + beta, as exporters write it.
    let dims = Dims::new(&[4, 9, 17]).expect("small");
    let (x, gamma) = (noise(dims.shape(), 1), noise(Shape::nhwc(1, 1, 1, 17), 2));
    let vector = gamma.clone().reshaped(Dims::new(&[17]).expect("small")).expect("as many");
    let (factors, tensor) = (gamma.to_f32(), x.clone().reshaped(dims).expect("as many"));
    let normal = normalised(&x.to_f32(), |place| place / 17);
    for way in 0..4 {
        let mut graph = Graph::new();
        let input = graph.input("x", dims).expect("an input");
        let mean = graph.reduce("m", input, Reduction::Mean, &[2], true).expect("a mean");
        let centred = node(&mut graph, "centred", Function::Sub, &[input.into(), mean.into()]);
        let [gamma, beta] = ["gamma", "beta"].map(|name| graph.constant(name, vector.clone()));
        let [_, y] = divided_by_root(&mut graph, centred, way, Some(gamma));
        let y = node(&mut graph, "moved", Function::Add, &[y.into(), beta.into()]);
        graph.output(y).expect("an output");
        let wanted = normal.iter().enumerate();
        let wanted: Vec<f64> = wanted.map(|(at, y)| (y + 1.0) * f64::from(factors[at % 17])).collect();
        check(&graph, &[("x", &tensor)], &wanted, &["normalize"]);
    }
}

#[test]
fn differences_that_are_read_elsewhere_are_divided_by_the_root_of_their_mean_square() {
    let dims = Dims::new(&[5, 12]).expect("small");
    let x = noise(dims.shape(), 1).reshaped(dims).expect("as many");
    let mut graph = Graph::new();
    let input = graph.input("x", dims).expect("an input");
    let mean = graph.reduce("m", input, Reduction::Mean, &[1], true).expect("a mean");
    let centred = node(&mut graph, "centred", Function::Sub, &[input.into(), mean.into()]);
    let [_, y] = divided_by_root(&mut graph, centred, 1, None);
    let y = node(&mut graph, "sum", Function::Add, &[y.into(), centred.into()]);
    graph.output(y).expect("an output");
    let values = x.to_f32();
    let mean_of = |line: &[f32]| line.iter().map(|&x| f64::from(x)).sum::<f64>() / 12.0;
    let difference = |at: usize| f64::from(values[at]) - mean_of(&values[at / 12 * 12..][..12]);
    let normal = normalised(&values, |place| place / 12).into_iter().enumerate();
    let wanted: Vec<f64> = normal.map(|(at, y)| y + difference(at)).collect();
    check(&graph, &[("x", &x)], &wanted, &["reduce", "elementwise", "normalize", "elementwise"]);
}

#[test]
fn a_normalisation_with_an_epsilon_of_zero_stays_written_out() {
    let dims = Dims::new(&[2, 5]).expect("small");
    let x = noise(dims.shape(), 1).reshaped(dims).expect("as many");
    let mut graph = Graph::new();
    let input = graph.input("x", dims).expect("an input");
    let mean = graph.reduce("mean", input, Reduction::Mean, &[1], true).expect("a mean");
    let squares = node(&mut graph, "squares", Function::SquaredDifference, &[input.into(), mean.into()]);
    let variance = graph.reduce("variance", squares, Reduction::Mean, &[1], true).expect("a mean");
    let sum = node(&mut graph, "sum", Function::Add, &[variance.into(), 0.0.into()]);
    let root = node(&mut graph, "root", Function::Rsqrt, &[sum.into()]);
    let centred = node(&mut graph, "centred", Function::Sub, &[input.into(), mean.into()]);
    let y = node(&mut graph, "y", Function::Mul, &[centred.into(), root.into()]);
    graph.output(y).expect("an output");
    for context in in_turns() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let found = session.run(&[("x", &x)]).expect("a run");
        // A mean square of 1.
        for line in found[0].to_f32().chunks(5) {
            let square: f32 = line.iter().map(|x| x * x / 5.0).sum();
            assert!((square - 1.0).abs() < 1e-5, "{square}");
        }
    }
}

#[test]
fn a_root_of_a_mean_square_that_is_read_elsewhere_stays() {
    let dims = Dims::new(&[5, 12]).expect("small");
    let x = noise(dims.shape(), 1).reshaped(dims).expect("as many");
    let wanted = by_root_mean_square(&x.to_f32(), 12);
    for context in in_turns() {
        let mut graph = Graph::new();
        let input = graph.input("x", dims).expect("an input");
        let [root, y] = divided_by_root(&mut graph, input, 1, None);
        graph.output(y).expect("an output");
        graph.output(root).expect("an output");
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        assert!(session.steps().iter().all(|step| step.op != "normalize"), "{:?}", session.steps());
        let found = session.run(&[("x", &x)]).expect("a run");
        let normal = found[0].to_f32();
        assert!(normal.iter().zip(&wanted).all(|(found, wanted)| (f64::from(*found) - wanted).abs() < 2e-5));
        assert_eq!(found[1].to_f32().len(), 5);
    }
}

#[test]
fn other_means_and_numbers_under_a_root_stay_what_they_are() {
    use Function::{Add, Mul, Rsqrt, Square};
    let dims = Dims::new(&[3, 8]).expect("small");
    let x = noise(dims.shape(), 1).reshaped(dims).expect("as many");
    for (reduction, epsilon) in [(Reduction::Sum, 0.01), (Reduction::Mean, 0.0), (Reduction::Mean, -0.001)] {
        let mut graph = Graph::new();
        let input = graph.input("x", dims).expect("an input");
        let squares = node(&mut graph, "squares", Square, &[input.into()]);
        let mean = graph.reduce("mean", squares, reduction, &[-1], true).expect("a reduction");
        let sum = node(&mut graph, "sum", Add, &[mean.into(), epsilon.into()]);
        let root = node(&mut graph, "root", Rsqrt, &[sum.into()]);
        let y = node(&mut graph, "y", Mul, &[input.into(), root.into()]);
        graph.output(y).expect("an output");
        let count = if reduction == Reduction::Sum { 1.0 } else { 8.0 };
        let of_line = |line: &[f32]| {
            let squares: f64 = line.iter().map(|&x| f64::from(x).powi(2)).sum();
            let root = (squares / count + f64::from(epsilon)).sqrt();
            line.iter().map(|&x| f64::from(x) / root).collect::<Vec<f64>>()
        };
        let wanted: Vec<f64> = x.to_f32().chunks(8).flat_map(of_line).collect();
        check(&graph, &[("x", &x)], &wanted, &["elementwise", "reduce", "elementwise", "elementwise"]);
    }
}

#[test]
fn what_is_read_elsewhere_is_not_taken_apart() {
    // (x - m) * r, and the mean is wanted too.
    let shape = Shape::nhwc(1, 4, 5, 8);
    let x = noise(shape, 4);
    for wants_mean in [false, true] {
        let mut graph = Graph::new();
        let input = graph.input("x", shape).expect("an input");
        let [mean, root] = moments(&mut graph, input, &[1, 2]);
        let centred = node(&mut graph, "centred", Function::Sub, &[input.into(), mean.into()]);
        let y = node(&mut graph, "y", Function::Mul, &[centred.into(), root.into()]);
        graph.output(y).expect("an output");
        if wants_mean {
            graph.output(mean).expect("an output");
        }
        let wanted = normalised(&x.to_f32(), |place| place % 8);
        let unknown = ["reduce", "elementwise", "reduce", "elementwise", "elementwise"];
        let ops: &[&str] = if wants_mean { &unknown } else { &["normalize"] };
        check(&graph, &[("x", &x)], &wanted, ops);
    }
}

#[test]
fn a_softmax_is_one_step() {
    let dims = Dims::new(&[3, 11]).expect("small");
    let x = noise(dims.shape(), 5).reshaped(dims).expect("as many");
    let mut graph = Graph::new();
    let input = graph.input("x", dims).expect("an input");
    let largest = graph.reduce("largest", input, Reduction::Max, &[1], true).expect("a maximum");
    let difference = node(&mut graph, "difference", Function::Sub, &[input.into(), largest.into()]);
    let power = node(&mut graph, "power", Function::Exp, &[difference.into()]);
    let sum = graph.reduce("sum", power, Reduction::Sum, &[1], true).expect("a sum");
    let y = node(&mut graph, "y", Function::Div, &[power.into(), sum.into()]);
    graph.output(y).expect("an output");
    let values = x.to_f32();
    let powers: Vec<f64> = values.iter().map(|&value| f64::from(value).exp()).collect();
    let sums: Vec<f64> = powers.chunks(11).map(|row| row.iter().sum()).collect();
    let wanted: Vec<f64> = powers.iter().enumerate().map(|(place, power)| power / sums[place / 11]).collect();
    check(&graph, &[("x", &x)], &wanted, &["softmax"]);
}

#[test]
fn a_prelu_behind_a_convolution_is_its_activation() {
    let shape = Shape::nhwc(1, 6, 7, 3);
    let (x, weights, slopes) =
        (noise(shape, 1), noise(Shape::nhwc(5, 3, 3, 3), 2), noise(Shape::nhwc(1, 1, 1, 5), 3));
    let options = Conv2d { padding: Padding::Same, ..Default::default() };
    let outputs = |written_out: bool| {
        let mut graph = Graph::new();
        let input = graph.input("x", shape).expect("an input");
        let sum = graph.conv2d("sum", input, weights.clone(), Extras::default(), options).expect("3x3");
        let mut y = sum;
        if written_out {
            let vector = Dims::new(&[5]).expect("small");
            let slope = graph.constant("slope", slopes.clone().reshaped(vector).expect("as many"));
            let above = node(&mut graph, "above", Function::Relu, &[sum.into()]);
            let negative = node(&mut graph, "negative", Function::Neg, &[sum.into()]);
            let below = node(&mut graph, "below", Function::Relu, &[negative.into()]);
            let back = node(&mut graph, "back", Function::Neg, &[below.into()]);
            let scaled = node(&mut graph, "scaled", Function::Mul, &[slope.into(), back.into()]);
            y = node(&mut graph, "y", Function::Add, &[above.into(), scaled.into()]);
        }
        graph.output(y).expect("an output");
        graph
    };
    let cpu = diptych::Context::new(diptych::Backend::Cpu).expect("the CPU");
    let mut plain = Session::new(&cpu, &outputs(false), SessionOptions::default()).expect("a session");
    let sums = plain.run(&[("x", &x)]).expect("a run").remove(0);
    let slopes = slopes.to_f32();
    let wanted: Vec<f64> = (sums.to_f32().iter().enumerate())
        .map(|(place, &sum)| f64::from(if sum < 0.0 { sum * slopes[place % 5] } else { sum }))
        .collect();
    check(&outputs(true), &[("x", &x)], &wanted, &["conv2d"]);
}

#[test]
fn windows_that_touch_become_pixels_on_devices() {
    // 8 x 8 windows over three channels, with a bias and an activation; and some that stay a convolution.
    let shape = Shape::nhwc(2, 16, 24, 3);
    let (x, weights, bias) =
        (noise(shape, 1), noise(Shape::nhwc(5, 8, 8, 3), 2), noise(Shape::nhwc(1, 1, 1, 5), 3));
    let whole = Conv2d { stride: [8, 8], activation: Activation::Relu, ..Default::default() };
    let overlapping = Conv2d { stride: [8, 4], ..whole };
    let padded = Conv2d { padding: Padding::Explicit { top: 8, bottom: 0, left: 0, right: 0 }, ..whole };
    for (options, ops) in
        [(whole, &["loops", "pointwise"][..]), (overlapping, &["conv2d"]), (padded, &["conv2d"])]
    {
        let mut graph = Graph::new();
        let input = graph.input("x", shape).expect("an input");
        let extras = Extras::bias(bias.clone());
        let y = graph.conv2d("patches", input, weights.clone(), extras, options).expect("a convolution");
        graph.output(y).expect("an output");
        let (values, taps, added) = (x.to_f32(), weights.to_f32(), bias.to_f32());
        let above = if options.padding == Padding::Valid { 0 } else { 8 };
        let [height, width] = [(16 + above - 8) / 8 + 1, (24 - 8) / options.stride[1] + 1];
        let sum = |place: usize| {
            let (o, j) = (place % 5, place / 5 % width);
            let (i, n) = (place / (5 * width) % height, place / (5 * width * height));
            let terms = (0..8 * 8 * 3).filter_map(|term| {
                let (a, b, k) = (term / 24, term / 3 % 8, term % 3);
                let row = (8 * i + a).checked_sub(above)?;
                let source = k + 3 * (options.stride[1] * j + b + 24 * (row + 16 * n));
                Some(f64::from(values[source]) * f64::from(taps[term + 192 * o]))
            });
            (terms.sum::<f64>() + f64::from(added[o])).max(0.0)
        };
        let wanted: Vec<f64> = (0..2 * height * width * 5).map(sum).collect();
        for context in in_turns() {
            let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
            let steps = session.steps();
            let found: Vec<&str> = steps.iter().map(|step| step.op).filter(|op| *op != "convert").collect();
            let on_cpu = context.info().backend == Backend::Cpu;
            assert_eq!(
                found,
                if on_cpu { &["conv2d"] } else { ops },
                "{} {options:?}",
                context.info().backend
            );
            let outputs = session.run(&[("x", &x)]).expect("a run");
            for (place, (found, wanted)) in outputs[0].to_f32().iter().zip(&wanted).enumerate() {
                let off = (f64::from(*found) - wanted).abs();
                // 193 terms of at most 1 each, summed in any order.
                assert!(off <= 193.0 * 193.0 * f64::from(f32::EPSILON), "{place}: {found} for {wanted}");
            }
        }
    }
}

#[test]
fn a_number_divided_by_a_value_is_no_factor_of_a_product() {
    let values = |count: u8, by: f32| (1..=count).map(|value| f32::from(value) / by).collect::<Vec<_>>();
    let tensor = |values: Vec<f32>| HostTensor::new(Dims::new(&[2, 4]).expect("dimensions"), values);
    let (x, y) = (values(8, 4.0), values(8, 2.0));
    let mut graph = Graph::new();
    let [left, right] = ["x", "y"].map(|name| graph.input(name, Dims::new(&[2, 4]).expect("dimensions")));
    let quotient = node(&mut graph, "quotient", Function::Div, &[2.0.into(), left.expect("x").into()]);
    let product = Gemm { transpose_b: true, ..Gemm::default() };
    let right = Right::Value(right.expect("y"));
    let product = graph.gemm("product", quotient, right, Extras::default(), product).expect("a product");
    graph.output(product).expect("an output");
    let sum = |row: usize, column: usize| -> f64 {
        (0..4).map(|term| 2.0 / f64::from(x[4 * row + term]) * f64::from(y[4 * column + term])).sum()
    };
    let wanted = [sum(0, 0), sum(0, 1), sum(1, 0), sum(1, 1)];
    let (x, y) = (tensor(x.clone()).expect("x"), tensor(y.clone()).expect("y"));
    check(&graph, &[("x", &x), ("y", &y)], &wanted, &["elementwise", "gemm"]);
}
