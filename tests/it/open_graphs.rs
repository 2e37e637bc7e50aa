//! Graphs built by hand some of whose named dimensions each run decides.

use crate::machine::everywhere;
use diptych::nn::Softmax;
use diptych::{
    Backend, Batch, BatchOptions, Context, Dim, Dims, Extras, Function, Graph, HostTensor, Right, Session,
    SessionOptions, nn::Gemm,
};
use std::collections::BTreeMap;

/// `softmax(x w)`, and the scores' largest elements, of `batch` sequences of `length` rows.
fn graph() -> Graph {
    let mut graph = Graph::new();
    graph.dimension("batch", 1).expect("a name");
    graph.dimension("length", 4).expect("a name");
    let x = graph.input_of("x", &["batch".into(), "length".into(), Dim::Fixed(24)]).expect("an input");
    let more = graph.input_of("more", &["length".into(), Dim::Fixed(64)]).expect("an input");
    let weights = (0..24 * 64).map(|at| (at as f32 * 0.37).sin()).collect::<Vec<f32>>();
    let weights = HostTensor::new(Dims::new(&[24, 64]).expect("small"), weights).expect("as many");
    let right = Right::Constant(weights);
    let y = graph.gemm("y", x, right, Extras::default(), Gemm::default()).expect("a product");
    let y = graph.elementwise("sum", Function::Add, &[y.into(), more.into()]).expect("a sum");
    let z = graph.softmax("z", y, Softmax { axis: 1, ..Softmax::default() }).expect("a softmax");
    graph.output(z).expect("an output");
    graph
}

fn tensor(extents: &[usize], seed: usize) -> HostTensor {
    let dims = Dims::new(extents).expect("small");
    let values = (0..dims.elements()).map(|at| ((at + 31 * seed) as f32 * 0.11).cos()).collect::<Vec<f32>>();
    HostTensor::new(dims, values).expect("as many")
}

fn open(names: &[&str]) -> SessionOptions {
    let open = names.iter().map(|name| ((*name).to_owned(), None)).collect();
    SessionOptions { open, ..SessionOptions::default() }
}

fn run(session: &mut Session, batch: usize, length: usize) -> diptych::Result<HostTensor> {
    let (x, more) = (tensor(&[batch, length, 24], length), tensor(&[length, 64], batch));
    Ok(session.run(&[("x", &x), ("more", &more)])?[0].clone())
}

#[test]
fn one_session_at_ten_extents_equals_ten_sessions() {
    let graph = graph();
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, open(&["batch", "length"])).expect("a session");
        assert_eq!(session.inputs()[0].open.len(), 2);
        assert_eq!(session.outputs()[0].open.iter().map(|open| open.axis).collect::<Vec<_>>(), [0, 1]);
        let extents =
            [(1, 4), (1, 5), (2, 4), (3, 1), (1, 33), (2, 7), (1, 4), (4, 2), (1, 64), (2, 5), (1, 3)];
        for (batch, length) in extents {
            let found = run(&mut session, batch, length).expect("a run");
            assert_eq!(found.dims().extents(), [batch, length, 64]);
            let dimensions = BTreeMap::from([("batch".to_owned(), batch), ("length".to_owned(), length)]);
            let options = SessionOptions { dimensions, ..SessionOptions::default() };
            let mut fresh = Session::new(&context, &graph, options).expect("a session");
            assert!(found == run(&mut fresh, batch, length).expect("a run"), "{batch} {length}");
        }
        // One copy of the weights, whatever the kernels of the plans pack them for.
        let constants = session.memory().constants;
        assert!(constants <= 3 * 4 * 24 * 64, "{constants} bytes");
    }
}

#[test]
fn extents_that_do_not_fit_are_refused_with_the_reason() {
    let (context, graph) = (Context::new(Backend::Cpu).expect("the CPU"), graph());
    let mut options = open(&["length"]);
    options.open.insert("length".to_owned(), Some(2..=8));
    let mut session = Session::new(&context, &graph, options.clone()).expect("a session");
    run(&mut session, 1, 8).expect("within the range");
    for (batch, length, wanted) in [(1, 9, "2 to 8"), (2, 4, "1xlengthx24")] {
        let refused = run(&mut session, batch, length).expect_err("refused").to_string();
        assert!(refused.contains(wanted), "{refused}");
    }
    let (x, more) = (tensor(&[1, 3, 24], 0), tensor(&[4, 64], 0));
    let refused = session.run(&[("x", &x), ("more", &more)]).expect_err("two lengths").to_string();
    assert!(refused.contains("3, as input \"x\" has"), "{refused}");
    run(&mut session, 1, 5).expect("it goes on");

    let unknown =
        Session::new(&context, &graph, open(&["width"])).expect_err("no such dimension").to_string();
    assert!(unknown.contains("length"), "{unknown}");
    options.dimensions.insert("length".to_owned(), 3);
    assert!(Session::new(&context, &graph, options.clone()).is_err(), "open and fixed");
    options.dimensions.clear();
    let options = BatchOptions { session: options, ..BatchOptions::default() };
    assert!(Batch::new(&context, &graph, options).is_err(), "a batch has fixed extents");
}

#[test]
fn states_go_on_from_extent_to_extent() {
    let mut graph = Graph::new();
    graph.dimension("length", 1).expect("a name");
    let x = graph.input_of("x", &["length".into()]).expect("an input");
    let count = graph.state("count", HostTensor::vector(vec![0.0]).expect("one"));
    let next = graph.elementwise("next", Function::Add, &[count.into(), 1.0.into()]).expect("a sum");
    graph.update(count, next).expect("an update");
    let flat = graph.reshape("flat", next, &[Dim::Fixed(1)]).expect("one element");
    let y = graph.elementwise("y", Function::Add, &[x.into(), flat.into()]).expect("a sum");
    graph.output(y).expect("an output");
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, open(&["length"])).expect("a session");
        for (run, length) in [(1, 2), (2, 3), (3, 2), (4, 5)] {
            let x =
                HostTensor::new(Dims::new(&[length]).expect("small"), vec![0.0; length]).expect("as many");
            let found = session.run(&[("x", &x)]).expect("a run")[0].to_f32().into_owned();
            assert_eq!(found, vec![run as f32; length]);
        }
        session.reset().expect("reset");
        let x = HostTensor::new(Dims::new(&[3]).expect("small"), vec![0.0; 3]).expect("as many");
        assert_eq!(*session.run(&[("x", &x)]).expect("a run")[0].to_f32(), [1.0; 3]);
    }
}
