//! The form in which values lie on a device, where an op computes in several, and concatenations without a
//! kernel.

use crate::machine::{gpus, in_turns, noise};
use diptych::{
    Backend, Conv2d, Dims, Extras, Function, Graph, HostTensor, Padding, Pointwise, Session, SessionOptions,
    Shape, Value, nn::PadMode,
};

/// A 1x1 convolution to `channels`.
fn pointwise(graph: &mut Graph, name: &str, x: Value, channels: usize, seed: u32) -> Value {
    let input = graph.shape(x).expect("a map").c;
    let weights = noise(Shape::nhwc(channels, 1, 1, input), seed);
    graph.pointwise(name, x, weights, Extras::default(), Pointwise::default()).expect("1x1")
}

/// A 3x3 convolution to `channels`, SAME.
fn conv(graph: &mut Graph, name: &str, x: Value, channels: usize, seed: u32) -> Value {
    let input = graph.shape(x).expect("a map").c;
    let weights = noise(Shape::nhwc(channels, 3, 3, input), seed);
    let options = Conv2d { padding: Padding::Same, ..Default::default() };
    graph.conv2d(name, x, weights, Extras::default(), options).expect("3x3")
}

fn sine(graph: &mut Graph, name: &str, x: Value) -> Value {
    graph.elementwise(name, Function::Sin, &[x.into()]).expect("a function")
}

/// The ops of the steps on a GPU API, after the outputs were compared with the CPU's.
fn steps(graph: &Graph, inputs: &[(&str, &HostTensor)]) -> Vec<(Backend, Vec<&'static str>)> {
    let mut wanted: Option<Vec<HostTensor>> = None;
    let mut all = Vec::new();
    for context in in_turns() {
        let backend = context.info().backend;
        let mut session = Session::new(&context, graph, SessionOptions::default()).expect("a session");
        // Twice: what the first run leaves behind must not matter.
        session.run(inputs).expect("a run");
        let outputs = session.run(inputs).expect("a run");
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

#[test]
fn functions_between_convolutions_stay_in_slices_and_those_of_rows_in_rows() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 6, 5, 8)).expect("an input");
    let a = conv(&mut graph, "a", x, 12, 1);
    let b = sine(&mut graph, "b", a);
    let c = conv(&mut graph, "c", b, 8, 2);
    graph.output(c).expect("an output");
    for (backend, found) in steps(&graph, &[("x", &noise(Shape::nhwc(1, 6, 5, 8), 3))]) {
        assert_eq!(found, ["convert", "conv2d", "conv2d", "convert"], "{backend}");
    }

    let mut graph = Graph::new();
    let dims = Dims::new(&[3, 5, 4, 6, 2]).expect("small");
    let x = graph.input("x", dims).expect("an input");
    let y = sine(&mut graph, "y", x);
    graph.output(y).expect("an output");
    let input = noise(dims.shape(), 4).reshaped(dims).expect("as many");
    for (backend, found) in steps(&graph, &[("x", &input)]) {
        assert_eq!(found, ["elementwise"], "{backend}");
    }
}

#[test]
fn what_is_joined_is_written_where_it_belongs() {
    // Along the channels of slices, and along the rows of what leaves.
    let shape = Shape::nhwc(1, 8, 8, 8);
    let mut graph = Graph::new();
    let x = graph.input("x", shape).expect("an input");
    let parts: Vec<Value> =
        (0..3).map(|part| conv(&mut graph, &format!("part {part}"), x, 16 + 4 * part, part as u32)).collect();
    let joined = graph.concat("joined", &parts, -1).expect("joined");
    let y = pointwise(&mut graph, "y", joined, 8, 7);
    graph.output(y).expect("an output");
    for (backend, found) in steps(&graph, &[("x", &noise(shape, 5))]) {
        let wanted = ["convert", "conv2d", "conv2d", "conv2d", "pointwise", "convert"];
        assert_eq!(found, wanted, "{backend}");
    }

    let mut graph = Graph::new();
    let x = graph.input("x", shape).expect("an input");
    let heads: Vec<Value> = (0..2)
        .map(|head| {
            let map = conv(&mut graph, &format!("head {head}"), x, 4, head as u32);
            graph.reshape(&format!("rows {head}"), map, &[1.into(), 64.into(), 4.into()]).expect("rows")
        })
        .collect();
    let joined = graph.concat("joined", &heads, 1).expect("joined");
    graph.output(joined).expect("an output");
    for (backend, found) in steps(&graph, &[("x", &noise(shape, 6))]) {
        assert!(!found.contains(&"concat") && !found.contains(&"copy"), "{backend}: {found:?}");
    }
}

