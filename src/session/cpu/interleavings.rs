//! Runs of one session on the CPU in the orders that they may take.

use super::CpuSession;
use crate::device::Readback;
use crate::graph::{Graph, Term};
use crate::ops::elementwise::Function;
use crate::options::SessionOptions;
use crate::session::flight::Launched;
use crate::session::input::Input;
use crate::session::run::{Next, Run};
use crate::session::sets::MAX_IDLE_SETS;
use crate::shape::Shape;
use crate::sync::interleavings::{check, dropped_after, inline};
use crate::sync::thread;
use shuttle::future::block_on;
use std::borrow::Cow;
use std::sync::Arc;

/// One more than the input, in two steps.
fn session() -> Arc<CpuSession> {
    let mut graph = Graph::new();
    let shape = Shape::nhwc(1, 1, 1, 2);
    let mut value = graph.input("x", shape).expect("an input");
    for (name, added) in [("first", 3.0), ("second", -2.0)] {
        let terms = [Term::Value(value), Term::Number(added)];
        value = graph.elementwise(name, Function::Add, &terms).expect("a node");
    }
    graph.output(value).expect("an output");
    Arc::new(CpuSession::new(&graph, &SessionOptions::default(), None).expect("a session"))
}

fn input(value: f32) -> [Input<'static>; 1] {
    [Input::Whole(Cow::Owned(vec![value, 10.0 * value]))]
}

fn right(outputs: &dyn Readback, value: f32) -> bool {
    let wanted = [value + 1.0, 10.0 * value + 1.0];
    outputs.parts() == [bytemuck::cast_slice::<f32, u8>(&wanted)]
}

async fn awaited(session: Arc<CpuSession>, value: f32) -> crate::Result<Box<dyn Readback>> {
    session.launch_async(&input(value)).await?.arrived().await
}

#[test]
fn runs_that_overlap_do_not_share_buffers() {
    check(|| {
        let session = session();
        let runs = (1..7u8).map(|run| {
            let session = Arc::clone(&session);
            thread::spawn(move || {
                let value = f32::from(run);
                let outputs = match run % 3 {
                    0 => session.launch(&input(value), Next::Waits).and_then(Launched::waited),
                    1 => block_on(awaited(session, value)),
                    _ => session.launch(&input(value), Next::GoesOn).expect("a thread").waited(),
                };
                assert!(right(&*outputs.expect("a run"), value), "{value}");
            })
        });
        for run in runs.collect::<Vec<_>>() {
            run.join().expect("no panic");
        }
        let idle = session.0.sets.idle();
        assert!((1..=MAX_IDLE_SETS).contains(&idle), "{idle} sets");
    });
}

#[test]
fn a_run_that_is_dropped_midway_or_polled_where_it_ends_harms_no_other() {
    check(|| {
        let session = session();
        for polls in 0..3 {
            let early = dropped_after(polls, awaited(Arc::clone(&session), 5.0));
            assert!(early.is_none_or(|early| right(&*early.expect("a run"), 5.0)));
        }
        let own = Arc::clone(&session);
        let task = inline(awaited(own, 1.0));
        assert!(right(
            &*session.launch(&input(2.0), Next::Waits).and_then(Launched::waited).expect("a run"),
            2.0
        ));
        assert!(right(&*task.recv().expect("it came to its end").expect("a run"), 1.0));
    });
}
