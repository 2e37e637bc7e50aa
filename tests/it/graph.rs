//! Graphs beyond chains of convolutions, on every backend: views, constants as values, named dimensions,
//! tensors that are no feature maps.

use crate::machine::{everywhere, in_turns};
use diptych::{
    Backend, Context, Conv2d, Depthwise, Dim, Dims, Extras, Gemm, Graph, HostTensor, Padding, Pointwise,
    Pool, Pooling, Precision, Right, Session, SessionOptions, Shape,
};

/// Small whole numbers: sums of their products are exact in f32.
pub(crate) fn numbers(dims: impl Into<Dims>, seed: usize) -> HostTensor {
    let dims = dims.into();
    let value = |index: usize| ((index * 7 + seed * 13) % 11) as f32 - 5.0;
    HostTensor::new(dims, (0..dims.elements()).map(value).collect::<Vec<f32>>()).expect("numbers")
}

pub(crate) fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("small")
}

/// Runs `graph` on the CPU and a GPU API and holds the outputs against `wanted`.
pub(crate) fn check(
    graph: &Graph,
    options: &SessionOptions,
    inputs: &[(&str, &HostTensor)],
    wanted: &[HostTensor],
) {
    for context in in_turns() {
        let backend = context.info().backend;
        let mut session = Session::new(&context, graph, options.clone()).expect("a session");
        for _ in 0..2 {
            let outputs = session.run(inputs).expect("a run");
            assert_eq!(outputs.len(), wanted.len());
            for (index, (found, wanted)) in outputs.iter().zip(wanted).enumerate() {
                assert_eq!(found.dims(), wanted.dims(), "{backend}: output {index}");
                assert_eq!(found.to_f32(), wanted.to_f32(), "{backend}: output {index}");
            }
        }
    }
}

