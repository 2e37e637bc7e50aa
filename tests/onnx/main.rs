//! ONNX files on every backend: models that others trained, and ONNX's own tests of single operators.
#![cfg(feature = "onnx")]

mod models;
mod node;

#[path = "../posenet/npy.rs"]
mod npy;

use diptych::{Backend, Context, HostTensor};
use std::path::Path;

/// The context, if it is there; a missing device fails where devices are required.
fn context(backend: Backend) -> Option<Context> {
    match Context::new(backend) {
        Ok(context) => Some(context),
        Err(error) if std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1") => {
            panic!("{backend} is required: {error}")
        }
        Err(error) => {
            println!("skipping {backend}: {error}");
            None
        }
    }
}

/// The tensor of a file, its elements as floats.
fn tensor(path: &Path) -> Result<HostTensor, String> {
    let (shape, values) = npy::read(path);
    let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
    let dims = diptych::Dims::new(&shape).map_err(|error| error.to_string())?;
    HostTensor::new(dims, values).map_err(|error| error.to_string())
}
