//! Separable blocks as one kernel: which pairs, when, and with what result, on every backend.

use crate::machine::{everywhere, in_turns, noise};
use diptych::internals::tune::Search;
use diptych::internals::tune::db::{Database, Row, Timing};
use diptych::{
    Activation, Backend, Choice, Context, Depthwise, Extras, Fusing, Graph, HostTensor, Padding, Picking,
    Pointwise, Precision, Session, SessionOptions, Shape, Tuner, Tuning, Value,
};
use std::sync::{Arc, Mutex};

const IMAGE: Shape = Shape::nhwc(2, 9, 7, 10);

/// Adds the two nodes of a block: ten channels to ten.
fn block(graph: &mut Graph, name: &str, x: Value, stride: usize, residual: Option<Value>) -> [Value; 2] {
    let vector = |seed| noise(Shape::nhwc(1, 1, 1, 10), seed);
    let options = Depthwise {
        stride: [stride; 2],
        padding: Padding::Same,
        activation: Activation::Relu6,
        ..Default::default()
    };
    let window = noise(Shape::nhwc(1, 3, 3, 10), 3);
    let between = graph.depthwise(&format!("{name} window"), x, window, Extras::bias(vector(4)), options);
    let between = between.expect("depthwise");
    let extras = Extras { bias: Some(vector(5)), residual, ..Default::default() };
    let weights = noise(Shape::nhwc(10, 1, 1, 10), 6);
    let options = Pointwise { activation: Activation::Relu };
    let out = graph.pointwise(&format!("{name} mix"), between, weights, extras, options);
    [between, out.expect("pointwise")]
}

/// Two blocks that can run as one each, the second with a residual, and a pair whose middle leaves
/// the network, which cannot.
fn network() -> Graph {
    let mut graph = Graph::new();
    let image = graph.input("image", IMAGE).expect("an input");
    let [_, a] = block(&mut graph, "a", image, 2, None);
    let [_, b] = block(&mut graph, "b", a, 1, Some(a));
    let [middle, c] = block(&mut graph, "c", b, 1, None);
    for output in [middle, c] {
        graph.output(output).expect("an output");
    }
    graph
}

const FUSED: [&str; 2] = ["a window + a mix", "b window + b mix"];

fn fused(session: &Session) -> Vec<String> {
    let steps = session.steps();
    steps.into_iter().filter(|step| step.op == "separable").map(|step| step.name).collect()
}

fn close(found: &[HostTensor], wanted: &[HostTensor], tolerance: f32, what: &str) {
    for (found, wanted) in found.iter().zip(wanted) {
        for (found, wanted) in found.to_f32().iter().zip(wanted.to_f32().iter()) {
            assert!((found - wanted).abs() <= tolerance * wanted.abs().max(1.0), "{what}: {found} {wanted}");
        }
    }
}

#[test]
fn blocks_run_as_one_where_asked_with_the_same_result() {
    let (graph, image) = (network(), noise(IMAGE, 20));
    for context in &in_turns() {
        let mut wanted = None;
        for (precision, tolerance) in [(Precision::F32, 1e-5), (Precision::F16Storage, 4e-3)] {
            for fuse in [Fusing::Never, Fusing::Always] {
                let options = SessionOptions { fuse, precision, ..Default::default() };
                let mut session = Session::new(context, &graph, options).expect("a session");
                let found = session.run(&[("image", &image)]).expect("a run");
                let wanted = wanted.get_or_insert_with(|| found.clone());
                let what = format!("{} {precision} {fuse:?}", context.info());
                close(&found, wanted, tolerance, &what);
                let names: &[&str] = if fuse == Fusing::Always { &FUSED } else { &[] };
                assert_eq!(fused(&session), names, "{what}");
                let steps = session.steps();
                let single: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
                assert!(single.contains(&"c window") && single.contains(&"c mix"), "{what}: {single:?}");
                for step in steps.iter().filter(|step| step.op == "separable") {
                    assert!(step.source.ends_with("; fused: as asked"), "{what}: {}", step.source);
                    assert!(step.kernel.contains("separable"), "{what}: {}", step.kernel);
                }
                let profile = session.profile(&[("image", &image)]).expect("a profile");
                assert_eq!(profile.nodes.len(), steps.len(), "{what}");
            }
        }
    }
}

