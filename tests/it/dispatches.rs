//! Work that takes fewer dispatches on a device than the graph has nodes: maps that are weighted by what two
//! convolutions make of a pixel, convolutions of one pixel or of mirror images, and what follows a normalisation.

use crate::machine::{in_turns, noise};
use diptych::{
    Activation, Backend, Bits, Conv2d, Extras, Function, Graph, HostTensor, Pointwise, Reduction, Session,
    SessionOptions, Shape, Value,
    nn::{Normalize, PadMode},
};

/// A 1x1 convolution to `channels`.
fn pointwise(graph: &mut Graph, name: &str, x: Value, channels: usize, activation: Activation) -> Value {
    let input = graph.shape(x).expect("a map").c;
    let weights = noise(Shape::nhwc(channels, 1, 1, input), channels as u32 + 1);
    let bias = noise(Shape::nhwc(1, 1, 1, channels), 7).to_f32().to_vec();
    let bias = HostTensor::vector(bias).expect("a vector");
    let extras = Extras { bias: Some(bias), ..Extras::default() };
    graph.pointwise(name, x, weights, extras, Pointwise { activation }).expect("1x1")
}

fn of(graph: &mut Graph, name: &str, function: Function, inputs: &[Value]) -> Value {
    let inputs: Vec<_> = inputs.iter().map(|&input| input.into()).collect();
    graph.elementwise(name, function, &inputs).expect("a function")
}

/// The ops of the steps on a GPU API, after the outputs were compared with the CPU's.
fn steps(graph: &Graph, input: Shape) -> Vec<(Backend, Vec<&'static str>)> {
    let tensor = noise(input, 3);
    let mut wanted: Option<Vec<HostTensor>> = None;
    let mut all = Vec::new();
    for context in in_turns() {
        let backend = context.info().backend;
        let mut session = Session::new(&context, graph, SessionOptions::default()).expect("a session");
        // Twice: what the first run leaves behind must not matter.
        session.run(&[("x", &tensor)]).expect("a run");
        let outputs = session.run(&[("x", &tensor)]).expect("a run");
        let wanted = wanted.get_or_insert_with(|| outputs.clone());
        for (index, (found, wanted)) in outputs.iter().zip(wanted).enumerate() {
            for (place, (found, wanted)) in found.to_f32().iter().zip(&*wanted.to_f32()).enumerate() {
                let off = (found - wanted).abs();
                assert!(off <= 1e-4, "{backend}: output {index}, element {place}: {found} for {wanted}");
            }
        }
        if backend != Backend::Cpu {
            all.push((backend, session.steps().iter().map(|step| step.op).collect()));
        }
    }
    all
}

fn count(ops: &[&str], wanted: &str) -> usize {
    ops.iter().filter(|op| **op == wanted).count()
}

/// A map of `channels` weighted by what `hidden` sums of its means say, with what `added` adds; the map, its factors
/// and the result.
fn weighted(graph: &mut Graph, input: Shape, hidden: usize, added: bool) -> [Value; 3] {
    let x = graph.input("x", input).expect("an input");
    let map = of(graph, "map", Function::Sin, &[x]);
    let mean = graph.reduce("mean", map, Reduction::Mean, &[1, 2], true).expect("means");
    let first = pointwise(graph, "first", mean, hidden, Activation::Relu);
    let factors = pointwise(graph, "second", first, input.c, Activation::None);
    let factors = of(graph, "sigmoid", Function::Sigmoid, &[factors]);
    let mut result = of(graph, "weighted", Function::Mul, &[map, factors]);
    if added {
        result = of(graph, "sum", Function::Add, &[x, result]);
    }
    graph.output(result).expect("an output");
    [map, factors, result]
}

