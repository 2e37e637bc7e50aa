//! A network that is ready to run, and its tuner.

#[cfg(feature = "gpu")]
use crate::adopt::Adopted;
use crate::engine::Engine;
use crate::{arrays, error, failed, json, names};
#[cfg(feature = "gpu")]
use diptych::Port;
use diptych::{
    Database, FileInput, HostTensor, LoadOptions, ModelFile, Precision, Session, SessionOptions,
    SharedDatabase, Tuning,
};
use js_sys::{Array, Function, Promise, Reflect, Uint8Array};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// A session with its record.
#[wasm_bindgen]
pub struct Network {
    pub(crate) session: Session,
    #[cfg(feature = "gpu")]
    pub(crate) context: diptych::Context,
    record: SharedDatabase,
    #[cfg(feature = "gpu")]
    pub(crate) adopted: Adopted,
    inputs: Vec<FileInput>,
    info: Value,
}

/// A record of this text. Most pages have none, and then its reader is not called: it lies in the module's second file.
fn database(record: &str) -> Database {
    if record.is_empty() { Database::in_memory() } else { Database::from_text(record) }
}

#[wasm_bindgen]
impl Network {
    /// Reads a model and makes it ready. `files` are those that it keeps weights in, `[name, Uint8Array]` each. `options` is
    /// JSON: `precision`, `dimensions`, `dequantize` and `seed`. `record` is the text that [`Network::record`] gave earlier.
    /// `on_progress` is called with JSON. Ends with what the promise `stopped` is refused with, if it is.
    pub async fn build(
        engine: &Engine,
        model: &[u8],
        files: Array,
        options: String,
        record: String,
        on_progress: Function,
        stopped: Promise,
    ) -> Result<Network, JsValue> {
        let ((file, precision), seed) = (read(model, &files, &options)?, seed(&options)?);
        let record = Arc::new(Mutex::new(database(&record)));
        let tuning = Tuning::Database(Arc::clone(&record));
        let options =
            SessionOptions { precision, tuning, seed, cpu_threads: threads(&options)?, ..Default::default() };
        let context = engine.context.clone();
        let mut told = |progress: diptych::BuildProgress| {
            let numbers = json!({
                "compiled": progress.compiled,
                "kernels": progress.kernels,
                "uploaded": progress.uploaded,
                "bytes": progress.bytes,
            });
            // What the page's function throws is its own affair.
            let _ = on_progress.call1(&JsValue::NULL, &numbers.to_string().into());
        };
        let session = {
            let mut built = pin!(file.session_with_progress_async(&context, options, &mut told));
            let mut stopped = JsFuture::from(stopped);
            let session = poll_fn(|task| match Pin::new(&mut stopped).poll(task) {
                Poll::Ready(Err(reason)) => Poll::Ready(Err(reason)),
                _ => built.as_mut().poll(task).map_err(failed),
            });
            session.await?
        };
        let (inputs, info) = (file.inputs(), file.info().clone());
        let normalisation: Vec<Value> = info.inputs.iter().map(|input| json!(input.normalisation)).collect();
        let labels: Vec<Value> = info.outputs.iter().map(|output| json!(output.labels)).collect();
        let info = json!({ "name": info.name, "normalisation": normalisation, "labels": labels });
        Ok(Network {
            session,
            #[cfg(feature = "gpu")]
            context,
            record,
            #[cfg(feature = "gpu")]
            adopted: Adopted::default(),
            inputs,
            info,
        })
    }

    /// Inputs, outputs, steps, memory, and what the file says of the model, as JSON.
    pub fn describe(&self) -> String {
        let mut described = json::session(&self.session);
        described["model"] = self.info.clone();
        described.to_string()
    }

    /// The inputs that have a value in the file, as JSON.
    pub fn optional(&self) -> String {
        json::optional(&self.inputs).to_string()
    }

    /// Runs the network: `names` and `values` (typed arrays) are its inputs, the result its outputs in order, each a typed
    /// array of its port's type. `extents` has an array of numbers for each input that says its extents.
    pub async fn run(&mut self, names: Vec<String>, values: Array, extents: Array) -> Result<Array, JsValue> {
        let inputs = self.inputs(&names, &values, &extents)?;
        let inputs: Vec<(&str, &HostTensor)> = names.iter().map(String::as_str).zip(&inputs).collect();
        let outputs = self.session.run_async(&inputs).await.map_err(unplanned)?;
        Ok(outputs.iter().map(arrays::array).collect())
    }

