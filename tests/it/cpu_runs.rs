//! Runs on the CPU that overlap: frames of a stream, a run after a future that was dropped, and
//! callers that are workers of rayon's pool themselves. A run that waits for another fails here after
//! a time limit instead of stopping the tests.
#![cfg(feature = "tflite")]

use crate::machine::network_for;
use diptych::{Backend, Context, HostTensor, Session, SessionOptions, Shape, tflite};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::task::{Poll, Waker};
use std::time::Duration;

/// Some hundred times what the work of a test takes on a machine that does nothing else.
const LIMIT: Duration = Duration::from_secs(300);

/// Does the work on a thread, and fails if it is not done within [`LIMIT`].
fn within_limit(work: impl FnOnce() + Send + 'static) {
    let (done, wait) = channel();
    let thread = std::thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match wait.recv_timeout(LIMIT) {
        Err(RecvTimeoutError::Timeout) => panic!("the work was not done after {LIMIT:?}"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }
}

/// A network with steps that are large enough to be cut into parts, for which a run waits.
fn session() -> Session {
    let graph = tflite::from_bytes(&network_for(129)).expect("the bundled network");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    Session::new(&context, &graph, SessionOptions::default()).expect("a session")
}

/// A picture of stripes, others for each `seed`.
fn picture(session: &Session, seed: usize) -> HostTensor {
    let shape: Shape = session.inputs()[0].shape;
    let values: Vec<f32> = (0..shape.elements()).map(|index| (index % (seed + 7)) as f32 * 0.01).collect();
    HostTensor::new(shape, values).expect("a picture")
}

/// Streams `count` pictures and compares each frame's outputs with those of a run by itself.
fn stream(session: &mut Session, count: usize, in_flight: usize) {
    let name = session.inputs()[0].name.clone();
    let pictures: Vec<HostTensor> = (0..count).map(|seed| picture(session, seed)).collect();
    let wanted: Vec<_> =
        pictures.iter().map(|picture| session.run(&[(&name, picture)]).expect("a run")).collect();
    let frames = pictures.iter().map(|picture| [(name.as_str(), picture.clone())]);
    let mut found = Vec::new();
    for outputs in session.stream(frames).in_flight(in_flight) {
        found.push(outputs.expect("a frame"));
    }
    assert_eq!(found.len(), count);
    for (frame, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        assert_eq!(found, wanted, "frame {frame}, {in_flight} in flight");
    }
}

#[test]
fn frames_of_a_stream_do_not_wait_for_each_other() {
    within_limit(|| {
        let mut session = session();
        for (count, in_flight) in [(2, 1), (3, 2), (4, 3), (9, 8)] {
            stream(&mut session, count, in_flight);
        }
    });
}

#[test]
fn a_run_does_not_wait_for_one_whose_future_was_dropped() {
    within_limit(|| {
        let mut session = session();
        let name = session.inputs()[0].name.clone();
        let picture = picture(&session, 0);
        let wanted = session.run(&[(&name, &picture)]).expect("a run");
        for _ in 0..4 {
            {
                let inputs = [(name.as_str(), &picture)];
                let future = std::pin::pin!(session.run_async(&inputs));
                let mut context = std::task::Context::from_waker(Waker::noop());
                // It may be done already; a polled run that is dropped goes on by itself.
                if let Poll::Ready(outputs) = future.poll(&mut context) {
                    outputs.expect("a run");
                }
            }
            assert_eq!(session.run(&[(&name, &picture)]).expect("a run"), wanted);
        }
    });
}

#[test]
fn workers_of_a_pool_may_stream_and_await() {
    within_limit(|| {
        // All workers of the shared pool at once: nobody is left to compute for them.
        rayon::broadcast(|_| {
            let mut session = session();
            stream(&mut session, 3, 2);
            let name = session.inputs()[0].name.clone();
            let picture = picture(&session, 0);
            let wanted = session.run(&[(&name, &picture)]).expect("a run");
            let outputs = pollster::block_on(session.run_async(&[(&name, &picture)])).expect("a run");
            assert_eq!(outputs, wanted);
        });
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
        pool.install(|| stream(&mut session(), 3, 2));
    });
}
