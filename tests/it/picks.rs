//! Kernels picked for a whole network, by preference and by measured time, with feature maps in
//! buffers and in images, on every backend.

use crate::machine::{everywhere, noise};
use diptych::internals::pick::{Place, Target};
use diptych::internals::tune::Search;
use diptych::internals::tune::db::{Database, Row, Timing};
use diptych::{
    Backend, Choice, Context, Conv2d, Depthwise, Extras, Graph, HostTensor, Layout, Padding, Picking,
    Pointwise, Precision, Session, SessionOptions, Shape, Tuner, Tuning,
};
use std::sync::{Arc, Mutex};

/// Whether the context's kernels can have their feature maps in images.
fn has_images(context: &Context) -> bool {
    let info = context.info();
    info.backend == Backend::OpenCl
        && info.device.as_ref().is_some_and(|device| device.limits.max_image.is_some())
}

/// A block of three convolutions, whose first output is added to the last sum.
fn network() -> Graph {
    let mut graph = Graph::new();
    let image = graph.input("image", Shape::nhwc(2, 9, 7, 3)).expect("an input");
    let vector = |channels: usize, seed| noise(Shape::nhwc(1, 1, 1, channels), seed);
    let stem = Conv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
    let stem = graph
        .conv2d("stem", image, noise(Shape::nhwc(10, 3, 3, 3), 1), Extras::bias(vector(10, 2)), stem)
        .expect("conv2d");
    let same = Depthwise { padding: Padding::Same, ..Default::default() };
    let wide = graph
        .depthwise("wide", stem, noise(Shape::nhwc(1, 3, 3, 10), 3), Extras::bias(vector(10, 4)), same)
        .expect("depthwise");
    let extras = Extras { bias: Some(vector(10, 5)), residual: Some(stem), ..Default::default() };
    let mix = graph
        .pointwise("mix", wide, noise(Shape::nhwc(10, 1, 1, 10), 6), extras, Pointwise::default())
        .expect("pointwise");
    graph.output(mix).expect("an output");
    graph
}

const NODES: [&str; 3] = ["stem", "wide", "mix"];

fn input() -> HostTensor {
    noise(Shape::nhwc(2, 9, 7, 3), 7)
}

/// Runs a session and compares it with the CPU's.
fn check(session: &mut Session, what: &str) {
    let input = input();
    let found = session.run(&[("image", &input)]).expect("a run");
    let cpu = Context::new(Backend::Cpu).expect("a CPU");
    let mut oracle = Session::new(&cpu, &network(), SessionOptions::default()).expect("a session");
    let wanted = oracle.run(&[("image", &input)]).expect("a run");
    for (found, wanted) in found[0].to_f32().iter().zip(wanted[0].to_f32().iter()) {
        assert!((found - wanted).abs() <= 1e-4, "{what}: {found} instead of {wanted}");
    }
}

/// The nodes' kernels, and the changes between layouts of the device.
fn kernels(session: &Session) -> (Vec<String>, usize) {
    let steps = session.steps();
    let changes =
        steps.iter().filter(|step| step.kernel.contains("image2d_to") || step.kernel.contains("to_image2d"));
    let count = changes.count();
    let nodes = steps.into_iter().filter(|step| NODES.contains(&step.name.as_str()));
    (nodes.map(|step| step.kernel).collect(), count)
}

#[test]
fn maps_in_images_and_buffers_mix_in_one_network() {
    for context in everywhere().iter().filter(|context| context.info().backend != Backend::Cpu) {
        for bits in 1..8 {
            let layouts =
                [0, 1, 2].map(|node| if bits >> node & 1 == 1 { Layout::Image2d } else { Layout::C4 });
            let choice = |layout| Choice::new("direct", [1, 1, 1], [4, 4, 1]).with_layout(layout);
            let choices =
                NODES.into_iter().zip(layouts).map(|(node, layout)| (node.to_owned(), choice(layout)));
            let options = SessionOptions { choices: choices.collect(), ..Default::default() };
            let session = Session::new(context, &network(), options);
            if !has_images(context) {
                let error = session.expect_err("no images").to_string();
                assert!(error.contains("WGSL has no images here"), "{error}");
                continue;
            }
            let mut session = session.expect("a session");
            let (kernels, changes) = kernels(&session);
            for (kernel, layout) in kernels.iter().zip(layouts) {
                assert_eq!(kernel.contains("image2d"), layout == Layout::Image2d, "{kernel}");
            }
            // `stem` is read by both others, and changed once at most; `wide` by `mix`.
            let [a, b, c] = layouts;
            let wanted = usize::from(a != b || a != c) + usize::from(b != c);
            assert_eq!(changes, wanted, "{layouts:?}: {:?}", session.steps());
            check(&mut session, &format!("{layouts:?}"));
        }
    }
}

