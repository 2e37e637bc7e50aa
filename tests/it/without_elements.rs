//! Values of no elements in graphs that are built by hand, on every backend. What is right is as numpy has it.

use crate::graph::{dims, numbers};
use crate::machine::everywhere;
use diptych::nn::{Attention, AxisRange, ByteRange, CumSum, Normalize, OneHot, PadMode, Resize, Softmax};
use diptych::{
    Activation, AttentionInputs, Bits, Context, Conv2d, DType, Dim, Extras, Function, Gemm, Graph,
    HostTensor, Padding, Pool, Pooling, Reduction, Right, Session, SessionOptions, Shape, Value,
};
use std::collections::BTreeMap;

fn tensor(extents: &[usize], values: &[f32]) -> HostTensor {
    HostTensor::new(dims(extents), values.to_vec()).expect("as many")
}

fn none(extents: &[usize]) -> HostTensor {
    tensor(extents, &[])
}

/// Runs a graph twice on every backend. NaN is what NaN is compared with.
fn check(graph: &Graph, inputs: &[(&str, &HostTensor)], wanted: &[HostTensor]) {
    for context in everywhere() {
        let backend = context.info().backend;
        let mut session = Session::new(&context, graph, SessionOptions::default()).expect("a session");
        for _ in 0..2 {
            let outputs = session.run(inputs).expect("a run");
            compare(&format!("{backend}"), graph, &outputs, wanted);
        }
    }
}

fn compare(backend: &str, graph: &Graph, outputs: &[HostTensor], wanted: &[HostTensor]) {
    assert_eq!(outputs.len(), wanted.len());
    for ((&value, found), wanted) in graph.outputs().iter().zip(outputs).zip(wanted) {
        let name = graph.name(value).expect("a name");
        assert_eq!(found.dims(), wanted.dims(), "{backend}: {name}");
        let (found, wanted) = (found.to_f32(), wanted.to_f32());
        let alike = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
        assert!(found.iter().zip(&*wanted).all(alike), "{backend}: {name}: {found:?}, wanted {wanted:?}");
    }
}

/// A graph whose outputs each have a known value.
#[derive(Default)]
struct Known {
    graph: Graph,
    wanted: Vec<HostTensor>,
}

impl Known {
    fn output(&mut self, value: diptych::Result<Value>, wanted: HostTensor) -> Value {
        let value = value.expect("a node");
        self.graph.output(value).expect("an output");
        self.wanted.push(wanted);
        value
    }
}