    /// The time of each step of one run, as JSON.
    pub async fn profile(
        &mut self,
        names: Vec<String>,
        values: Array,
        extents: Array,
    ) -> Result<String, JsValue> {
        let inputs = self.inputs(&names, &values, &extents)?;
        let inputs: Vec<(&str, &HostTensor)> = names.iter().map(String::as_str).zip(&inputs).collect();
        let profile = self.session.profile_async(&inputs).await.map_err(unplanned)?;
        Ok(json::profile(&profile).to_string())
    }

    /// The record, as text to keep.
    pub fn record(&self) -> Result<String, JsValue> {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.text().map_err(error)
    }

    /// Takes the verdicts of a record: the names of the steps that have another kernel now.
    pub async fn refresh(&mut self, record: String) -> Result<Vec<String>, JsValue> {
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = database(&record);
        self.session.refresh_async().await.map_err(error)
    }

    #[cfg(feature = "gpu")]
    pub(crate) fn port(&self, name: &str) -> Result<&Port, JsValue> {
        self.session.inputs().iter().find(|port| port.name == name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> JsValue {
        let known: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        error(format!("input {name:?} is unknown, the network has {}", known.join(", ")))
    }

    /// What is given for an input.
    pub(crate) fn tensor(&self, name: &str, value: &JsValue, said: &JsValue) -> Result<HostTensor, JsValue> {
        let own = self.inputs.iter().find(|own| own.name == *name).ok_or_else(|| self.unknown(name))?;
        arrays::tensor((name, own.dtype), arrays::dims(own, value, said)?, value)
    }

    fn inputs(&self, names: &[String], values: &Array, extents: &Array) -> Result<Vec<HostTensor>, JsValue> {
        let given = names.iter().zip(values.iter()).zip(extents.iter());
        given.map(|((name, value), said)| self.tensor(name, &value, &said)).collect()
    }
}

/// The error of a run. One of extents that are new may need what a small module lacks.
fn unplanned(reason: diptych::Error) -> JsValue {
    match reason.root() {
        diptych::Error::Unsupported { .. } | diptych::Error::Model { .. } => failed(reason),
        _ => error(names::in_javascript(&reason)),
    }
}

/// A model's file with those that it keeps weights in, and the precision of `options`, which are JSON.
pub(crate) fn read(model: &[u8], files: &Array, options: &str) -> Result<(ModelFile, Precision), JsValue> {
    let options: Value = serde_json::from_str(options).map_err(error)?;
    let mut load = LoadOptions::default();
    for file in files.iter() {
        let name = Reflect::get_u32(&file, 0)?.as_string().unwrap_or_default();
        let bytes: Uint8Array = Reflect::get_u32(&file, 1)?.dyn_into()?;
        load.files.insert(name, bytes.to_vec().into());
    }
    for (name, extent) in options["dimensions"].as_object().into_iter().flatten() {
        let extent = extent
            .as_u64()
            .and_then(|extent| usize::try_from(extent).ok())
            .ok_or_else(|| error(format!("dimension {name:?}: found {extent}, wanted a whole number")))?;
        load.dimensions.insert(name.clone(), extent);
    }
    load.dequantize = options["dequantize"].as_bool().unwrap_or(false);
    let precision = match options["precision"].as_str() {
        None | Some("f32") => Precision::F32,
        Some("f16s") => Precision::F16Storage,
        Some("f16") => Precision::F16,
        Some(other) => {
            return Err(error(format!("precision: found {other:?}, wanted \"f32\", \"f16s\" or \"f16\"")));
        }
    };
    Ok((ModelFile::from_bytes(model, &load).map_err(failed)?, precision))
}

/// The most threads of the CPU that `options` give a session.
fn threads(options: &str) -> Result<Option<NonZeroUsize>, JsValue> {
    let options: Value = serde_json::from_str(options).map_err(error)?;
    let threads = options["threads"].as_u64().and_then(|threads| usize::try_from(threads).ok());
    Ok(threads.and_then(NonZeroUsize::new))
}

/// The seed of `options`: digits, because a number of JSON has fewer bits.
fn seed(options: &str) -> Result<u64, JsValue> {
    let options: Value = serde_json::from_str(options).map_err(error)?;
    let Some(seed) = options["seed"].as_str() else { return Ok(0) };
    let wanted = |_| error(format!("seed: found {seed}, wanted a whole number from 0 to {}", u64::MAX));
    seed.parse().map_err(wanted)
}
