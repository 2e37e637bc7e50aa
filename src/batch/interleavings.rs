//! A batch in the orders that its threads may take: no request is lost, nobody waits for ever, and what is dropped midway
//! leaves nothing behind.

use super::*;
use crate::context::Backend;
use crate::ops::custom::Custom;
use crate::shape::Shape;
use crate::sync::interleavings::{check, dropped_after, inline};
use shuttle::future::block_on;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Doubles, and fails so often before.
fn doubles(failures: usize) -> Graph {
    let left = AtomicUsize::new(failures);
    let double = Custom::host(
        "double",
        |inputs| Ok(inputs.to_vec()),
        move |inputs, outputs| {
            if left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
                return Err(Error::input("double", "a failure", "none"));
            }
            for (to, from) in outputs[0].iter_mut().zip(inputs[0]) {
                *to = 2.0 * from;
            }
            Ok(())
        },
    );
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 1, 1)).expect("an input");
    let y = graph.custom("double", &double, &[x]).expect("a node");
    graph.output(y[0]).expect("an output");
    graph
}

/// A batch on so many devices, which run one request at a time and let one wait.
fn batch(devices: usize, failures: usize) -> Batch {
    let (context, graph) = (Context::new(Backend::Cpu).expect("the CPU"), doubles(failures));
    let options =
        BatchOptions { max_batch: 1, max_waiting: 1, max_delay: Duration::ZERO, ..Default::default() };
    let ports = |values| Port::all(&graph, values).expect("ports");
    let (inputs, sizes) = (ports(graph.inputs()), [(1, graph.clone())]);
    let session =
        |_| Session::of_sizes(&context, &sizes, &inputs, SessionOptions::default()).expect("a session");
    let all = (0..devices).map(session).collect();
    Batch::serving(all, inputs.clone(), ports(graph.outputs()), &options).expect("a batch")
}

fn request(value: f32) -> [(&'static str, HostTensor); 1] {
    [("x", HostTensor::new(Shape::nhwc(1, 1, 1, 1), vec![value]).expect("one number"))]
}

fn value(outputs: Vec<HostTensor>) -> f32 {
    outputs[0].to_f32()[0]
}

/// Does each of these on a thread of its own, and waits for all.
fn together(work: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = work.into_iter().map(thread::spawn).collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
}

#[test]
fn each_request_is_answered_however_it_waits() {
    check(|| {
        let batch = Arc::new(batch(1, 0));
        let [first, second, third, fourth] = std::array::from_fn(|_| Arc::clone(&batch));
        together(vec![
            Box::new(move || assert_eq!(value(first.run(request(1.0)).expect("a run")), 2.0)),
            Box::new(move || {
                assert_eq!(value(block_on(second.run_async(request(2.0))).expect("a run")), 4.0)
            }),
            Box::new(move || {
                for polls in 0..3 {
                    let early = dropped_after(polls, third.run_async(request(3.0)));
                    assert!(early.is_none_or(|early| value(early.expect("a run")) == 6.0));
                }
            }),
            Box::new(move || {
                if let Some(ticket) = fourth.try_submit(request(4.0)).expect("an open batch") {
                    assert_eq!(value(ticket.wait().expect("a run")), 8.0);
                }
            }),
        ]);
        assert_eq!(batch.counts().waiting, 0);
    });
}

#[test]
fn what_fails_on_one_device_succeeds_on_another() {
    check(|| {
        let batch = Arc::new(batch(2, 1));
        let clients = (0..3u8).map(|client| {
            let batch = Arc::clone(&batch);
            let run = move || {
                let value = value(batch.run(request(client.into())).expect("a run"));
                assert_eq!(value, 2.0 * f32::from(client));
            };
            Box::new(run) as Box<dyn FnOnce() + Send>
        });
        together(clients.collect());
        let members = batch.queue.members();
        assert_eq!(members.iter().filter(|member| member.is_out()).count(), 1, "{members:?}");
        assert_eq!(batch.counts().requests, 3);
    });
}

#[test]
fn what_was_taken_is_answered_when_the_batch_is_dropped() {
    check(|| {
        let batch = batch(2, 0);
        let first = batch.submit(request(1.0)).expect("taken");
        let second = batch.submit(request(2.0)).expect("taken");
        let waits = thread::spawn(move || value(first.wait().expect("a run")));
        drop(batch);
        assert_eq!(waits.join().expect("no panic"), 2.0);
        assert_eq!(value(second.wait().expect("a run")), 4.0);
    });
}

#[test]
fn a_thread_of_a_batch_may_drop_it_while_others_wait() {
    check(|| {
        let batch = batch(2, 0);
        let [first, second, last] = [1.0, 2.0, 3.0].map(|value| {
            batch.queue.push(vec![HostTensor::vector(vec![value]).expect("one")]).expect("an open queue")
        });
        let task = inline(async move {
            let found = last.await.map(value);
            drop(batch);
            found
        });
        assert_eq!(value(first.wait().expect("a run")), 2.0);
        assert_eq!(value(block_on(second).expect("a run")), 4.0);
        assert_eq!(task.recv().expect("it came to its end").expect("a run"), 6.0);
    });
}
