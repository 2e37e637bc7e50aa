//! Nodes that resize, reduce and normalise, between feature maps and in rows, on every backend.

use crate::graph::{check, dims, numbers};
use diptych::{
    Bits, Dim, Extras, Function, Graph, HostTensor, Padding, Pointwise, Precision, Reduction, Resize,
    ResizeMode, Session, SessionOptions, Shape, Softmax, Term, Value,
    nn::{Normalize, TransposedConv2d},
};

const C: usize = 6;

/// Weights that leave each channel as it is, for each of `taps` taps along both axes.
fn identity(taps: usize) -> HostTensor {
    let shape = Shape::nhwc(C, taps, taps, C);
    let one = |index: usize| if index / (taps * taps * C) == index % C { 1.0 } else { 0.0 };
    HostTensor::new(shape, (0..shape.elements()).map(one).collect::<Vec<f32>>()).expect("weights")
}

#[test]
fn pixels_that_are_doubled_are_reduced_to_what_they_were() {
    let (shape, twice) = (Shape::nhwc(2, 5, 7, C), Shape::nhwc(2, 10, 14, C));
    let x = numbers(shape, 3);
    let at = |n: usize, h: usize, w: usize, c: usize| x.to_f32()[((n * 5 + h) * 7 + w) * C + c];
    let place = |index: usize| (index / (140 * C), index / (14 * C) % 10, index / C % 14, index % C);
    let doubled = |index| {
        let (n, h, w, c) = place(index);
        at(n, h / 2, w / 2, c)
    };
    let doubled: Vec<f32> = (0..twice.elements()).map(doubled).collect();
    let pixels = || (0..5).flat_map(|h| (0..7).map(move |w| (h, w)));
    let each = |f: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
        (0..2).flat_map(|n| (0..C).map(move |c| (n, c))).map(|(n, c)| f(n, c)).collect()
    };
    let largest = each(&|n, c| pixels().map(|(h, w)| at(n, h, w, c)).fold(f32::NEG_INFINITY, f32::max));
    let sums = each(&|n, c| 4.0 * pixels().map(|(h, w)| at(n, h, w, c)).sum::<f32>());
    let first_largest = |pixel: usize| {
        let (n, h, w) = (pixel / 35, pixel / 7 % 5, pixel % 7);
        (0..C).fold(0, |best, c| if at(n, h, w, c) > at(n, h, w, best) { c } else { best }) as f32
    };
    let indices: Vec<f32> = (0..70).map(first_largest).collect();
    let bias = numbers(dims(&[C]), 5);
    let biases: Vec<f32> = bias.to_f32().iter().copied().cycle().take(twice.elements()).collect();

    for precision in [Precision::F32, Precision::F16Storage] {
        let (mut graph, mut wanted) = (Graph::new(), Vec::new());
        let input = graph.input("x", shape).expect("an input");
        let map = graph.pointwise("map", input, identity(1), Extras::default(), Pointwise::default());
        for (from, x) in [("rows", input), ("map", map.expect("a map"))] {
            let mut expect = |y: Value, graph: &mut Graph, extents: &[usize], values: &[f32]| {
                graph.output(y).expect("an output");
                wanted.push(HostTensor::new(dims(extents), values.to_vec()).expect("wanted"));
            };
            let name = |what: &str| format!("{from} {what}");
            let nearest = Resize::new(ResizeMode::Nearest, [10, 14]);
            let up = graph.resize(&name("up"), x, nearest).expect("a larger map");
            expect(up, &mut graph, &[2, 10, 14, C], &doubled);

            let options = TransposedConv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
            let spread = graph.transposed_conv2d(&name("spread"), x, identity(2), Extras::default(), options);
            expect(spread.expect("a larger map"), &mut graph, &[2, 10, 14, C], &doubled);

            let sum = graph.reduce(&name("sum"), up, Reduction::Sum, &[1, 2], false).expect("sums");
            expect(sum, &mut graph, &[2, C], &sums);
            let max = graph.reduce(&name("max"), up, Reduction::Max, &[-2, 1], true).expect("maxima");
            expect(max, &mut graph, &[2, 1, 1, C], &largest);

            let index = graph.arg_max(&name("index"), x, -1, false).expect("indices");
            expect(index, &mut graph, &[2, 5, 7], &indices);

            // Pixels in pairs of equals.
            let pairs: [Dim; 5] = [2.into(), 10.into(), 7.into(), 2.into(), C.into()];
            let pairs = graph.reshape(&name("pairs"), up, &pairs).expect("pairs");
            let options = Softmax { axis: 3, ..Softmax::default() };
            let halves = graph.softmax(&name("halves"), pairs, options).expect("halves");
            expect(halves, &mut graph, &[2, 10, 7, 2, C], &vec![0.5; twice.elements()]);
            let options = Normalize { axes: vec![3], epsilon: Bits(1e-3), ..Normalize::default() };
            let flat = graph.normalize(&name("flat"), pairs, options, None, Some(bias.clone()));
            expect(flat.expect("no differences"), &mut graph, &[2, 10, 7, 2, C], &biases);
        }
        let options = SessionOptions { precision, ..Default::default() };
        check(&graph, &options, &[("x", &x)], &wanted);
    }
}

