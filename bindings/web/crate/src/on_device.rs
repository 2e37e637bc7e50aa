//! Runs on the page's own buffers, textures and device.

use crate::network::Network;
use crate::{arrays, error};
use diptych::{Colours, Framing, Pictures, WgpuInput, wgpu};
use js_sys::{Array, ArrayBuffer, Float32Array, Reflect};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Network {
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