#[test]
fn what_cannot_be_joined_in_place_is_copied() {
    // A part that is read by the writer of another, an input, one value twice, and odd channels.
    let shape = Shape::nhwc(1, 8, 8, 8);
    for case in 0..4 {
        let mut graph = Graph::new();
        let x = graph.input("x", shape).expect("an input");
        let a = conv(&mut graph, "a", x, if case == 3 { 7 } else { 8 }, 1);
        let b = match case {
            0 => conv(&mut graph, "b", a, 8, 2),
            1 => x,
            2 => a,
            _ => conv(&mut graph, "b", x, 8, 2),
        };
        for axis in [3, 1] {
            let a = if axis == 1 && case == 3 { b } else { a };
            let joined = graph.concat(&format!("joined {axis}"), &[a, b], axis).expect("joined");
            let y = pointwise(&mut graph, &format!("y {axis}"), joined, 8, 7);
            graph.output(y).expect("an output");
            let z = sine(&mut graph, &format!("z {axis}"), joined);
            graph.output(z).expect("an output");
        }
        steps(&graph, &[("x", &noise(shape, 5))]);
    }
}

#[test]
fn rows_that_lie_in_the_result_already_are_copied_by_way_of_another_buffer() {
    // A value twice, a part of a value, and a value of a joined one beside it: all of them rows.
    let dims = Dims::new(&[64, 16, 1, 1, 4]).expect("small");
    for case in 0..3 {
        let mut graph = Graph::new();
        let x = graph.input("x", dims).expect("an input");
        let a = sine(&mut graph, "a", x);
        let joined = match case {
            0 => graph.concat("joined", &[a, a], 0),
            1 => {
                let part = graph.slice("part", a, 0, 32..64).expect("a part");
                graph.concat("joined", &[a, part], 0)
            }
            _ => {
                let b = graph.elementwise("b", Function::Cos, &[x.into()]).expect("a function");
                let inner = graph.concat("inner", &[a, b], 0).expect("joined");
                graph.concat("joined", &[inner, a], 0)
            }
        };
        graph.output(joined.expect("joined")).expect("an output");
        let input = noise(dims.shape(), 7).reshaped(dims).expect("as many");
        for (backend, found) in steps(&graph, &[("x", &input)]) {
            assert!(!found.contains(&"concat"), "{backend}, case {case}: {found:?}");
        }
    }
}

#[test]
fn a_part_may_be_a_joined_value_itself() {
    let shape = Shape::nhwc(1, 8, 8, 8);
    let mut graph = Graph::new();
    let x = graph.input("x", shape).expect("an input");
    let parts: Vec<Value> =
        (0..3).map(|part| conv(&mut graph, &format!("part {part}"), x, 8, part as u32)).collect();
    let inner = graph.concat("inner", &parts[..2], 3).expect("joined");
    let outer = graph.concat("outer", &[inner, parts[2]], 3).expect("joined");
    let y = pointwise(&mut graph, "y", outer, 8, 7);
    graph.output(y).expect("an output");
    for (backend, found) in steps(&graph, &[("x", &noise(shape, 8))]) {
        assert!(!found.contains(&"concat"), "{backend}: {found:?}");
    }
}

#[test]
fn zeros_around_a_map_are_the_padding_of_its_reader() {
    let shape = Shape::nhwc(1, 7, 6, 5);
    let mut graph = Graph::new();
    let x = graph.input("x", shape).expect("an input");
    let zero = PadMode::Constant(diptych::Bits(0.0));
    let padded = graph.pad("padded", x, &[0, 1, 0, 0], &[0, 1, 2, 0], zero).expect("padded");
    let weights = noise(Shape::nhwc(9, 3, 3, 5), 1);
    let options = Conv2d { stride: [2, 1], ..Default::default() };
    let y = graph.conv2d("y", padded, weights, Extras::default(), options).expect("3x3");
    graph.output(y).expect("an output");
    for (backend, found) in steps(&graph, &[("x", &noise(shape, 2))]) {
        assert_eq!(found, ["convert", "conv2d", "convert"], "{backend}");
    }
}

#[test]
fn constants_in_another_form_survive_a_run() {
    // The slopes are converted once, and the buffers of the later, larger values are shared.
    let shape = Shape::nhwc(1, 9, 9, 8);
    let mut graph = Graph::new();
    let x = graph.input("x", shape).expect("an input");
    let factor = graph.constant("factor", noise(Shape::nhwc(1, 1, 1, 32), 9));
    let mut y = x;
    for layer in 0..4 {
        y = conv(&mut graph, &format!("layer {layer}"), y, 32, layer);
        y = sine(&mut graph, &format!("sine {layer}"), y);
    }
    let y = graph.elementwise("y", Function::Mul, &[y.into(), factor.into()]).expect("a product");
    let y = conv(&mut graph, "last", y, 8, 11);
    graph.output(y).expect("an output");
    let found = steps(&graph, &[("x", &noise(shape, 3))]);
    assert_eq!(found.is_empty(), gpus().is_empty());
}
