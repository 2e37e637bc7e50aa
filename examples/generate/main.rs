//! Writes text with a decoder, one token at a time: `cargo run --release --example generate -- --prompt "The session "`.
//!
//! The keys and values of the tokens so far stay on the device ([`Session::cache`]): each run adds those of one token to
//! them. The bundled network knows bytes, and was trained on this project's own documents (`train.py`). `--model` takes
//! other decoders whose ONNX files have `input_ids`, caches, and `attention_mask` and `position_ids` if they want them;
//! their tokens are given and printed as numbers (`--ids`).

mod choice;
mod decoder;

use choice::Chooser;
use clap::Parser;
use decoder::Decoder;
use diptych::{Backend, Context, LoadOptions, ModelFile, SessionOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/generate/data/decoder.onnx");

/// Tokens of a network that knows bytes.
const BYTES: usize = 256;

/// Writes text with a decoder, one token at a time, and says how many tokens a second.
#[derive(Debug, Parser)]
#[command(name = "generate")]
struct Options {
    /// The decoder, an ONNX file; without it, the bundled one
    #[arg(long, value_name = "FILE", default_value = MODEL)]
    model: PathBuf,

    /// What the text begins with, for a decoder of bytes
    #[arg(long, default_value = "The session ", conflicts_with = "ids")]
    prompt: String,

    /// What the text begins with, as numbers of tokens
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    ids: Vec<i64>,

    /// How many tokens are written
    #[arg(long, value_name = "N", default_value_t = 300)]
    tokens: usize,

    /// How freely tokens are chosen: 0 always takes the likeliest one
    #[arg(long, default_value_t = 0.7)]
    temperature: f32,

    /// Only the K likeliest tokens are chosen from
    #[arg(long, value_name = "K", default_value_t = 40)]
    top_k: usize,

    /// Another text for each number
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Where the network runs: auto, wgpu, opencl or cpu
    #[arg(long, default_value = "auto")]
    backend: Backend,

    /// Let the CPU round what is multiplied with weights of 4 and 8 bits
    #[arg(long)]
    round_activations: bool,

    /// Places of the caches; without it, as many as the text has tokens
    #[arg(long, value_name = "N")]
    places: Option<usize>,

    /// Read the prompt in runs of N tokens each; without it, in one
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    chunk: usize,

    /// Download and upload the caches at each run, as networks need whose positions follow from their extents
    #[arg(long)]
    carry: bool,

    /// Compare the first runs with those of caches that are downloaded and uploaded
    #[arg(long, conflicts_with = "carry")]
    check: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let prompt = match options.ids.is_empty() {
        true => options.prompt.bytes().map(i64::from).collect(),
        false => options.ids.clone(),
    };
    anyhow::ensure!(!prompt.is_empty(), "the text has to begin with something (--prompt, --ids)");
    let file = ModelFile::load(&options.model, &LoadOptions::default())?;
    let context = Context::new(options.backend)?;
    let places = options.places.unwrap_or(prompt.len() + options.tokens).max(2);
    let session = SessionOptions::default().with_rounded_activations(options.round_activations);
    let new = |places| Decoder::new(&file, &context, session.clone(), places);
    let mut decoder = new((!options.carry).then_some(places))?;
    let mut check = options.check.then(|| new(None)).transpose()?;
    let mut chooser = Chooser::new(options.temperature, options.top_k, options.seed);

    eprintln!("{} on {}", options.model.display(), context.info());
    let begin = Instant::now();
    let mut scores = decoder.prompt(&prompt, options.chunk)?;
    let first = begin.elapsed();
    let mut difference = compared(check.as_mut(), &prompt, &scores)?;
    let writes_bytes = scores.len() == BYTES;
    let mut out = std::io::stdout().lock();
    if writes_bytes {
        out.write_all(options.prompt.as_bytes())?;
    }
    let mut times = Vec::with_capacity(options.tokens);
    for number in 0..options.tokens {
        let next = chooser.choose(&scores);
        match u8::try_from(next) {
            Ok(byte) if writes_bytes => out.write_all(&[byte])?,
            _ => write!(out, "{next} ")?,
        }
        out.flush()?;
        if number + 1 == options.tokens {
            break;
        }
        let begin = Instant::now();
        scores = decoder.run(&[next as i64])?;
        times.push(begin.elapsed());
        if number < 8 {
            difference = difference.max(compared(check.as_mut(), &[next as i64], &scores)?);
        }
    }
    writeln!(out)?;
    report(prompt.len(), first, &times);
    if check.is_some() {
        eprintln!("scores differ by {difference:.1e} at most from those of caches that are carried");
    }
    Ok(())
}

/// How far the scores are from those of another decoder; 0 without one.
fn compared(other: Option<&mut Decoder>, ids: &[i64], scores: &[f32]) -> anyhow::Result<f32> {
    let Some(other) = other else { return Ok(0.0) };
    let wanted = other.run(ids)?;
    Ok(scores.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max))
}

/// Says how fast it was. The run behind the first one makes a plan for all others.
fn report(prompt: usize, first: Duration, times: &[Duration]) {
    eprintln!("{prompt} tokens of the beginning in {first:.1?}, a plan for so many among it");
    let [second, rest @ ..] = times else { return };
    eprintln!("the next token in {second:.1?}, the plan for one token among it");
    let mut sorted = rest.to_vec();
    sorted.sort_unstable();
    if let Some(median) = sorted.get(sorted.len() / 2) {
        let rate = 1.0 / median.as_secs_f64();
        eprintln!("each of {} more in {median:.2?} (median): {rate:.1} tokens a second", rest.len());
    }
}
