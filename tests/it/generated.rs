//! The bundled decoder of the example `generate`, by the example's own code: the same text on every backend.

#[path = "../../examples/generate/choice.rs"]
mod choice;
#[path = "../../examples/generate/decoder.rs"]
mod decoder;

use crate::machine::everywhere;
use choice::Chooser;
use decoder::Decoder;
use diptych::Sampling;
use diptych::{Backend, Context, LoadOptions, ModelFile, Precision, SessionOptions};

const MODEL: &str = "examples/generate/data/decoder.onnx";
const PROMPT: &[u8] = b"The session keeps ";
const TOKENS: usize = 24;

/// The text that a decoder writes behind a prompt that it reads in runs of `chunk` tokens, and the scores of each token. With
/// a `text` it is given that one, whatever it would write itself.
fn written(
    context: &Context,
    file: &ModelFile,
    precision: Precision,
    chunk: usize,
    text: Option<&[usize]>,
) -> (Vec<usize>, Vec<Vec<f32>>) {
    let options = SessionOptions { precision, ..SessionOptions::default() };
    let places = PROMPT.len() + TOKENS;
    let mut decoder = Decoder::new(file, context, options, Some(places)).expect("a decoder");
    let prompt: Vec<i64> = PROMPT.iter().map(|&byte| byte.into()).collect();
    let mut chooser = Chooser::new(0.0, 1, 1);
    let mut scores = vec![decoder.prompt(&prompt, chunk).expect("a prompt")];
    let mut tokens = Vec::new();
    while tokens.len() < TOKENS {
        let own = chooser.choose(&scores[tokens.len()]);
        let next = text.map_or(own, |text| text[tokens.len()]);
        tokens.push(own);
        scores.push(decoder.run(&[next as i64]).expect("a token"));
    }
    (tokens, scores)
}

/// The text that a decoder writes that draws its tokens on the device, with two runs under way.
fn drawn(context: &Context, file: &ModelFile, chunk: usize) -> anyhow::Result<Vec<i64>> {
    let (places, sampling) = (PROMPT.len() + TOKENS, Sampling::default());
    let mut decoder = Decoder::drawing(file, context, SessionOptions::default(), (places, sampling))?;
    let prompt: Vec<i64> = PROMPT.iter().map(|&byte| byte.into()).collect();
    let mut flight = decoder.begin(&prompt, chunk)?;
    let mut text = Vec::new();
    while text.len() + 1 < TOKENS {
        let next = decoder.draw(None)?;
        text.push(Decoder::token(std::mem::replace(&mut flight, next))?);
    }
    text.push(Decoder::token(flight)?);
    Ok(text)
}

fn most_apart(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b).flat_map(|(a, b)| a.iter().zip(b));
    pairs
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |most, apart| if apart > most || apart.is_nan() { apart } else { most })
}

#[test]
fn the_text_is_the_same_on_every_backend_and_in_chunks() {
    let file = ModelFile::load(MODEL, &LoadOptions::default()).expect("the bundled decoder");
    let cpu = Context::new(Backend::Cpu).expect("the CPU");
    let (text, wanted) = written(&cpu, &file, Precision::F32, PROMPT.len(), None);
    // Scores are of this size, and the likeliest token is ahead of the second one.
    let size = wanted.iter().flatten().fold(0.0f32, |most, score| most.max(score.abs()));
    assert!(size > 5.0 && size < 100.0, "{size}");
    for context in everywhere() {
        let backend = context.info().backend;
        for chunk in [PROMPT.len(), 5, 1] {
            let (found, scores) = written(&context, &file, Precision::F32, chunk, None);
            let bytes = |text: &[usize]| text.iter().map(|&token| token as u8 as char).collect::<String>();
            assert_eq!(bytes(&found), bytes(&text), "{backend} in runs of {chunk}");
            let apart = most_apart(&scores, &wanted);
            assert!(apart < 2e-3, "{backend} in runs of {chunk}: {apart}");
        }
        // By tokens that the device draws and keeps.
        let found = drawn(&context, &file, 5).expect("a text");
        assert!(found.iter().map(|&token| token as usize).eq(text.iter().copied()), "{backend}: {found:?}");
        // Halves have 11 bits; the text is given, because another token of nearly the same score changes all behind it.
        for chunk in [PROMPT.len(), 7] {
            let (found, scores) = written(&context, &file, Precision::F16Storage, chunk, Some(&text));
            let apart = most_apart(&scores, &wanted);
            assert!(apart < 0.02 * size, "{backend} with halves in runs of {chunk}: {apart} of {size}");
            for ((own, &best), scores) in found.iter().zip(&text).zip(&wanted) {
                assert!(
                    scores[best] - scores[*own] <= 2.0 * apart,
                    "{backend} with halves: {own}, wanted {best}"
                );
            }
        }
    }
}
