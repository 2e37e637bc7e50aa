//! Nodes behind outputs of files, tokens that are drawn on the device, and runs that take the token of the run before from there.

use crate::machine::everywhere;
use diptych::nn::{AxisRange, Reduction};
use diptych::{
    Backend, Caches, Context, Dims, Graph, HostTensor, LoadOptions, ModelFile, Sampling, Session,
    SessionOptions,
};

const DECODER: &str = "examples/generate/data/decoder.onnx";
const PROMPT: &[u8] = b"The session ";

fn decoder() -> ModelFile {
    ModelFile::load(DECODER, &LoadOptions::default()).expect("the bundled decoder")
}

fn row(values: Vec<i64>) -> HostTensor {
    HostTensor::of(Dims::new(&[1, values.len()]).expect("small"), values).expect("as many")
}

/// The mask and the positions of a run of `new` tokens behind `before`.
fn places(before: usize, new: usize) -> (HostTensor, HostTensor) {
    (row(vec![1; before + new]), row((before..before + new).map(|place| place as i64).collect()))
}

/// What is likeliest behind each of `tokens` tokens, found by all scores on the host.
fn likeliest(context: &Context, tokens: usize) -> diptych::Result<Vec<u8>> {
    let file = decoder();
    let mut session = file.session(context, SessionOptions::default())?;
    session.cache(&Caches::new(&file.cache_pairs(), 64))?;
    let (mut text, mut new) = (PROMPT.to_vec(), PROMPT.len());
    for _ in 0..tokens {
        let (mask, positions) = places(text.len() - new, new);
        let ids = row(text[text.len() - new..].iter().map(|&byte| byte.into()).collect());
        let inputs = [("input_ids", &ids), ("attention_mask", &mask), ("position_ids", &positions)];
        let logits = session.run(&inputs)?.swap_remove(0);
        let scores = logits.to_f32()[logits.dims().elements() - 256..].to_vec();
        let best = (0..256).rev().max_by(|&a, &b| scores[a].total_cmp(&scores[b])).expect("scores");
        text.push(best as u8);
        new = 1;
    }
    Ok(text.split_off(PROMPT.len()))
}

/// A session whose decoder draws tokens, and feeds them back.
fn drawing(context: &Context, sampling: Sampling, options: SessionOptions) -> diptych::Result<Session> {
    let file = decoder().with_next_token("logits", "token", sampling)?;
    assert_eq!(file.outputs()[0].name, "token");
    let mut session = file.session(context, options)?;
    session.cache(&Caches::new(&file.cache_pairs(), 64).with_fed(&[("token", "input_ids")]))?;
    Ok(session)
}

/// The tokens of so many runs: each is waited for before the next one begins, or two are under way.
fn drawn(session: &mut Session, tokens: usize, ahead: bool) -> diptych::Result<Vec<u8>> {
    let mut flights = std::collections::VecDeque::new();
    let mut text = Vec::new();
    let ids = row(PROMPT.iter().map(|&byte| byte.into()).collect());
    for run in 0..tokens {
        let (mask, positions) = places(session.cached(), if run == 0 { PROMPT.len() } else { 1 });
        let mut inputs = vec![("attention_mask", &mask), ("position_ids", &positions)];
        if run == 0 {
            inputs.push(("input_ids", &ids));
        }
        if !ahead {
            let token = session.run(&inputs)?.swap_remove(0);
            assert_eq!(token.dims().extents(), [1, 1]);
            text.push(token.to_f32()[0] as u8);
            continue;
        }
        flights.push_back(session.submit(&inputs)?);
        if flights.len() > 2 {
            let outputs = flights.pop_front().expect("three of them").wait()?;
            text.push(outputs.tensor(0)?.to_f32()[0] as u8);
        }
    }
    for flight in flights {
        text.push(flight.wait()?.tensor(0)?.to_f32()[0] as u8);
    }
    Ok(text)
}

