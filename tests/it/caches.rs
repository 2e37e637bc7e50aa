//! Attention with caches: a sequence in several runs, each given what the last one kept, is that sequence in one run.
//!
//! `tests/cases/steps_*.onnx`: `x` is `batch rows features`, `pk` and `pv` what was kept, and `mask` of one more place for
//! each row.

use crate::machine::everywhere;
use diptych::{Backend, Caches, Context, Dims, HostTensor, LoadOptions, ModelFile, Session, SessionOptions};

/// Rows of an input in each run.
const STEPS: [usize; 4] = [3, 1, 1, 2];
const FEATURES: usize = 6;

fn tensor(extents: &[usize], values: Vec<f32>) -> HostTensor {
    HostTensor::new(Dims::new(extents).expect("extents"), values).expect("as many")
}

/// The outputs of runs of so many rows, one behind the other, and the last caches. Either the caller gives what the last
/// run kept, or the session carries it.
fn runs(context: &Context, name: &str, steps: &[usize], carries: bool) -> (Vec<f32>, Vec<Vec<f32>>) {
    let file = ModelFile::load(format!("tests/cases/{name}.onnx"), &LoadOptions::default()).expect("a file");
    let mut session = file.session(context, SessionOptions::default()).expect("a session");
    let declared = file.inputs();
    let cache = declared.iter().find(|input| input.name == "pk").expect("a cache");
    let [heads, depth] = [1, 3].map(|axis| cache.extents.as_ref().expect("a rank")[axis].expect("fixed"));
    let masks = declared.iter().any(|input| input.name == "mask");
    let outputs: Vec<String> = file.outputs().into_iter().map(|port| port.name).collect();
    if carries {
        session.carry(&[(&outputs[1], "pk"), (&outputs[2], "pv")]).expect("outputs and inputs");
    }
    let mut kept = [(); 2].map(|()| tensor(&[1, heads, 0, depth], Vec::new()));
    let (mut written, mut begin) = (Vec::new(), 0);
    for &rows in steps {
        let values = (begin * FEATURES..(begin + rows) * FEATURES).map(|at| (at as f32 * 0.7).sin());
        let x = tensor(&[1, rows, FEATURES], values.collect());
        begin += rows;
        let mask =
            HostTensor::of(Dims::new(&[1, begin]).expect("extents"), vec![1i64; begin]).expect("as many");
        let mut given = vec![("x", &x)];
        if !carries {
            given.extend([("pk", &kept[0]), ("pv", &kept[1])]);
        }
        if masks {
            given.push(("mask", &mask));
        }
        let mut found: Vec<HostTensor> = session.run(&given).expect("a run").to_vec();
        let last = found.split_off(1);
        written.extend_from_slice(&found[0].to_nhwc());
        kept = last.try_into().expect("two caches");
        assert_eq!(kept[0].dims().extents(), [1, heads, begin, depth], "{name}");
    }
    if carries {
        assert!(session.submit(&[("x", &kept[0])]).is_err(), "runs follow each other");
        session.reset().expect("reset");
        assert!(
            session.carry(&[("nothing", "pk")]).is_err() && session.carry(&[(&outputs[1], "pk")]).is_err()
        );
    }
    (written, kept.iter().map(|tensor| tensor.to_nhwc().into_owned()).collect())
}

#[test]
fn a_sequence_in_several_runs_is_that_in_one() {
    for context in everywhere() {
        for name in ["steps_grouped", "steps_heads", "steps_standard"] {
            let (once, kept) = runs(&context, name, &[STEPS.iter().sum()], false);
            let (steps, kept_in_steps) = runs(&context, name, &STEPS, false);
            assert_eq!(runs(&context, name, &STEPS, true), (steps.clone(), kept_in_steps.clone()), "{name}");
            let pairs =
                once.iter().zip(&steps).chain(kept.iter().flatten().zip(kept_in_steps.iter().flatten()));
            assert_eq!(once.len(), steps.len());
            for (at, (one, other)) in pairs.enumerate() {
                let backend = context.info().backend;
                assert!(
                    (one - other).abs() < 1e-5,
                    "{name} on {backend}: found {other} at {at}, wanted {one}"
                );
            }
        }
    }
}

fn ids(values: &[i64]) -> HostTensor {
    HostTensor::of(Dims::new(&[1, values.len()]).expect("extents"), values.to_vec()).expect("as many")
}

