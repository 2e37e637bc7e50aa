//! Nodes that the CPU computes in a session on a GPU.

use crate::graph::dims;
use crate::machine::{gpus, noise};
use diptych::{
    Activation, Backend, Context, Conv2d, Custom, Error, Extras, Function, Graph, HostTensor, Padding,
    Rewrite, Session, SessionOptions, Shape, Step, Value,
};

/// Each input in ascending order; the second output is the number of elements above 0.
fn sort() -> Custom {
    let outputs = |inputs: &[diptych::Dims]| Ok(vec![inputs[0], dims(&[1])]);
    Custom::host("sort", outputs, |inputs, outputs| {
        outputs[0].copy_from_slice(inputs[0]);
        outputs[0].sort_by(f32::total_cmp);
        outputs[1][0] = inputs[0].iter().filter(|&&value| value > 0.0).count() as f32;
        Ok(())
    })
}

fn double(graph: &mut Graph, name: &str, x: Value) -> Value {
    graph.elementwise(name, Function::Add, &[x.into(), x.into()]).expect("a sum")
}

/// A graph with nodes on the CPU at the start, twice in a row, in the middle and at the end, and their names.
fn mixed() -> (Graph, &'static [&'static str]) {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 5, 7, 6)).expect("an input");
    let start = graph.custom("start", &sort(), &[x]).expect("a node");
    let again = graph.custom("again", &sort(), &[start[0]]).expect("a node");
    let weights = noise(Shape::nhwc(6, 3, 3, 6), 3);
    let options = Conv2d { activation: Activation::Relu, ..Default::default() };
    let map = graph.conv2d("conv", again[0], weights, Extras::default(), options).expect("a convolution");
    let middle = graph.custom("middle", &sort(), &[map]).expect("a node");
    let twice = double(&mut graph, "twice", middle[0]);
    let both = graph.concat("both", &[twice, middle[0]], 3).expect("one shape");
    let end = graph.custom("end", &sort(), &[both]).expect("a node");
    for output in [end[0], again[1], middle[1], end[1], both, twice] {
        graph.output(output).expect("an output");
    }
    (graph, &["start", "again", "middle", "end"])
}

fn reference(graph: &Graph, inputs: &[(&str, &HostTensor)]) -> Vec<Vec<f32>> {
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let apart = SessionOptions { without_rewrites: [Rewrite::Loops].into(), ..Default::default() };
    let mut session = Session::new(&context, graph, apart).expect("a session");
    session.run(inputs).expect("a run").iter().map(|tensor| tensor.to_f32().to_vec()).collect()
}

fn close(found: &[HostTensor], wanted: &[Vec<f32>], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let found = found.to_f32();
        assert_eq!(found.len(), wanted.len(), "{what}, output {index}");
        for (at, (a, b)) in found.iter().zip(wanted).enumerate() {
            assert!((a - b).abs() <= 1e-4, "{what}, output {index}, element {at}: {a}, wanted {b}");
        }
    }
}

#[test]
fn every_way_to_run_gives_what_the_cpu_gives() {
    let (graph, names) = mixed();
    let pictures: Vec<HostTensor> = (0..3).map(|seed| noise(Shape::nhwc(1, 5, 7, 6), seed)).collect();
    let wanted: Vec<_> = pictures.iter().map(|x| reference(&graph, &[("x", x)])).collect();
    for context in gpus() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        for (x, wanted) in pictures.iter().zip(&wanted) {
            close(&session.run(&[("x", x)]).expect("a run"), wanted, "run");
            let awaited = pollster::block_on(session.run_async(&[("x", x)])).expect("a run");
            close(&awaited, wanted, "run_async");
            let (staged, _) = session.run_in_stages(&[("x", x)]).expect("a run");
            close(&staged, wanted, "run_in_stages");
        }
        let frames = pictures.iter().map(|x| [("x", x.clone())]);
        let streamed: Vec<_> = session.stream(frames).in_flight(3).collect();
        assert_eq!(streamed.len(), 3);
        for (found, wanted) in streamed.into_iter().zip(&wanted) {
            close(&found.expect("a frame"), wanted, "stream");
        }
        let mut own: Vec<Vec<f32>> = wanted[0].iter().map(|output| vec![0.0; output.len()]).collect();
        let ports: Vec<String> = session.outputs().iter().map(|port| port.name.clone()).collect();
        let mut targets: Vec<(&str, &mut [f32])> =
            ports.iter().map(String::as_str).zip(own.iter_mut().map(Vec::as_mut_slice)).collect();
        session.run_into(&[("x", &pictures[1])], &mut targets).expect("a run");
        let found: Vec<HostTensor> =
            own.into_iter().map(|values| HostTensor::vector(values).expect("a vector")).collect();
        close(&found, &wanted[1], "run_into");

        let steps = session.steps();
        for name in names {
            let step = steps.iter().find(|step| step.name == *name).expect("a step of each node");
            assert!(step.kernel.starts_with("cpu_") && step.source.starts_with("on the CPU"), "{step:?}");
        }
        // The map of the convolution and the joined rows come down: what is computed on the CPU, and the
        // network's input, is there.
        let (input, map, count) = (4 * 5 * 7 * 6, 4 * 3 * 5 * 6, 4);
        let memory = session.memory();
        assert_eq!(memory.downloads, 3 * map, "{steps:#?}");
        // What the device or an output reads: four counts less the one that nobody does, three sorted tensors.
        assert_eq!(memory.uploads, input + map + 2 * map + 3 * count, "{steps:#?}");
        let moves = |op: &str| steps.iter().filter(|step| step.op == op && step.inserted).count();
        assert_eq!([moves("download"), moves("upload")], [2, 6], "{steps:#?}");
        match session.profile(&[("x", &pictures[0])]) {
            Ok(profile) => {
                let timed: Vec<Step> = profile.steps.into_iter().map(|timed| timed.step).collect();
                assert_eq!(timed, steps);
                assert!(profile.clock.contains("host clock"), "{}", profile.clock);
            }
            Err(error) => assert!(matches!(error, Error::Unsupported { .. }), "{error}"),
        }
    }
}

