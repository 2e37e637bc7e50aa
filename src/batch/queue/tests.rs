//! What becomes of runs that fail. The devices are played by the tests.

use super::*;
use crate::batch::ticket::Ticket;
use crate::host::HostTensor;

/// A queue of so many devices, which take one request each.
fn queue(devices: usize) -> Arc<Queue> {
    Arc::new(Queue::new(devices, vec![1], 8, Duration::ZERO))
}

fn hand_in(queue: &Arc<Queue>, value: f32) -> Ticket {
    queue.push(vec![HostTensor::vector(vec![value]).expect("one")]).expect("an open queue")
}

fn run(queue: &Queue, member: usize) -> Run {
    match queue.next(member, false) {
        Next::Run(run) => run,
        other => panic!("{other:?} for {member}, not a run"),
    }
}

fn idle(queue: &Queue, member: usize) -> bool {
    matches!(queue.next(member, false), Next::NotYet)
}

fn is_at_the_end(queue: &Queue, member: usize) -> bool {
    matches!(queue.next(member, false), Next::End)
}

fn succeed(queue: &Queue, member: usize, run: Run) {
    for request in queue.succeeded(member, run, Instant::now()) {
        let values = request.inputs[0].to_f32().to_vec();
        let tensor = HostTensor::new(crate::dims::Dims::new(&[1]).expect("one number"), values);
        request.answer(tensor.map(|tensor| vec![tensor]));
    }
}

fn broken(name: &str) -> Error {
    Error::Internal(format!("{name} is broken"))
}

fn lost() -> Error {
    Error::DeviceLost { api: "Vulkan", reason: "it was unplugged".to_owned() }
}

fn value(ticket: Ticket) -> f32 {
    ticket.wait().expect("a result")[0].to_f32()[0]
}

fn failure(ticket: Ticket) -> String {
    ticket.wait().expect_err("an error").to_string()
}

fn standings(queue: &Queue) -> String {
    let sign = |member: Member| match member.standing {
        Standing::Good => '+',
        Standing::Suspect => '?',
        Standing::Out(_) => '-',
    };
    queue.members().into_iter().map(sign).collect()
}

#[test]
fn what_succeeds_elsewhere_was_the_devices_fault() {
    let queue = queue(2);
    let tickets = [1.0, 2.0].map(|value| hand_in(&queue, value));
    let failing = run(&queue, 0);
    queue.failed(0, failing, broken("the first"));
    assert_eq!(standings(&queue), "?+");
    // Until it is known whose fault it was, it is given nothing.
    assert!(idle(&queue, 0));
    let again = run(&queue, 1);
    assert_eq!(*again.requests[0].inputs[0].to_f32(), [1.0]);
    succeed(&queue, 1, again);
    assert_eq!(standings(&queue), "-+");
    assert!(is_at_the_end(&queue, 0));
    let next = run(&queue, 1);
    succeed(&queue, 1, next);
    assert_eq!(tickets.map(value), [1.0, 2.0]);
    assert_eq!((queue.counts().requests, queue.counts().runs), (2, vec![2]));
}

#[test]
fn what_fails_everywhere_is_the_requests_fault() {
    let queue = queue(2);
    let ticket = hand_in(&queue, 1.0);
    let first = run(&queue, 0);
    queue.failed(0, first, broken("the first"));
    let second = run(&queue, 1);
    queue.failed(1, second, broken("the second"));
    assert_eq!(standings(&queue), "++");
    assert!(failure(ticket).contains("the second is broken"));
    let ticket = hand_in(&queue, 2.0);
    let next = run(&queue, 0);
    succeed(&queue, 0, next);
    assert_eq!(value(ticket), 2.0);
}

#[test]
fn suspects_try_each_others_runs() {
    let queue = queue(2);
    let tickets = [1.0, 2.0].map(|value| hand_in(&queue, value));
    let (first, second) = (run(&queue, 0), run(&queue, 1));
    queue.failed(0, first, broken("the first"));
    queue.failed(1, second, broken("the second"));
    assert_eq!(standings(&queue), "??");
    let (of_second, of_first) = (run(&queue, 0), run(&queue, 1));
    assert_eq!(*of_second.requests[0].inputs[0].to_f32(), [2.0]);
    assert_eq!(*of_first.requests[0].inputs[0].to_f32(), [1.0]);
    succeed(&queue, 0, of_second);
    assert_eq!(standings(&queue), "?-");
    // It has failed on both, whatever the second one is worth.
    queue.failed(1, of_first, broken("the second"));
    assert_eq!(standings(&queue), "+-");
    let [first, second] = tickets;
    assert!(failure(first).contains("the second is broken"));
    assert_eq!(value(second), 2.0);
}