/// `a b` of rows, by definition.
fn product(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let at = |row: usize, column: usize| (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum();
    (0..m * n).map(|index| at(index / n, index % n)).collect()
}

#[test]
fn a_feature_map_is_reshaped_to_rows_and_multiplied() {
    // 1x1 convolution to 6 channels, its 3 x 4 pixels as the rows of a matrix, times 6 x 5.
    let (x, w, right) =
        (numbers(Shape::nhwc(1, 3, 4, 5), 1), numbers(Shape::nhwc(6, 1, 1, 5), 2), numbers(dims(&[6, 5]), 3));
    let mut graph = Graph::new();
    let input = graph.input("x", x.shape()).expect("an input");
    let map = graph.pointwise("map", input, w.clone(), Extras::default(), Pointwise::default()).expect("1x1");
    let rows = graph.reshape("rows", map, &[Dim::Rest, 6.into()]).expect("rows");
    let y = graph.gemm("dense", rows, Right::Constant(right.clone()), Extras::default(), Gemm::default());
    graph.output(y.expect("a product")).expect("an output");
    let flat = graph.reshape("flat", map, &[72.into()]).expect("flat");
    graph.output(flat).expect("an output");
    let transposed: Vec<f32> = (0..30).map(|index| w.to_f32()[index % 6 * 5 + index / 6]).collect();
    let map = product(&x.to_f32(), &transposed, [12, 6, 5]);
    let wanted = [
        HostTensor::new(dims(&[12, 5]), product(&map, &right.to_f32(), [12, 5, 6])).expect("wanted"),
        HostTensor::new(dims(&[72]), map).expect("wanted"),
    ];
    check(&graph, &SessionOptions::default(), &[("x", &x)], &wanted);
}

#[test]
fn slices_begin_at_any_element() {
    // Rows of three elements: slices of them begin where no device binds a buffer.
    let (x, right) = (numbers(dims(&[200, 3]), 4), numbers(dims(&[3, 4]), 5));
    let mut graph = Graph::new();
    let input = graph.input("x", dims(&[200, 3])).expect("an input");
    let mut wanted = Vec::new();
    for (index, range) in [0..7, 1..6, 64..128, 101..200].into_iter().enumerate() {
        let part = graph.slice(&format!("part{index}"), input, 0, range.clone()).expect("a slice");
        let right = Right::Constant(right.clone());
        let y = graph.gemm(&format!("dense{index}"), part, right, Extras::default(), Gemm::default());
        graph.output(y.expect("a product")).expect("an output");
        let rows = &x.to_f32()[3 * range.start..3 * range.end];
        let values = product(rows, &numbers(dims(&[3, 4]), 5).to_f32(), [range.len(), 4, 3]);
        wanted.push(HostTensor::new(dims(&[range.len(), 4]), values).expect("wanted"));
    }
    let last = graph.slice("last", input, 0, 199..200).expect("a slice");
    graph.output(last).expect("an output");
    wanted.push(HostTensor::new(dims(&[1, 3]), &x.to_f32()[597..]).expect("wanted"));
    check(&graph, &SessionOptions::default(), &[("x", &x)], &wanted);
}

#[test]
fn constants_are_values_and_nodes_of_constants_are_computed_once() {
    let (x, w) = (numbers(Shape::nhwc(1, 2, 3, 4), 6), numbers(Shape::nhwc(4, 1, 1, 4), 7));
    let (left, right) = (numbers(dims(&[2, 3]), 8), numbers(dims(&[3, 4]), 9));
    let mut graph = Graph::new();
    let input = graph.input("x", x.shape()).expect("an input");
    // A product of constants, as a picture that is added to every result.
    let left_value = graph.constant("left", left.clone());
    let folded = graph
        .gemm("folded", left_value, Right::Constant(right.clone()), Extras::default(), Gemm::default())
        .expect("a product");
    let other = graph.constant("other", numbers(Shape::nhwc(1, 2, 3, 4), 10));
    let extras = Extras { residual: Some(other), ..Default::default() };
    let y = graph.pointwise("mix", input, w.clone(), extras, Pointwise::default()).expect("1x1");
    graph.output(y).expect("an output");
    graph.output(folded).expect("an output");
    let transposed: Vec<f32> = (0..16).map(|index| w.to_f32()[index % 4 * 4 + index / 4]).collect();
    let sums = product(&x.to_f32(), &transposed, [6, 4, 4]);
    let residual = numbers(Shape::nhwc(1, 2, 3, 4), 10);
    let values: Vec<f32> =
        sums.iter().zip(residual.to_f32().iter()).map(|(sum, other)| sum + other).collect();
    let wanted = [
        HostTensor::new(Shape::nhwc(1, 2, 3, 4), values).expect("wanted"),
        HostTensor::new(dims(&[2, 4]), product(&left.to_f32(), &right.to_f32(), [2, 4, 3])).expect("wanted"),
    ];
    check(&graph, &SessionOptions::default(), &[("x", &x)], &wanted);
    for context in everywhere() {
        let session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        assert!(session.steps().iter().all(|step| step.name != "folded"), "computed when it was built");
    }
}

#[test]
fn a_session_fixes_named_dimensions() {
    let mut graph = Graph::new();
    graph.dimension("batch", 1).expect("a dimension");
    let x = graph.input_of("x", &["batch".into(), 3.into()]).expect("an input");
    let right = numbers(dims(&[3, 2]), 1);
    let y = graph.gemm("dense", x, Right::Constant(right.clone()), Extras::default(), Gemm::default());
    graph.output(y.expect("a product")).expect("an output");
    for batch in [1, 5] {
        let x = numbers(dims(&[batch, 3]), 2);
        let options =
            SessionOptions { dimensions: [("batch".to_owned(), batch)].into(), ..Default::default() };
        let wanted = product(&x.to_f32(), &right.to_f32(), [batch, 2, 3]);
        let wanted = HostTensor::new(dims(&[batch, 2]), wanted).expect("wanted");
        check(&graph, &options, &[("x", &x)], &[wanted]);
    }
    let options = SessionOptions { dimensions: [("width".to_owned(), 1)].into(), ..Default::default() };
    let error = Session::new(&Context::new(Backend::Cpu).expect("the CPU"), &graph, options);
    assert!(error.expect_err("no such dimension").to_string().contains("width"));
}

#[test]
fn a_constant_or_an_input_can_be_an_output() {
    let x = numbers(dims(&[2, 3, 4]), 3);
    let mut graph = Graph::new();
    let input = graph.input("x", dims(&[2, 3, 4])).expect("an input");
    let constant = graph.constant("c", numbers(dims(&[5]), 4));
    let scalar = graph.constant("s", HostTensor::new(Dims::SCALAR, vec![2.5]).expect("a scalar"));
    let flat = graph.reshape("flat", constant, &[5.into(), 1.into()]).expect("a view of a constant");
    for value in [input, constant, scalar, flat] {
        graph.output(value).expect("an output");
    }
    let wanted = [
        x.clone(),
        numbers(dims(&[5]), 4),
        HostTensor::new(Dims::SCALAR, vec![2.5]).expect("a scalar"),
        numbers(dims(&[5]), 4).reshaped(dims(&[5, 1])).expect("five"),
    ];
    check(&graph, &SessionOptions::default(), &[("x", &x)], &wanted);
}

#[test]
fn matrices_stay_f32_beside_maps_of_halves() {
    let (x, w) = (numbers(Shape::nhwc(1, 2, 2, 4), 1), numbers(Shape::nhwc(8, 1, 1, 4), 2));
    let mut graph = Graph::new();
    let input = graph.input("x", x.shape()).expect("an input");
    let map = graph.pointwise("map", input, w.clone(), Extras::default(), Pointwise::default()).expect("1x1");
    let rows = graph.reshape("rows", map, &[4.into(), 8.into()]).expect("rows");
    let right = numbers(dims(&[8, 4]), 3);
    let y = graph.gemm("dense", rows, Right::Constant(right.clone()), Extras::default(), Gemm::default());
    let y = graph
        .reshape("map again", y.expect("a product"), &[1.into(), 2.into(), 2.into(), 4.into()])
        .expect("a map");
    let z = graph.pointwise(
        "more",
        y,
        numbers(Shape::nhwc(1, 1, 1, 4), 4),
        Extras::default(),
        Pointwise::default(),
    );
    graph.output(z.expect("1x1")).expect("an output");
    let transposed: Vec<f32> = (0..32).map(|index| w.to_f32()[index % 8 * 4 + index / 8]).collect();
    let map = product(&x.to_f32(), &transposed, [4, 8, 4]);
    let dense = product(&map, &right.to_f32(), [4, 4, 8]);
    let more = product(&dense, &numbers(Shape::nhwc(1, 1, 1, 4), 4).to_f32(), [4, 1, 4]);
    let wanted = HostTensor::new(Shape::nhwc(1, 2, 2, 1), more).expect("wanted");
    // Whole numbers below 2048 are exact in halves.
    assert!(dense.iter().all(|value| value.abs() <= 2048.0), "{dense:?}");
    let options = SessionOptions { precision: Precision::F16Storage, ..Default::default() };
    check(&graph, &options, &[("x", &x)], &[wanted]);
}

#[test]
fn windows_are_pooled_between_convolutions() {
    let (x, w) = (numbers(Shape::nhwc(1, 5, 4, 3), 1), numbers(Shape::nhwc(6, 1, 1, 3), 2));
    let mut graph = Graph::new();
    let input = graph.input("x", x.shape()).expect("an input");
    let map = graph.pointwise("map", input, w.clone(), Extras::default(), Pointwise::default()).expect("1x1");
    let largest = graph.pool("largest", map, Pool::new(Pooling::Max, [2, 2])).expect("a maximum");
    graph.output(largest).expect("an output");
    // Three by three with a border: the elements inside are counted.
    let options = Pool { stride: [1, 1], padding: Padding::Same, ..Pool::new(Pooling::Average, [3, 3]) };
    let mean = graph.pool("mean", map, options).expect("a mean");
    graph.output(mean).expect("an output");
    let transposed: Vec<f32> = (0..18).map(|index| w.to_f32()[index % 6 * 3 + index / 6]).collect();
    let map = product(&x.to_f32(), &transposed, [20, 6, 3]);
    let at = |row: usize, column: usize, channel: usize| map[(row * 4 + column) * 6 + channel];
    let mut largest = Vec::new();
    for (row, column) in [(0, 0), (0, 2), (2, 0), (2, 2)] {
        let window = [(row, column), (row, column + 1), (row + 1, column), (row + 1, column + 1)];
        largest.extend((0..6).map(|channel| {
            window.iter().map(|&(row, column)| at(row, column, channel)).fold(f32::NEG_INFINITY, f32::max)
        }));
    }
    let mut mean = Vec::new();
    for (row, column) in (0..20).map(|pixel| (pixel / 4, pixel % 4)) {
        let near = |place: usize, end: usize| place.saturating_sub(1)..(place + 2).min(end);
        let window: Vec<(usize, usize)> =
            near(row, 5).flat_map(|row| near(column, 4).map(move |column| (row, column))).collect();
        mean.extend((0..6).map(|channel| {
            window.iter().map(|&(row, column)| at(row, column, channel)).sum::<f32>() / window.len() as f32
        }));
    }
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let outputs = session.run(&[("x", &x)]).expect("a run");
        let backend = context.info().backend;
        assert_eq!(outputs[0].to_f32(), &largest[..], "{backend}");
        assert_eq!(outputs[1].shape(), Shape::nhwc(1, 5, 4, 6));
        for (found, wanted) in outputs[1].to_f32().iter().zip(&mean) {
            assert!((found - wanted).abs() <= 1e-5 * wanted.abs().max(1.0), "{backend}: {found} {wanted}");
        }
    }
}

