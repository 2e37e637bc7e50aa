//! A network that is ready to run, and its tuner.

use crate::adopt::Adopted;
use crate::engine::Engine;
use crate::{arrays, error, failed, json};
use diptych::{
    Colours, Database, FileInput, Framing, HostTensor, LoadOptions, ModelFile, Pictures, Port, Precision,
    Session, SessionOptions, SharedDatabase, Tuning, WgpuInput, wgpu,
};
use js_sys::{Array, ArrayBuffer, Float32Array, Function, Promise, Reflect, Uint8Array};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// A session with its record.
#[wasm_bindgen]
pub struct Network {
    session: Session,
    context: diptych::Context,
    record: SharedDatabase,
    adopted: Adopted,
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
        let options = SessionOptions { precision, tuning, seed, ..Default::default() };
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
            let mut built = pin!(file.build_session_with_progress(&context, options, &mut told));
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
        Ok(Network { session, context, record, adopted: Adopted::default(), inputs, info })
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

    /// Runs the network on its device: `values` are typed arrays, `GPUBuffer`s or pictures of the input's size
    /// ([`colours`]), `targets` a `GPUBuffer` for each output. Extents that the file leaves open are those of the last run.
    /// Returns when the run is submitted.
    pub async fn run_on_device(
        &mut self,
        names: Vec<String>,
        values: Array,
        extents: Array,
        targets: Array,
    ) -> Result<(), JsValue> {
        let Some((device, queue)) = self.context.wgpu() else {
            return Err(error("found a GPUBuffer, wanted typed arrays: the network runs on the CPU"));
        };
        let mut sources = Vec::with_capacity(names.len());
        for ((name, value), said) in names.iter().zip(values.iter()).zip(extents.iter()) {
            let texture = Reflect::get(&value, &"texture".into())?;
            sources.push(if ArrayBuffer::is_view(&value) {
                let port = self.port(name)?;
                let tensor = self.tensor(name, &value, &said)?;
                if tensor.dims() != port.dims {
                    let (found, wanted) = (tensor.dims(), port.dims);
                    return Err(error(format!(
                        "input {name:?}: found {found}, wanted the last run's {wanted}"
                    )));
                }
                let words = arrays::words(port, &tensor)?;
                Source::Buffer(uploaded(device, queue, name, &words))
            } else if texture.is_object() {
                let view = self.adopted.view(device, &texture)?;
                let size = view.texture().size();
                let framing = Framing::new([size.width, size.height], [size.width, size.height]);
                let framing = framing.map_err(error)?;
                Source::Picture(Box::new(Shown { view, framing, colours: colours(&value)? }))
            } else {
                Source::Buffer(self.adopted.buffer(device, &value)?)
            });
        }
        let pictures: Vec<_> = sources.iter().map(Source::picture).collect();
        let mut wanted = Vec::with_capacity(targets.length() as usize);
        for target in targets.iter() {
            wanted.push(self.adopted.buffer(device, &target)?);
        }
        let given = sources.iter().zip(&pictures).map(|(source, picture)| match source {
            Source::Buffer(buffer) => WgpuInput::from(buffer),
            Source::Picture(shown) => WgpuInput::from(Pictures::new(picture, shown.colours)),
        });
        let inputs: Vec<(&str, WgpuInput<'_>)> = names.iter().map(String::as_str).zip(given).collect();
        let ports: Vec<String> = self.session.outputs().iter().map(|port| port.name.clone()).collect();
        let outputs: Vec<(&str, &wgpu::Buffer)> = ports.iter().map(String::as_str).zip(&wanted).collect();
        self.session.bind(&inputs, &outputs).await.map_err(error)?;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        self.session.encode(&mut encoder, &inputs, &outputs).map_err(error)?;
        queue.submit([encoder.finish()]);
        Ok(())
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

    fn port(&self, name: &str) -> Result<&Port, JsValue> {
        self.session.inputs().iter().find(|port| port.name == name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> JsValue {
        let known: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        error(format!("input {name:?} is unknown, the network has {}", known.join(", ")))
    }

    /// What is given for an input.
    fn tensor(&self, name: &str, value: &JsValue, said: &JsValue) -> Result<HostTensor, JsValue> {
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
    match reason {
        diptych::Error::Unsupported { .. } | diptych::Error::Model { .. } => failed(reason),
        other => error(other),
    }
}

/// What an input is on the device.
enum Source {
    Buffer(wgpu::Buffer),
    Picture(Box<Shown>),
}

/// A texture of the input's size, and what becomes of its colours.
struct Shown {
    view: wgpu::TextureView,
    framing: Framing,
    colours: Colours,
}

impl Source {
    fn picture(&self) -> Vec<(&wgpu::TextureView, Framing)> {
        match self {
            Source::Buffer(_) => Vec::new(),
            Source::Picture(shown) => vec![(&shown.view, shown.framing)],
        }
    }
}

/// What becomes of the bytes of a picture `{ texture, mean, deviation, gray }`: `(byte - mean) / deviation` of red, green
/// and blue, or of their luma.
fn colours(shown: &JsValue) -> Result<Colours, JsValue> {
    let three = |name: &str| {
        let numbers =
            Reflect::get(shown, &name.into())?.dyn_into::<Float32Array>().map(|array| array.to_vec());
        let numbers = numbers.ok().and_then(|numbers| <[f32; 3]>::try_from(numbers).ok());
        let numbers =
            numbers.ok_or_else(|| error(format!("{name}: wanted a Float32Array of three numbers")))?;
        Ok::<_, JsValue>(numbers.map(|number| number / 255.0))
    };
    let colours = Colours::normalized(three("mean")?, three("deviation")?).map_err(error)?;
    let gray = Reflect::get(shown, &"gray".into())?.is_truthy();
    Ok(if gray { colours.gray() } else { colours })
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

/// The seed of `options`: digits, because a number of JSON has fewer bits.
fn seed(options: &str) -> Result<u64, JsValue> {
    let options: Value = serde_json::from_str(options).map_err(error)?;
    let Some(seed) = options["seed"].as_str() else { return Ok(0) };
    let wanted = |_| error(format!("seed: found {seed}, wanted a whole number from 0 to {}", u64::MAX));
    seed.parse().map_err(wanted)
}

/// A buffer with these bytes.
fn uploaded(device: &wgpu::Device, queue: &wgpu::Queue, name: &str, bytes: &[u8]) -> wgpu::Buffer {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(name),
        size: bytes.len() as u64,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    queue.write_buffer(&buffer, 0, bytes);
    buffer
}
