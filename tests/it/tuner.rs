//! The tuner's passes over a network, and searches that are cut short.

use crate::machine::{gpus, noise};
use diptych::internals::tune::db::{Row, Verdict};
use diptych::internals::tune::key::{Key, SourceHash};
use diptych::internals::tune::{Search, work_group};
use diptych::{
    Choice, Context, Conv2d, Depthwise, Extras, Function, Graph, HostTensor, Limits, Padding, Pointwise,
    Precision, Session, SessionOptions, Shape, SharedDatabase, Tuner, Tuning,
};
use diptych_kernels::ops::Op;
use diptych_kernels::ops::pointwise::PointwiseOp;
use std::time::Duration;

fn weights(shape: Shape) -> HostTensor {
    let values: Vec<f32> = (0..shape.elements()).map(|index| (index % 7) as f32 * 0.1 - 0.3).collect();
    HostTensor::new(shape, values).expect("weights")
}

/// Three problems of different ops.
fn network() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 12, 12, 8)).expect("an input");
    let same = Conv2d { padding: Padding::Same, ..Default::default() };
    let y = graph.conv2d("conv", x, weights(Shape::nhwc(8, 3, 3, 8)), Extras::default(), same);
    let same = Depthwise { padding: Padding::Same, ..Default::default() };
    let y = y.expect("a convolution");
    let y = graph.depthwise("depth", y, weights(Shape::nhwc(1, 3, 3, 8)), Extras::default(), same);
    let y = y.expect("a depthwise convolution");
    let y = graph.pointwise(
        "point",
        y,
        weights(Shape::nhwc(16, 1, 1, 8)),
        Extras::default(),
        Pointwise::default(),
    );
    graph.output(y.expect("a pointwise convolution")).expect("an output");
    graph
}

fn with(context: &Context, database: &SharedDatabase) -> Tuner {
    Tuner::new(context).expect("a device").database(database.clone())
}

/// The winners of a record whose search was cut short, and all of them.
fn winners(database: &SharedDatabase) -> [usize; 2] {
    let database = database.lock().expect("no panic");
    let winners = || database.rows().filter(|row| row.verdict.name() == "winner");
    [winners().filter(|row| row.open).count(), winners().count()]
}

#[test]
fn a_search_that_was_cut_short_goes_on() {
    for context in gpus() {
        let backend = context.info().backend;
        let database = SharedDatabase::default();
        // No time at all: every problem is in the report, and none is on record.
        let report = with(&context, &database).budget(Duration::ZERO).tune(&network()).expect("tuned");
        assert_eq!(report.problems.len(), 3, "{backend}");
        for problem in &report.problems {
            assert!(problem.cut_short && problem.trials.is_empty(), "{backend}: {report}");
            assert_eq!(problem.choice, Some(problem.default), "{backend}");
        }
        assert_eq!(winners(&database), [0, 0], "{backend}");

        // Stopped when each default has been timed: breadth first.
        let mut tuner = with(&context, &database).budget(Duration::from_secs(600));
        tuner.begin(&network()).expect("lined up");
        while tuner.step(Duration::from_millis(1)).expect("a step").visited < 3 {}
        tuner.cancel().expect("cancelled");
        let report = tuner.report().clone();
        assert!(report.problems.iter().all(|problem| problem.default_time.is_some()), "{backend}: {report}");
        let only_default = report.problems.iter().filter(|problem| problem.trials.len() == 1).count();
        assert!(only_default >= 2, "{backend}: at most the last one went on: {report}");
        assert_eq!(winners(&database), [3, 3], "{backend}: {report}");
        drop(tuner);

        // A session uses what there is, and the next tuner goes on with all of it.
        let tuning = Tuning::Database(database.clone());
        let session = Session::new(&context, &network(), SessionOptions { tuning, ..Default::default() });
        let steps = session.expect("a session").steps();
        assert!(steps.iter().filter(|step| step.source.starts_with("measured")).count() >= 3, "{backend}");
        let mut tuner = with(&context, &database).budget(Duration::from_secs(2));
        let again = tuner.tune(&network()).expect("tuned");
        assert_eq!(again.problems.len(), 3, "{backend}: {again}");
        let tried = |report: &diptych::Report| {
            report.problems.iter().map(|problem| problem.trials.len()).sum::<usize>()
        };
        assert!(tried(&again) > tried(&report), "{backend}: {again}");
        for problem in &again.problems {
            let mut choices: Vec<_> = problem.trials.iter().map(|trial| trial.choice).collect();
            choices.dedup();
            assert_eq!(choices.len(), problem.trials.len(), "{backend}: each candidate once");
        }

        // A search that comes to its end closes the problem.
        with(&context, &database).search(Search::Table).tune(&network()).expect("tuned");
        assert_eq!(winners(&database)[0], 0, "{backend}");
        let report =
            with(&context, &database).budget(Duration::from_secs(600)).tune(&network()).expect("tuned");
        assert!(report.problems.is_empty(), "{backend}: {report}");
    }
}

