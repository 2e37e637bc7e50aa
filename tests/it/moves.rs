//! Nodes that move, join and select elements, on every backend.

use crate::graph::{check, dims, numbers};
use crate::machine::everywhere;
use diptych::{
    Activation, Bits, Dim, Extras, Function, Gemm, Graph, HostTensor, Pointwise, Precision, Right, Session,
    SessionOptions, Shape, Value,
    nn::{AxisRange, CumSum, OneHot, PadMode},
};

/// What moves elements and then moves them back gives what it was given, between maps and in rows.
#[test]
fn elements_that_are_moved_back_are_where_they_were() {
    for channels in [8, 5] {
        let (shape, weights) = (Shape::nhwc(2, 6, 4, channels), Shape::nhwc(channels, 1, 1, channels));
        let x = numbers(shape, 3);
        let one = |index: usize| if index.is_multiple_of(channels + 1) { 1.0 } else { 0.0 };
        let values: Vec<f32> = (0..weights.elements()).map(one).collect();
        let identity = HostTensor::new(weights, values).expect("a matrix");
        for precision in [Precision::F32, Precision::F16Storage] {
            let mut graph = Graph::new();
            let input = graph.input("x", shape).expect("an input");
            // Moves of what comes as rows, and of what a convolution wrote.
            let convolved = |graph: &mut Graph, name: &str, x: Value| {
                let options = Pointwise { activation: Activation::None };
                graph.pointwise(name, x, identity.clone(), Extras::default(), options).expect("a convolution")
            };
            let map = convolved(&mut graph, "map", input);
            let mut moved = Vec::new();
            for (from, x) in [("rows", input), ("map", map)] {
                for (what, y) in round_trips(&mut graph, from, x).expect("moves") {
                    moved.push(y);
                    moved.push(convolved(&mut graph, &format!("{from} {what} convolved"), y));
                }
            }
            for &y in &moved {
                graph.output(y).expect("an output");
            }
            let options = SessionOptions { precision, ..Default::default() };
            check(&graph, &options, &[("x", &x)], &vec![x.clone(); moved.len()]);
        }
    }
}

/// Values that are `x`, a map of 2 x 6 x 4, each with what was done to it.
fn round_trips(graph: &mut Graph, from: &str, x: Value) -> diptych::Result<Vec<(&'static str, Value)>> {
    let channels = graph.shape(x)?.c;
    let name = |what: &str, step: usize| format!("{from} {what} {step}");
    let all = AxisRange::ALL;
    let mut done = Vec::new();

    let turned = graph.transpose(&name("transpose", 1), x, &[0, 3, 1, 2])?;
    done.push(("transpose", graph.transpose(&name("transpose", 2), turned, &[0, 2, 3, 1])?));

    let back = graph.reverse(&name("reverse", 1), x, &[1, -1])?;
    done.push(("reverse", graph.reverse(&name("reverse", 2), back, &[1, -1])?));

    for (what, mode) in [
        ("zeros", PadMode::Constant(Bits(0.0))),
        ("threes", PadMode::Constant(Bits(3.0))),
        ("reflect", PadMode::Reflect),
        ("edge", PadMode::Edge),
    ] {
        let padded = graph.pad(&name(what, 1), x, &[0, 2, 1, 3], &[0, 0, 3, 4], mode)?;
        let own = [all, AxisRange::new(2, 8), AxisRange::new(1, -3), AxisRange::new(3, -4)];
        done.push((what, graph.strided_slice(&name(what, 2), padded, &own)?));
    }

    let tiled = graph.tile(&name("tile", 1), x, &[1, 2, 1, 3])?;
    let own = [all, AxisRange::new(6, 12), all, AxisRange::new(channels as isize, 2 * channels as isize)];
    done.push(("tile", graph.strided_slice(&name("tile", 2), tiled, &own)?));

    let deep = graph.space_to_depth(&name("depth", 1), x, 2)?;
    done.push(("depth", graph.depth_to_space(&name("depth", 2), deep, 2)?));

    let many = graph.space_to_batch(&name("batch", 1), x, &[4, 3], &[1, 0], &[1, 2])?;
    done.push(("batch", graph.batch_to_space(&name("batch", 2), many, &[4, 3], &[1, 0], &[1, 2])?));

    for (axis, sizes) in [(1, vec![1, 3, 2]), (2, vec![3, 1]), (3, vec![4, channels - 4]), (0, vec![1, 1])] {
        let parts = graph.split(&name("split", axis), x, axis as isize, &sizes)?;
        done.push(("split", graph.concat(&name("concat", axis), &parts, axis as isize)?));
    }
    Ok(done)
}