#[test]
fn a_nan_is_not_zero_on_any_backend() {
    let values = vec![f32::NAN, 0.0, 1.0, -0.0, f32::NAN, 2.0];
    let x = HostTensor::new(dims(&[2, 3]), values).expect("values");
    let mut graph = Graph::new();
    let a = graph.input("x", dims(&[2, 3])).expect("an input");
    let zero = graph.input("zero", dims(&[])).expect("an input");
    let none = HostTensor::new(dims(&[]), vec![0.0]).expect("a scalar");
    let add = |graph: &mut Graph, name: &str, function, terms: &[Term]| {
        let value = graph.elementwise(name, function, terms).expect("a node");
        graph.output(value).expect("an output");
    };
    let (x_term, zero, one) = (Term::from(a), Term::from(zero), Term::from(1.0));
    add(&mut graph, "differs", Function::NotEqual, &[x_term, zero]);
    add(&mut graph, "and", Function::LogicalAnd, &[x_term, one]);
    add(&mut graph, "or", Function::LogicalOr, &[zero, x_term]);
    add(&mut graph, "select", Function::Select, &[x_term, 5.0.into(), (-5.0).into()]);
    for (name, reduction) in [("any", Reduction::Any), ("all", Reduction::All)] {
        let value = graph.reduce(name, a, reduction, &[0], false).expect("a reduction");
        graph.output(value).expect("an output");
    }
    let truth = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0];
    let chosen = truth.map(|truth| 10.0 * truth - 5.0);
    let wanted = [&truth[..], &truth, &truth, &chosen, &[1.0, 1.0, 1.0], &[0.0, 0.0, 1.0]];
    for context in &crate::machine::everywhere() {
        let mut session = Session::new(context, &graph, SessionOptions::default()).expect("a session");
        let found = session.run(&[("x", &x), ("zero", &none)]).expect("a run");
        for ((found, wanted), port) in found.iter().zip(wanted).zip(session.outputs()) {
            assert_eq!(*found.to_f32(), *wanted, "{} on {}", port.name, context.info());
        }
    }
}

#[test]
fn the_first_nan_of_a_row_is_the_largest_and_the_smallest() {
    let nan = f32::NAN;
    // Short lines and long ones, which other kernels serve.
    for columns in [3, 300] {
        let mut values = vec![1.0; 3 * columns];
        values[..3].copy_from_slice(&[nan, 5.0, -6.0]);
        values[columns..columns + 3].copy_from_slice(&[2.0, nan, 3.0]);
        values[2 * columns..2 * columns + 3].copy_from_slice(&[-2.0, nan, -3.0]);
        let x = HostTensor::new(dims(&[3, columns]), values).expect("values");
        let mut graph = Graph::new();
        let a = graph.input("x", dims(&[3, columns])).expect("an input");
        let largest = graph.arg_max("largest", a, 1, false).expect("indices");
        let smallest = graph.arg_min("smallest", a, 1, false).expect("indices");
        for output in [largest, smallest] {
            graph.output(output).expect("an output");
        }
        let wanted = [[0.0, 1.0, 1.0]; 2];
        for context in &crate::machine::everywhere() {
            let mut session = Session::new(context, &graph, SessionOptions::default()).expect("a session");
            let found = session.run(&[("x", &x)]).expect("a run");
            for (found, wanted) in found.iter().zip(wanted) {
                assert_eq!(*found.to_f32(), wanted, "{columns} on {}", context.info());
            }
        }
    }
}
