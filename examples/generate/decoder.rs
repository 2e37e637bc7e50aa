//! A decoder that keeps the keys and values of the tokens that it has seen.

use anyhow::Context as _;
use diptych::Sampling;
use diptych::{Caches, Context, Dims, FileInput, Flight, HostTensor, ModelFile, Session, SessionOptions};

const NO_PAIRS: &str = "the file has no outputs that are inputs of the next run (present, past)";

/// A decoder and what it has seen.
pub struct Decoder {
    session: Session,
    inputs: Vec<FileInput>,
    seen: usize,
}

/// The output of a decoder that draws tokens.
const TOKEN: &str = "token";

impl Decoder {
    /// One whose caches have so many places, or one that downloads and uploads them at each run.
    pub fn new(
        file: &ModelFile,
        context: &Context,
        options: SessionOptions,
        places: Option<usize>,
    ) -> anyhow::Result<Self> {
        let mut session = file.session(context, options)?;
        let pairs = file.cache_pairs();
        anyhow::ensure!(!pairs.is_empty(), NO_PAIRS);
        match places {
            Some(places) => session.cache(&Caches::new(&pairs, places))?,
            None => {
                let pairs: Vec<(&str, &str)> = pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
                session.carry(&pairs)?;
            }
        }
        let inputs = file.inputs();
        Ok(Decoder { session, inputs, seen: 0 })
    }

    /// One that draws tokens on the device and leaves each there for the next run.
    pub fn drawing(
        file: &ModelFile,
        context: &Context,
        options: SessionOptions,
        (places, sampling): (usize, Sampling),
    ) -> anyhow::Result<Self> {
        let file = file.with_next_token("logits", TOKEN, sampling)?;
        let pairs = file.cache_pairs();
        anyhow::ensure!(!pairs.is_empty(), NO_PAIRS);
        let mut session = file.session(context, options)?;
        session.cache(&Caches::new(&pairs, places).with_fed(&[(TOKEN, "input_ids")]))?;
        Ok(Decoder { session, inputs: file.inputs(), seen: 0 })
    }

    /// Begins a run that draws the token behind the given ones, or behind the one that the run before drew.
    pub fn draw(&mut self, ids: Option<&[i64]>) -> anyhow::Result<Flight> {
        let tensors = self.tensors(ids, ids.map_or(1, <[i64]>::len))?;
        let given: Vec<(&str, &HostTensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
        Ok(self.session.submit(&given)?)
    }

    /// The token that a run has drawn, once it is there.
    pub fn token(flight: Flight) -> anyhow::Result<i64> {
        let outputs = flight.wait()?;
        let port = outputs.ports().iter().position(|port| port.name == TOKEN).context("no token")?;
        let token = outputs.tensor(port)?;
        let integers: Vec<i64> = match token.to_i64() {
            Some(integers) => integers.to_vec(),
            None => token.to_f32().iter().map(|&token| token as i64).collect(),
        };
        integers.first().copied().context("no token")
    }

    /// Begins to read a prompt in runs of `chunk` tokens each: the run of the last one.
    pub fn begin(&mut self, ids: &[i64], chunk: usize) -> anyhow::Result<Flight> {
        let mut flight = None;
        for part in ids.chunks(chunk.max(1)) {
            flight = Some(self.draw(Some(part))?);
        }
        flight.context("the text has to begin with something")
    }

    /// What a run is given with so many tokens more: the inputs that the file has.
    fn tensors(
        &mut self,
        ids: Option<&[i64]>,
        count: usize,
    ) -> anyhow::Result<Vec<(&'static str, HostTensor)>> {
        let places = self.seen..self.seen + count;
        self.seen = places.end;
        let row = |values: Vec<i64>| HostTensor::of(Dims::new(&[1, values.len()])?, values);
        let mut tensors = vec![
            ("attention_mask", row(vec![1; places.end])?),
            ("position_ids", row(places.map(|place| place as i64).collect())?),
        ];
        tensors
            .extend(ids.map(|ids| Ok::<_, diptych::Error>(("input_ids", row(ids.to_vec())?))).transpose()?);
        tensors.retain(|(name, _)| self.inputs.iter().any(|input| input.name == *name));
        Ok(tensors)
    }

    /// Reads tokens in runs of `chunk` each: the scores of each token to come, behind the last one.
    pub fn prompt(&mut self, ids: &[i64], chunk: usize) -> anyhow::Result<Vec<f32>> {
        let mut scores = Vec::new();
        for part in ids.chunks(chunk.max(1)) {
            scores = self.run(part)?;
        }
        Ok(scores)
    }

    /// The scores of each token to come, behind the given ones.
    pub fn run(&mut self, ids: &[i64]) -> anyhow::Result<Vec<f32>> {
        let tensors = self.tensors(Some(ids), ids.len())?;
        let given: Vec<(&str, &HostTensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let outputs = self.session.run_shown(&given)?;
        let port = outputs.ports().iter().position(|port| port.name == "logits");
        let port = port.context("the file has no output \"logits\"")?;
        let tokens = *outputs.ports()[port].dims.extents().last().context("logits without tokens")?;
        let scores = outputs.get(port)?;
        Ok(scores[scores.len() - tokens..].to_vec())
    }
}
