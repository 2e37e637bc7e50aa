//! The backends of this machine, and values to run on them.

use diptych::{Backend, Context, HostTensor, Shape};

/// Contexts of `backends`; a missing one is printed, or fails if devices are required. They keep no kernels
/// on disk: that costs PoCL a second compilation of each.
pub(crate) fn contexts(backends: &[Backend]) -> Vec<Context> {
    let required = std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1");
    let mut contexts = Vec::new();
    for &backend in backends {
        match Context::builder().backend(backend).without_kernel_cache().open() {
            Ok(context) => contexts.push(context),
            Err(error) if required => panic!("{backend} is required: {error}"),
            Err(error) => println!("skipping {backend}: {error}"),
        }
    }
    contexts
}

/// The CPU, and the GPU APIs' devices.
pub(crate) fn everywhere() -> Vec<Context> {
    contexts(&[Backend::Cpu, Backend::OpenCl, Backend::Wgpu])
}

/// The GPU APIs' devices.
pub(crate) fn gpus() -> Vec<Context> {
    contexts(&[Backend::Wgpu, Backend::OpenCl])
}

/// Values in [-0.5, 0.5).
pub(crate) fn noise(shape: Shape, seed: u32) -> HostTensor {
    let mut state = seed;
    let values: Vec<f32> = (0..shape.elements())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        })
        .collect();
    HostTensor::new(shape, values).expect("noise")
}
