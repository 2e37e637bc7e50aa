//! Requests of many tasks that become one run.

use crate::machine::{everywhere, noise};
use diptych::{
    Backend, Batch, BatchOptions, Context, Conv2d, Custom, Dim, Error, Extras, Function, Graph, HostTensor,
    Reduction, Session, SessionOptions, Shape,
};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

const IMAGE: Shape = Shape::nhwc(1, 6, 5, 3);

/// Two convolutions, both of which leave the network.
fn network() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", IMAGE).unwrap();
    let mut y = x;
    for (name, filters) in
        [("first", noise(Shape::nhwc(8, 3, 3, 3), 1)), ("second", noise(Shape::nhwc(5, 3, 3, 8), 2))]
    {
        y = graph.conv2d(name, y, filters, Extras::default(), Conv2d::default()).unwrap();
        graph.output(y).unwrap();
    }
    graph
}

/// A network whose runs wait until they are let go, and fail or panic when they are told to.
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    runs: AtomicUsize,
}

impl Gate {
    fn new(open: bool) -> Arc<Self> {
        Arc::new(Gate { open: Mutex::new(open), changed: Condvar::new(), runs: AtomicUsize::new(0) })
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Doubles; an infinity is an error, and NaN a panic.
    fn network(self: &Arc<Self>) -> Graph {
        let gate = Arc::clone(self);
        let wait = Custom::host(
            "wait",
            |inputs| Ok(inputs.to_vec()),
            move |inputs, outputs| {
                gate.runs.fetch_add(1, SeqCst);
                let open = gate.open.lock().unwrap();
                drop(gate.changed.wait_while(open, |open| !*open).unwrap());
                for (to, from) in outputs[0].iter_mut().zip(inputs[0]) {
                    assert!(!from.is_nan(), "told to panic");
                    if from.is_infinite() {
                        return Err(Error::input("wait", "an infinity", "a number"));
                    }
                    *to = 2.0 * from;
                }
                Ok(())
            },
        );
        let mut graph = Graph::new();
        let x = graph.input("x", Shape::nhwc(1, 1, 1, 2)).unwrap();
        let y = graph.custom("wait", &wait, &[x]).unwrap();
        graph.output(y[0]).unwrap();
        graph
    }
}

fn pair(value: f32) -> [(&'static str, HostTensor); 1] {
    [("x", HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]).unwrap())]
}

fn first(outputs: &[HostTensor]) -> f32 {
    outputs[0].to_f32()[0]
}

fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_request_gets_its_own_results() {
    let graph = network();
    for context in everywhere() {
        let mut alone = Session::new(&context, &graph, SessionOptions::default()).unwrap();
        let options = BatchOptions {
            max_batch: 4,
            max_delay: Duration::from_millis(20),
            sizes: vec![1, 2],
            ..BatchOptions::default()
        };
        let batch = Batch::new(&context, &graph, options).unwrap();
        assert_eq!((batch.inputs(), batch.outputs()), (alone.inputs(), alone.outputs()));
        let images: Vec<HostTensor> = (0..24).map(|seed| noise(IMAGE, 10 + seed)).collect();
        let served = |image: &HostTensor, blocking: bool| match blocking {
            true => batch.run([("x", image.clone())]).unwrap(),
            false => pollster::block_on(batch.run_async([("x", image.clone())])).unwrap(),
        };
        let found: Vec<Vec<HostTensor>> = std::thread::scope(|scope| {
            let client = |client: usize| {
                let (images, served) = (&images, &served);
                scope.spawn(move || {
                    let own = images.iter().skip(client).step_by(6);
                    own.map(|image| served(image, client.is_multiple_of(2))).collect::<Vec<_>>()
                })
            };
            let clients: Vec<_> = (0..6).map(client).collect();
            let mut of: Vec<_> =
                clients.into_iter().map(|client| client.join().unwrap().into_iter()).collect();
            (0..24).map(|image| of[image % 6].next().unwrap()).collect()
        });
        for (image, found) in images.iter().zip(&found) {
            for (found, wanted) in found.iter().zip(alone.run(&[("x", image)]).unwrap()) {
                assert_eq!(found.dims(), wanted.dims());
                for (found, wanted) in found.to_f32().iter().zip(&*wanted.to_f32()) {
                    assert!(
                        (found - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()),
                        "{found}, wanted {wanted}"
                    );
                }
            }
        }
        let counts = batch.counts();
        let of_runs: u64 = counts.runs.iter().zip(1..).map(|(runs, size)| runs * size).sum();
        assert_eq!((counts.requests, of_runs), (24, 24), "{counts:?}");
        assert!(counts.runs.iter().sum::<u64>() < 24, "nothing was joined: {counts:?}");
    }
}