#[test]
fn a_map_is_weighted_in_one_dispatch() {
    for (input, hidden, added) in [
        (Shape::nhwc(1, 6, 5, 12), 3, false),
        (Shape::nhwc(2, 9, 7, 10), 5, true),
        (Shape::nhwc(1, 70, 66, 4), 70, true),
    ] {
        let mut graph = Graph::new();
        weighted(&mut graph, input, hidden, added);
        for (backend, ops) in steps(&graph, input) {
            assert_eq!((count(&ops, "gate"), count(&ops, "pointwise")), (1, 0), "{backend}: {ops:?}");
        }
    }
}

#[test]
fn factors_that_others_want_are_stored() {
    let input = Shape::nhwc(1, 6, 5, 12);
    let mut graph = Graph::new();
    let [_, factors, _] = weighted(&mut graph, input, 3, false);
    graph.output(factors).expect("an output");
    for (backend, ops) in steps(&graph, input) {
        let counts = ["gate", "squeeze", "pointwise"].map(|op| count(&ops, op));
        assert_eq!(counts, [0, 1, 1], "{backend}: {ops:?}");
    }
    // One work-group would read half a megabyte, and all of them eight: the first convolution stays.
    let input = Shape::nhwc(1, 3, 2, 512);
    let mut graph = Graph::new();
    weighted(&mut graph, input, 256, false);
    for (backend, ops) in steps(&graph, input) {
        let counts = ["gate", "squeeze", "pointwise"].map(|op| count(&ops, op));
        assert_eq!(counts, [1, 0, 1], "{backend}: {ops:?}");
    }
}

#[test]
fn convolutions_of_one_pixel_run_as_one() {
    let input = Shape::nhwc(1, 1, 1, 20);
    let mut graph = Graph::new();
    let x = graph.input("x", input).expect("an input");
    let parts: Vec<Value> = [8, 8, 5, 24]
        .into_iter()
        .enumerate()
        .map(|(at, channels)| pointwise(&mut graph, &format!("part {at}"), x, channels, Activation::Relu))
        .collect();
    let most = of(&mut graph, "most", Function::Maximum, &[parts[0], parts[1]]);
    let sines: Vec<Value> =
        (2..4).map(|at| of(&mut graph, &format!("sine {at}"), Function::Sin, &[parts[at]])).collect();
    for output in [most, sines[0], sines[1]] {
        graph.output(output).expect("an output");
    }
    // Five channels are no whole slices: such a pixel stays by itself.
    for (backend, ops) in steps(&graph, input) {
        assert_eq!(count(&ops, "pointwise"), 2, "{backend}: {ops:?}");
    }
}

/// A 3x3 convolution of what `mode` puts around `x`.
fn padded(graph: &mut Graph, name: &str, x: Value, mode: PadMode) -> Value {
    let channels = graph.shape(x).expect("a map").c;
    let pad = graph.pad(&format!("{name} pad"), x, &[0, 1, 2, 0], &[0, 2, 1, 0], mode).expect("a border");
    let weights = noise(Shape::nhwc(7, 3, 3, channels), 5);
    graph.conv2d(name, pad, weights, Extras::default(), Conv2d::default()).expect("a convolution")
}

#[test]
fn a_mirrored_map_is_convolved_in_one_dispatch() {
    for input in [Shape::nhwc(2, 5, 4, 3), Shape::nhwc(1, 6, 9, 10)] {
        for mode in [PadMode::Reflect, PadMode::Symmetric, PadMode::Edge] {
            let mut graph = Graph::new();
            let x = graph.input("x", input).expect("an input");
            let map = of(&mut graph, "map", Function::Sin, &[x]);
            let y = padded(&mut graph, "y", map, mode);
            graph.output(y).expect("an output");
            for (backend, ops) in steps(&graph, input) {
                assert_eq!(count(&ops, "remap"), 0, "{backend}: {ops:?}");
            }
        }
    }
}

