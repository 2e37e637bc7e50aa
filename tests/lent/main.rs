//! Inputs and outputs in an application's own buffers, on both APIs.

#![cfg(all(feature = "wgpu", feature = "opencl"))]

mod app;
mod counts;
mod frames;
#[path = "../it/machine.rs"]
#[expect(dead_code, reason = "of the backends' list")]
mod machine;
mod pictures;

use app::{App, Lent, apps};
use diptych::{
    Conv2d, DType, Dims, Extras, Function, Graph, HostTensor, Layout, Padding, Pointwise, Session,
    SessionOptions, Shape, nn::AxisRange,
};
use machine::noise;

fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("dimensions")
}

/// Values that halves hold exactly.
fn exact(shape: Shape, seed: u32) -> HostTensor {
    let values: Vec<f32> =
        noise(shape, seed).to_f32().iter().map(|value| (value * 64.0).round() / 64.0).collect();
    HostTensor::new(shape, values).expect("as many")
}

/// Two convolutions, and outputs of every kind: a map that another node reads, an input, a view of a map that begins
/// at no binding's alignment, the same value twice by a view of all of it, and one that is computed last.
fn network(channels: usize) -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 5, 7, channels)).expect("an input");
    let other = graph.input("other", Shape::nhwc(1, 5, 7, 6)).expect("an input");
    let same = Conv2d { padding: Padding::Same, ..Default::default() };
    let a = graph
        .conv2d("a", x, noise(Shape::nhwc(6, 3, 3, channels), 1), Extras::default(), same)
        .expect("conv2d");
    let sum = graph.elementwise("sum", Function::Add, &[a.into(), other.into()]).expect("a sum");
    let b = graph
        .pointwise("b", sum, noise(Shape::nhwc(5, 1, 1, 6), 2), Extras::default(), Pointwise::default())
        .expect("pointwise");
    let range = [AxisRange::ALL, AxisRange::new(1, 3), AxisRange::ALL, AxisRange::ALL];
    let part = graph.strided_slice("part", b, &range).expect("two rows");
    let all = graph.reshape("all", b, &[1.into(), 35.into(), 5.into()]).expect("a view");
    for output in [sum, x, part, all, b] {
        graph.output(output).expect("an output");
    }
    graph
}

/// What the session itself makes of the inputs.
fn wanted(session: &mut Session, inputs: &[(&str, &HostTensor)]) -> Vec<HostTensor> {
    session.run(inputs).expect("a run")
}

fn close(found: &[f32], wanted: &HostTensor, dtype: DType, what: &str) {
    let wanted = wanted.to_f32();
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (index, (found, wanted)) in found.iter().zip(wanted.iter()).enumerate() {
        let bound = if dtype == DType::F16 { wanted.abs() / 2048.0 + 1e-7 } else { 0.0 };
        assert!((found - wanted).abs() <= bound, "{what}: element {index} is {found}, wanted {wanted}");
    }
}

const FORMS: [(Layout, DType); 4] = [
    (Layout::Nhwc, DType::F32),
    (Layout::C4, DType::F32),
    (Layout::Nhwc, DType::F16),
    (Layout::C4, DType::F16),
];

/// Runs `session` with buffers in these forms, each at its offset, and compares all outputs.
fn check(app: &dyn App, session: &mut Session, form: (Layout, DType), offset: u64, bound: bool, seed: u32) {
    let inputs: Vec<(String, HostTensor)> = session
        .inputs()
        .iter()
        .map(|port| (port.name.clone(), exact(port.shape, seed + port.name.len() as u32)))
        .collect();
    let given: Vec<(&str, &HostTensor)> =
        inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let wanted = wanted(session, &given);
    let lent = |name: &str, shape: Shape| Lent::new(name, shape, form).at(offset).bound(bound);
    let sources: Vec<(Lent, &HostTensor)> =
        inputs.iter().map(|(name, tensor)| (lent(name, tensor.shape()), tensor)).collect();
    let targets: Vec<Lent> = session.outputs().iter().map(|port| lent(&port.name, port.shape)).collect();
    let found = app.run(session, &sources, &targets);
    for ((found, wanted), target) in found.iter().zip(&wanted).zip(&targets) {
        let what = format!("{}, {form:?} from {offset}, bound {bound}: {}", app.name(), target.name);
        close(found, wanted, form.1, &what);
    }
}

#[test]
fn outputs_are_those_of_a_run_in_every_layout_and_type() {
    for app in apps() {
        for channels in [3, 8] {
            let graph = network(channels);
            let mut session =
                Session::new(app.context(), &graph, SessionOptions::default()).expect("a session");
            let alignment = session.required_usages().expect("usages")[0].alignment;
            let mut seed = 10;
            for form in FORMS {
                for (offset, bound) in [(0, true), (alignment, true), (0, false), (4, false)] {
                    seed += 1;
                    check(&*app, &mut session, form, offset, bound, seed);
                }
            }
        }
    }
}

