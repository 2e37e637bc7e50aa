//! Sixteen threads with sessions of their own and shared ones, on one device and on many, that stream, await and drop
//! in every order. Every result is what one thread alone computes, to the bit.

use crate::machine::{everywhere, gpus, noise};
use crate::together::{Place, dropped_after, inline, together};
use diptych::{
    Activation, Backend, Batch, BatchOptions, Context, Conv2d, Depthwise, Extras, Graph, HostTensor, Padding,
    Pointwise, Session, SessionOptions, Shape, Tuner,
};
use pollster::block_on;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const THREADS: usize = 16;
const FRAMES: usize = 5;

/// One of four networks, with weights of its own.
fn network(seed: u32) -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", shape(seed)).expect("an input");
    let same = Conv2d { padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
    let y = match seed % 4 {
        0 => graph.conv2d("node", x, noise(Shape::nhwc(6, 3, 3, 6), seed), Extras::default(), same),
        1 => graph.pointwise(
            "node",
            x,
            noise(Shape::nhwc(5, 1, 1, 6), seed),
            Extras::default(),
            Pointwise::default(),
        ),
        2 => graph.depthwise(
            "node",
            x,
            noise(Shape::nhwc(1, 3, 3, 6), seed),
            Extras::default(),
            Depthwise::default(),
        ),
        _ => {
            let y = graph.conv2d("node", x, noise(Shape::nhwc(6, 3, 3, 6), seed), Extras::default(), same);
            let weights = noise(Shape::nhwc(7, 1, 1, 6), seed);
            graph.pointwise("last", y.expect("a node"), weights, Extras::default(), Pointwise::default())
        }
    };
    graph.output(y.expect("a node")).expect("an output");
    graph
}

fn shape(seed: u32) -> Shape {
    Shape::nhwc(1, 7 + (seed as usize / 4) % 3, 9, 6)
}

fn image(seed: u32, frame: usize) -> HostTensor {
    noise(shape(seed), 1000 * seed + frame as u32)
}

fn bits(outputs: &[HostTensor]) -> Vec<u32> {
    outputs
        .iter()
        .flat_map(|output| output.to_f32().iter().map(|value| value.to_bits()).collect::<Vec<_>>())
        .collect()
}

fn session(context: &Context, seed: u32) -> Session {
    Session::new(context, &network(seed), SessionOptions::default()).expect("a session")
}

/// What one thread alone computes.
fn alone(context: &Context, seed: u32) -> Vec<Vec<u32>> {
    let mut session = session(context, seed);
    (0..FRAMES).map(|frame| bits(&session.run(&[("x", &image(seed, frame))]).expect("a run"))).collect()
}

/// Runs one frame, in one of the ways to do so.
fn run(session: &mut Session, seed: u32, frame: usize, way: usize) -> Vec<u32> {
    let image = image(seed, frame);
    let inputs = [("x", &image)];
    let name = session.outputs()[0].name.clone();
    let mut target = vec![f32::NAN; session.outputs()[0].shape.elements()];
    match way % 4 {
        0 => return bits(&session.run(&inputs).expect("a run")),
        1 => return bits(&block_on(session.run_async(&inputs)).expect("a run")),
        2 => session.run_into(&inputs, &mut [(&name, &mut target)]).expect("a run"),
        _ => {
            let started = session.submit(&[("x", &*image.to_f32())]).expect("a run");
            started.wait_into(&mut [(&name, &mut target)]).expect("its end");
        }
    }
    target.into_iter().map(f32::to_bits).collect()
}

#[test]
fn threads_with_sessions_of_their_own_share_a_context_and_a_session() {
    const SHARED: u32 = 99;
    // Its kernels are compiled by the threads.
    for (first, context) in everywhere().into_iter().zip(everywhere()) {
        let title = context.info().to_string();
        let wanted: Vec<_> = (0..THREADS as u32).map(|seed| alone(&first, seed)).collect();
        let (wanted_of_shared, shared) = (alone(&first, SHARED), Mutex::new(session(&context, SHARED)));
        together(&title, THREADS, |place| {
            let seed = place.thread as u32;
            place.does("opens its session");
            let mut own = match place.thread % 2 {
                0 => session(&context, seed),
                _ => block_on(Session::new_async(&context, &network(seed), SessionOptions::default()))
                    .expect("a session"),
            };
            for frame in 0..FRAMES {
                let way = place.thread / 4 + frame;
                place.does(format!("runs frame {frame} in way {way}"));
                let found = run(&mut own, seed, frame, way);
                assert_eq!(found, wanted[place.thread][frame], "{title}: {seed}, frame {frame}, way {way}");
                place.does(format!("runs frame {frame} of all in way {way}"));
                let found = run(&mut shared.lock().expect("no panic"), SHARED, frame, way);
                assert_eq!(found, wanted_of_shared[frame], "{title}: frame {frame}, way {way}");
            }
        });
    }
}