#[test]
fn many_values_are_joined_and_stacked() {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[3, 5])).expect("an input");
    let shifted: Vec<Value> = (0..9)
        .map(|index| {
            let range = AxisRange { begin: None, end: None, step: if index % 2 == 0 { 1 } else { -1 } };
            graph.strided_slice(&format!("part{index}"), x, &[range, AxisRange::ALL]).expect("a part")
        })
        .collect();
    let joined = graph.concat("joined", &shifted, -1).expect("nine values");
    let stacked = graph.stack("stacked", &shifted[..2], -1).expect("two values");
    graph.output(joined).expect("an output");
    graph.output(stacked).expect("an output");
    assert!(graph.concat("none", &[], 0).is_err());
    assert!(graph.stack("wrong", &[x, joined], 0).is_err());
    assert!(graph.split("wrong", x, 1, &[2, 2]).expect_err("of five").to_string().contains("5 together"));
    let source = numbers(dims(&[3, 5]), 1);
    let at = |part: usize, row: usize, column: usize| {
        let row = if part.is_multiple_of(2) { row } else { 2 - row };
        source.to_f32()[row * 5 + column]
    };
    let rows: Vec<f32> = (0..3 * 45).map(|index| at(index % 45 / 5, index / 45, index % 5)).collect();
    let pairs: Vec<f32> = (0..30).map(|index| at(index % 2, index / 10, index / 2 % 5)).collect();
    let wanted = [
        HostTensor::new(dims(&[3, 45]), rows).expect("wanted"),
        HostTensor::new(dims(&[3, 5, 2]), pairs).expect("wanted"),
    ];
    check(&graph, &SessionOptions::default(), &[("x", &source)], &wanted);
}

#[test]
fn elements_are_selected_counted_and_summed() {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[2, 4])).expect("an input");
    let indices = graph.constant("indices", tensor(&[3], &[3.0, 0.0, 9.0]));
    let pairs = graph.constant("pairs", tensor(&[2, 2], &[1.0, 2.0, 0.0, 3.0]));
    let [values, places] = graph.top_k("largest", x, 2).expect("two of four");
    let options = OneHot { depth: 3, on: Bits(1.0), off: Bits(0.0), axis: -1 };
    let sums = CumSum { axis: -1, exclusive: true, reverse: false };
    for y in [
        graph.gather("columns", x, indices, 1, 0),
        graph.gather_nd("pairs of indices", x, pairs),
        Ok(values),
        Ok(places),
        graph.one_hot("hot", places, options),
        graph.cumsum("sums", x, sums),
    ] {
        graph.output(y.expect("a node")).expect("an output");
    }
    let source = tensor(&[2, 4], &[5.0, -1.0, 7.0, 7.0, 0.0, 2.0, -3.0, 1.0]);
    let wanted = [
        tensor(&[2, 3], &[7.0, 5.0, 0.0, 1.0, 0.0, 0.0]),
        tensor(&[2], &[-3.0, 7.0]),
        tensor(&[2, 2], &[7.0, 7.0, 2.0, 1.0]),
        tensor(&[2, 2], &[2.0, 3.0, 1.0, 3.0]),
        tensor(&[2, 2, 3], &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
        tensor(&[2, 4], &[0.0, 5.0, 4.0, 11.0, 0.0, 0.0, 2.0, -1.0]),
    ];
    check(&graph, &SessionOptions::default(), &[("x", &source)], &wanted);
}

