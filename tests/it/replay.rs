//! Runs of which every value is kept, parts of graphs, and runs that are repeated from a file.

use crate::machine::{everywhere, noise};
use diptych::{
    Activation, Backend, Context, Conv2d, Dim, Extras, Function, Graph, HostTensor, Padding, Precision,
    Reduction, Session, SessionOptions, Shape, Softmax, Value,
};

const IMAGE: Shape = Shape::nhwc(1, 9, 10, 3);

/// A convolution, a function of it, two parts of that and their sum, a mean, a softmax.
fn network() -> (Graph, Vec<Value>) {
    let mut graph = Graph::new();
    let x = graph.input("x", IMAGE).expect("an input");
    let options = Conv2d { padding: Padding::Same, activation: Activation::Relu6, ..Default::default() };
    let weights = noise(Shape::nhwc(6, 3, 3, 3), 2);
    let map = graph.conv2d("map", x, weights, Extras::default(), options).expect("a convolution");
    let rows = graph.reshape("rows", map, &[Dim::Fixed(2), Dim::Fixed(270)]).expect("as many");
    let halves: Vec<Value> = (0..2)
        .map(|half| graph.slice(&format!("half {half}"), rows, 0, half..half + 1).expect("a slice"))
        .collect();
    let sum = graph.elementwise("sum", Function::Add, &[halves[0].into(), halves[1].into()]).expect("a sum");
    let mean = graph.reduce("mean", map, Reduction::Mean, &[1, 2], false).expect("a mean");
    let parts = graph.softmax("parts", mean, Softmax { axis: -1, ..Default::default() }).expect("a softmax");
    for output in [sum, parts] {
        graph.output(output).expect("an output");
    }
    (graph, vec![x, map, sum, mean, parts])
}

#[test]
fn every_step_is_within_its_bound_on_every_backend() {
    let (graph, values) = network();
    let x = noise(IMAGE, 1);
    let mut first: Option<Vec<HostTensor>> = None;
    for context in everywhere() {
        for precision in [Precision::F32, Precision::F16Storage] {
            let options = SessionOptions { precision, ..Default::default() };
            let run = Session::observe(&context, &graph, &options, &[("x", &x)]).expect("a run");
            let what = format!("{} {precision}", context.info());
            let names: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
            assert_eq!(names, ["map", "sum", "mean", "parts"], "{what}");
            for step in &run.steps {
                let deviation = step.deviation.as_ref().unwrap_or_else(|why| panic!("{what}: {why}"));
                assert!(
                    deviation.ratio() <= 1.0 && deviation.beyond == 0,
                    "{what} {}: {deviation:?}",
                    step.name
                );
                let on_cpu = context.info().backend == Backend::Cpu;
                assert_eq!(step.texts.is_none(), on_cpu, "{what} {}", step.name);
                if let Some(texts) = &step.texts {
                    assert!(texts.wgsl.contains("@compute") && texts.opencl.contains("__kernel"), "{what}");
                    assert!(
                        step.kernel.starts_with(step.op) && texts.grid[0] > 0,
                        "{what}: {} of {}",
                        step.kernel,
                        step.op
                    );
                }
            }
            let found: Vec<HostTensor> = values.iter().map(|value| run.values[value].clone()).collect();
            let tolerance = if precision == Precision::F32 { 1e-5 } else { 4e-3 };
            for (found, wanted) in found.iter().zip(first.get_or_insert_with(|| found.clone())) {
                for (found, wanted) in found.to_nhwc().iter().zip(wanted.to_nhwc().iter()) {
                    assert!((found - wanted).abs() <= tolerance * wanted.abs().max(1.0), "{what}");
                }
            }
        }
    }
}

#[test]
fn all_results_of_a_step_are_within_their_bounds() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 40, 24)).expect("an input");
    let y = graph.elementwise("y", Function::Tanh, &[x.into()]).expect("a function");
    let shares = graph.softmax("shares", y, Softmax { axis: -1, ..Default::default() }).expect("a softmax");
    graph.output(shares).expect("an output");
    graph.output(y).expect("an output");
    let given = noise(Shape::nhwc(1, 1, 40, 24), 1);
    for context in everywhere().into_iter().filter(|context| context.info().backend != Backend::Cpu) {
        let options = SessionOptions::default();
        let run = Session::observe(&context, &graph, &options, &[("x", &given)]).expect("a run");
        let [step] = &run.steps[..] else { panic!("{:?}", run.steps) };
        assert_eq!(step.writes.len(), 2, "{step:?}");
        let deviation = step.deviation.as_ref().expect("an oracle");
        assert!(deviation.ratio() <= 1.0 && deviation.beyond == 0, "{deviation:?}");
        for (found, x) in run.values[&y].to_nhwc().iter().zip(given.to_nhwc().iter()) {
            assert!((found - x.tanh()).abs() < 1e-5, "{found} of {x}");
        }
    }
}

#[test]
fn a_part_of_a_graph_computes_the_same() {
    let (graph, values) = network();
    let &[_, map, sum, mean, _] = &values[..] else { panic!("five values") };
    let cpu = Context::new(Backend::Cpu).expect("the CPU");
    let x = noise(IMAGE, 1);
    let run = Session::observe(&cpu, &graph, &SessionOptions::default(), &[("x", &x)]).expect("a run");
    let part = graph.part(&[map], &[mean, sum]).expect("a part");
    let nodes: Vec<&str> = part.nodes().iter().map(|node| node.name()).collect();
    assert_eq!(nodes, ["rows", "half 0", "half 1", "sum", "mean"]);
    let name = format!("value {}", map.index());
    let mut session = Session::new(&cpu, &part, SessionOptions::default()).expect("a session");
    let found = session.run(&[(&name, &run.values[&map])]).expect("a run");
    for (found, value) in found.iter().zip([mean, sum]) {
        assert_eq!(found.to_nhwc(), run.values[&value].to_nhwc());
    }
    let error = graph.part(&[mean], &[sum]).expect_err("an input is missing");
    assert!(error.to_string().contains("\"x\""), "{error}");
}
