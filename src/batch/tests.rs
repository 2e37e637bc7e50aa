//! Devices of different speeds. Each takes its time by sleeping, so the machine's own speed does not count.

use super::*;
use crate::ops::custom::Custom;
use crate::shape::Shape;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// How long a request takes the fast device, and the slow one.
const FAST: Duration = Duration::from_millis(4);
const SLOW: Duration = Duration::from_millis(80);
const MAX_BATCH: usize = 4;

/// Which requests a device ran.
type Ran = Arc<Mutex<Vec<u32>>>;

/// The networks for each size, which double, and what ran. Each number takes so long, and after so many runs each one fails.
fn doubles(time: Duration, whole: usize) -> (Vec<(usize, Graph)>, Ran) {
    let ran = Ran::default();
    let (left, log, at_work) = (AtomicUsize::new(whole), Arc::clone(&ran), Mutex::new(()));
    let double = Custom::host(
        "double",
        |inputs| Ok(inputs.to_vec()),
        move |inputs, outputs| {
            if left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_err() {
                return Err(Error::input("double", "a broken device", "a whole one"));
            }
            // Runs that are under way at the same time take turns, as on a device.
            let turn = at_work.lock().expect("a device");
            std::thread::sleep(time * u32::try_from(inputs[0].len()).expect("a few numbers"));
            drop(turn);
            log.lock().expect("a log").extend(inputs[0].iter().map(|&value| value as u32));
            for (to, from) in outputs[0].iter_mut().zip(inputs[0]) {
                *to = 2.0 * from;
            }
            Ok(())
        },
    );
    // A batch of the network would call the function for each request.
    let of_size = |size| {
        let mut graph = Graph::new();
        let x = graph.input("x", Shape::nhwc(size, 1, 1, 1)).expect("an input");
        let y = graph.custom("double", &double, &[x]).expect("a node");
        graph.output(y[0]).expect("an output");
        (size, graph)
    };
    ((1..=MAX_BATCH).map(of_size).collect(), ran)
}

/// A fast device that fails after so many runs, and a slow one.
fn pool(whole: usize) -> (DevicePool, [Ran; 2]) {
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let options = BatchOptions { max_batch: MAX_BATCH, max_delay: Duration::ZERO, ..Default::default() };
    let devices = [doubles(FAST, whole), doubles(SLOW, usize::MAX)];
    let one = &devices[0].0[0].1;
    let ports = |values| Port::all(one, values).expect("ports");
    let (inputs, outputs) = (ports(one.inputs()), ports(one.outputs()));
    let session = |graphs: &[(usize, Graph)]| {
        Session::of_sizes(&context, graphs, &inputs, SessionOptions::default()).expect("a session")
    };
    let all = devices.iter().map(|(graphs, _)| session(graphs)).collect();
    let batch = Batch::serving(all, inputs.clone(), outputs, &options).expect("a batch");
    let contexts = [&context, &context].map(|context| context.info().clone());
    (DevicePool::of(batch, contexts.into(), &options), devices.map(|(_, ran)| ran))
}

fn frame(number: u32) -> [(&'static str, HostTensor); 1] {
    [("x", HostTensor::new(Shape::nhwc(1, 1, 1, 1), vec![number as f32]).expect("one number"))]
}

/// Runs so many frames, whose results must come in their order.
fn in_order(pool: &DevicePool, frames: u32) {
    let mut outputs = pool.map((0..frames).map(frame));
    for number in 0..frames {
        let outputs = outputs.next().expect("a result").expect("outputs");
        assert_eq!(*outputs[0].to_f32(), [2.0 * number as f32]);
    }
    assert!(outputs.next().is_none());
}

fn sorted(ran: &[Ran; 2]) -> Vec<u32> {
    let mut all: Vec<u32> = ran.iter().flat_map(|ran| ran.lock().expect("a log").clone()).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_fast_and_a_slow_device_share_the_work_by_their_speed() {
    const FRAMES: u32 = 400;
    let (pool, ran) = pool(usize::MAX);
    let start = Instant::now();
    in_order(&pool, FRAMES);
    let time = start.elapsed();
    assert_eq!(sorted(&ran), (0..FRAMES).collect::<Vec<_>>(), "each once");
    let [fast, slow] = [0, 1].map(|place| pool.devices()[place].clone());
    assert_eq!(fast.requests + slow.requests, u64::from(FRAMES));
    assert_eq!(ran.map(|ran| ran.lock().expect("a log").len() as u64), [fast.requests, slow.requests]);
    let [of_fast, of_slow] = [&fast, &slow].map(|device| device.time.expect("a time"));
    // A thread that comes late makes one run look longer, and the next one shorter.
    assert!(of_fast >= FAST / 2 && of_slow >= SLOW / 2 && of_slow > 2 * of_fast, "{of_fast:?}, {of_slow:?}");
    // The speeds are as 20 to 1: the slow one has about 20 requests, of which it takes some before its speed is known.
    assert!((1..=FRAMES as u64 / 4).contains(&slow.requests), "{} of {FRAMES}", slow.requests);
    // Half of them each would take it 16 s.
    assert!(time < SLOW * FRAMES / 4, "{time:?}");
}

#[test]
fn what_a_fast_device_leaves_a_slow_one_does() {
    const FRAMES: u32 = 60;
    let (pool, ran) = pool(3);
    in_order(&pool, FRAMES);
    assert_eq!(sorted(&ran), (0..FRAMES).collect::<Vec<_>>(), "each once");
    let [fast, slow] = [0, 1].map(|place| pool.devices()[place].clone());
    assert!(fast.requests >= 3 && fast.requests <= 3 * MAX_BATCH as u64, "{}", fast.requests);
    assert_eq!(fast.requests + slow.requests, u64::from(FRAMES));
    assert!(slow.error.is_none());
    let error = fast.error.expect("the device was taken out").to_string();
    assert!(error.contains("a broken device"), "{error}");
}