/// What has to be dropped.
enum Part {
    Context(Context),
    Session(Session, u32),
}

/// Runs a session, unless it is a context, and drops it.
fn last_run(part: Part, wanted: &[Vec<Vec<u32>>], way: usize) {
    match part {
        Part::Context(context) => drop(context),
        Part::Session(mut session, seed) => {
            assert_eq!(
                run(&mut session, seed, 0, way),
                wanted[seed as usize][0],
                "network {seed}, way {way}"
            );
        }
    }
}

#[test]
fn contexts_and_sessions_are_dropped_in_every_order_and_on_other_threads() {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for backend in [Backend::Cpu, Backend::OpenCl, Backend::Wgpu] {
        let Some(first) = crate::machine::contexts(&[backend]).pop() else { continue };
        let wanted: Vec<_> = (0..2).map(|seed| alone(&first, seed)).collect();
        drop(first);
        let (wanted, title) = (&wanted, backend.to_string());
        // Each thread drops what another one has made, as well.
        let (give, take): (Vec<_>, Vec<_>) = ORDERS.iter().map(|_| channel::<Session>()).unzip();
        let take: Vec<_> = take.into_iter().map(Mutex::new).collect();
        let neighbours: Vec<_> =
            (1..=ORDERS.len()).map(|next| Mutex::new(Some(give[next % give.len()].clone()))).collect();
        drop(give);
        together(&title, ORDERS.len(), |place: Place<'_>| {
            let neighbour = neighbours[place.thread].lock().expect("no panic").take().expect("a neighbour");
            place.does("opens a context");
            let context = crate::machine::contexts(&[backend]).pop().expect("it was there before");
            place.does("opens sessions");
            let sessions = [0, 1].map(|seed| Part::Session(session(&context, seed), seed));
            neighbour.send(session(&context, 0)).expect("the neighbour waits");
            drop(neighbour);
            let [one, two] = sessions;
            let mut parts = [Some(Part::Context(context)), Some(one), Some(two)];
            for (turn, part) in ORDERS[place.thread].into_iter().enumerate() {
                place.does(format!("drops {part} of {:?}", ORDERS[place.thread]));
                let part = parts[part].take().expect("each once");
                match (turn + place.thread) % 2 {
                    0 => last_run(part, wanted, turn),
                    _ => std::thread::scope(|scope| {
                        scope.spawn(|| last_run(part, wanted, turn)).join().expect("as alone");
                    }),
                }
            }
            place.does("waits for its neighbour's session");
            let given = take[place.thread].lock().expect("no panic").recv().expect("a session");
            place.does("drops its neighbour's session");
            last_run(Part::Session(given, 0), wanted, place.thread);
        });
    }
}

#[test]
fn threads_stream_while_others_end_their_streams_early() {
    const STREAMS: usize = 6;
    for context in everywhere() {
        let title = context.info().to_string();
        let wanted: Vec<_> = (0..STREAMS as u32).map(|seed| alone(&context, seed)).collect();
        together(&title, STREAMS, |place| {
            let (seed, wanted) = (place.thread as u32, &wanted[place.thread]);
            place.does("opens its session");
            let mut own = session(&context, seed);
            for round in 0..3 {
                let in_flight = 1 + (place.thread + round) % 3;
                // What was under way when a stream is dropped must not show up in the next one.
                let taken = if round == 1 { 2 } else { FRAMES };
                place.does(format!("streams, {in_flight} in flight, takes {taken}"));
                let frames = (0..FRAMES).map(|frame| [("x", image(seed, frame))]);
                let outputs = own.stream(frames).in_flight(in_flight).take(taken);
                let found: Vec<_> = outputs.map(|outputs| bits(&outputs.expect("a frame"))).collect();
                assert_eq!(found, wanted[..taken], "{title}: {seed}, {in_flight} in flight");
            }
        });
    }
}

/// A batch whose requests run one by one, so that each has the kernels that a session has.
fn batch(context: &Context, seed: u32) -> Batch {
    let options =
        BatchOptions { max_batch: 1, max_waiting: 3, max_delay: Duration::ZERO, ..Default::default() };
    Batch::new(context, &network(seed), options).expect("a batch")
}

