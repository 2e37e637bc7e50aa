//! Where networks run: a WebGPU device of our own, the page's, or the CPU.

#[cfg(feature = "gpu")]
use crate::adopt;
use crate::{error, failed, json};
use diptych::{Backend, Context};
use wasm_bindgen::prelude::*;

/// A device, or the CPU.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Engine {
    pub(crate) context: Context,
}

#[wasm_bindgen]
impl Engine {
    /// Opens a backend: `auto`, `webgpu` or `cpu`.
    pub async fn open(backend: String) -> Result<Engine, JsValue> {
        let backend = match backend.as_str() {
            "auto" => Backend::Auto,
            "webgpu" => Backend::Wgpu,
            "cpu" => Backend::Cpu,
            other => {
                return Err(error(format!(
                    "backend: found {other:?}, wanted \"auto\", \"webgpu\" or \"cpu\""
                )));
            }
        };
        let context = Context::new_async(backend).await.map_err(failed)?;
        Ok(Engine { context })
    }

    /// Uses a `GPUDevice` of the page's.
    #[cfg(feature = "gpu")]
    pub async fn adopt(device: JsValue) -> Result<Engine, JsValue> {
        let (adapter, device, queue) = adopt::device(&device).await?;
        let context = Context::from_wgpu(&adapter, device, queue).map_err(error)?;
        Ok(Engine { context })
    }

    /// The backend, the device, and why it is this one, as JSON.
    pub fn info(&self) -> String {
        json::info(self.context.info()).to_string()
    }

    /// The `GPUDevice`; undefined on the CPU.
    #[cfg(feature = "gpu")]
    pub fn device(&self) -> JsValue {
        let raw = self.context.wgpu().and_then(|(device, _)| device.as_webgpu());
        raw.map_or(JsValue::UNDEFINED, |raw| raw.clone().into())
    }

    /// There is no `GPUDevice` in a module for the CPU.
    #[cfg(not(feature = "gpu"))]
    pub fn device(&self) -> JsValue {
        JsValue::UNDEFINED
    }
}