#[test]
fn a_session_runs_what_its_places_prefer_and_says_why() {
    for context in everywhere() {
        let target = match context.info().backend {
            Backend::Wgpu => Target::Wgpu,
            Backend::OpenCl => Target::OpenCl,
            _ => Target::Cpu,
        };
        let images = Place::new(target, Precision::F32, Layout::Image2d);
        let anything = Place { target: Some(target), ..Default::default() };
        let options =
            SessionOptions { pick: Picking::Preference(vec![images, anything]), ..Default::default() };
        let mut session = Session::new(&context, &network(), options).expect("a session");
        let nodes: Vec<_> =
            session.steps().into_iter().filter(|step| NODES.contains(&step.name.as_str())).collect();
        assert_eq!(nodes.len(), 3);
        for step in nodes {
            assert_eq!(step.kernel.contains("image2d"), has_images(&context), "{}", step.kernel);
            let wanted = if has_images(&context) {
                "preference: grade 3.500 at place 1 of 2: same target, precision, layout, tensor storage"
            } else {
                "preference: grade 3.000 at place 1 of 2: same target, precision, tensor storage"
            };
            assert_eq!(step.source, wanted, "{}", step.name);
        }
        check(&mut session, "preferred");

        let nowhere = Place { target: Some(Target::Cpu), ..Default::default() };
        let nowhere =
            if target == Target::Cpu { Place { target: Some(Target::Wgpu), ..nowhere } } else { nowhere };
        let options = SessionOptions { pick: Picking::Preference(vec![nowhere]), ..Default::default() };
        let error = Session::new(&context, &network(), options).expect_err("no place").to_string();
        assert!(error.contains(&format!("no place of the preference has target {target}")), "{error}");
        let variants: &[&str] = if target == Target::Cpu { &["cpu"] } else { &["direct"] };
        for variant in variants {
            assert!(error.contains(&format!("conv2d_{variant} ({target}, f32, ")), "{error}");
        }
    }
}

/// A record of every node's default in each layout.
fn record(context: &Context) -> Database {
    let mut tuner = Tuner::new(context).expect("a device").search(Search::Table);
    tuner = tuner.layouts(&[Layout::C4, Layout::Image2d]);
    let report = tuner.tune(&network()).expect("tuned");
    let layouts = report.problems.iter().filter(|problem| problem.layout == Layout::Image2d).count();
    assert_eq!(layouts, if has_images(context) { 3 } else { 0 });
    let text = report.to_string();
    assert_eq!(text.contains("bias image2d") || text.contains("add image2d"), has_images(context), "{text}");
    let database = tuner.shared_database();
    let database = database.lock().expect("no panic");
    database.clone()
}

/// The record with other times, by op and layout.
fn with_times(database: &Database, nanoseconds: impl Fn(&str, &str) -> u64) -> Tuning {
    let mut changed = Database::in_memory();
    let rows = database.rows().map(|row| {
        let time = nanoseconds(&row.key.problem.op, &row.key.problem.layout);
        let timing = Timing { median_ns: time, p10_ns: time, p90_ns: time, samples: 9, default_ns: None };
        Row { time: Some(timing), ..row.clone() }
    });
    changed.append_all(rows).expect("memory takes all");
    Tuning::Database(Arc::new(Mutex::new(changed)))
}

#[test]
fn measured_times_decide_with_the_changes_of_layout() {
    for context in everywhere().iter().filter(|context| context.info().backend != Backend::Cpu) {
        let database = record(context);
        let second = 1_000_000_000;
        let session = |tuning| {
            let options = SessionOptions { tuning, pick: Picking::Measured, ..Default::default() };
            Session::new(context, &network(), options)
        };
        let in_images = |tuning| {
            let mut session = session(tuning).expect("a session");
            check(&mut session, "measured");
            let (kernels, changes) = kernels(&session);
            (kernels.iter().map(|kernel| kernel.contains("image2d")).collect::<Vec<_>>(), changes)
        };
        // A second saved on each node pays for any change, and there is none.
        let all = with_times(&database, |_, layout| if layout == "image2d" { second } else { 2 * second });
        assert_eq!(in_images(all), (vec![has_images(context); 3], 0));
        // One nanosecond saved in the middle does not pay for the changes on its sides.
        let middle = with_times(&database, |op, layout| match (op, layout) {
            ("depthwise", "image2d") => second - 1,
            (_, "image2d") => 2 * second,
            _ => second,
        });
        assert_eq!(in_images(middle), (vec![false; 3], 0));
        // A second does: what comes in is changed, and what goes out.
        let middle = with_times(&database, |op, layout| match (op, layout) {
            ("depthwise", "image2d") => second,
            (_, "image2d") => 90 * second,
            _ => 9 * second,
        });
        assert_eq!(
            in_images(middle.clone()),
            (vec![false, has_images(context), false], 2 * usize::from(has_images(context)))
        );
        let steps = session(middle).expect("a session").steps();
        let wide = steps.iter().find(|step| step.name == "wide").expect("a step");
        let wanted = if has_images(context) {
            "measured: 1000000.0 us in image2d; 9000000.0 us in c4, changes of layout not counted"
        } else {
            "measured: 9000000.0 us"
        };
        assert_eq!(wide.source, wanted);
        // A session that does not ask for times has its maps in buffers, whatever the record says.
        let all = with_times(&database, |_, layout| if layout == "image2d" { 1 } else { second });
        let plain = SessionOptions { tuning: all, ..Default::default() };
        let plain = Session::new(context, &network(), plain).expect("a session");
        assert_eq!(kernels(&plain).0.iter().filter(|kernel| kernel.contains("image2d")).count(), 0);
    }
}

#[test]
fn a_node_without_times_is_an_error_that_lists_every_candidate() {
    for context in everywhere() {
        let options = SessionOptions { pick: Picking::Measured, ..Default::default() };
        let error = Session::new(&context, &network(), options.clone()).expect_err("no record").to_string();
        let cpu = context.info().backend == Backend::Cpu;
        assert!(error.contains(if cpu { "one kernel for each op" } else { "Tuning::Database" }), "{error}");
        if cpu {
            continue;
        }
        let tuning = Tuning::Database(Arc::new(Mutex::new(Database::in_memory())));
        let options = SessionOptions { tuning, ..options };
        let error = Session::new(&context, &network(), options).expect_err("an empty record").to_string();
        assert!(error.contains("stem") && error.contains("conv2d_direct"), "{error}");
        assert!(error.contains("not measured"), "{error}");
        assert_eq!(error.contains("WGSL has no images here"), !has_images(&context), "{error}");
    }
}