#[test]
fn a_fused_step_needs_no_memory_for_what_lies_between() {
    let graph = network();
    for context in &everywhere() {
        let bytes = |fuse| {
            let options = SessionOptions { fuse, ..Default::default() };
            Session::new(context, &graph, options).expect("a session").memory().unshared
        };
        assert!(bytes(Fusing::Always) < bytes(Fusing::Never), "{}", context.info());
    }
}

#[test]
fn a_node_chosen_by_hand_stays_by_itself() {
    let graph = network();
    for context in &everywhere() {
        let direct = Choice::new("direct", [1, 1, 1], [2, 2, 2]);
        let choices = [("a mix".to_owned(), direct)].into_iter().collect();
        let options = SessionOptions { fuse: Fusing::Always, choices, ..Default::default() };
        let session = Session::new(context, &graph, options).expect("a session");
        assert_eq!(fused(&session), &FUSED[1..], "{}", context.info());
    }
}

#[test]
fn by_rule_unmeasured_blocks_are_two_nodes_and_a_driver_on_the_cpu_tunes_none() {
    let graph = network();
    for context in &everywhere() {
        let on_cpu = context
            .info()
            .device
            .as_ref()
            .is_none_or(|device| device.limits.family == diptych::Family::CpuDriver);
        let session = Session::new(context, &graph, SessionOptions::default()).expect("a session");
        assert!(fused(&session).is_empty(), "{}", context.info());
        let Ok(tuner) = Tuner::new(context) else { continue };
        let mut tuner = tuner.search(Search::Table);
        let report = tuner.tune(&graph).expect("a report");
        let blocks = report.problems.iter().filter(|problem| problem.op == "separable").count();
        assert_eq!(blocks > 0, !on_cpu, "{report}");
    }
}

/// A record in which each block's kernel takes `block` nanoseconds and each node's own 1000.
fn record(context: &Context, graph: &Graph, block: u64) -> Arc<Mutex<Database>> {
    let mut tuner = Tuner::new(context).expect("a device").search(Search::Table).fuse(Fusing::Always);
    let report = tuner.tune(graph).expect("a report");
    let tuned = report.problems.iter().find(|problem| problem.op == "separable");
    assert_eq!(tuned.expect("a block").nodes.len(), 1, "{report}");
    let measured = tuner.shared_database();
    let mut database = Database::in_memory();
    for row in measured.lock().expect("a record").rows() {
        let nanoseconds = if row.key.problem.op == "separable" { block } else { 1000 };
        let time = Timing {
            median_ns: nanoseconds,
            p10_ns: nanoseconds,
            p90_ns: nanoseconds,
            samples: 9,
            default_ns: None,
        };
        database.append(Row { time: Some(time), ..row.clone() }).expect("in memory");
    }
    Arc::new(Mutex::new(database))
}

#[test]
fn the_records_times_decide() {
    let graph = network();
    for context in everywhere().iter().filter(|context| context.info().backend != Backend::Cpu) {
        // The shortest kernel, 1 us, is taken for the cost of a dispatch.
        for (time, wanted) in [(999, &FUSED[..]), (1000, &[])] {
            let tuning = Tuning::Database(record(context, &graph, time));
            for pick in [Picking::Rule, Picking::Measured] {
                let options = SessionOptions { tuning: tuning.clone(), pick, ..Default::default() };
                let session = Session::new(context, &graph, options).expect("a session");
                assert_eq!(fused(&session), wanted, "{} {time}", context.info());
                for step in session.steps().iter().filter(|step| step.op == "separable") {
                    let why = "fused: measured, 1.0 us against 1.0 + 1.0";
                    assert!(step.source.ends_with(why), "{}", step.source);
                }
            }
            let options = SessionOptions { tuning, fuse: Fusing::Never, ..Default::default() };
            let session = Session::new(context, &graph, options).expect("a session");
            assert!(fused(&session).is_empty(), "{}", context.info());
        }
    }
}