#[test]
fn a_border_of_its_own_kind_stays_by_itself() {
    // Zeros around mirror images, and mirror images around zeros.
    let input = Shape::nhwc(1, 6, 5, 8);
    let zeros = PadMode::Constant(Bits(0.0));
    for (inner, outer) in [(PadMode::Reflect, zeros), (zeros, PadMode::Reflect)] {
        let mut graph = Graph::new();
        let x = graph.input("x", input).expect("an input");
        let map = of(&mut graph, "map", Function::Sin, &[x]);
        let map = graph.pad("inner", map, &[0, 1, 1, 0], &[0, 1, 1, 0], inner).expect("a border");
        let y = padded(&mut graph, "y", map, outer);
        graph.output(y).expect("an output");
        for (backend, ops) in steps(&graph, input) {
            // With the function before it.
            assert_eq!(count(&ops, "remap") + count(&ops, "loops"), 1, "{backend}: {ops:?}");
        }
    }
}

/// An instance normalisation of `x`, and what `end` makes of it and `x`.
fn normalised(graph: &mut Graph, x: Value, end: usize) -> Value {
    let map = of(graph, "map", Function::Sin, &[x]);
    let vector =
        || HostTensor::vector(noise(Shape::nhwc(1, 1, 1, 6), 9).to_f32().to_vec()).expect("a vector");
    let options = Normalize { axes: vec![1, 2], epsilon: Bits(1e-3), ..Normalize::default() };
    let y = graph.normalize("y", map, options, Some(vector()), Some(vector())).expect("a normalisation");
    match end {
        0 => of(graph, "relu", Function::Relu, &[y]),
        1 => of(graph, "sum", Function::Add, &[y, map]),
        _ => {
            let sum = of(graph, "sum", Function::Add, &[map, y]);
            of(graph, "relu", Function::Relu, &[sum])
        }
    }
}

#[test]
fn what_follows_a_normalisation_is_a_part_of_it() {
    // A map that a work-group keeps, and one of which several sum parts.
    for (input, in_parts) in [(Shape::nhwc(2, 9, 7, 6), false), (Shape::nhwc(2, 98, 97, 6), true)] {
        for end in 0..3 {
            let mut graph = Graph::new();
            let x = graph.input("x", input).expect("an input");
            let y = normalised(&mut graph, x, end);
            graph.output(y).expect("an output");
            for (backend, ops) in steps(&graph, input) {
                let found = ["normalize", "elementwise", "loops"].map(|op| count(&ops, op));
                let [normalize, before, composed] = found;
                let wanted = if in_parts { [0, 3] } else { [1, 1] };
                assert_eq!([normalize, before + composed], wanted, "{backend}: {ops:?}");
            }
        }
    }
}

#[test]
fn a_normalisation_written_out_behind_a_convolution_reads_its_map() {
    // Its scale is a constant that no value of the graph is, once the nodes are one.
    let shape = Shape::nhwc(2, 3, 5, 8);
    let mut graph = Graph::new();
    let x = graph.input("x", shape).expect("an input");
    let map = padded(&mut graph, "map", x, PadMode::Constant(Bits(0.0)));
    let channels = graph.shape(map).expect("a map").c;
    let mean = graph.reduce("mean", map, Reduction::Mean, &[3], true).expect("a mean");
    let centred = of(&mut graph, "centred", Function::Sub, &[map, mean]);
    let squares = of(&mut graph, "squares", Function::Square, &[centred]);
    let variance = graph.reduce("variance", squares, Reduction::Mean, &[3], true).expect("a mean");
    let sum = graph.elementwise("sum", Function::Add, &[variance.into(), 0.01.into()]).expect("a sum");
    let root = of(&mut graph, "root", Function::Rsqrt, &[sum]);
    let factors = noise(Shape::nhwc(1, 1, 1, channels), 3);
    let scale = graph.constant("scale", factors);
    let factor = of(&mut graph, "factor", Function::Mul, &[root, scale]);
    let y = of(&mut graph, "y", Function::Mul, &[centred, factor]);
    graph.output(y).expect("an output");
    for (backend, ops) in steps(&graph, shape) {
        // Nothing changes the form of what the convolution writes.
        assert!(ops.ends_with(&["conv2d", "loops"]), "{backend}: {ops:?}");
    }
}
