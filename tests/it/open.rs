//! Sessions of files whose extents each run decides.

use crate::machine::everywhere;
use diptych::{Context, DType, Dims, HostTensor, LoadOptions, ModelFile, Session, SessionOptions};
use std::num::NonZeroUsize;

const SENTENCE: &str = "tests/cases/open_sentence.onnx";
const MAP: &str = "tests/cases/open_map.onnx";
const CHOSEN: &str = "tests/cases/open_chosen.onnx";

/// Numbers that differ from one `seed` to the next.
fn floats(extents: &[usize], seed: usize) -> HostTensor {
    let dims = Dims::new(extents).expect("small");
    let number = |at: usize| ((at * 7919 + seed * 104_729) % 1009) as f32 / 504.5 - 1.0;
    HostTensor::new(dims, (0..dims.elements()).map(number).collect::<Vec<f32>>()).expect("as many")
}

fn integers(extents: &[usize], value: impl Fn(usize) -> i64) -> HostTensor {
    let dims = Dims::new(extents).expect("small");
    HostTensor::of(dims, (0..dims.elements()).map(value).collect::<Vec<i64>>()).expect("as many")
}

type Feeds = Vec<(&'static str, HostTensor)>;

/// The inputs of a run of one of the files, of extents that differ from one `turn` to the next.
fn feeds(path: &str, turn: usize) -> Feeds {
    match path {
        SENTENCE => {
            let (batch, time) = (1 + turn % 3, 3 + 5 * turn % 17);
            let ids = integers(&[batch, time], |at| ((at * 31 + turn) % 100) as i64);
            let mask = integers(&[batch, time], |at| i64::from(at % time < 2 + turn || at % time == 0));
            vec![("ids", ids), ("mask", mask)]
        }
        MAP => {
            let (height, width) = (8 + turn, 20 - turn);
            let size = [5 + turn as i64 % 4, 7];
            vec![
                ("x", floats(&[1 + turn % 2, 3, height, width], turn)),
                ("size", integers(&[2], |at| size[at])),
            ]
        }
        _ => vec![("x", floats(&[1 + turn % 5, 6], turn))],
    }
}

fn run(session: &mut Session, feeds: &Feeds) -> diptych::Result<Vec<HostTensor>> {
    session.run(&feeds.iter().map(|(name, tensor)| (*name, tensor)).collect::<Vec<_>>())
}

fn open(context: &Context, path: &str) -> Session {
    let file = ModelFile::load(path, &LoadOptions::default()).expect("a file");
    file.session(context, SessionOptions::default()).expect("a session")
}

#[test]
fn ten_extents_in_one_session_are_those_of_ten_sessions() {
    for context in everywhere() {
        for path in [SENTENCE, MAP, CHOSEN] {
            let fresh = |turn| run(&mut open(&context, path), &feeds(path, turn)).expect("a run");
            let wanted: Vec<Vec<HostTensor>> = (0..10).map(fresh).collect();
            let mut session = open(&context, path);
            // Twice, so that plans that were kept run, too.
            for turn in (0..10).chain(0..10) {
                let found = run(&mut session, &feeds(path, turn)).expect("a run");
                assert_eq!(found, wanted[turn], "{path} {turn} on {}", context.info().backend);
            }
        }
    }
}

#[test]
fn extents_share_one_copy_of_the_weights() {
    for context in everywhere() {
        let mut session = open(&context, SENTENCE);
        run(&mut session, &feeds(SENTENCE, 0)).expect("a run");
        let one = session.memory().constants;
        for turn in 1..6 {
            run(&mut session, &feeds(SENTENCE, turn)).expect("a run");
        }
        let six = session.memory().constants;
        // What is made for an extent is small: positions, and constants of few elements.
        assert!(six < one + one / 2, "{} to {six} on {}", one, context.info().backend);
    }
}

#[test]
fn the_least_recently_used_plan_goes_first() {
    let context = Context::new(diptych::Backend::Cpu).expect("the CPU");
    let file = ModelFile::load(SENTENCE, &LoadOptions::default()).expect("a file");
    let options = SessionOptions { plans: NonZeroUsize::new(2), ..SessionOptions::default() };
    let mut session = file.session(&context, options).expect("a session");
    let mut most = 0;
    for turn in 0..9 {
        run(&mut session, &feeds(SENTENCE, turn)).expect("a run");
        // Of the values of all plans, as if no two shared a buffer.
        most = most.max(session.memory().unshared);
    }
    let mut all = open(&context, SENTENCE);
    for turn in 0..9 {
        run(&mut all, &feeds(SENTENCE, turn)).expect("a run");
    }
    assert!(2 * most < all.memory().unshared, "{most} of {}", all.memory().unshared);
}

/// Sentences of one length.
fn sentences(batch: usize, time: usize) -> Feeds {
    let ids = integers(&[batch, time], |at| (at * 31 % 100) as i64);
    vec![("ids", ids), ("mask", integers(&[batch, time], |_| 1))]
}

#[test]
fn values_of_many_extents_take_the_memory_of_the_largest() {
    for context in everywhere() {
        let mut largest = open(&context, SENTENCE);
        run(&mut largest, &sentences(4, 24)).expect("a run");
        let most = largest.memory().planned;
        let mut session = open(&context, SENTENCE);
        // Buffers grow, and are too large then; what was planned while they were small runs again.
        for time in (1..25).chain([3, 24, 7]) {
            let feeds = sentences(4, time);
            let found = run(&mut session, &feeds).expect("a run");
            if time % 6 == 1 {
                assert_eq!(found, run(&mut open(&context, SENTENCE), &feeds).expect("a run"), "{time}");
            }
        }
        let memory = session.memory();
        let backend = context.info().backend;
        assert!(memory.planned <= most + most / 8, "{} of {most} on {backend}", memory.planned);
        assert!(memory.planned >= memory.least, "{memory:?} on {backend}");
        // Once no plan wants so much, it is freed.
        let options = SessionOptions { plans: NonZeroUsize::new(2), ..SessionOptions::default() };
        let file = ModelFile::load(SENTENCE, &LoadOptions::default()).expect("a file");
        let mut session = file.session(&context, options).expect("a session");
        for (batch, time) in [(4, 24), (1, 3), (1, 4), (1, 5)] {
            run(&mut session, &sentences(batch, time)).expect("a run");
        }
        assert!(4 * session.memory().planned < most, "{} of {most} on {backend}", session.memory().planned);
    }
}

#[test]
fn a_flight_outlives_the_buffers_that_it_runs_in() {
    for context in everywhere() {
        let mut session = open(&context, SENTENCE);
        let turns = [(1, 3), (4, 24), (1, 3), (2, 40), (4, 24), (1, 4)];
        let mut flights = Vec::new();
        for (batch, time) in turns {
            let feeds = sentences(batch, time);
            let feeds: Vec<(&str, &HostTensor)> = feeds.iter().map(|(name, own)| (*name, own)).collect();
            flights.push(session.submit(&feeds).expect("submitted"));
        }
        for ((batch, time), flight) in turns.into_iter().zip(flights) {
            let found = flight.wait().expect("a run").tensors().expect("tensors");
            let wanted = run(&mut open(&context, SENTENCE), &sentences(batch, time)).expect("a run");
            assert_eq!(found, wanted, "{batch} {time} on {}", context.info().backend);
        }
    }
}

#[test]
fn flights_of_several_extents_are_under_way_at_once() {
    for context in everywhere() {
        let mut session = open(&context, SENTENCE);
        let mut flights = Vec::new();
        for turn in 0..4 {
            let feeds = feeds(SENTENCE, turn);
            let feeds: Vec<(&str, &HostTensor)> = feeds.iter().map(|(name, own)| (*name, own)).collect();
            flights.push(session.submit(&feeds).expect("submitted"));
        }
        for (turn, flight) in flights.into_iter().enumerate() {
            let found = flight.wait().expect("a run").tensors().expect("tensors");
            let wanted = run(&mut open(&context, SENTENCE), &feeds(SENTENCE, turn)).expect("a run");
            assert_eq!(found, wanted, "{turn}");
        }
    }
}

#[test]
fn a_run_is_awaited_and_the_ports_have_its_extents() {
    for context in everywhere() {
        let file = ModelFile::load(SENTENCE, &LoadOptions::default()).expect("a file");
        let built = file.session_async(&context, SessionOptions::default());
        let mut session = pollster::block_on(built).expect("a session");
        let open: Vec<&str> = session.inputs()[0].open.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(open, ["batch", "time"]);
        assert!(session.steps().is_empty());
        let feeds = feeds(SENTENCE, 1);
        let given: Vec<(&str, &HostTensor)> = feeds.iter().map(|(name, own)| (*name, own)).collect();
        let found = pollster::block_on(session.run_async(&given)).expect("a run");
        assert_eq!(found, run(&mut session, &feeds).expect("a run"));
        assert_eq!(session.inputs()[0].dims, feeds[0].1.dims());
        assert_eq!(session.outputs()[0].dims, found[0].dims());
        let profile = session.profile(&given).expect("a profile");
        assert!(!profile.steps.is_empty() && !session.steps().is_empty());
        session.rebuild(&context).expect("rebuilt");
        assert_eq!(run(&mut session, &feeds).expect("a run"), found);
    }
}

#[test]
fn nothing_found_is_a_tensor_without_elements() {
    for context in everywhere() {
        let mut session = open(&context, CHOSEN);
        let none = HostTensor::new(Dims::new(&[2, 6]).expect("small"), vec![0.0; 12]).expect("zeros");
        let found = session.run(&[("x", &none)]).expect("a run");
        assert_eq!(found[0].dims().extents(), [0]);
        assert_eq!((found[1].dims().extents(), found[1].dtype()), (&[2, 0][..], DType::I64));
        assert_eq!(*found[2].to_f32(), [0.0; 3]);
        assert_eq!(found[3].dims().extents(), [0, 3]);
        assert_eq!(*found[4].to_f32(), [0.0; 10]);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_loses_nothing() {
    let context = Context::new(diptych::Backend::Cpu).expect("the CPU");
    let mut session = open(&context, MAP);
    let right = feeds(MAP, 0);
    let found = run(&mut session, &right).expect("a run");
    let x = floats(&[1, 4, 8, 8], 0);
    let size = integers(&[2], |_| 5);
    for (feeds, words) in [
        (vec![("x", &x), ("size", &size)], &["\"x\"", "1x4x8x8", "nx3xheightxwidth"][..]),
        (vec![("size", &size)], &["\"x\"", "nothing", "nx3xheightxwidth"]),
        (vec![("x", &right[0].1), ("size", &size), ("y", &x)], &["\"y\"", "\"x\"", "\"size\""]),
        (vec![("x", &right[0].1), ("x", &right[0].1), ("size", &size)], &["\"x\"", "two tensors"]),
        (vec![("x", &right[0].1), ("size", &x)], &["\"size\"", "1x4x8x8", "2"]),
    ] {
        let error = session.run(&feeds).expect_err("what does not fit").to_string();
        for word in words {
            assert!(error.contains(word), "no {word:?} in: {error}");
        }
        assert_eq!(run(&mut session, &right).expect("a run"), found);
    }
    // A slice has no extents of its own: it takes those of the run before.
    let values = right[0].1.to_f32();
    let sizes = [5.0f32, 7.0];
    let slices: Vec<(&str, &[f32])> = vec![("x", &values), ("size", &sizes)];
    let outputs = session.submit(&slices).expect("submitted").wait().expect("a run");
    assert_eq!(outputs.tensors().expect("tensors"), found);
    let error = session.submit(&[("x", &values[1..]), ("size", &sizes[..])]).expect_err("too few");
    assert!(error.to_string().contains("does not say its extents"), "{error}");
}

#[test]
fn given_extents_and_values_are_fixed() {
    let context = Context::new(diptych::Backend::Cpu).expect("the CPU");
    let mut options = LoadOptions::default();
    options.dimensions.insert("width".to_owned(), 20);
    options.values.insert("size".to_owned(), integers(&[2], |at| [5, 7][at]));
    let file = ModelFile::load(MAP, &options).expect("a file");
    assert_eq!(file.inputs().len(), 1);
    assert_eq!(file.inputs()[0].extents, Some(vec![None, Some(3), None, Some(20)]));
    let mut session = file.session(&context, SessionOptions::default()).expect("a session");
    let all = feeds(MAP, 0);
    let found = session.run(&[("x", &all[0].1)]).expect("a run");
    assert_eq!(found, run(&mut open(&context, MAP), &all).expect("a run"));
    options.dimensions.insert("depth".to_owned(), 20);
    let error = ModelFile::load(MAP, &options).expect_err("an unknown dimension").to_string();
    assert!(error.contains("\"depth\"") && error.contains("height"), "{error}");
}

#[test]
fn the_memory_of_a_plan_is_known_before_its_run() {
    for context in everywhere() {
        let mut session = open(&context, SENTENCE);
        let mut known = session.memory();
        for turn in [0, 4, 1] {
            let feeds = feeds(SENTENCE, turn);
            let dims: Vec<(&str, Dims)> = feeds.iter().map(|(name, tensor)| (*name, tensor.dims())).collect();
            let planned = session.plan_memory_for(&dims).expect("extents that decide all");
            assert!(planned.constants > 0 && planned.planned > 0, "{}: {planned}", context.info());
            assert_eq!(session.memory(), known, "nothing is made of it");
            run(&mut session, &feeds).expect("a run");
            let memory = session.memory();
            let (constants, values) = (memory.constants - known.constants, memory.planned - known.planned);
            assert!(
                constants <= planned.constants && values <= planned.planned + 64,
                "{}: {planned:?}, and it was {constants} and {values}",
                context.info()
            );
            known = memory;
        }
        let scalar = Dims::new(&[1, 3]).expect("small");
        let error = session.plan_memory_for(&[("ids", scalar)]).expect_err("no mask");
        assert!(error.to_string().contains("input \"mask\""), "{error}");
        let error = session.plan_memory_for(&[("other", scalar)]).expect_err("no such input");
        assert!(error.to_string().contains("\"other\""), "{error}");
        // The size is a value of the run.
        let sized = feeds(MAP, 0);
        let dims: Vec<(&str, Dims)> = sized.iter().map(|(name, tensor)| (*name, tensor.dims())).collect();
        let error = open(&context, MAP).plan_memory_for(&dims).expect_err("a size that is not known");
        assert!(error.to_string().contains("values"), "{error}");
    }
}