/// Halves hold whole numbers exactly up to 2048 alone; the rows that are selected here have odd indices beyond it.
#[test]
fn indices_that_are_moved_and_computed_with_are_exact_where_halves_are_stored() {
    let (rows, width) = (4096, 256);
    let at = |row: usize, column: usize| ((7 * row + column) % 1000) as f32;
    let x: Vec<f32> = (0..rows * width).map(|index| at(index / width, index % width)).collect();
    let x = HostTensor::new(dims(&[rows, width]), x).expect("values");
    let best: Vec<usize> = (0..7).map(|rank| 2049 + 262 * rank).collect();
    let score = |row: usize| best.iter().position(|&own| own == row).map_or(0.0, |rank| 7.0 - rank as f32);
    let scores: Vec<f32> = (0..rows).map(score).collect();
    let scores = HostTensor::new(dims(&[1, rows]), scores).expect("scores");
    let wanted = |index: usize| at(best[index / width % 21 / 3], index % width);
    let wanted: Vec<f32> = (0..42 * width).map(wanted).collect();
    let one = |index: usize| if index.is_multiple_of(width + 1) { 1.0 } else { 0.0 };
    let identity: Vec<f32> = (0..width * width).map(one).collect();
    let identity = HostTensor::new(dims(&[width, width]), identity).expect("a matrix");
    for precision in [Precision::F32, Precision::F16Storage, Precision::Auto] {
        let mut graph = Graph::new();
        let input = graph.input("x", dims(&[rows, width])).expect("an input");
        let ranks = graph.input("scores", dims(&[1, rows])).expect("an input");
        // A product for which halves pay, so that its rows are selected in them.
        let (right, none) = (Right::Constant(identity.clone()), Extras::default());
        let product = graph.gemm("product", input, right, none, Gemm::default()).expect("a product");
        let [_, places] = graph.top_k("largest", ranks, 7).expect("seven of many");
        let column = graph.reshape("column", places, &[7, 1].map(Dim::Fixed)).expect("a view");
        let three = graph.tile("three", column, &[1, 3]).expect("three of each");
        let three = graph.reshape("row", three, &[Dim::Fixed(21)]).expect("a view");
        let within = graph.elementwise("within", Function::Minimum, &[three.into(), 4095.0f32.into()]);
        let both = graph.concat("both", &[three, within.expect("a function")], 0).expect("all places");
        let y = graph.gather("selected", product, both, 0, 0).expect("a selection");
        graph.output(y).expect("an output");
        let options = SessionOptions { precision, ..Default::default() };
        // Not every device has rows of halves.
        for context in everywhere() {
            let mut session = Session::new(&context, &graph, options.clone()).expect("a session");
            let found = session.run(&[("x", &x), ("scores", &scores)]).expect("a run");
            assert_eq!(found[0].to_f32(), wanted, "{} in {precision}", context.info().backend);
        }
    }
}

fn tensor(extents: &[usize], values: &[f32]) -> HostTensor {
    HostTensor::new(dims(extents), values.to_vec()).expect("values")
}

/// A node that cannot be added leaves the graph as it was.
#[test]
fn several_nodes_are_added_or_none() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 4, 5, 3)).expect("an input");
    let error = graph.space_to_batch("odd", x, &[2, 2], &[0, 1], &[0, 1]).expect_err("seven columns");
    assert_eq!(error.node(), Some("odd"));
    let error = graph.space_to_batch("odd", x, &[2, 2], &[0], &[0, 1]).expect_err("one number");
    assert!(error.to_string().contains("one number for each extent"), "{error}");
    assert!(graph.batch_to_space("even", x, &[1, 1], &[5, 0], &[0, 0]).is_err());
    assert!(graph.split("parts", x, 4, &[1]).is_err());
    assert_eq!(graph.nodes().len(), 0);
    let map = graph.pad("border", x, &[0, 1, 1, 0], &[0, 1, 1, 0], PadMode::Reflect).expect("a border");
    assert_eq!(graph.shape(map).expect("a map"), Shape::nhwc(1, 6, 7, 3));
}
