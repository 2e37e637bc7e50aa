//! Values that a run leaves to the next one, on every backend.

use crate::graph::dims;
use crate::machine::everywhere;
use diptych::{Function, Graph, HostTensor, Session, SessionOptions, Value, nn::AxisRange};

fn vector(values: &[f32]) -> HostTensor {
    HostTensor::new(dims(&[values.len()]), values).expect("as many")
}

/// Two states that change places, a sum over all runs, and the last three inputs. The outputs show the sum before
/// and after a run, the first of the two, the last inputs, and what one state is in the next run.
fn graph() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[5])).expect("an input");
    let add = |graph: &mut Graph, name: &str, a: Value, b: Value| {
        graph.elementwise(name, Function::Add, &[a.into(), b.into()]).expect("a sum")
    };
    let sum = graph.state("sum", vector(&[0.5; 5]));
    let after = add(&mut graph, "after", sum, x);
    let [first, second] = [("first", 1.0), ("second", 2.0)].map(|(name, value)| {
        let one = graph.state(name, vector(&[value; 5]));
        (name, one)
    });
    let shown = add(&mut graph, "shown", first.1, first.1);
    let last = graph.state("last", HostTensor::new(dims(&[3, 5]), vec![0.0; 15]).expect("as many"));
    let row = graph.reshape("row", x, &[1.into(), 5.into()]).expect("a row");
    let kept = graph.strided_slice("kept", last, &[AxisRange::new(1, 3), AxisRange::ALL]).expect("two rows");
    let rows = graph.concat("rows", &[kept, row], 0).expect("three rows");
    for (state, next) in [(sum, after), (first.1, second.1), (second.1, first.1), (last, rows)] {
        graph.update(state, next).expect("one shape");
    }
    let view = graph.strided_slice("view", last, &[AxisRange::new(2, 3), AxisRange::ALL]).expect("a row");
    for output in [sum, after, shown, rows, view] {
        graph.output(output).expect("an output");
    }
    graph
}

/// The inputs of run `run`, and what comes out.
fn run(run: usize) -> (HostTensor, Vec<Vec<f32>>) {
    let input = |run: usize| -> Vec<f32> { (0..5).map(|at| (run * 5 + at) as f32).collect() };
    let before = |at: usize| 0.5 + (0..run).map(|run| input(run)[at]).sum::<f32>();
    let sums: Vec<f32> = (0..5).map(before).collect();
    let after: Vec<f32> = sums.iter().zip(input(run)).map(|(sum, x)| sum + x).collect();
    let row = |back: usize| if run >= back { input(run - back) } else { vec![0.0; 5] };
    let shown = if run.is_multiple_of(2) { 2.0 } else { 4.0 };
    let rows = [row(2), row(1), row(0)].concat();
    (vector(&input(run)), vec![sums, after, vec![shown; 5], rows, row(1)])
}

#[test]
fn states_are_kept_until_they_are_reset() {
    let graph = graph();
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        for round in 0..2 {
            for step in 0..4 {
                let (x, wanted) = run(step);
                let found = session.run(&[("x", &x)]).expect("a run");
                let found: Vec<Vec<f32>> = found.iter().map(|tensor| tensor.to_nhwc().into_owned()).collect();
                assert_eq!(found, wanted, "{}, round {round}, run {step}", context.info().backend);
            }
            session.reset().expect("a reset");
        }
        let frames = (0..6).map(|step| [("x", run(step).0)]);
        for (step, found) in session.stream(frames).in_flight(3).enumerate() {
            let found: Vec<Vec<f32>> =
                found.expect("a run").iter().map(|tensor| tensor.to_nhwc().into_owned()).collect();
            assert_eq!(found, run(step).1, "{}, frame {step}", context.info().backend);
        }
    }
}

#[test]
fn updates_that_do_not_fit_are_refused() {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[3])).expect("an input");
    let state = graph.state("state", vector(&[0.0; 3]));
    let other = graph.state("other", vector(&[0.0; 2]));
    let refused = |result: diptych::Result<()>| result.expect_err("refused").to_string();
    assert!(refused(graph.update(x, state)).contains("no state"));
    assert!(refused(graph.update(other, x)).contains("wanted 2"));
    graph.update(state, x).expect("one shape");
    assert!(refused(graph.update(state, x)).contains("two updates"));
}

#[test]
fn a_graph_in_other_dimensions_has_its_states() {
    let mut graph = Graph::new();
    graph.dimension("batch", 1).expect("a name");
    let x = graph.input_of("x", &["batch".into(), 2.into()]).expect("an input");
    let state = graph.state("state", HostTensor::new(dims(&[1, 2]), vec![1.0; 2]).expect("as many"));
    let y = graph.elementwise("y", Function::Add, &[x.into(), state.into()]).expect("a sum");
    graph.output(y).expect("an output");
    let wide = graph.with_dimensions(&[("batch", 3)]).expect("without an update it fits");
    assert_eq!(wide.dims(wide.outputs()[0]).expect("an output").extents(), [3, 2]);
    graph.update(state, y).expect("one shape");
    assert!(graph.with_dimensions(&[("batch", 3)]).is_err(), "the state would be larger");
}