/// Runs of a decoder with so many tokens each: the logits of all.
fn decoded(session: &mut Session, steps: &[usize], positions: bool) -> diptych::Result<Vec<f32>> {
    decoded_of(session, steps, positions, 32)
}

/// The logits of all runs of a decoder that knows `known` tokens; run `i` is given `steps[i]` of them.
fn decoded_of(
    session: &mut Session,
    steps: &[usize],
    positions: bool,
    known: i64,
) -> diptych::Result<Vec<f32>> {
    let (mut logits, mut begin) = (Vec::new(), 0);
    for &count in steps {
        let places: Vec<i64> = (begin..begin + count).map(|place| place as i64).collect();
        let tokens: Vec<i64> = places.iter().map(|place| (7 * place + 3) % known).collect();
        begin += count;
        let (tokens, mask, places) = (ids(&tokens), ids(&vec![1; begin]), ids(&places));
        let mut given = vec![("input_ids", &tokens), ("attention_mask", &mask)];
        if positions {
            given.push(("position_ids", &places));
        }
        logits.extend_from_slice(&session.run(&given)?[0].to_nhwc());
    }
    Ok(logits)
}

fn session_of(context: &Context, name: &str, places: Option<usize>) -> (Session, ModelFile) {
    let file = ModelFile::load(format!("tests/cases/{name}.onnx"), &LoadOptions::default()).expect("a file");
    let mut session = file.session(context, SessionOptions::default()).expect("a session");
    let pairs = file.cache_pairs();
    assert!(!pairs.is_empty());
    match places {
        Some(places) => session.cache(&Caches::new(&pairs, places)).expect("caches"),
        None => {
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            session.carry(&pairs).expect("outputs and inputs");
        }
    }
    (session, file)
}

fn assert_close(found: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() < 1e-4, "{what}: found {found} at {at}, wanted {wanted}");
    }
}

#[test]
fn a_cache_that_stays_where_it_is_gives_what_a_carried_one_does() {
    for context in everywhere() {
        let (mut plain, _) = session_of(&context, "kept_decoder", None);
        let wanted = decoded(&mut plain, &[3, 1, 1, 1, 1], true).expect("runs");
        let (mut session, file) = session_of(&context, "kept_decoder", Some(7));
        let names: Vec<String> = session.inputs().iter().map(|port| port.name.clone()).collect();
        assert_eq!(names, ["input_ids", "attention_mask", "position_ids"]);
        for _ in 0..2 {
            let found = decoded(&mut session, &[3, 1, 1, 1, 1], true).expect("runs");
            assert_close(&found, &wanted, &context.info().backend.to_string());
            assert_eq!((session.cached(), session.outputs().len()), (7, 1));
            // The last run changes its caches, and copies nothing.
            let steps = session.steps();
            let copies: Vec<&str> =
                steps.iter().filter(|step| step.op == "copy").map(|step| step.name.as_str()).collect();
            assert!(copies.is_empty(), "{copies:?}");
            let changing = steps.iter().filter(|step| step.op == "update_slice").count();
            assert_eq!(changing, 4);
            let (one, all) = (ids(&[7]), ids(&[1; 8]));
            let given = [("input_ids", &one), ("attention_mask", &all), ("position_ids", &one)];
            let full = session.run(&given).expect_err("one place too many").to_string();
            assert!(full.contains("7 at most"), "{full}");
            session.reset().expect("reset");
            assert_eq!(session.cached(), 0);
        }
        // The pairs have no order.
        let mut pairs = file.cache_pairs();
        pairs.reverse();
        let mut other = file.session(&context, SessionOptions::default()).expect("a session");
        other.cache(&Caches::new(&pairs, 7)).expect("caches");
        let found = decoded(&mut other, &[3, 1, 1, 1, 1], true).expect("runs");
        assert_close(&found, &wanted, "pairs in another order");
        // Another first run has other extents; the caches are the same, and so is what they take.
        let memory = session.memory().planned;
        let wanted = decoded(&mut plain_again(&context), &[2, 1, 1], true).expect("runs");
        assert_close(&decoded(&mut session, &[2, 1, 1], true).expect("runs"), &wanted, "two first");
        assert_eq!(session.memory().planned, memory);
    }
}

fn plain_again(context: &Context) -> Session {
    session_of(context, "kept_decoder", None).0
}

