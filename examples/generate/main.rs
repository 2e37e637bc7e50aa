//! Writes text with a decoder, one token at a time: `cargo run --release --example generate -- --prompt "The session "`.
//!
//! The keys and values of the tokens so far stay on the device ([`Session::cache`]): each run adds those of one token to
//! them. The device draws each token too, and takes it as the next run's input, so that a run begins before the host has the token of the
//! one before. The bundled network knows bytes, and was trained on this project's own documents (`train.py`). `--model` takes
//! other decoders whose ONNX files have `input_ids`, caches, and `attention_mask` and `position_ids` if they want them;
//! their tokens are given and printed as numbers (`--ids`).

mod choice;
mod decoder;

use choice::Chooser;
use clap::Parser;
use decoder::Decoder;
use diptych::Sampling;
use diptych::{Backend, Context, Flight, LoadOptions, ModelFile, Precision, SessionOptions};
use std::collections::VecDeque;
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

    /// Have GPUs store values in halves (`Precision::F16Storage`)
    #[arg(long)]
    halves: bool,

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

    /// Choose tokens on the host by all scores, and begin a run when the one before is over
    #[arg(long)]
    on_host: bool,

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
    let precision = if options.halves { Precision::F16Storage } else { Precision::F32 };
    let session = SessionOptions { precision, ..SessionOptions::default() }
        .with_rounded_activations(options.round_activations);
    eprintln!("{} on {}", options.model.display(), context.info());
    if options.on_host || options.carry || options.check {
        return on_host(&options, &prompt, &file, &context, session, places);
    }
    let sampling = match options.temperature > 0.0 {
        true => Sampling::new(options.temperature).with_top_k(options.top_k),
        false => Sampling::default(),
    };
    let session = SessionOptions { seed: options.seed, ..session };
    let mut decoder = Decoder::drawing(&file, &context, session, (places, sampling))?;
    let begin = Instant::now();
    let first = Decoder::token(decoder.begin(&prompt, options.chunk)?)?;
    let took = begin.elapsed();
    let mut text = Text::new(&options, is_of_bytes(&file))?;
    if options.tokens > 0 {
        text.write(first)?;
    }
    // One run is under way while the next one begins.
    let (mut times, mut begun) = (Vec::with_capacity(options.tokens), VecDeque::new());
    let mut last = Instant::now();
    for _ in 1..options.tokens {
        begun.push_back(decoder.draw(None)?);
        if begun.len() > 1 {
            next(&mut begun, &mut text, &mut times, &mut last)?;
        }
    }
    while !begun.is_empty() {
        next(&mut begun, &mut text, &mut times, &mut last)?;
    }
    text.end()?;
    report(prompt.len(), took, &times);
    Ok(())
}

/// Writes the token of the run that began first, and notes when it came.
fn next(
    begun: &mut VecDeque<Flight>,
    text: &mut Text,
    times: &mut Vec<Duration>,
    last: &mut Instant,
) -> anyhow::Result<()> {
    let Some(flight) = begun.pop_front() else { return Ok(()) };
    text.write(Decoder::token(flight)?)?;
    times.push(last.elapsed());
    *last = Instant::now();
    Ok(())
}

/// Whether a decoder's tokens are bytes: it has as many scores behind each place.
fn is_of_bytes(file: &ModelFile) -> bool {
    let outputs = file.outputs();
    let logits = outputs.iter().find(|port| port.name == "logits");
    logits.is_some_and(|port| port.dims.extents().last() == Some(&BYTES))
}

/// The text, as far as it is written.
struct Text {
    out: std::io::StdoutLock<'static>,
    of_bytes: bool,
}

impl Text {
    /// One that begins with the prompt.
    fn new(options: &Options, of_bytes: bool) -> anyhow::Result<Self> {
        let mut out = std::io::stdout().lock();
        if of_bytes && options.ids.is_empty() {
            out.write_all(options.prompt.as_bytes())?;
        }
        Ok(Text { out, of_bytes })
    }

    fn write(&mut self, token: i64) -> anyhow::Result<()> {
        match u8::try_from(token) {
            Ok(byte) if self.of_bytes => self.out.write_all(&[byte])?,
            _ => write!(self.out, "{token} ")?,
        }
        Ok(self.out.flush()?)
    }

    fn end(&mut self) -> anyhow::Result<()> {
        Ok(writeln!(self.out)?)
    }
}

/// Chooses each token on the host by all scores.
fn on_host(
    options: &Options,
    prompt: &[i64],
    file: &ModelFile,
    context: &Context,
    session: SessionOptions,
    places: usize,
) -> anyhow::Result<()> {
    let new = |places| Decoder::new(file, context, session.clone(), places);
    let mut decoder = new((!options.carry).then_some(places))?;
    let mut check = options.check.then(|| new(None)).transpose()?;
    let mut chooser = Chooser::new(options.temperature, options.top_k, options.seed);
    let begin = Instant::now();
    let mut scores = decoder.prompt(prompt, options.chunk)?;
    let first = begin.elapsed();
    let mut difference = compared(check.as_mut(), prompt, &scores)?;
    let mut text = Text::new(options, scores.len() == BYTES)?;
    let mut times = Vec::with_capacity(options.tokens);
    for number in 0..options.tokens {
        let next = chooser.choose(&scores) as i64;
        text.write(next)?;
        if number + 1 == options.tokens {
            break;
        }
        let begin = Instant::now();
        scores = decoder.run(&[next])?;
        times.push(begin.elapsed());
        if number < 8 {
            difference = difference.max(compared(check.as_mut(), &[next], &scores)?);
        }
    }
    text.end()?;
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