#[test]
fn any_node_is_computed_on_the_cpu_where_asked_for() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 4, 4, 5)).expect("an input");
    let weights = noise(Shape::nhwc(5, 3, 3, 5), 9);
    let same = Conv2d { padding: Padding::Same, ..Default::default() };
    let map = graph.conv2d("first", x, weights.clone(), Extras::default(), same).expect("a map");
    let bias = Some(HostTensor::vector(vec![0.25; 5]).expect("five"));
    let extras = Extras { bias, residual: Some(map), ..Default::default() };
    let options = Conv2d { activation: Activation::Relu6, ..same };
    let map = graph.conv2d("second", map, weights.clone(), extras, options).expect("a map");
    let map = graph.conv2d("third", map, weights, Extras::default(), same).expect("a map");
    graph.output(map).expect("an output");
    let x = noise(Shape::nhwc(1, 4, 4, 5), 1);
    let wanted = reference(&graph, &[("x", &x)]);
    for context in gpus() {
        for names in
            [&["first"][..], &["second"], &["third"], &["first", "third"], &["first", "second", "third"]]
        {
            let on_cpu = names.iter().map(|&name| name.to_owned()).collect();
            let options = SessionOptions { on_cpu, ..Default::default() };
            let mut session = Session::new(&context, &graph, options).expect("a session");
            for _ in 0..2 {
                close(&session.run(&[("x", &x)]).expect("a run"), &wanted, &format!("{names:?}"));
            }
            let steps = session.steps();
            let own = steps.iter().filter(|step| step.kernel == "cpu_conv2d_f32");
            assert_eq!(own.count(), names.len(), "{steps:#?}");
        }
    }
    let options = SessionOptions { on_cpu: ["fourth".to_owned()].into(), ..Default::default() };
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let error = Session::new(&context, &graph, options).expect_err("no such node").to_string();
    assert!(error.contains("\"fourth\""), "{error}");
}

#[test]
fn states_and_nodes_on_the_cpu_go_together() {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[4])).expect("an input");
    let state = graph.state("state", HostTensor::vector(vec![0.0; 4]).expect("four"));
    let sum = graph.elementwise("sum", Function::Add, &[state.into(), x.into()]).expect("a sum");
    let sorted = graph.custom("sorted", &sort(), &[sum]).expect("a node")[0];
    let before = graph.custom("before", &sort(), &[state]).expect("a node")[0];
    graph.update(state, sorted).expect("one shape");
    graph.output(sorted).expect("an output");
    graph.output(before).expect("an output");
    let x = HostTensor::vector(vec![4.0, -1.0, 2.0, -3.0]).expect("four");
    let mut expected: Vec<Vec<f32>> = Vec::new();
    let mut held = vec![0.0f32; 4];
    for _ in 0..3 {
        held = held.iter().zip(&*x.to_f32()).map(|(a, b)| a + b).collect();
        held.sort_by(f32::total_cmp);
        expected.push(held.clone());
    }
    for context in gpus() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        for _ in 0..2 {
            let frames = (0..3).map(|_| [("x", x.clone())]);
            let found: Vec<_> = session.stream(frames).collect();
            let mut before = vec![0.0; 4];
            for (found, wanted) in found.into_iter().zip(&expected) {
                close(&found.expect("a frame"), &[wanted.clone(), before.clone()], "states");
                before.clone_from(wanted);
            }
            session.reset().expect("a reset");
        }
    }
}

#[test]
fn an_error_of_a_node_on_the_cpu_names_it_and_leaves_the_session_usable() {
    let refuse = Custom::host(
        "refuse",
        |inputs| Ok(inputs.to_vec()),
        |inputs, outputs| {
            if inputs[0][0] < 0.0 {
                return Err(Error::input("refuse", "a negative number", "one from 0 on"));
            }
            outputs[0].copy_from_slice(inputs[0]);
            Ok(())
        },
    );
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[2])).expect("an input");
    let twice = double(&mut graph, "twice", x);
    let y = graph.custom("picky", &refuse, &[twice]).expect("a node")[0];
    let y = double(&mut graph, "more", y);
    graph.output(y).expect("an output");
    for context in gpus() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let bad = HostTensor::vector(vec![-1.0, 2.0]).expect("two");
        let good = HostTensor::vector(vec![1.0, 2.0]).expect("two");
        let error = session.run(&[("x", &bad)]).expect_err("refused");
        assert_eq!(error.node(), Some("picky"), "{error}");
        let found = session.run(&[("x", &good)]).expect("a run");
        assert_eq!(&*found[0].to_f32(), &[4.0, 8.0]);
    }
}