#[test]
fn what_is_dropped_after_any_number_of_polls_harms_nobody() {
    const SHARED: u32 = 3;
    for context in everywhere() {
        let title = context.info().to_string();
        let wanted: Vec<_> = (0..8).map(|seed| alone(&context, seed)).collect();
        let batch = batch(&context, SHARED);
        let is_gpu = context.info().backend != Backend::Cpu;
        together(&title, 8, |place| {
            let (seed, wanted_own) = (place.thread as u32, &wanted[place.thread]);
            let (graph, image) = (network(seed), image(seed, 0));
            let mut own = session(&context, seed);
            let mut tuner = (is_gpu && place.thread < 2).then(|| {
                let mut tuner = Tuner::new(&context).expect("a tuner").budget(Duration::from_millis(100));
                tuner.begin(&graph).expect("its problems");
                tuner
            });
            for polls in 0..4 {
                place.does(format!("drops a run after {polls} polls"));
                let early = dropped_after(polls, own.run_async(&[("x", &image)]));
                assert!(early.is_none_or(|early| bits(&early.expect("a run")) == wanted_own[0]), "{title}");
                assert_eq!(run(&mut own, seed, 1, polls), wanted_own[1], "{title}: {seed}, {polls} polls");

                place.does(format!("drops a build after {polls} polls"));
                let early =
                    dropped_after(polls, Session::new_async(&context, &graph, SessionOptions::default()));
                if let Some(session) = early {
                    assert_eq!(run(&mut session.expect("a session"), seed, 2, 0), wanted_own[2], "{title}");
                }

                place.does(format!("drops a request after {polls} polls"));
                let picture = crate::threads::image(SHARED, polls);
                let early = dropped_after(polls, batch.run_async([("x", picture.clone())]));
                let wanted = &wanted[SHARED as usize][polls];
                assert!(early.is_none_or(|early| bits(&early.expect("a run")) == *wanted), "{title}");
                place.does("awaits a request");
                let found = block_on(batch.run_async([("x", picture)])).expect("a run");
                assert_eq!(bits(&found), *wanted, "{title}: a request, {polls} polls");

                if let Some(tuner) = &mut tuner {
                    place.does(format!("drops a tuner's step after {polls} polls"));
                    drop(dropped_after(polls, tuner.step_async(Duration::from_millis(5))));
                }
            }
            if let Some(mut tuner) = tuner {
                place.does("tunes to the end");
                let report = tuner.finish(|_| {}).expect("tuned");
                assert!(!report.problems.is_empty(), "{title}: {report}");
            }
        });
        assert_eq!(batch.counts().waiting, 0, "{title}: every request was answered or withdrawn");
    }
}

/// Has `work` polled where it is woken, once for each of `times`, and waits for what it gives.
fn inline_each<F>(title: &str, times: usize, work: impl Fn(usize) -> F + Sync)
where
    F: Future<Output = Vec<u32>> + Send + 'static,
{
    let wanted = together(title, 1, |place| {
        let mut all = Vec::new();
        for turn in 0..times {
            place.does(format!("awaits turn {turn}"));
            let task = inline(work(turn));
            all.push(task.recv().expect("it came to its end, and so did what it owned"));
        }
        all
    });
    assert!(wanted[0].windows(2).all(|pair| pair[0] == pair[1]), "{title}: a turn differs");
}

#[test]
fn a_task_may_be_polled_and_all_it_owns_dropped_where_it_is_woken() {
    const TURNS: usize = 6;
    for backend in [Backend::Cpu, Backend::OpenCl, Backend::Wgpu] {
        let Some(first) = crate::machine::contexts(&[backend]).pop() else { continue };
        inline_each(&format!("{backend}, a build and a run"), TURNS, |_| {
            let context = first.clone();
            async move {
                let built = Session::new_async(&context, &network(0), SessionOptions::default()).await;
                let mut session = built.expect("a session");
                bits(&session.run_async(&[("x", &image(0, 0))]).await.expect("a run"))
            }
        });
        inline_each(&format!("{backend}, a batch"), TURNS, |_| {
            let batch = Arc::new(batch(&first, 1));
            async move { bits(&batch.run_async([("x", image(1, 0))]).await.expect("a run")) }
        });
    }
    for context in gpus() {
        inline_each(&format!("{}, a tuner", context.info()), 2, |_| {
            let mut tuner = Tuner::new(&context).expect("a tuner").budget(Duration::from_millis(20));
            tuner.begin(&network(1)).expect("its problems");
            async move {
                while !tuner.step_async(Duration::from_millis(5)).await.expect("a step").is_finished() {}
                Vec::new()
            }
        });
    }
}