/// The network with a state: the sum of its outputs so far.
fn summing() -> Graph {
    let mut graph = network();
    let zeros = HostTensor::new(Shape::nhwc(1, 12, 12, 16), vec![0.0; 12 * 12 * 16]).expect("zeros");
    let (y, sum) = (graph.outputs()[0], graph.state("sum", zeros));
    let next = graph.elementwise("next", Function::Add, &[y.into(), sum.into()]).expect("a sum");
    graph.update(sum, next).expect("the state's shape");
    graph.output(next).expect("an output");
    graph
}

/// The op of the node `point`.
fn point() -> PointwiseOp {
    let (input, weights) = (Shape::nhwc(1, 12, 12, 8), Shape::nhwc(16, 1, 1, 8));
    PointwiseOp::new(input, weights, &Pointwise::default(), false, false, Precision::F32).expect("a valid op")
}

/// Another kernel of it than `choice`.
fn other(choice: Choice, limits: &Limits) -> Choice {
    let op = point();
    let kernels = op.kernels();
    let mut others = kernels.space(limits).into_iter().filter_map(|(kernel, tile)| {
        let other = kernel.choice(tile, work_group::table(kernel, tile, limits)).with_layout(choice.layout);
        let differs = (other.variant, other.tile) != (choice.variant, choice.tile);
        (differs && kernel.fits(&other, limits).is_ok()).then_some(other)
    });
    others.next().expect("a kernel")
}

#[test]
fn a_session_takes_new_verdicts_and_keeps_its_states() {
    for context in gpus() {
        let backend = context.info().backend;
        let database = SharedDatabase::default();
        let mut tuner = with(&context, &database).search(Search::Table);
        tuner.begin_nodes(&summing(), &["point".to_owned()]).expect("lined up");
        let default = tuner.finish(|_| {}).expect("tuned").problems[0].default;
        let tuning = Tuning::Database(database.clone());
        let options = SessionOptions { tuning, ..Default::default() };
        let mut session = Session::new(&context, &summing(), options).expect("a session");
        let input = noise(Shape::nhwc(1, 12, 12, 8), 7);
        let first = session.run(&[("x", &input)]).expect("a run");
        assert!(session.refresh().expect("nothing new").is_empty(), "{backend}");

        let kernel = |session: &Session| {
            let steps = session.steps();
            steps.iter().find(|step| step.name == "point").expect("a step").kernel.clone()
        };
        let before = kernel(&session);
        // As if another kernel had been found to be the best since.
        let winner = {
            let database = database.lock().expect("no panic");
            let winners = database.rows().filter(|row| row.verdict == Verdict::Winner);
            winners.last().expect("the default").clone()
        };
        let limits = context.info().device.clone().expect("a GPU").limits;
        let other = other(default, &limits);
        let source = SourceHash::of_kernel(&point(), &other, &limits).ok();
        let key = Key { choice: other.into(), source, ..winner.key };
        let row = Row::measured(key, Verdict::Winner, winner.time);
        database.lock().expect("no panic").append(row).expect("in memory");
        let changed = session.refresh().expect("refreshed");
        assert!(changed.iter().any(|name| name == "point"), "{backend}: {changed:?}");
        assert_ne!(kernel(&session), before, "{backend}");
        assert!(session.refresh().expect("nothing new").is_empty(), "{backend}");

        let second = session.run(&[("x", &input)]).expect("a run");
        let pairs = |index: usize| {
            first[index].to_f32().into_owned().into_iter().zip(second[index].to_f32().into_owned())
        };
        assert!(
            pairs(0).all(|(first, second)| (first - second).abs() <= 1e-4),
            "{backend}: the same network"
        );
        assert!(
            pairs(1).all(|(first, second)| (2.0 * first - second).abs() <= 1e-4),
            "{backend}: the state stays"
        );
        assert!(first[0].to_f32().iter().any(|value| value.abs() > 0.01), "{backend}");
    }
}
