//! The page's own `GPUDevice`, `GPUBuffer` and `GPUTexture` as wgpu's.
//!
//! wgpu makes its handles itself: it reads `navigator.gpu` where an instance is made and calls `createBuffer` or
//! `createTexture` where a buffer or a texture is. Each is a single synchronous call, and this module has something else
//! stand in their place for the length of one: an object whose adapter gives the page's device, and a function that gives
//! the page's buffer or texture. No other JavaScript runs in between, so nobody else meets them.

use crate::message;
use diptych::wgpu;
use js_sys::{Function, Object, Promise, Reflect};
use std::collections::VecDeque;
use wasm_bindgen::prelude::*;

/// A property that is another one for the length of a call.
struct Replaced<'a> {
    object: &'a JsValue,
    name: &'static str,
    /// The descriptor of the object's own property, if it had one.
    own: JsValue,
}

impl<'a> Replaced<'a> {
    fn new(object: &'a JsValue, name: &'static str, value: &JsValue) -> Result<Self, JsValue> {
        let descriptor = Object::new();
        Reflect::set(&descriptor, &"configurable".into(), &JsValue::TRUE)?;
        Reflect::set(&descriptor, &"value".into(), value)?;
        let target = object.unchecked_ref::<Object>();
        let own = Object::get_own_property_descriptor(target, &name.into());
        if !Reflect::define_property(target, &name.into(), &descriptor)? {
            return Err(crate::error(format!("found a {name} that cannot be replaced")));
        }
        Ok(Replaced { object, name, own })
    }
}

impl Drop for Replaced<'_> {
    /// The browser's property is the prototype's, and shows again. One that the page has set on the object itself is set again.
    fn drop(&mut self) {
        let target = self.object.unchecked_ref::<Object>();
        let _ = Reflect::delete_property(target, &self.name.into());
        if let Some(own) = self.own.dyn_ref::<Object>() {
            let _ = Reflect::define_property(target, &self.name.into(), own);
        }
    }
}

/// wgpu's handles of the page's device.
pub(crate) async fn device(own: &JsValue) -> Result<(wgpu::Adapter, wgpu::Device, wgpu::Queue), JsValue> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into())?;
    let gpu = Reflect::get(&navigator, &"gpu".into())?;
    if !Reflect::get(own, &"createComputePipeline".into())?.is_function() {
        return Err(crate::error("option device: found something else, wanted a GPUDevice"));
    }
    let given: Object = Object::new();
    for (name, of) in [("features", "features"), ("limits", "limits"), ("info", "adapterInfo")] {
        Reflect::set(&given, &name.into(), &Reflect::get(own, &of.into())?)?;
    }
    let device = own.clone();
    let request: Function = Closure::<dyn FnMut() -> Promise>::new(move || Promise::resolve(&device))
        .into_js_value()
        .unchecked_into();
    Reflect::set(&given, &"requestDevice".into(), &request)?;
    let given = JsValue::from(given);
    let stand_in: Object = Object::create(gpu.unchecked_ref::<Object>());
    let request: Function = Closure::<dyn FnMut() -> Promise>::new(move || Promise::resolve(&given))
        .into_js_value()
        .unchecked_into();
    Reflect::set(&stand_in, &"requestAdapter".into(), &request)?;
    Reflect::set(
        &stand_in,
        &"wgslLanguageFeatures".into(),
        &Reflect::get(&gpu, &"wgslLanguageFeatures".into())?,
    )?;

    let instance = {
        let _replaced = Replaced::new(&navigator, "gpu", &stand_in)?;
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::BROWSER_WEBGPU;
        wgpu::Instance::new(descriptor)
    };
    let adapter =
        instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await.map_err(crate::error)?;
    let wanted = wgpu::DeviceDescriptor {
        required_features: adapter.features(),
        required_limits: adapter.limits(),
        ..Default::default()
    };
    let (device, queue) = adapter.request_device(&wanted).await.map_err(crate::error)?;
    Ok((adapter, device, queue))
}

/// How many handles of the page's buffers are kept.
const KEPT: usize = 64;

/// wgpu's handles of the page's buffers and textures: the same one for the same object, because a session remembers
/// what it recorded for a handle.
#[derive(Debug, Default)]
pub(crate) struct Adopted {
    buffers: VecDeque<(JsValue, wgpu::Buffer)>,
    views: VecDeque<(JsValue, wgpu::TextureView)>,
}

impl Adopted {
    /// The handle of a buffer that the page made on `device`.
    pub(crate) fn buffer(&mut self, device: &wgpu::Device, own: &JsValue) -> Result<wgpu::Buffer, JsValue> {
        known(&mut self.buffers, own, || buffer(device, own))
    }

    /// The handle of a view of all of a texture that the page made on `device`, in `rgba8unorm`, with usage
    /// `TEXTURE_BINDING`.
    pub(crate) fn view(
        &mut self,
        device: &wgpu::Device,
        own: &JsValue,
    ) -> Result<wgpu::TextureView, JsValue> {
        known(&mut self.views, own, || Ok(texture(device, own)?.create_view(&Default::default())))
    }
}

fn known<T: Clone>(
    kept: &mut VecDeque<(JsValue, T)>,
    own: &JsValue,
    make: impl FnOnce() -> Result<T, JsValue>,
) -> Result<T, JsValue> {
    if let Some((_, known)) = kept.iter().find(|(known, _)| known == own) {
        return Ok(known.clone());
    }
    let made = make()?;
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back((own.clone(), made.clone()));
    Ok(made)
}

/// A property that is a number.
fn number(own: &JsValue, name: &str, what: &str) -> Result<f64, JsValue> {
    let value = Reflect::get(own, &name.into())?.as_f64();
    value.ok_or_else(|| crate::error(format!("found no {name}, wanted a {what}")))
}

/// What `make` makes while `create` of `device` gives the page's own object.
fn standing_in<T>(
    device: &wgpu::Device,
    create: &'static str,
    own: &JsValue,
    make: impl FnOnce() -> T,
) -> Result<T, JsValue> {
    let raw: JsValue = match device.as_webgpu() {
        Some(raw) => raw.clone().into(),
        None => {
            return Err(crate::error("found a GPUBuffer, wanted a typed array: the network runs on the CPU"));
        }
    };
    let own = own.clone();
    let created = Closure::<dyn FnMut() -> JsValue>::new(move || own.clone());
    let _replaced =
        Replaced::new(&raw, create, created.as_ref()).map_err(|thrown| crate::error(message(&thrown)))?;
    Ok(make())
}

fn buffer(device: &wgpu::Device, own: &JsValue) -> Result<wgpu::Buffer, JsValue> {
    let number = |name| number(own, name, "GPUBuffer");
    let descriptor = wgpu::BufferDescriptor {
        label: None,
        size: number("size")? as u64,
        usage: wgpu::BufferUsages::from_bits_truncate(number("usage")? as u32),
        mapped_at_creation: false,
    };
    standing_in(device, "createBuffer", own, || device.create_buffer(&descriptor))
}

fn texture(device: &wgpu::Device, own: &JsValue) -> Result<wgpu::Texture, JsValue> {
    let number = |name| number(own, name, "GPUTexture");
    let descriptor = wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d {
            width: number("width")? as u32,
            height: number("height")? as u32,
            depth_or_array_layers: 1,
        },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::from_bits_truncate(number("usage")? as u32),
        view_formats: &[],
    };
    standing_in(device, "createTexture", own, || device.create_texture(&descriptor))
}
