//! Caches that a network in f16 storage keeps as halves.

use crate::machine::everywhere;
use crate::one_row::{check, tensor};
use diptych::nn::Attention;
use diptych::{
    AttentionInputs, Backend, Caches, Context, DType, Dim, Dims, Function, Graph, HostTensor, LoadOptions,
    ModelFile, Precision, Rewrite, Session, SessionOptions, Term,
};

const PLACES: usize = 8;

/// Heads of a query that attends the keys so far, which two caches take as they come.
fn attending(width: usize) -> diptych::Result<Graph> {
    let mut graph = Graph::new();
    let dims = Dims::new(&[1, 2, 1, width])?;
    let (q, k, v) = (graph.input("q", dims)?, graph.input("k", dims)?, graph.input("v", dims)?);
    let at = graph.typed_input("at", DType::I32, &[Dim::Fixed(1)])?;
    let ends = graph.elementwise("ends", Function::Add, &[at.into(), Term::Number(1.0)])?;
    let mut caches = Vec::new();
    for (name, rows) in [("keys", k), ("values", v)] {
        let first = HostTensor::new(Dims::new(&[1, 2, PLACES, width])?, vec![0.25; 2 * PLACES * width])?;
        let cache = graph.state(name, first);
        // What is written is computed, or what was given.
        let rows =
            if name == "keys" { graph.elementwise("sines", Function::Sin, &[rows.into()])? } else { rows };
        let next = graph.update_slice(&format!("next {name}"), cache, rows, at, 2)?;
        graph.update(cache, next)?;
        caches.push(next);
    }
    let inputs = AttentionInputs { ends: Some(ends), ..AttentionInputs::default() };
    let y = graph.attention("attended", [q, caches[0], caches[1]], inputs, Attention::default())?;
    graph.output(y)?;
    Ok(graph)
}

fn given(run: usize, width: usize) -> Vec<(&'static str, HostTensor)> {
    let of = |seed: usize| tensor(&[1, 2, 1, width], seed as u32);
    let place = HostTensor::of(Dims::new(&[1]).expect("small"), vec![run as i32]).expect("one");
    vec![("q", of(3 * run + 2)), ("k", of(3 * run + 3)), ("v", of(3 * run + 4)), ("at", place)]
}

fn in_halves() -> SessionOptions {
    SessionOptions { precision: Precision::F16Storage, ..SessionOptions::default() }
}

#[test]
fn caches_in_halves_give_what_carried_values_do() -> diptych::Result<()> {
    for width in [16, 12, 5] {
        let graph = attending(width)?;
        // Without the rewrite a state is not changed where it is, and is f32.
        check(&graph, Rewrite::Updates, &|run| given(run, width), &|_, _, _| ())?;
        for context in everywhere().into_iter().filter(|context| context.info().backend != Backend::Cpu) {
            let mut session = Session::new(&context, &graph, in_halves())?;
            let run = |session: &mut Session, number: usize| {
                let inputs = given(number, width);
                let inputs: Vec<(&str, &HostTensor)> =
                    inputs.iter().map(|(name, tensor)| (*name, tensor)).collect();
                Ok::<_, diptych::Error>(session.run(&inputs)?[0].to_f32().to_vec())
            };
            let runs = |session: &mut Session| {
                (0..PLACES).map(|number| run(session, number)).collect::<diptych::Result<Vec<_>>>()
            };
            let first = runs(&mut session)?;
            session.reset()?;
            assert_eq!(runs(&mut session)?, first, "{}", context.info().backend);
            let wanted = if width.is_multiple_of(4) { Precision::F16Storage } else { Precision::F32 };
            let steps = session.steps();
            let updates = steps.iter().filter(|step| step.op == "update_slice");
            let precisions: Vec<Precision> = updates.map(|step| step.precision).collect();
            assert_eq!(precisions, [wanted; 2], "{}: rows of {width}", context.info().backend);
        }
    }
    Ok(())
}

/// A cache of which a function of each element is shown.
fn shown(function: Function) -> diptych::Result<Graph> {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[1, 1, 8])?)?;
    let at = graph.typed_input("at", DType::I32, &[Dim::Fixed(1)])?;
    let cache = graph.state("cache", HostTensor::new(Dims::new(&[1, 4, 8])?, vec![0.0; 32])?);
    let next = graph.update_slice("next", cache, x, at, 1)?;
    graph.update(cache, next)?;
    let y = graph.elementwise("shown", function, &[next.into()])?;
    graph.output(y)?;
    Ok(graph)
}