#[test]
fn moves_of_nothing_and_moves_that_leave_nothing() {
    let mut known = Known::default();
    let graph = &mut known.graph;
    let a = graph.input("a", dims(&[0, 3])).expect("an input");
    let b = graph.input("b", dims(&[2, 3])).expect("an input");
    let tb = tensor(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (all, empty) = (AxisRange::ALL, AxisRange::new(1, 1));
    let concat = graph.concat("concat", &[a, b, a], 0);
    known.output(concat, tb.clone());
    let concat = known.graph.concat("of nothing", &[a, a], 0);
    known.output(concat, none(&[0, 3]));
    let twice = known.graph.concat("twice", &[b, a, b], 0);
    known.output(twice, tensor(&[4, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let reshaped = known.graph.reshape("reshaped", a, &[3.into(), 0.into(), 7.into()]);
    known.output(reshaped, none(&[3, 0, 7]));
    let rest = known.graph.reshape("rest", a, &[Dim::Rest, 3.into()]);
    known.output(rest, none(&[0, 3]));
    let slice = known.graph.strided_slice("slice", b, &[empty, all]);
    let slice = known.output(slice, none(&[0, 3]));
    let view = known.graph.slice("view", b, 0, 1..1);
    known.output(view, none(&[0, 3]));
    let transposed = known.graph.transpose("transposed", a, &[1, 0]);
    known.output(transposed, none(&[3, 0]));
    let reversed = known.graph.reverse("reversed", a, &[0]);
    known.output(reversed, none(&[0, 3]));
    let tiled = known.graph.tile("tiled", b, &[1, 0]);
    known.output(tiled, none(&[2, 0]));
    let tiled = known.graph.tile("tiled nothing", a, &[5, 2]);
    known.output(tiled, none(&[0, 6]));
    let padded = known.graph.pad("padded", a, &[1, 0], &[1, 1], PadMode::Constant(Bits(7.0)));
    known.output(padded, tensor(&[2, 4], &[7.0; 8]));
    let padded = known.graph.pad("padded beside", a, &[0, 1], &[0, 1], PadMode::Constant(Bits(7.0)));
    known.output(padded, none(&[0, 5]));
    let spread = known.graph.broadcast_to("spread", a, &[4.into(), 0.into(), 3.into()]);
    known.output(spread, none(&[4, 0, 3]));
    let parts = known.graph.split("parts", b, 0, &[0, 2, 0]).expect("parts");
    known.output(Ok(parts[0]), none(&[0, 3]));
    known.output(Ok(parts[1]), tb.clone());
    let indices = HostTensor::of(dims(&[0]), Vec::<i64>::new()).expect("no index");
    let indices = known.graph.constant("indices", indices);
    let chosen = known.graph.gather("chosen", b, indices, 1, 0);
    known.output(chosen, none(&[2, 0]));
    let rows = known.graph.constant("rows", HostTensor::of(dims(&[0, 1]), Vec::<i64>::new()).expect("none"));
    let chosen = known.graph.gather_nd("rows chosen", b, rows);
    known.output(chosen, none(&[0, 3]));
    let at = known.graph.constant("at", HostTensor::of(dims(&[1]), vec![1i32]).expect("a place"));
    let updated = known.graph.update_slice("updated", b, slice, at, 0);
    known.output(updated, tb.clone());
    known.output(Ok(a), none(&[0, 3]));
    for refused in [
        known.graph.reshape("undecided", a, &[Dim::Rest, 0.into()]),
        known.graph.reshape("more", a, &[3.into()]),
        known.graph.pad("edge", a, &[1, 0], &[0, 0], PadMode::Edge),
        known.graph.concat("other", &[a, b], 1),
    ] {
        let error = refused.expect_err("refused").to_string();
        assert!(error.contains("0x3"), "{error}");
    }
    check(&known.graph, &[("a", &none(&[0, 3])), ("b", &tb)], &known.wanted);
}

#[test]
fn functions_of_nothing_have_the_extents_of_their_broadcast() {
    let mut known = Known::default();
    let a = known.graph.input("a", dims(&[4, 0, 3])).expect("an input");
    let b = known.graph.input("b", dims(&[1, 3])).expect("an input");
    let sum = known.graph.elementwise("sum", Function::Add, &[a.into(), b.into()]);
    let sum = known.output(sum, none(&[4, 0, 3]));
    let twice = known.graph.elementwise("twice", Function::Mul, &[sum.into(), 2.0.into()]);
    known.output(twice, none(&[4, 0, 3]));
    let softmax = known.graph.softmax("softmax", a, Softmax::default());
    known.output(softmax, none(&[4, 0, 3]));
    let softmax = known.graph.softmax("along nothing", a, Softmax { axis: 1, ..Softmax::default() });
    known.output(softmax, none(&[4, 0, 3]));
    let normal = known.graph.normalize("normal", a, Normalize::default(), None, None);
    known.output(normal, none(&[4, 0, 3]));
    let sums = known.graph.cumsum("sums", a, CumSum { axis: 1, exclusive: false, reverse: false });
    known.output(sums, none(&[4, 0, 3]));
    let hot = known.graph.one_hot("hot", a, OneHot { depth: 5, on: Bits(1.0), off: Bits(0.0), axis: -1 });
    known.output(hot, none(&[4, 0, 3, 5]));
    let [most, places] = known.graph.top_k("most", b, 0).expect("none of three");
    known.output(Ok(most), none(&[1, 0]));
    known.output(Ok(places), none(&[1, 0]));
    let [most, _] = known.graph.top_k("most of none", a, 2).expect("two of three");
    known.output(Ok(most), none(&[4, 0, 2]));
    let bytes = known.graph.quantize("bytes", a, 0.5, ByteRange::all(128)).expect("bytes");
    let floats = known.graph.dequantize("floats", bytes, 0.5, 128, 3);
    known.output(floats, none(&[4, 0, 3]));
    let error =
        known.graph.elementwise("unlike", Function::Add, &[a.into(), most.into()]).expect_err("unlike");
    assert!(error.to_string().contains("4x0x3 and 4x0x2"), "{error}");
    check(
        &known.graph,
        &[("a", &none(&[4, 0, 3])), ("b", &tensor(&[1, 3], &[1.0, 2.0, 3.0]))],
        &known.wanted,
    );
}

#[test]
fn reductions_of_nothing_are_their_neutral_numbers() {
    let mut known = Known::default();
    let a = known.graph.input("a", dims(&[0, 2])).expect("an input");
    for (reduction, number) in [
        (Reduction::Sum, 0.0),
        (Reduction::Product, 1.0),
        (Reduction::Mean, f32::NAN),
        (Reduction::Any, 0.0),
        (Reduction::All, 1.0),
    ] {
        let name = reduction.name();
        let reduced = known.graph.reduce(name, a, reduction, &[0], true);
        let reduced = known.output(reduced, tensor(&[1, 2], &[number; 2]));
        let whole = known.graph.reduce(&format!("{name} of all"), a, reduction, &[0, 1], false);
        known.output(whole, tensor(&[], &[number]));
        // What follows is computed at the run.
        let more = known.graph.input(&format!("{name} more"), dims(&[2])).expect("an input");
        let sum = known.graph.elementwise(
            &format!("{name} and more"),
            Function::Add,
            &[reduced.into(), more.into()],
        );
        known.output(sum, tensor(&[1, 2], &[number + 1.0, number + 2.0]));
        let kept = known.graph.reduce(&format!("{name} of rows"), a, reduction, &[1], false);
        known.output(kept, none(&[0]));
    }
    for reduction in [Reduction::Max, Reduction::Min] {
        let kept = known.graph.reduce(&format!("{} of rows", reduction.name()), a, reduction, &[1], false);
        known.output(kept, none(&[0]));
        let error = known.graph.reduce(reduction.name(), a, reduction, &[0], false).expect_err("no largest");
        let error = error.to_string();
        assert!(error.contains("0x2") && error.contains("at least one element"), "{error}");
    }
    let kept = known.graph.arg_max("place of rows", a, 1, false);
    known.output(kept, none(&[0]));
    let error = known.graph.arg_max("place", a, 0, false).expect_err("no place").to_string();
    assert!(error.contains("0x2") && error.contains("at least one element"), "{error}");
    let more = tensor(&[2], &[1.0, 2.0]);
    let names = ["a", "sum more", "product more", "mean more", "any more", "all more"];
    let a = none(&[0, 2]);
    let inputs: Vec<(&str, &HostTensor)> =
        names.iter().map(|name| (*name, if *name == "a" { &a } else { &more })).collect();
    check(&known.graph, &inputs, &known.wanted);
}

#[test]
fn integers_of_which_there_are_none_keep_their_type() {
    let mut graph = Graph::new();
    for dtype in [DType::I64, DType::I32] {
        let x = graph.typed_input(&format!("{dtype}"), dtype, &[0.into(), 2.into()]).expect("an input");
        let sum = graph.reduce(&format!("{dtype} sum"), x, Reduction::Sum, &[0], false).expect("a sum");
        let product = graph.reduce(&format!("{dtype} product"), x, Reduction::Product, &[0], false);
        for value in [sum, product.expect("a product"), x] {
            graph.output(value).expect("an output");
            assert_eq!(graph.tensor_type(value).expect("a type").dtype, dtype);
        }
    }
    let given = [DType::I64, DType::I32].map(|dtype| {
        let given = HostTensor::of(dims(&[0, 2]), Vec::<i64>::new()).expect("none");
        (dtype.to_string(), given)
    });
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let inputs: Vec<(&str, &HostTensor)> = given.iter().map(|(name, own)| (name.as_str(), own)).collect();
        let outputs = session.submit(&inputs).expect("a run").wait().expect("outputs");
        let found: Vec<Vec<i64>> = (0..6).map(|at| outputs.integers(at).expect("integers")).collect();
        let wanted = [vec![0; 2], vec![1; 2], vec![]];
        assert_eq!(found, [wanted.clone(), wanted].concat(), "{}", context.info().backend);
    }
}

#[test]
fn products_of_no_terms_are_their_bias() {
    let mut known = Known::default();
    let a = known.graph.input("a", dims(&[2, 0])).expect("an input");
    let b = known.graph.input("b", dims(&[0, 3])).expect("an input");
    let c = known.graph.input("c", dims(&[2, 3])).expect("an input");
    let tc = tensor(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let right = || Right::Constant(none(&[0, 3]));
    let bias = || HostTensor::vector(vec![1.0, -2.0, 3.0]).expect("a bias");
    let product = known.graph.gemm("plain", a, Right::Value(b), Extras::default(), Gemm::default());
    known.output(product, tensor(&[2, 3], &[0.0; 6]));
    let product = known.graph.gemm("bias", a, right(), Extras::bias(bias()), Gemm::default());
    let product = known.output(product, tensor(&[2, 3], &[1.0, -2.0, 3.0, 1.0, -2.0, 3.0]));
    let more = known.graph.elementwise("more", Function::Add, &[product.into(), c.into()]);
    known.output(more, tensor(&[2, 3], &[2.0, 0.0, 6.0, 5.0, 3.0, 9.0]));
    let extras = Extras { bias: Some(bias()), residual: Some(c), ..Extras::default() };
    let options = Gemm { activation: Activation::Relu, ..Gemm::default() };
    let product = known.graph.gemm("epilogue", a, right(), extras, options);
    known.output(product, tensor(&[2, 3], &[2.0, 2.0, 6.0, 5.0, 5.0, 9.0]));
    let turned = Gemm { transpose_a: true, transpose_b: true, ..Gemm::default() };
    let product = known.graph.gemm("turned", b, Right::Value(a), Extras::default(), turned);
    known.output(product, tensor(&[3, 2], &[0.0; 6]));
    // Without rows, without columns, without matrices.
    let rows =
        known.graph.gemm("rows", b, Right::Constant(none(&[3, 0])), Extras::default(), Gemm::default());
    known.output(rows, none(&[0, 0]));
    let columns =
        known.graph.gemm("columns", c, Right::Constant(none(&[3, 0])), Extras::default(), Gemm::default());
    known.output(columns, none(&[2, 0]));
    let batch = known.graph.input("batch", dims(&[0, 2, 4])).expect("an input");
    let weights = Right::Constant(numbers(dims(&[4, 5]), 1));
    let product = known.graph.gemm("matrices", batch, weights, Extras::default(), Gemm::default());
    known.output(product, none(&[0, 2, 5]));
    let error = known.graph.gemm("unlike", a, Right::Value(c), Extras::default(), Gemm::default());
    assert!(error.expect_err("unlike").to_string().contains("found 0 and 2"));
    let inputs: [(&str, &HostTensor); 4] =
        [("a", &none(&[2, 0])), ("b", &none(&[0, 3])), ("c", &tc), ("batch", &none(&[0, 2, 4]))];
    check(&known.graph, &inputs, &known.wanted);
}

#[test]
fn no_pictures_give_no_maps() {
    let mut known = Known::default();
    let x = known.graph.input("x", Shape::nhwc(0, 6, 8, 3)).expect("an input");
    let options = Conv2d { padding: Padding::Same, stride: [2, 2], ..Conv2d::default() };
    let weights = numbers(Shape::nhwc(4, 3, 3, 3), 1);
    let map = known.graph.conv2d("map", x, weights, Extras::default(), options);
    let map = known.output(map, none(&[0, 3, 4, 4]));
    let pooled = known.graph.pool("pooled", map, Pool::new(Pooling::Max, [2, 2]));
    known.output(pooled, none(&[0, 1, 2, 4]));
    let mean = known.graph.reduce("mean", map, Reduction::Mean, &[1, 2], false);
    known.output(mean, none(&[0, 4]));
    let large = known.graph.resize("large", map, Resize::new(diptych::nn::ResizeMode::Nearest, [6, 8]));
    known.output(large, none(&[0, 6, 8, 4]));
    let flat = known.graph.input("flat", Shape::nhwc(1, 0, 8, 3)).expect("an input");
    let weights = numbers(Shape::nhwc(4, 3, 3, 3), 1);
    let valid = Conv2d { padding: Padding::Valid, ..Conv2d::default() };
    let error = known.graph.conv2d("window", flat, weights, Extras::default(), valid).expect_err("no window");
    assert!(error.to_string().contains("0 elements along height"), "{error}");
    let error = known.graph.resize("none", flat, Resize::new(diptych::nn::ResizeMode::Nearest, [6, 8]));
    assert!(error.expect_err("no pixel").to_string().contains("1x0x8x3"));
    check(&known.graph, &[("x", &none(&[0, 6, 8, 3])), ("flat", &none(&[1, 0, 8, 3]))], &known.wanted);
}

#[test]
fn an_attention_of_no_keys_or_no_queries() {
    let mut known = Known::default();
    let q = known.graph.input("q", dims(&[1, 2, 3, 4])).expect("an input");
    let k = known.graph.input("k", dims(&[1, 2, 0, 4])).expect("an input");
    let v = known.graph.input("v", dims(&[1, 2, 0, 5])).expect("an input");
    let options = Attention::default();
    let none_seen = known.graph.attention("no keys", [q, k, v], AttentionInputs::default(), options);
    let zeros = Attention { nan_if_nothing: false, ..options };
    let number = if options.nan_if_nothing { f32::NAN } else { 0.0 };
    known.output(none_seen, tensor(&[1, 2, 3, 5], &[number; 30]));
    let none_seen = known.graph.attention("zeros", [q, k, v], AttentionInputs::default(), zeros);
    known.output(none_seen, tensor(&[1, 2, 3, 5], &[0.0; 30]));
    let keys = known.graph.input("keys", dims(&[1, 2, 6, 4])).expect("an input");
    let of_none = known.graph.attention("no queries", [k, keys, keys], AttentionInputs::default(), options);
    known.output(of_none, none(&[1, 2, 0, 4]));
    let inputs: [(&str, &HostTensor); 4] = [
        ("q", &numbers(dims(&[1, 2, 3, 4]), 1)),
        ("k", &none(&[1, 2, 0, 4])),
        ("v", &none(&[1, 2, 0, 5])),
        ("keys", &numbers(dims(&[1, 2, 6, 4]), 2)),
    ];
    check(&known.graph, &inputs, &known.wanted);
}

/// A session whose runs decide the extents takes 0 as any other.
#[test]
fn a_dimension_of_a_session_may_be_0_in_one_run_and_not_in_the_next() {
    let mut graph = Graph::new();
    graph.dimension("past", 0).expect("a name");
    let past = graph.input_of("past", &["past".into(), 2.into()]).expect("an input");
    let next = graph.input("next", dims(&[1, 2])).expect("an input");
    let all = graph.concat("all", &[past, next], 0).expect("rows");
    let doubled = graph.elementwise("doubled", Function::Add, &[past.into(), past.into()]).expect("a sum");
    let sum = graph.reduce("sum", doubled, Reduction::Sum, &[0], false).expect("a sum");
    for value in [all, doubled, sum] {
        graph.output(value).expect("an output");
    }
    let next = tensor(&[1, 2], &[5.0, 6.0]);
    let open: BTreeMap<String, _> = [("past".to_owned(), None)].into_iter().collect();
    for context in everywhere() {
        let options = SessionOptions { open: open.clone(), ..SessionOptions::default() };
        let mut session = Session::new(&context, &graph, options).expect("a session");
        for rows in [0, 2, 0, 1] {
            let past = numbers(dims(&[rows, 2]), rows);
            let given = past.to_f32();
            let outputs = session.run(&[("past", &past), ("next", &next)]).expect("a run");
            let all = [&*given, &[5.0, 6.0]].concat();
            let doubled: Vec<f32> = given.iter().map(|number| 2.0 * number).collect();
            let column = |at: usize| doubled.iter().skip(at).step_by(2).sum();
            let wanted = [
                tensor(&[rows + 1, 2], &all),
                tensor(&[rows, 2], &doubled),
                tensor(&[2], &[column(0), column(1)]),
            ];
            compare(&format!("{} {rows}", context.info().backend), &graph, &outputs, &wanted);
        }
    }
}

#[test]
fn no_step_and_no_memory_is_for_what_has_no_elements() {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[0, 64])).expect("an input");
    let y = graph.elementwise("y", Function::Exp, &[x.into()]).expect("a node");
    let z =
        graph.gemm("z", y, Right::Constant(numbers(dims(&[64, 8]), 1)), Extras::default(), Gemm::default());
    graph.output(z.expect("a node")).expect("an output");
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        assert!(session.steps().is_empty(), "{:?}", session.steps());
        assert_eq!((session.memory().planned, session.memory().constants), (0, 0));
        assert_eq!(session.outputs()[0].dims, dims(&[0, 8]));
        let found = session.run(&[("x", &none(&[0, 64]))]).expect("a run");
        assert_eq!((found[0].dims(), found[0].to_f32().len()), (dims(&[0, 8]), 0));
        let slice: &[f32] = &[];
        let flight = session.submit(&[("x", slice)]).expect("a run");
        assert!(flight.wait().expect("outputs").get(0).expect("an output").is_empty());
        let error = session.run(&[("x", &numbers(dims(&[1, 64]), 1))]).expect_err("another number of rows");
        assert!(error.to_string().contains("0x64"), "{error}");
        profile(&mut session, &context);
    }
}

fn profile(session: &mut Session, context: &Context) {
    let profile = session.profile(&[("x", &none(&[0, 64]))]);
    assert!(profile.is_ok_and(|profile| profile.steps.is_empty()), "{}", context.info().backend);
}