#[test]
fn a_request_waits_for_others_as_long_as_it_may() {
    let context = Context::new(Backend::Cpu).unwrap();
    let of = |max_batch, max_delay| {
        let options = BatchOptions { max_batch, max_delay, ..BatchOptions::default() };
        Batch::new(&context, &Gate::new(true).network(), options).unwrap()
    };
    // A full batch does not wait for the hour to pass.
    let batch = of(3, Duration::from_secs(3600));
    let tickets: Vec<_> = (0..6u8).map(|value| batch.submit(pair(value.into())).unwrap()).collect();
    for (ticket, value) in tickets.into_iter().zip(0u8..) {
        assert_eq!(first(&ticket.wait().unwrap()), 2.0 * f32::from(value));
    }
    assert_eq!(batch.counts().runs, [0, 0, 2]);
    // One that is not full does not wait any longer.
    let (batch, start) = (of(3, Duration::from_millis(50)), Instant::now());
    assert_eq!(first(&batch.run(pair(7.0)).unwrap()), 14.0);
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(batch.counts().runs, [1, 0, 0]);
    // Without a delay a request runs at once.
    let batch = of(3, Duration::ZERO);
    assert_eq!(first(&batch.run(pair(7.0)).unwrap()), 14.0);
}

#[test]
fn who_brings_too_many_is_held_back() {
    let context = Context::new(Backend::Cpu).unwrap();
    let gate = Gate::new(false);
    let options =
        BatchOptions { max_batch: 1, max_waiting: 2, max_delay: Duration::ZERO, ..BatchOptions::default() };
    let batch = Batch::new(&context, &gate.network(), options).unwrap();
    let mut tickets = vec![batch.submit(pair(0.0)).unwrap()];
    until(|| gate.runs.load(SeqCst) == 1);
    // One or two runs are under way; then the queue fills.
    while let Some(ticket) = batch.try_submit(pair(tickets.len() as f32)).unwrap() {
        tickets.push(ticket);
        assert!(tickets.len() <= 5, "nobody is held back");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut held = pin!(batch.submit_async(pair(tickets.len() as f32)));
    let waker = std::task::Waker::noop();
    let mut poll = || held.as_mut().poll(&mut std::task::Context::from_waker(waker));
    assert!(poll().is_pending());
    // Another one comes and goes.
    {
        let mut other = pin!(batch.submit_async(pair(99.0)));
        assert!(other.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    }
    gate.open();
    let last = loop {
        match poll() {
            Poll::Ready(ticket) => break ticket.unwrap(),
            Poll::Pending => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    tickets.push(last);
    let requests = tickets.len() as u64;
    for (ticket, value) in tickets.into_iter().zip(0u8..) {
        assert_eq!(first(&pollster::block_on(ticket).unwrap()), 2.0 * f32::from(value));
    }
    assert_eq!(batch.counts().requests, requests);
}

#[test]
fn what_is_withdrawn_does_not_run() {
    let context = Context::new(Backend::Cpu).unwrap();
    let gate = Gate::new(false);
    let options = BatchOptions { max_batch: 1, max_delay: Duration::ZERO, ..BatchOptions::default() };
    let batch = Batch::new(&context, &gate.network(), options).unwrap();
    let kept = batch.submit(pair(1.0)).unwrap();
    until(|| gate.runs.load(SeqCst) == 1);
    let mut tickets: Vec<_> = (0..8u8).map(|value| batch.submit(pair(value.into())).unwrap()).collect();
    tickets.truncate(2);
    gate.open();
    assert_eq!(first(&kept.wait().unwrap()), 2.0);
    for (ticket, value) in tickets.into_iter().zip(0u8..) {
        assert_eq!(first(&ticket.wait().unwrap()), 2.0 * f32::from(value));
    }
    drop(batch);
    // What had begun when its ticket was dropped may have run.
    assert!((3..=4).contains(&gate.runs.load(SeqCst)), "{:?} runs", gate.runs);
}

#[test]
fn a_wrong_request_harms_no_other() {
    let context = Context::new(Backend::Cpu).unwrap();
    let gate = Gate::new(true);
    let options =
        BatchOptions { max_batch: 2, max_delay: Duration::from_secs(3600), ..BatchOptions::default() };
    let batch = Batch::new(&context, &gate.network(), options).unwrap();
    let good = batch.submit(pair(1.0)).unwrap();
    let large = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![0.0; 3]).unwrap();
    for (inputs, wanted) in [
        (vec![("x", large)], "shape 1x1x1x3, wanted 1x1x1x2"),
        (vec![("y", pair(0.0)[0].1.clone())], "\"y\""),
        (vec![], "\"x\": found nothing"),
    ] {
        let error = batch.submit(inputs).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    assert_eq!(first(&batch.run(pair(3.0)).unwrap()), 6.0);
    assert_eq!(first(&good.wait().unwrap()), 2.0);
    // What goes wrong in a run goes to all of its requests, and to no other.
    let tickets = [1.0, f32::INFINITY].map(|value| batch.submit(pair(value)).unwrap());
    for ticket in tickets {
        let error = ticket.wait().unwrap_err();
        assert!(matches!(error, Error::Shared { of: 2, .. }), "{error}");
        assert!(error.to_string().contains("an infinity"), "{error}");
    }
    let tickets = [4.0, 5.0].map(|value| batch.submit(pair(value)).unwrap());
    assert_eq!(tickets.map(|ticket| first(&ticket.wait().unwrap())), [8.0, 10.0]);
}

#[test]
fn a_function_that_panics_fails_its_request_and_no_other() {
    for context in everywhere() {
        let options = BatchOptions { max_batch: 1, max_delay: Duration::ZERO, ..BatchOptions::default() };
        let batch = Batch::new(&context, &Gate::new(true).network(), options).unwrap();
        for value in [1.0, 2.0, 3.0] {
            let error = batch.run(pair(f32::NAN)).unwrap_err();
            assert!(error.is_panic() && error.node() == Some("wait"), "{error}");
            assert!(error.to_string().contains("told to panic"), "{error}");
            assert_eq!(first(&batch.run(pair(value)).unwrap()), 2.0 * value);
        }
    }
}

#[test]
fn a_batch_is_closed_without_blocking() {
    for context in everywhere() {
        let gate = Gate::new(false);
        let batch = Batch::new(&context, &gate.network(), BatchOptions::default()).unwrap();
        let ticket = batch.submit(pair(1.0)).unwrap();
        until(|| gate.runs.load(SeqCst) > 0);
        let mut closing = pin!(batch.close());
        let mut poll = || {
            let begun = Instant::now();
            let polled = closing.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
            (polled, begun.elapsed())
        };
        for _ in 0..3 {
            let (polled, time) = poll();
            assert!(polled.is_pending() && time < Duration::from_secs(1), "{time:?}");
        }
        gate.open();
        pollster::block_on(closing);
        assert_eq!(first(&ticket.wait().unwrap()), 2.0);
    }
}

#[test]
fn what_was_taken_is_answered_after_the_end() {
    let context = Context::new(Backend::Cpu).unwrap();
    let options =
        BatchOptions { max_batch: 8, max_delay: Duration::from_secs(3600), ..BatchOptions::default() };
    let batch = Batch::new(&context, &Gate::new(true).network(), options).unwrap();
    let tickets = [1.0, 2.0].map(|value| batch.submit(pair(value)).unwrap());
    drop(batch);
    assert_eq!(tickets.map(|ticket| first(&ticket.wait().unwrap())), [2.0, 4.0]);
}

#[test]
fn what_cannot_be_batched_is_refused() {
    let context = Context::new(Backend::Cpu).unwrap();
    let refused = |graph: &Graph, options: BatchOptions, wanted: &str| {
        let error = Batch::new(&context, graph, options).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    let of = BatchOptions::default;
    refused(&network(), BatchOptions { max_batch: 0, ..of() }, "max_batch: found 0");
    refused(&network(), BatchOptions { max_batch: usize::MAX, ..of() }, "wanted 1 to 1024");
    refused(&network(), BatchOptions { max_waiting: 0, ..of() }, "max_waiting: found 0");
    refused(&network(), BatchOptions { sizes: vec![2, 9], ..of() }, "found 9, wanted 1 to max_batch, 8");
    refused(&network(), BatchOptions { dimension: Some("n".to_owned()), ..of() }, "\"n\"");

    let mut counted = Graph::new();
    let x = counted.input("x", IMAGE).unwrap();
    let count = counted.state("count", HostTensor::new(IMAGE, vec![0.0; IMAGE.elements()]).unwrap());
    let next = counted.elementwise("next", Function::Add, &[x.into(), count.into()]).unwrap();
    counted.update(count, next).unwrap();
    counted.output(next).unwrap();
    refused(&counted, of(), "state \"count\"");

    let mut inner = Graph::new();
    inner.dimension("side", 4).unwrap();
    let x = inner.input_of("x", &[Dim::Fixed(1), Dim::Named("side".to_owned())]).unwrap();
    let y = inner.elementwise("y", Function::Abs, &[x.into()]).unwrap();
    inner.output(y).unwrap();
    let side = BatchOptions { dimension: Some("side".to_owned()), ..of() };
    refused(&inner, side, "\"side\", which is not the outermost of input \"x\"");
}

/// A network that goes along its batch's axis, flattens to `1 x k`, has an output without a batch and one that is the same
/// for all.
#[test]
fn no_request_changes_the_results_of_another() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 2, 2, 3)).unwrap();
    let flat = graph.reshape("flat", x, &[Dim::Fixed(1), Dim::Rest]).unwrap();
    let soft =
        graph.softmax("soft", flat, diptych::Softmax { axis: 0, ..diptych::Softmax::default() }).unwrap();
    let both = graph.elementwise("both", Function::Add, &[soft.into(), flat.into()]).unwrap();
    let sum = graph.reduce("sum", x, Reduction::Sum, &[0, 1, 2, 3], false).unwrap();
    let own = graph.constant("own", noise(Shape::nhwc(1, 1, 2, 3), 4));
    let priors = graph.elementwise("priors", Function::Abs, &[own.into()]).unwrap();
    for output in [both, sum, priors] {
        graph.output(output).unwrap();
    }
    for context in everywhere() {
        let mut alone = Session::new(&context, &graph, SessionOptions::default()).unwrap();
        let options = BatchOptions {
            max_batch: 3,
            max_delay: Duration::from_secs(3600),
            sizes: vec![3],
            ..BatchOptions::default()
        };
        let batch = Batch::new(&context, &graph, options).unwrap();
        let images: Vec<HostTensor> = (0..3).map(|seed| noise(Shape::nhwc(1, 2, 2, 3), 30 + seed)).collect();
        let tickets: Vec<_> =
            images.iter().map(|image| batch.submit([("x", image.clone())]).unwrap()).collect();
        for (ticket, image) in tickets.into_iter().zip(&images) {
            let (found, wanted) = (ticket.wait().unwrap(), alone.run(&[("x", image)]).unwrap());
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(found.dims(), wanted.dims());
                for (found, wanted) in found.to_f32().iter().zip(&*wanted.to_f32()) {
                    assert!((found - wanted).abs() <= 1e-5, "{}: {found}, wanted {wanted}", context.info());
                }
            }
        }
    }
}

/// What a batch of eight sizes keeps, and eight sessions.
fn memory(context: &Context, graph: &Graph) -> [diptych::MemoryUse; 2] {
    let batch = Batch::new(context, graph, BatchOptions::default()).unwrap();
    let mut apart = diptych::MemoryUse::default();
    for size in 1..=8 {
        let session =
            Session::new(context, &graph.with_batch(size).unwrap(), SessionOptions::default()).unwrap();
        apart.constants += session.memory().constants;
        apart.planned += session.memory().planned;
    }
    [batch.memory()[0], apart]
}

#[test]
fn all_sizes_have_one_copy_of_the_weights() {
    let mut own = Graph::new();
    let x = own.input("x", Shape::nhwc(1, 6, 5, 48)).unwrap();
    let filters = noise(Shape::nhwc(64, 3, 3, 48), 1);
    let y = own.conv2d("conv", x, filters, Extras::default(), Conv2d::default()).unwrap();
    own.output(y).unwrap();
    let mut networks = vec![("a convolution".to_owned(), own)];
    let root =
        std::env::var_os("DIPTYCH_SHARED").map_or_else(|| "../shared".into(), std::path::PathBuf::from);
    for name in ["mobilenet_v1_0.25_224_keras_f32.tflite", "onnx/mnist.onnx"] {
        let path = root.join("models").join(name);
        match path.is_file() {
            true => {
                let model = diptych::Model::load(&path, &diptych::LoadOptions::default()).unwrap();
                networks.push((name.to_owned(), model.graph));
            }
            false => println!("skipped: {} is not there (set DIPTYCH_SHARED)", path.display()),
        }
    }
    for context in crate::machine::gpus() {
        for (name, graph) in &networks {
            let [together, apart] = memory(&context, graph);
            println!(
                "{}: {name}: {} bytes of weights and {} of buffers, in sessions {} and {}",
                context.info().backend,
                together.constants,
                together.planned,
                apart.constants,
                apart.planned
            );
            // Where sizes have other tiles, weights are there once for each way in which they are packed.
            assert!(3 * together.constants <= 2 * apart.constants, "{name}: {together:?}, apart {apart:?}");
            assert!(together.planned < apart.planned, "{name}: {together:?}, apart {apart:?}");
        }
    }
}

#[test]
fn a_named_dimension_may_count_the_requests() {
    let mut graph = Graph::new();
    graph.dimension("n", 1).unwrap();
    let x = graph.input_of("x", &[Dim::Named("n".to_owned()), Dim::Fixed(4)]).unwrap();
    let soft = graph.softmax("soft", x, diptych::Softmax::default()).unwrap();
    graph.output(soft).unwrap();
    for (context, named) in everywhere().into_iter().zip([true, false, false]) {
        let options = BatchOptions {
            max_batch: 2,
            max_delay: Duration::from_secs(3600),
            dimension: named.then(|| "n".to_owned()),
            ..BatchOptions::default()
        };
        let batch = Batch::new(&context, &graph, options).unwrap();
        let row = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 4), vec![value, 0.0, 0.0, 0.0]).unwrap();
        let tickets = [0.0, 1000.0].map(|value| batch.submit([("x", row(value))]).unwrap());
        let found = tickets.map(|ticket| ticket.wait().unwrap()[0].to_f32().into_owned());
        assert_eq!(found, [[0.25; 4], [1.0, 0.0, 0.0, 0.0]]);
    }
}