#[test]
fn caches_are_refused_where_they_would_be_wrong() {
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let (mut session, _) = session_of(&context, "kept_positions", Some(16));
    let refused = decoded(&mut session, &[3, 1], false).expect_err("positions by extents").to_string();
    assert!(refused.contains("how many places") && refused.contains("Session::carry"), "{refused}");
    let (mut carried, _) = session_of(&context, "kept_positions", None);
    let wanted = decoded(&mut plain_again(&context), &[3, 1], true).expect("runs");
    assert_close(&decoded(&mut carried, &[3, 1], false).expect("runs"), &wanted, "carried");

    // The past's extent as a number, and, of several tokens, a bias of places beside a mask of extents.
    for (name, steps) in [("kept_length", [3, 1]), ("chunks_columns", [3, 2])] {
        let (mut session, _) = session_of(&context, name, Some(16));
        let refused = decoded_of(&mut session, &steps, true, 8).expect_err(name).to_string();
        assert!(refused.contains("how many places"), "{refused}");
    }
    let scatter = ModelFile::load("tests/cases/kept_scatter.onnx", &LoadOptions::default()).expect("a file");
    let mut fixed = scatter.session(&context, SessionOptions::default()).expect("a session");
    let refused = fixed.cache(&Caches::new(&[("pk2", "pk")], 16)).expect_err("12 places").to_string();
    assert!(refused.contains("12 places, which the file fixes"), "{refused}");

    let (mut session, file) = session_of(&context, "kept_decoder", Some(16));
    decoded(&mut session, &[2], true).expect("of two tokens");
    let (one, long) = (ids(&[2]), ids(&[1; 4]));
    let given = [("input_ids", &one), ("attention_mask", &long), ("position_ids", &one)];
    let refused = session.run(&given).expect_err("a mask of two tokens").to_string();
    assert!(refused.contains("1 places in a run whose masks have 2"), "{refused}");
    let row = |count: usize| {
        HostTensor::of(Dims::new(&[2, count]).expect("extents"), vec![1i64; 2 * count]).expect("as many")
    };
    session.reset().expect("reset");
    decoded(&mut session, &[2, 1], true).expect("of one sequence");
    let (one, all) = (row(1), row(4));
    let given = [("input_ids", &one), ("attention_mask", &all), ("position_ids", &one)];
    let refused = session.run(&given).expect_err("of two sequences").to_string();
    assert!(refused.contains("as in the first run"), "{refused}");
    let (mask, past) = (ids(&[1, 1]), tensor(&[1, 2, 0, 4], Vec::new()));
    let given = [("input_ids", &mask), ("past_key_values.0.key", &past)];
    assert!(session.run(&given).expect_err("a cache").to_string().contains("none: the session keeps it"));
    assert!(session.submit(&given[..1]).is_err());
    let mut fresh = file.session(&context, SessionOptions::default()).expect("a session");
    for (pairs, places, wanted) in [
        (vec![("present.0.key", "past_key_values.0.key")], 1, "at least 2"),
        (vec![("present.9.key", "past_key_values.0.key")], 8, "present.9.key"),
        (vec![("present.0.key", "nothing")], 8, "nothing"),
        (vec![("present.0.key", "past_key_values.0.key"); 2], 8, "twice"),
        (Vec::new(), 8, "no pairs"),
    ] {
        let refused = fresh.cache(&Caches::new(&pairs, places)).expect_err("refused").to_string();
        assert!(refused.contains(wanted), "{refused}");
    }
    let (mut carried, _) = session_of(&context, "kept_decoder", None);
    assert!(carried.cache(&Caches::new(&file.cache_pairs(), 8)).is_err());
}

/// How the tokens of a prompt are divided among runs.
const CHUNKS: [&[usize]; 6] = [&[1; 9], &[3, 4, 1, 1], &[1, 8], &[2, 2, 2, 2, 1], &[8, 1], &[4, 5]];