#[test]
fn batches_of_matrices_may_have_rank_three() {
    let (a, b) = (numbers(dims(&[3, 4, 5]), 1), numbers(dims(&[3, 5, 2]), 2));
    let mut graph = Graph::new();
    let left = graph.input("a", a.dims()).expect("an input");
    let right = graph.input("b", b.dims()).expect("an input");
    let y =
        graph.gemm("y", left, Right::Value(right), Extras::default(), Gemm::default()).expect("a product");
    graph.output(y).expect("an output");
    let (left, right) = (a.to_f32(), b.to_f32());
    let products = left.chunks(20).zip(right.chunks(10));
    let wanted: Vec<f32> = products.flat_map(|(a, b)| product(a, b, [4, 2, 5])).collect();
    let wanted = HostTensor::new(dims(&[3, 4, 2]), wanted).expect("wanted");
    check(&graph, &SessionOptions::default(), &[("a", &a), ("b", &b)], &[wanted]);
}

/// Groups of one channel each, two outputs of each, in a network by hand.
#[test]
fn a_convolution_of_single_channels_is_depthwise() {
    let (x, w) = (numbers(Shape::nhwc(1, 5, 4, 6), 1), numbers(Shape::nhwc(12, 3, 3, 1), 2));
    let own = w.to_nhwc();
    let taps: Vec<f32> = (0..9).flat_map(|tap| own.iter().skip(tap).step_by(9).copied()).collect();
    let taps = HostTensor::new(Shape::nhwc(1, 3, 3, 12), taps).expect("weights");
    let result = |by_hand: bool| {
        let mut graph = Graph::new();
        let input = graph.input("x", x.shape()).expect("an input");
        let extras = Extras::bias(numbers(dims(&[12]), 3));
        let y = if by_hand {
            let options = Conv2d { groups: 6, padding: Padding::Same, ..Conv2d::default() };
            graph.conv2d("y", input, w.clone(), extras, options)
        } else {
            let options = Depthwise { padding: Padding::Same, ..Depthwise::default() };
            graph.depthwise("y", input, taps.clone(), extras, options)
        };
        graph.output(y.expect("a convolution")).expect("an output");
        graph
    };
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &result(false), SessionOptions::default()).expect("a session");
    let wanted = session.run(&[("x", &x)]).expect("a run").to_vec();
    check(&result(true), &SessionOptions::default(), &[("x", &x)], &wanted);
    // Another number of channels is an error of the convolution that was asked for.
    let mut graph = Graph::new();
    let input = graph.input("x", Shape::nhwc(1, 5, 4, 7)).expect("an input");
    let options = Conv2d { groups: 6, ..Conv2d::default() };
    let error = graph.conv2d("y", input, w, Extras::default(), options).expect_err("seven channels");
    assert!(error.to_string().contains("conv2d"), "{error}");
}
