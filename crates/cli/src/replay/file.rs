//! The file of a run that can be repeated elsewhere: safetensors, with what it is in the metadata.
//!
//! Tensor `model` is the model's file, `value/N` value `N` of its graph: an input, or what a step wrote; `known/NAME` is
//! an input that was known while the model was read.

use anyhow::{Context as _, Result, bail};
use diptych::{HostTensor, ObservedStep, Weights};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The version of the format, and the metadata's key.
pub(crate) const FORMAT: u32 = 2;
const KEY: &str = "diptych.replay";

const MODEL: &str = "model";
const VALUE: &str = "value/";
const KNOWN: &str = "known/";

/// A run, but for its tensors.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) format: u32,
    /// The crate's version.
    pub(crate) version: String,
    /// The device that ran it, with its driver.
    pub(crate) device: String,
    /// The name of the model's file.
    pub(crate) model: String,
    /// Whether its weights were put in the place of others before it ran.
    pub(crate) random_weights: bool,
    /// What was given to read it: extents and images in a batch.
    pub(crate) dimensions: BTreeMap<String, usize>,
    pub(crate) batch: Option<u32>,
    /// The options.
    pub(crate) precision: String,
    pub(crate) on_cpu: Vec<String>,
    /// A calibration, as JSON.
    pub(crate) calibration: Option<String>,
    /// Inputs to which the model's file gives a value of its own.
    #[serde(default)]
    pub(crate) open_inputs: BTreeSet<String>,
    /// The signature whose network ran.
    #[serde(default)]
    pub(crate) signature: Option<String>,
    /// Whether quantized operators were computed on floats.
    #[serde(default)]
    pub(crate) dequantize: bool,
    /// The inputs, by name, and their values.
    pub(crate) inputs: Vec<(String, usize)>,
    /// Whether the file has one step alone.
    pub(crate) one_step: bool,
    pub(crate) steps: Vec<SavedStep>,
}

/// A step: what computed what of what, and how far off it was.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedStep {
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) problem: String,
    pub(crate) precision: String,
    pub(crate) kernel: String,
    pub(crate) source: String,
    pub(crate) wgsl: String,
    pub(crate) opencl: String,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) grid: [u32; 3],
    /// Operands and values that it read.
    pub(crate) reads: Vec<(String, usize)>,
    pub(crate) writes: Vec<usize>,
    /// How far off its last value was, in proportion to the bound; none if that is not finite or not known.
    pub(crate) ratio: Option<f64>,
    /// How far off its last value was, in words.
    pub(crate) deviation: String,
    /// Whether it is beyond the bound.
    pub(crate) beyond: bool,
}

impl SavedStep {
    pub(crate) fn of(step: &ObservedStep) -> Self {
        let (ratio, words, beyond) = super::deviation(step);
        let (wgsl, opencl, params, grid) = match step.texts.clone() {
            Some(texts) => (texts.wgsl, texts.opencl, texts.params, texts.grid),
            None => Default::default(),
        };
        SavedStep {
            name: step.name.clone(),
            op: step.op.to_owned(),
            problem: step.problem.clone(),
            precision: step.precision.to_string(),
            kernel: step.kernel.clone(),
            source: step.source.clone(),
            wgsl,
            opencl,
            params,
            grid,
            reads: step.reads.iter().map(|(operand, value)| ((*operand).to_owned(), value.index())).collect(),
            writes: step.writes.iter().map(|value| value.index()).collect(),
            ratio: ratio.filter(|ratio| ratio.is_finite()),
            deviation: words,
            beyond,
        }
    }
}

/// A run with its tensors.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) saved: Saved,
    pub(crate) model: Vec<u8>,
    /// Inputs that were known while the model was read.
    pub(crate) known: BTreeMap<String, HostTensor>,
    pub(crate) values: BTreeMap<usize, HostTensor>,
}

/// A tensor of the header.
#[derive(Serialize)]
struct Entry {
    dtype: &'static str,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

impl Replay {
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut header: BTreeMap<String, serde_json::Value> = BTreeMap::new();
        let metadata = BTreeMap::from([(KEY, serde_json::to_string(&self.saved)?)]);
        header.insert("__metadata__".to_owned(), serde_json::to_value(metadata)?);
        let mut data = self.model.clone();
        // Elements of four bytes begin at multiples of four.
        data.resize(data.len().next_multiple_of(4), 0);
        let padding = data.len() - self.model.len();
        let data_offsets = [0, self.model.len()];
        let entry = Entry { dtype: "U8", shape: vec![self.model.len()], data_offsets };
        header.insert(MODEL.to_owned(), serde_json::to_value(entry)?);
        if padding > 0 {
            let data_offsets = [self.model.len(), data.len()];
            let entry = Entry { dtype: "U8", shape: vec![padding], data_offsets };
            header.insert("padding".to_owned(), serde_json::to_value(entry)?);
        }
        let known = self.known.iter().map(|(name, tensor)| (format!("{KNOWN}{name}"), tensor));
        let values = self.values.iter().map(|(index, tensor)| (format!("{VALUE}{index}"), tensor));
        for (name, tensor) in known.chain(values) {
            let from = data.len();
            data.extend(tensor.to_nhwc().iter().flat_map(|value| value.to_le_bytes()));
            let shape = tensor.dims().extents().to_vec();
            let entry = Entry { dtype: "F32", shape, data_offsets: [from, data.len()] };
            header.insert(name, serde_json::to_value(entry)?);
        }
        let header = serde_json::to_vec(&header)?;
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header);
        file.extend(data);
        std::fs::write(path, file).with_context(|| path.display().to_string())
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = Weights::open(path)?;
        let Some(saved) = file.metadata().get(KEY) else {
            bail!(
                "{}: found a safetensors file without {KEY:?}, wanted what run --replay-out writes",
                path.display()
            );
        };
        let saved: serde_json::Value =
            serde_json::from_str(saved).with_context(|| path.display().to_string())?;
        let format = saved.get("format").and_then(serde_json::Value::as_u64);
        if format != Some(FORMAT.into()) {
            let found = format.map_or("none".to_owned(), |format| format.to_string());
            bail!("{}: found format {found}, wanted {FORMAT}", path.display());
        }
        let saved: Saved = serde_json::from_value(saved).with_context(|| path.display().to_string())?;
        let model = file.bytes(MODEL)?.to_vec();
        let (mut known, mut values) = (BTreeMap::new(), BTreeMap::new());
        for name in file.names() {
            if let Some(index) = name.strip_prefix(VALUE).and_then(|index| index.parse().ok()) {
                values.insert(index, file.get(name)?);
            } else if let Some(input) = name.strip_prefix(KNOWN) {
                known.insert(input.to_owned(), file.get(name)?);
            }
        }
        Ok(Replay { saved, model, known, values })
    }
}
