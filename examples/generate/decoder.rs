//! A decoder that keeps the keys and values of the tokens that it has seen.

use anyhow::Context as _;
use diptych::{Caches, Context, Dims, FileInput, HostTensor, ModelFile, Session, SessionOptions};

/// A decoder and what it has seen.
pub struct Decoder {
    session: Session,
    inputs: Vec<FileInput>,
    seen: usize,
}

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
        anyhow::ensure!(
            !pairs.is_empty(),
            "the file has no outputs that are inputs of the next run (present, past)"
        );
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
        let places = self.seen..self.seen + ids.len();
        let row = |values: Vec<i64>| HostTensor::of(Dims::new(&[1, values.len()])?, values);
        let tensors = [
            ("input_ids", row(ids.to_vec())?),
            ("attention_mask", row(vec![1; places.end])?),
            ("position_ids", row(places.clone().map(|place| place as i64).collect())?),
        ];
        let has = |name: &str| self.inputs.iter().any(|input| input.name == name);
        let given: Vec<(&str, &HostTensor)> =
            tensors.iter().filter(|(name, _)| has(name)).map(|(name, tensor)| (*name, tensor)).collect();
        let outputs = self.session.run_shown(&given)?;
        let port = outputs.ports().iter().position(|port| port.name == "logits");
        let port = port.context("the file has no output \"logits\"")?;
        let tokens = *outputs.ports()[port].dims.extents().last().context("logits without tokens")?;
        let scores = outputs.get(port)?;
        self.seen = places.end;
        Ok(scores[scores.len() - tokens..].to_vec())
    }
}
