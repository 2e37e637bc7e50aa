//! What is awaited: built, run, profiled and tuned without blocking, and dropped midway.

use crate::graph::dims;
use crate::machine::{everywhere, gpus, noise};
use diptych::{
    Activation, Backend, BuildProgress, Context, Conv2d, Extras, Gemm, Graph, HostTensor, Padding, Right,
    Session, SessionOptions, Shape, Tuner,
};
use std::future::Future;
use std::pin::pin;
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

fn network(seed: u32) -> Graph {
    let mut graph = Graph::new();
    let mut map = graph.input("x", Shape::nhwc(1, 9, 7, 6)).expect("an input");
    for (index, name) in [(0, "first"), (1, "second")] {
        let weights = noise(Shape::nhwc(6, 3, 3, 6), seed + index);
        let options = Conv2d { padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
        map = graph.conv2d(name, map, weights, Extras::default(), options).expect("a convolution");
    }
    graph.output(map).expect("an output");
    graph
}

/// What comes of `work` if it is polled once.
fn polled<F: Future>(work: F) -> Option<F::Output> {
    match pin!(work).poll(&mut Task::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

fn send<T: Send>(future: T) -> T {
    future
}

#[test]
fn a_context_that_is_awaited_is_the_one_that_is_waited_for() {
    for backend in [Backend::Auto, Backend::Wgpu, Backend::OpenCl, Backend::Cpu] {
        let awaited = pollster::block_on(send(Context::new_async(backend)));
        match (Context::new(backend), awaited) {
            (Ok(blocking), Ok(awaited)) => assert_eq!(blocking.info(), awaited.info()),
            (Err(blocking), Err(awaited)) => assert_eq!(blocking.to_string(), awaited.to_string()),
            (blocking, awaited) => panic!("{backend}: {blocking:?}, awaited {awaited:?}"),
        }
    }
}

#[test]
fn a_session_that_is_awaited_tells_how_far_it_is() {
    // One of small constants, and one whose weights are written by themselves, behind a bias that ends between places.
    let weights = noise(Shape::nhwc(160, 1, 1, 160), 5).reshaped(dims(&[160, 160])).expect("as many");
    let bias = HostTensor::vector(vec![0.5; 160]).expect("a bias");
    let mut large = Graph::new();
    let x = large.input("x", dims(&[3, 160])).expect("an input");
    let y = large.gemm("y", x, Right::Constant(weights), Extras::bias(bias), Gemm::default());
    let z = y.and_then(|y| large.gemm("z", y, Right::Constant(odd()), Extras::default(), Gemm::default()));
    large.output(z.expect("a product")).expect("an output");
    tells_how_far_it_is(&network(1), &noise(Shape::nhwc(1, 9, 7, 6), 3));
    tells_how_far_it_is(
        &large,
        &noise(Shape::nhwc(1, 1, 3, 160), 3).reshaped(dims(&[3, 160])).expect("as many"),
    );
}

/// Weights of few columns.
fn odd() -> HostTensor {
    noise(Shape::nhwc(160, 1, 1, 3), 9).reshaped(dims(&[160, 3])).expect("as many")
}

fn tells_how_far_it_is(graph: &Graph, x: &HostTensor) {
    for context in everywhere() {
        let title = context.info().to_string();
        let mut told: Vec<BuildProgress> = Vec::new();
        let mut tell = |progress| told.push(progress);
        let building =
            Session::new_with_progress_async(&context, graph, SessionOptions::default(), &mut tell);
        let mut session = pollster::block_on(send(building)).expect("a session");
        let mut blocking = Session::new(&context, graph, SessionOptions::default()).expect("a session");
        assert_eq!(session.run(&[("x", x)]).expect("a run"), blocking.run(&[("x", x)]).expect("a run"));
        let later = |pair: &[BuildProgress]| {
            pair[0].compiled <= pair[1].compiled && pair[0].uploaded <= pair[1].uploaded
        };
        assert!(told.windows(2).all(later), "{title}: {told:?}");
        let Some(last) = told.last() else {
            assert_eq!(context.info().backend, Backend::Cpu, "nobody was told of {title}");
            continue;
        };
        assert!(last.kernels > 0 && last.compiled == last.kernels, "{title}: {last:?}");
        assert!(last.bytes > 0 && last.uploaded == last.bytes, "{title}: {last:?}");
    }
}

/// Programs that were written before the methods were renamed.
#[test]
#[expect(deprecated, reason = "the former names give what the new ones give")]
fn former_names_build_the_same_session() {
    let (graph, x) = (network(1), noise(Shape::nhwc(1, 9, 7, 6), 3));
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let run =
        |session: diptych::Result<Session>| session.expect("a session").run(&[("x", &x)]).expect("a run");
    let wanted = run(Session::new(&context, &graph, SessionOptions::new()));
    let built = pollster::block_on(Session::build(&context, &graph, SessionOptions::new()));
    assert_eq!(run(built), wanted);
    let mut tell = |_: BuildProgress| {};
    let built = Session::build_with_progress(&context, &graph, SessionOptions::new(), &mut tell);
    assert_eq!(run(pollster::block_on(built)), wanted);
    #[cfg(feature = "tflite")]
    {
        let bytes = crate::machine::network_for(33);
        let file = diptych::ModelFile::from_bytes(bytes, &diptych::LoadOptions::default()).expect("a file");
        let built = pollster::block_on(file.build_session(&context, SessionOptions::new()));
        assert_eq!(built.expect("a session").inputs()[0].dims.extents(), [1, 33, 33, 3]);
        let built = file.build_session_with_progress(&context, SessionOptions::new(), &mut tell);
        assert_eq!(pollster::block_on(built).expect("a session").outputs().len(), file.outputs().len());
    }
}

#[test]
fn what_cannot_be_built_says_so_when_it_is_awaited() {
    for context in everywhere() {
        let nothing =
            pollster::block_on(Session::new_async(&context, &Graph::new(), SessionOptions::default()));
        let error = nothing.expect_err("no outputs").to_string();
        assert!(error.contains("no outputs"), "{error}");
    }
}

#[test]
fn what_is_dropped_midway_leaves_everything_usable() {
    let x = noise(Shape::nhwc(1, 9, 7, 6), 3);
    for context in everywhere() {
        let title = context.info().to_string();
        for seed in 10..14 {
            let graph = network(seed);
            // The thread that builds goes on beside what follows.
            drop(polled(Session::new_async(&context, &graph, SessionOptions::default())));
            let built = pollster::block_on(Session::new_async(&context, &graph, SessionOptions::default()));
            let mut session = built.expect("a session");
            let wanted = session.run(&[("x", &x)]).expect("a run");
            for _ in 0..3 {
                drop(polled(session.run_async(&[("x", &x)])));
                drop(polled(session.profile_async(&[("x", &x)])));
                drop(polled(session.refresh_async()));
                assert_eq!(session.run(&[("x", &x)]).expect("a run"), wanted, "{title}");
                let awaited = pollster::block_on(send(session.run_async(&[("x", &x)])));
                assert_eq!(awaited.expect("a run"), wanted, "{title}");
            }
        }
    }
}

#[test]
fn a_profile_that_is_awaited_has_the_steps_of_one_that_is_waited_for() {
    let (graph, x) = (network(5), noise(Shape::nhwc(1, 9, 7, 6), 3));
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let inputs: [(&str, &HostTensor); 1] = [("x", &x)];
        let blocking = session.profile(&inputs).expect("a profile");
        let awaited = pollster::block_on(send(session.profile_async(&inputs))).expect("a profile");
        let names = |profile: &diptych::Profile| -> Vec<String> {
            profile.steps.iter().map(|timed| timed.step.name.clone()).collect()
        };
        assert_eq!((blocking.clock, names(&blocking)), (awaited.clock, names(&awaited)));
        assert!(!awaited.total().is_zero(), "{}", context.info());
    }
}

#[test]
fn a_tuner_goes_on_after_a_step_that_was_dropped() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 6, 6, 4)).expect("an input");
    let weights = noise(Shape::nhwc(4, 1, 1, 4), 3);
    let y = graph.pointwise("point", x, weights, Extras::default(), diptych::Pointwise::default());
    graph.output(y.expect("a node")).expect("an output");
    for context in gpus() {
        let mut tuner = Tuner::new(&context).expect("a tuner").budget(Duration::from_secs(8));
        tuner.begin(&graph).expect("its problems");
        let step = Duration::from_millis(20);
        for _ in 0..3 {
            drop(polled(tuner.step_async(step)));
        }
        let mut now = pollster::block_on(send(tuner.step_async(step))).expect("a step");
        while !now.is_finished() {
            now = pollster::block_on(tuner.step_async(step)).expect("a step");
        }
        let report = tuner.report();
        assert_eq!(report.problems.len(), 1, "{}", context.info());
        assert!(report.problems[0].choice.is_some(), "{report}");
        let again = pollster::block_on(tuner.tune_async(&graph, |_| {})).expect("nothing left to do");
        assert_eq!(again.problems.len(), 1, "{}", context.info());
    }
}