#[test]
fn a_buffer_is_large_enough_aligned_and_allowed_or_refused_by_name() {
    for app in apps() {
        let graph = network(3);
        let mut session = Session::new(app.context(), &graph, SessionOptions::default()).expect("a session");
        let shape = Shape::nhwc(1, 5, 7, 3);
        let (x, other) = (exact(shape, 1), exact(Shape::nhwc(1, 5, 7, 6), 2));
        let rows = (Layout::Nhwc, DType::F32);
        let of = |x_lent: Lent| [(x_lent, &x), (Lent::new("other", other.shape(), rows), &other)];
        let mut refused = |lent: Lent, words: &[&str]| {
            let error = app.try_run(&mut session, &of(lent), &[]).expect_err("refused").to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{}: {error}", app.name());
        };
        refused(Lent::new("x", shape, rows).shorter(4), &["\"x\"", "416 bytes", "420"]);
        refused(Lent::new("x", shape, (Layout::Nchw, DType::F32)), &["\"x\"", "nchw", "c4"]);
        refused(Lent::new("x", shape, rows).at(2), &["\"x\"", "offset 2"]);
        refused(Lent::new("y", shape, rows), &["\"y\"", "\"other\""]);
        let x_lent = Lent::new("x", shape, rows);
        let twice = [(x_lent.clone(), &x), (x_lent, &x)];
        let error = app.try_run(&mut session, &twice, &[]).expect_err("refused").to_string();
        assert!(error.contains("two buffers"), "{error}");
    }
}

#[test]
fn states_go_on_and_results_of_one_session_are_the_next_ones_input() {
    for app in apps() {
        let mut graph = Graph::new();
        let x = graph.input("x", dims(&[6])).expect("an input");
        let zeros = HostTensor::new(dims(&[6]), vec![0.0; 6]).expect("as many");
        let sum = graph.state("sum", zeros);
        let next = graph.elementwise("next", Function::Add, &[sum.into(), x.into()]).expect("a sum");
        graph.update(sum, next).expect("one shape");
        graph.output(next).expect("an output");
        let mut first = Session::new(app.context(), &graph, SessionOptions::default()).expect("a session");
        let mut graph = Graph::new();
        let y = graph.input("y", dims(&[6])).expect("an input");
        let square = graph.elementwise("square", Function::Mul, &[y.into(), y.into()]).expect("a product");
        graph.output(square).expect("an output");
        let mut second = Session::new(app.context(), &graph, SessionOptions::default()).expect("a session");
        let input = HostTensor::new(dims(&[6]), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("as many");
        for run in 1..=3 {
            let found = app.chain([&mut first, &mut second], &input);
            let wanted: Vec<f32> = input.to_f32().iter().map(|x| (run as f32 * x).powi(2)).collect();
            assert_eq!(found, wanted, "{}, run {run}", app.name());
        }
    }
}

#[test]
fn parts_of_one_buffer_serve_several_ports() {
    for app in apps() {
        let graph = network(3);
        let mut session = Session::new(app.context(), &graph, SessionOptions::default()).expect("a session");
        let x = exact(Shape::nhwc(1, 5, 7, 3), 5);
        let other = exact(Shape::nhwc(1, 5, 7, 6), 6);
        let wanted = wanted(&mut session, &[("x", &x), ("other", &other)]);
        // The input and the outputs that are computed from it, first apart, then over one another.
        for overlap in [false, true] {
            let found = app.arena(&mut session, [&x, &other], overlap);
            let names = if overlap { "over one another" } else { "apart" };
            close(&found[0], &wanted[0], DType::F32, &format!("{}, sum, {names}", app.name()));
            close(&found[1], &wanted[4], DType::F32, &format!("{}, b, {names}", app.name()));
        }
    }
}

#[test]
fn new_buffers_for_each_run_are_let_go() {
    for app in apps() {
        let graph = network(3);
        let mut session = Session::new(app.context(), &graph, SessionOptions::default()).expect("a session");
        // The session's own memory for a run from the host is there from the first on.
        check(&*app, &mut session, FORMS[0], 0, true, 99);
        session.unbind();
        let before = app.live();
        for seed in 0..40 {
            check(&*app, &mut session, FORMS[0], 0, true, 100 + seed);
        }
        // Eight sets of two inputs and five outputs, and the parameters of each recording.
        let most = before.map(|before| before + 8 * (7 + 1));
        assert!(app.live() <= most, "{}: {:?} buffers, {most:?} at most", app.name(), app.live());
        session.unbind();
        assert_eq!(app.live(), before, "{}", app.name());
    }
}