#[test]
fn a_prompt_in_chunks_is_the_prompt_at_once() {
    for context in everywhere() {
        // Masks of extents, sliced from a constant, of positions, written by ScatterND, and made by operators. Those of one
        // layer have the same weights.
        let alike = ["chunks_tril", "chunks_positions", "chunks_scatter", "chunks_heads", "chunks_standard"];
        let mut first: Option<Vec<f32>> = None;
        for name in ["kept_decoder", "kept_tail"].iter().chain(&alike) {
            let known = if *name == "kept_decoder" { 32 } else { 8 };
            let (mut session, _) = session_of(&context, name, Some(12));
            let wanted = decoded_of(&mut session, &[9], true, known).expect("a run");
            if alike.contains(name) {
                let first = first.get_or_insert_with(|| wanted.clone());
                assert_close(&wanted, first, name);
            }
            for steps in CHUNKS {
                session.reset().expect("reset");
                let found = decoded_of(&mut session, steps, true, known);
                let found = found.unwrap_or_else(|why| panic!("{name} in {steps:?}: {why}"));
                assert_close(&found, &wanted, &format!("{name} on {} in {steps:?}", context.info().backend));
                assert_eq!(session.cached(), 9);
            }
            // All places are filled by a run of several.
            session.reset().expect("reset");
            let full = decoded_of(&mut session, &[3, 9], true, known).expect("twelve places");
            session.reset().expect("reset");
            let wanted = decoded_of(&mut session, &[12], true, known).expect("a run");
            assert_close(&full, &wanted, name);
        }
        // With biases of columns one token in each run is right.
        let (mut session, _) = session_of(&context, "chunks_columns", Some(12));
        let wanted = decoded_of(&mut session, &[9], true, 8).expect("a run");
        session.reset().expect("reset");
        assert_close(&decoded_of(&mut session, &[1; 9], true, 8).expect("runs"), &wanted, "columns");
    }
}

/// The logits of some tokens behind those that a session has seen.
fn next_logits(session: &mut Session, tokens: &[i64]) -> Vec<f32> {
    let places: Vec<i64> =
        (session.cached()..session.cached() + tokens.len()).map(|place| place as i64).collect();
    let (mask, places) = (ids(&vec![1; session.cached() + tokens.len()]), ids(&places));
    let tokens = ids(tokens);
    let given = [("input_ids", &tokens), ("attention_mask", &mask), ("position_ids", &places)];
    session.run(&given).expect("a run")[0].to_nhwc().into_owned()
}

#[test]
fn a_run_behind_a_way_back_is_one_that_never_went_on() {
    for context in everywhere() {
        for name in ["kept_decoder", "chunks_positions", "chunks_heads"] {
            let backend = context.info().backend;
            let (mut session, _) = session_of(&context, name, Some(12));
            let (mut plain, _) = session_of(&context, name, Some(12));
            let prompt = [3, 1, 4, 1, 5];
            assert_eq!(next_logits(&mut session, &prompt), next_logits(&mut plain, &prompt));
            for guess in [&[2, 6, 5][..], &[7], &[1, 1, 1, 1, 1, 1, 1]] {
                next_logits(&mut session, guess);
                session.truncate(5).expect("the prompt stays");
                assert_eq!(session.cached(), 5);
            }
            // Into the prompt, and from there on with others.
            session.truncate(5).expect("nothing to take back");
            session.truncate(3).expect("a part of the prompt");
            let (mut other, _) = session_of(&context, name, Some(12));
            next_logits(&mut other, &prompt[..3]);
            for tokens in [&[6, 2][..], &[0], &[3, 3, 3]] {
                let (found, wanted) = (next_logits(&mut session, tokens), next_logits(&mut other, tokens));
                assert_close(&found, &wanted, &format!("{name} on {backend}"));
            }
            let refused = session.truncate(10).expect_err("nine are filled").to_string();
            assert!(refused.contains("10 places") && refused.contains("9 at most"), "{refused}");
            session.truncate(0).expect("all");
            assert_eq!(session.cached(), 0);
            plain.reset().expect("reset");
            assert_eq!(next_logits(&mut session, &prompt), next_logits(&mut plain, &prompt));
        }
        // Of what is not finite nothing is left.
        let file =
            ModelFile::load("tests/cases/steps_grouped.onnx", &LoadOptions::default()).expect("a file");
        let mut session = file.session(&context, SessionOptions::default()).expect("a session");
        let caches = Caches::new(&[("pk2", "pk"), ("pv2", "pv")], 9).with_masks(&[("mask", 1)]);
        session.cache(&caches).expect("caches");
        let given = |rows: &[f32], places: usize| {
            (tensor(&[1, rows.len() / FEATURES, FEATURES], rows.to_vec()), ids(&vec![1; places]))
        };
        let run = |session: &mut Session, rows: &[f32]| {
            let (x, mask) = given(rows, session.cached() + rows.len() / FEATURES);
            session.run(&[("x", &x), ("mask", &mask)]).expect("a run")[0].to_nhwc().into_owned()
        };
        let rows: Vec<f32> = (0..3 * FEATURES).map(|at| (at as f32 * 0.7).sin()).collect();
        run(&mut session, &rows[..FEATURES]);
        assert!(run(&mut session, &[f32::NAN; 2 * FEATURES]).iter().any(|value| value.is_nan()));
        session.truncate(1).expect("without it");
        let found = run(&mut session, &rows[FEATURES..2 * FEATURES]);
        session.reset().expect("reset");
        run(&mut session, &rows[..FEATURES]);
        assert_close(&found, &run(&mut session, &rows[FEATURES..2 * FEATURES]), "behind NaN");
    }
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let (mut carried, _) = session_of(&context, "kept_decoder", None);
    decoded(&mut carried, &[3], true).expect("a run");
    let refused = carried.truncate(1).expect_err("no caches").to_string();
    assert!(refused.contains("keeps no caches by places") && refused.contains("Session::reset"), "{refused}");
}