#[test]
fn tokens_that_stay_on_the_device_are_those_of_the_host() -> diptych::Result<()> {
    let wanted = likeliest(&Context::new(Backend::Cpu)?, 12)?;
    for context in everywhere() {
        let mut session = drawing(&context, Sampling::default(), SessionOptions::default())?;
        for ahead in [false, true] {
            let found = drawn(&mut session, 12, ahead)?;
            assert_eq!(found, wanted, "{} {ahead}", context.info());
            assert_eq!(session.cached(), PROMPT.len() + 11);
            session.reset()?;
        }
        // The first run has nothing of a run before.
        let (mask, positions) = places(0, 1);
        let error = session.run(&[("attention_mask", &mask), ("position_ids", &positions)]);
        assert!(error.expect_err("no token").to_string().contains("input_ids"), "{}", context.info());
    }
    Ok(())
}

#[test]
fn tokens_are_drawn_alike_on_every_device_by_one_seed() -> diptych::Result<()> {
    let sampling = Sampling::new(0.9).with_top_k(24).with_top_p(0.9);
    let mut all: Vec<Vec<u8>> = Vec::new();
    for context in everywhere() {
        for seed in [3, 4] {
            let options = SessionOptions { seed, ..SessionOptions::default() };
            let mut session = drawing(&context, sampling, options)?;
            let found = drawn(&mut session, 10, false)?;
            session.reset()?;
            assert_eq!(drawn(&mut session, 10, true)?, found, "{} {seed}", context.info());
            all.push(found);
        }
    }
    for pair in all.chunks(2) {
        assert_eq!(pair, &all[..2]);
    }
    assert_ne!(all[0], all[1]);
    Ok(())
}

#[test]
fn a_token_is_taken_instead_of_the_one_that_was_drawn() -> diptych::Result<()> {
    for context in everywhere() {
        let mut session = drawing(&context, Sampling::default(), SessionOptions::default())?;
        let first = drawn(&mut session, 1, false)?[0];
        // Given tokens count, whatever the run before left.
        let run = |session: &mut Session, given: Option<u8>| {
            let (mask, positions) = places(session.cached(), 1);
            let ids = row(given.into_iter().map(i64::from).collect());
            let mut inputs = vec![("attention_mask", &mask), ("position_ids", &positions)];
            if given.is_some() {
                inputs.push(("input_ids", &ids));
            }
            Ok::<_, diptych::Error>(session.run(&inputs)?[0].to_f32()[0] as u8)
        };
        let own = run(&mut session, None)?;
        session.truncate(PROMPT.len())?;
        // What a run has drawn that is forgotten is none of the next one's, nor what a profile has drawn.
        let refused = |session: &mut Session| {
            let error = run(session, None).expect_err("no token").to_string();
            assert!(error.contains("input_ids") && error.contains("no run before"), "{error}");
        };
        refused(&mut session);
        assert_eq!(run(&mut session, Some(first))?, own, "{}", context.info());
        session.truncate(PROMPT.len())?;
        let others: Vec<u8> = [b'x', b'Q', b'7']
            .into_iter()
            .map(|other| {
                let found = run(&mut session, Some(other));
                session.truncate(PROMPT.len())?;
                found
            })
            .collect::<diptych::Result<_>>()?;
        assert!(others.iter().any(|other| *other != own), "{others:?} {own}");
        run(&mut session, Some(first))?;
        let (mask, positions) = places(session.cached(), 1);
        let ids = row(vec![first.into()]);
        session.profile(&[("input_ids", &ids), ("attention_mask", &mask), ("position_ids", &positions)])?;
        refused(&mut session);
    }
    Ok(())
}