#[test]
fn a_lost_device_leaves_all_that_it_began() {
    let queue = queue(2);
    // Two at once are for who was seen to run.
    let ticket = hand_in(&queue, 0.0);
    let first = run(&queue, 0);
    succeed(&queue, 0, first);
    assert_eq!(value(ticket), 0.0);
    let tickets = [1.0, 2.0, 3.0, 4.0].map(|value| hand_in(&queue, value));
    let (one, two) = (run(&queue, 0), run(&queue, 0));
    queue.failed(0, one, lost());
    queue.failed(0, two, lost());
    assert_eq!(standings(&queue), "-+");
    for _ in 0..4 {
        let next = run(&queue, 1);
        succeed(&queue, 1, next);
    }
    assert_eq!(tickets.map(value), [1.0, 2.0, 3.0, 4.0]);
    // The last one stays, and gives its errors.
    for _ in 0..2 {
        let ticket = hand_in(&queue, 5.0);
        let next = run(&queue, 1);
        queue.failed(1, next, lost());
        assert!(failure(ticket).contains("unplugged"));
    }
    assert_eq!(standings(&queue), "-+");
}

#[test]
fn what_nobody_is_left_to_try_gets_its_first_error() {
    let queue = queue(2);
    let ticket = hand_in(&queue, 1.0);
    let first = run(&queue, 0);
    queue.failed(0, first, broken("the first"));
    let again = run(&queue, 1);
    queue.failed(1, again, lost());
    assert_eq!(standings(&queue), "+-");
    assert!(failure(ticket).contains("the first is broken"));
    let ticket = hand_in(&queue, 2.0);
    let next = run(&queue, 0);
    succeed(&queue, 0, next);
    assert_eq!(value(ticket), 2.0);
}

#[test]
fn nobody_ends_while_a_run_may_have_to_be_tried_again() {
    let queue = queue(2);
    let ticket = hand_in(&queue, 1.0);
    let first = run(&queue, 0);
    queue.close();
    assert!(idle(&queue, 1));
    queue.failed(0, first, broken("the first"));
    assert!(idle(&queue, 0));
    let again = run(&queue, 1);
    succeed(&queue, 1, again);
    assert_eq!(value(ticket), 1.0);
    assert!(is_at_the_end(&queue, 0) && is_at_the_end(&queue, 1));
}

#[test]
fn a_thread_that_ends_early_leaves_its_place_to_the_others() {
    let queue = queue(2);
    let tickets = [1.0, 2.0, 3.0].map(|value| hand_in(&queue, value));
    drop(run(&queue, 0));
    queue.ended(0);
    let next = run(&queue, 1);
    succeed(&queue, 1, next);
    queue.ended(1);
    let [first, second, third] = tickets;
    assert!(failure(first).contains("has ended"));
    assert_eq!(value(second), 2.0);
    assert!(failure(third).contains("has ended"));
    assert!(queue.push(Vec::new()).is_err());
}

#[test]
fn a_device_serves_on_when_the_thread_dies_that_tried_its_run() {
    let queue = queue(2);
    let tickets = [1.0, 2.0].map(|value| hand_in(&queue, value));
    let failing = run(&queue, 0);
    queue.failed(0, failing, broken("the first"));
    drop(run(&queue, 1));
    assert_eq!(standings(&queue), "?+");
    queue.ended(1);
    assert_eq!(standings(&queue), "+-");
    let next = run(&queue, 0);
    succeed(&queue, 0, next);
    let [first, second] = tickets;
    assert!(failure(first).contains("has ended"));
    assert_eq!(value(second), 2.0);
}

#[test]
fn a_panic_is_no_devices_fault() {
    let queue = queue(2);
    let ticket = hand_in(&queue, 1.0);
    let first = run(&queue, 0);
    let panicked = Error::Panicked { who: "the function".to_owned(), message: "planted".to_owned() };
    queue.failed(0, first, panicked.at_node("once"));
    assert_eq!(standings(&queue), "++");
    assert!(ticket.wait().expect_err("a panic").is_panic());
    assert!(idle(&queue, 0) && idle(&queue, 1));
}

#[test]
#[cfg_attr(miri, ignore = "thousands of requests take it minutes")]
fn a_slow_device_runs_nothing_but_full_batches() {
    let queue = Arc::new(Queue::new(2, vec![1, 8, 32], 4096, Duration::ZERO));
    let mut tickets = Vec::new();
    for (member, seconds) in [(0, 1), (1, 50)] {
        tickets.push(hand_in(&queue, 0.0));
        let run = run(&queue, member);
        assert_eq!(run.requests.len(), 1, "it was not seen to run");
        let begun = Instant::now() - Duration::from_secs(seconds);
        queue.succeeded(member, run, begun);
    }
    tickets.extend((0..640).map(|_| hand_in(&queue, 0.0)));
    // A quarter of its share would be three, which take it as long as eight.
    let slow = run(&queue, 1);
    assert_eq!((slow.requests.len(), run(&queue, 0).requests.len()), (1, 32));
    tickets.extend((0..4000).map(|_| hand_in(&queue, 0.0)));
    assert_eq!(run(&queue, 1).requests.len(), 8);
}