#[test]
fn attention_operators_write_into_their_caches() {
    for context in everywhere() {
        for (name, mask) in [("steps_grouped", true), ("steps_standard", false), ("steps_heads", false)] {
            // Grouped ones take several rows behind the first run, too.
            let steps: &[usize] = if mask { &STEPS } else { &[3, 1, 1] };
            let (wanted, _) = runs(&context, name, steps, false);
            let path = format!("tests/cases/{name}.onnx");
            let file = ModelFile::load(path, &LoadOptions::default()).expect("a file");
            let mut session = file.session(&context, SessionOptions::default()).expect("a session");
            let caches = Caches::new(&[("pk2", "pk"), ("pv2", "pv")], 9);
            session.cache(&if mask { caches.with_masks(&[("mask", 1)]) } else { caches }).expect("caches");
            let (mut found, mut begin) = (Vec::new(), 0);
            let outcome = steps.iter().try_for_each(|&rows| {
                let values = (begin * FEATURES..(begin + rows) * FEATURES).map(|at| (at as f32 * 0.7).sin());
                let x = tensor(&[1, rows, FEATURES], values.collect());
                begin += rows;
                let all = ids(&vec![1; begin]);
                let mut given = vec![("x", &x)];
                if mask {
                    given.push(("mask", &all));
                }
                found.extend_from_slice(&session.run(&given)?[0].to_nhwc());
                Ok::<(), diptych::Error>(())
            });
            match mask {
                true => {
                    outcome.expect("runs");
                    assert_close(&found, &wanted, name);
                }
                // Nothing says which places are filled.
                false => {
                    let refused = outcome.expect_err("no mask").to_string();
                    assert!(refused.contains("mask"), "{refused}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_writes_into_its_caches_finds_them_again() {
    for context in everywhere() {
        let path = "tests/cases/kept_scatter.onnx";
        let file = ModelFile::load(path, &LoadOptions::default()).expect("a file");
        let mut results: Vec<Vec<f32>> = Vec::new();
        for keeps in [false, true] {
            let mut session = file.session(&context, SessionOptions::default()).expect("a session");
            if keeps {
                session.cache(&Caches::new(&[("pk2", "pk"), ("pv2", "pv")], 12)).expect("caches");
            }
            let mut kept = [(); 2].map(|()| tensor(&[1, 2, 12, 4], vec![0.0; 96]));
            let (mut written, mut begin) = (Vec::new(), 0);
            for rows in [3usize, 1, 2, 1] {
                let values = (begin * FEATURES..(begin + rows) * FEATURES).map(|at| (at as f32 * 0.7).sin());
                let x = tensor(&[1, rows, FEATURES], values.collect());
                let seen: Vec<bool> = (0..rows * 12).map(|at| at % 12 <= begin + at / 12).collect();
                let mask = HostTensor::of(Dims::new(&[rows, 12]).expect("extents"), seen).expect("as many");
                let at = HostTensor::of(Dims::new(&[1]).expect("one"), vec![begin as i64]).expect("one");
                begin += rows;
                let mut given = vec![("x", &x), ("at", &at), ("mask", &mask)];
                if !keeps {
                    given.extend([("pk", &kept[0]), ("pv", &kept[1])]);
                }
                let mut found: Vec<HostTensor> = session.run(&given).expect("a run").to_vec();
                if !keeps {
                    kept = found.split_off(1).try_into().expect("two caches");
                }
                written.extend_from_slice(&found[0].to_nhwc());
            }
            results.push(written);
        }
        assert_close(&results[1], &results[0], &context.info().backend.to_string());
    }
}