#[test]
fn states_of_other_readers_and_of_nodes_by_hand_are_right() -> diptych::Result<()> {
    // An exponential reads and writes f32 in f16 storage too: a cache of halves would move it by up to 2^-12 of itself. A number below
    // 1 that is negated is rounded to a half where it is read, or where it is written.
    let (exact, rounded) = (1e-5, 1.0 / 2048.0);
    for (function, precision, by_hand, most) in [
        (Function::Exp, Precision::F16Storage, None, exact),
        (Function::Neg, Precision::F16Storage, Some(Precision::F32), rounded),
        (Function::Neg, Precision::F32, Some(Precision::F16Storage), exact),
        (Function::Neg, Precision::F16Storage, Some(Precision::F16Storage), rounded),
    ] {
        let graph = shown(function)?;
        let results = |context: &Context, precision: Precision, by_hand: Option<Precision>| {
            let mut options = SessionOptions { precision, ..SessionOptions::default() };
            options.precisions.extend(by_hand.map(|own| ("next".to_owned(), own)));
            let mut session = Session::new(context, &graph, options)?;
            let mut all = Vec::new();
            for run in 0..4 {
                let x = tensor(&[1, 1, 8], run + 7);
                let at = HostTensor::of(Dims::new(&[1])?, vec![run as i32])?;
                all.extend_from_slice(&session.run(&[("x", &x), ("at", &at)])?[0].to_f32());
            }
            Ok::<_, diptych::Error>(all)
        };
        let wanted = results(&Context::new(Backend::Cpu)?, Precision::F32, None)?;
        for context in everywhere() {
            let found = results(&context, precision, by_hand)?;
            let off = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let what = format!("{} {function:?} {precision} {by_hand:?}", context.info().backend);
            assert!(found.len() == wanted.len() && off <= most, "{what}: {off}");
        }
    }
    Ok(())
}

fn ids(values: Vec<i64>) -> HostTensor {
    HostTensor::of(Dims::new(&[1, values.len()]).expect("extents"), values).expect("as many")
}

/// The scores of a decoder in `precision` with caches, in runs of these many tokens, of which the second begins at place 2 again.
fn scores(context: &Context, precision: Precision) -> diptych::Result<Vec<f32>> {
    let file = ModelFile::load("tests/cases/kept_decoder.onnx", &LoadOptions::default())?;
    let options = SessionOptions { precision, ..SessionOptions::default() };
    let mut session = file.session(context, options)?;
    session.cache(&Caches::new(&file.cache_pairs(), 7))?;
    let (mut all, mut begin) = (Vec::new(), 0);
    for (run, count) in [3, 2, 1, 1, 1].into_iter().enumerate() {
        if run == 1 {
            session.truncate(2)?;
            begin = 2;
        }
        let places: Vec<i64> = (begin..begin + count).collect();
        begin += count;
        let tokens = ids(places.iter().map(|place| (7 * place + 3 + run as i64) % 32).collect());
        let (mask, places) = (ids(vec![1; begin as usize]), ids(places));
        let given = [("input_ids", &tokens), ("attention_mask", &mask), ("position_ids", &places)];
        all.extend_from_slice(&session.run(&given)?[0].to_f32());
    }
    Ok(all)
}

#[test]
fn a_decoder_in_halves_keeps_its_caches_between_prompts_and_tokens() -> diptych::Result<()> {
    let cpu = Context::new(Backend::Cpu)?;
    let wanted = scores(&cpu, Precision::F32)?;
    let largest = wanted.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    let each = |context: Context| [Precision::F16Storage, Precision::F16].map(|own| (context.clone(), own));
    for (context, precision) in everywhere().into_iter().flat_map(each) {
        let found = match scores(&context, precision) {
            // Not every device computes in halves.
            Err(diptych::Error::Unsupported { .. }) if precision == Precision::F16 => continue,
            found => found?,
        };
        assert_eq!(found.len(), wanted.len());
        let off = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        // Some thirty values are rounded to halves one after the other, each by up to 2^-11 of itself.
        assert!(off <= 32.0 / 2048.0 * largest, "{} {precision}: {off} of {largest}", context.info().backend);
    }
    Ok(())
}