/// How often each class is drawn, and the scores by which it is.
fn shares(context: &Context, scores: &[f32], sampling: Sampling, runs: usize) -> diptych::Result<Vec<f64>> {
    let rows = 64;
    let mut graph = Graph::new();
    let dims = Dims::new(&[rows, scores.len()])?;
    let x = graph.input("scores", dims)?;
    let class = graph.sample("class", x, sampling)?;
    assert_eq!(graph.dims(class)?.extents(), [rows, 1]);
    graph.output(class)?;
    let mut session = Session::new(context, &graph, SessionOptions::default())?;
    let given = HostTensor::new(dims, scores.repeat(rows))?;
    let mut counts = vec![0.0; scores.len()];
    for _ in 0..runs {
        for &class in session.run(&[("scores", &given)])?[0].to_f32().iter() {
            counts[class as usize] += 1.0 / (rows * runs) as f64;
        }
    }
    Ok(counts)
}

#[test]
fn classes_are_drawn_by_the_softmax_of_their_scores() -> diptych::Result<()> {
    let scores = [1.0f32, -2.0, 3.0, 2.5, 0.0, 2.0, -30.0];
    let softmax = |temperature: f32, taken: &[usize]| {
        let weight = |class: usize| f64::from(scores[class] / temperature).exp();
        let all: f64 = taken.iter().map(|&class| weight(class)).sum();
        (0..scores.len())
            .map(|class| if taken.contains(&class) { weight(class) / all } else { 0.0 })
            .collect()
    };
    // By falling scores: 2, 3, 5, 0, 4, 1, 6; their shares at temperature 1 are .464, .281, .171, ...
    let cases: [(Sampling, Vec<f64>); 7] = [
        (Sampling::default(), softmax(1.0, &[2])),
        (Sampling::new(1.0), softmax(1.0, &[0, 1, 2, 3, 4, 5, 6])),
        (Sampling::new(2.0).with_top_k(3), softmax(2.0, &[2, 3, 5])),
        (Sampling::new(1.0).with_top_p(0.5), softmax(1.0, &[2, 3])),
        (Sampling::new(1.0).with_top_k(4).with_top_p(1e-6), softmax(1.0, &[2])),
        (Sampling::new(1e-37), softmax(1.0, &[2])),
        (Sampling::new(0.5).with_top_k(100), softmax(0.5, &[0, 1, 2, 3, 4, 5, 6])),
    ];
    for context in everywhere() {
        for (sampling, wanted) in &cases {
            let runs = 64;
            let found = shares(&context, &scores, *sampling, runs)?;
            for (class, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                // Five standard deviations of 4,096 draws.
                let most = 5.0 * (wanted * (1.0 - wanted) / (64.0 * runs as f64)).sqrt() + 1e-9;
                let what = format!("{} {sampling:?} class {class}", context.info());
                assert!((found - wanted).abs() <= most, "{what}: {found} of {wanted}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_head_gives_its_results_in_the_place_of_an_output() -> diptych::Result<()> {
    let file = decoder();
    let before: Vec<String> = file.outputs().into_iter().map(|port| port.name).collect();
    let headed = file.with_head("logits", |graph, logits| {
        let rank = graph.dims(logits)?.rank();
        let some = graph.strided_slice(
            "some",
            logits,
            &[vec![AxisRange::ALL; rank - 1], vec![AxisRange::new(0, 5)]].concat(),
        )?;
        let most = graph.reduce("most", logits, Reduction::Max, &[-1], false)?;
        Ok(vec![some, most])
    })?;
    let ports = headed.outputs();
    assert_eq!(ports.len(), before.len() + 1);
    let (some, most) = (&ports[0], &ports[1]);
    assert_eq!((some.name.as_str(), most.name.as_str()), ("some", "most"));
    let open: Vec<(usize, &str)> = some.open.iter().map(|open| (open.axis, open.name.as_str())).collect();
    let wanted = file.outputs()[0].open.clone();
    assert_eq!(open, wanted.iter().map(|open| (open.axis, open.name.as_str())).collect::<Vec<_>>());
    assert_eq!(some.dims.extents().last(), Some(&5));
    // A head behind a head.
    let headed = headed.with_head("most", |graph, most| {
        Ok(vec![graph.reduce("highest", most, Reduction::Max, &[-1], true)?])
    })?;
    let ids = row(vec![5, 7, 9]);
    let (mask, positions) = places(0, 3);
    for context in everywhere() {
        let run = |file: &ModelFile| {
            let mut session = file.session(&context, SessionOptions::default())?;
            let mut inputs =
                vec![("input_ids", &ids), ("attention_mask", &mask), ("position_ids", &positions)];
            let pairs = file.cache_pairs();
            let declared = file.inputs();
            let past: Vec<(String, HostTensor)> = pairs
                .iter()
                .map(|(_, input)| {
                    let own = declared.iter().find(|own| own.name == *input).expect("a cache");
                    let extents: Vec<usize> = own
                        .extents
                        .as_ref()
                        .expect("a rank")
                        .iter()
                        .enumerate()
                        .map(|(axis, extent)| extent.unwrap_or(usize::from(axis == 0)))
                        .collect();
                    (
                        input.clone(),
                        HostTensor::new(Dims::new(&extents).expect("small"), Vec::new()).expect("none"),
                    )
                })
                .collect();
            inputs.extend(past.iter().map(|(name, tensor)| (name.as_str(), tensor)));
            session.run(&inputs)
        };
        let (plain, own) = (run(&file)?, run(&headed)?);
        assert_eq!(own.len(), plain.len() + 1);
        let logits = plain[0].to_f32();
        let (some, highest) = (own[0].to_f32(), own[1].to_f32());
        for place in 0..3 {
            for class in 0..5 {
                let (found, wanted) = (some[5 * place + class], logits[256 * place + class]);
                assert!(
                    (found - wanted).abs() <= 1e-4 * wanted.abs().max(1.0),
                    "{} {found} {wanted}",
                    context.info()
                );
            }
        }
        let most = logits.iter().fold(f32::NEG_INFINITY, |most, &score| most.max(score));
        assert!((highest[0] - most).abs() <= 1e-4 * most.abs(), "{}: {} {most}", context.info(), highest[0]);
        for (found, wanted) in own[2..].iter().zip(&plain[1..]) {
            assert_eq!(found.dims(), wanted.dims());
        }
    }
    Ok(())
}

#[test]
fn a_head_that_does_not_fit_is_refused() {
    let file = decoder();
    let refused = |found: diptych::Result<ModelFile>, wanted: &str| {
        let error = found.expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{error}");
    };
    refused(file.with_head("no such", |_, value| Ok(vec![value])), "logits");
    refused(file.with_head("logits", |_, _| Ok(Vec::new())), "at least one");
    refused(
        file.with_head("logits", |graph, value| graph.reshape("flat", value, &[3.into()]).map(|it| vec![it])),
        "reshape",
    );
    let twice = file.cache_pairs()[0].0.clone();
    refused(
        file.with_head("logits", move |graph, value| Ok(vec![graph.arg_max(&twice, value, -1, true)?])),
        "distinct names",
    );
    for (sampling, wanted) in [
        (Sampling::new(f32::NAN), "temperature"),
        (Sampling::new(1e-40), "temperature"),
        (Sampling::new(-1.0), "temperature"),
        (Sampling::new(1.0).with_top_k(0), "at least 1"),
        (Sampling::new(1.0).with_top_p(1.5), "share"),
    ] {
        refused(file.with_next_token("logits", "token", sampling), wanted);
    }
    let mut session = file
        .session(&Context::new(Backend::Cpu).expect("the CPU"), SessionOptions::default())
        .expect("a session");
    let pairs = file.cache_pairs();
    let fed = |output: &str, input: &str| Caches::new(&pairs, 64).with_fed(&[(output, input)]);
    for (caches, wanted) in [
        (fed("none", "input_ids"), "none"),
        (fed("logits", "none"), "none"),
        (fed("logits", &pairs[0].1), "twice"),
        (fed("logits", "attention_mask"), "mask"),
        (fed(&pairs[0].0, "input_ids"), "is a cache"),
    ] {
        let error = session.cache(&caches).expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn scores_behind_other_places_than_the_last_are_not_computed() -> diptych::Result<()> {
    for context in everywhere() {
        let operations = |file: &ModelFile| {
            let mut session = file.session(&context, SessionOptions::default())?;
            session.cache(&Caches::new(&file.cache_pairs(), 64))?;
            let (mask, positions) = places(0, PROMPT.len());
            let ids = row(PROMPT.iter().map(|&byte| byte.into()).collect());
            session.run(&[("input_ids", &ids), ("attention_mask", &mask), ("position_ids", &positions)])?;
            Ok::<_, diptych::Error>(session.steps().iter().map(|step| step.flops).sum::<u64>())
        };
        let all = operations(&decoder())?;
        let last = operations(&decoder().with_next_token("logits", "token", Sampling::default())?)?;
        // The scores, and what the last of four layers does behind its keys and values.
        assert!(last * 100 < all * 85, "{}: {last} of {all}", context.info());
    }
    Ok(())
}

/// Rows of several sequences, one behind the other.
fn rows(values: &[Vec<i64>]) -> HostTensor {
    let dims = Dims::new(&[values.len(), values[0].len()]).expect("small");
    HostTensor::of(dims, values.concat()).expect("as many")
}

/// The tokens of sequences of one batch: shorter prompts have padding before them, which their masks hide.
fn of_batch(context: &Context, prompts: &[&[u8]], tokens: usize) -> diptych::Result<Vec<Vec<u8>>> {
    let mut session = drawing(context, Sampling::default(), SessionOptions::default())?;
    let longest = prompts.iter().map(|prompt| prompt.len()).max().expect("prompts");
    let padded = |own: &[u8], before: i64, each: &dyn Fn(usize, u8) -> i64| {
        let own = own.iter().enumerate().map(|(place, &byte)| each(place, byte));
        std::iter::repeat_n(before, longest - own.len()).chain(own).collect::<Vec<i64>>()
    };
    let of = |each: &dyn Fn(usize, u8) -> i64| {
        prompts.iter().map(|own| padded(own, 0, each)).collect::<Vec<Vec<i64>>>()
    };
    let ids = rows(&of(&|_, byte| byte.into()));
    let mut mask = of(&|_, _| 1);
    let mut positions = of(&|place, _| place as i64);
    let mut texts = vec![Vec::new(); prompts.len()];
    for run in 0..tokens {
        if run > 0 {
            mask.iter_mut().for_each(|row| row.push(1));
            let lengths = prompts.iter().map(|prompt| vec![(prompt.len() + run - 1) as i64]);
            positions = lengths.collect();
        }
        let (of_mask, of_positions) = (rows(&mask), rows(&positions));
        let mut inputs = vec![("attention_mask", &of_mask), ("position_ids", &of_positions)];
        if run == 0 {
            inputs.push(("input_ids", &ids));
        }
        let found = session.run(&inputs)?.swap_remove(0);
        assert_eq!(found.dims().extents(), [prompts.len(), 1]);
        texts.iter_mut().zip(found.to_f32().iter()).for_each(|(text, &token)| text.push(token as u8));
    }
    Ok(texts)
}

#[test]
fn sequences_of_one_batch_have_lengths_of_their_own() -> diptych::Result<()> {
    let prompts: [&[u8]; 3] = [b"The session ", b"A kernel", b"On a GPU this "];
    let cpu = Context::new(Backend::Cpu)?;
    let alone = prompts.iter().map(|prompt| Ok(of_batch(&cpu, &[prompt], 8)?.remove(0)));
    let wanted = alone.collect::<diptych::Result<Vec<Vec<u8>>>>()?;
    for context in everywhere() {
        let found = of_batch(&context, &prompts, 8)?;
        assert_eq!(found, wanted, "{}", context.info());
    }
    Ok(())
}
