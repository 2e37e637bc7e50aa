//! The backends of this machine, and values to run on them.

use diptych::{Backend, Context, ContextBuilder, HostTensor, Shape};
use std::cell::Cell;

/// Contexts of `backends`; a missing one is printed, or fails if devices are required. They keep no kernels
/// on disk: that costs PoCL a second compilation of each.
pub(crate) fn contexts(backends: &[Backend]) -> Vec<Context> {
    let of = |&backend: &Backend| opened(Context::builder().backend(backend).without_kernel_cache());
    backends.iter().filter_map(of).collect()
}

/// What `builder` opens; a missing device is printed, or fails if devices are required.
pub(crate) fn opened(builder: ContextBuilder) -> Option<Context> {
    let required = std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1");
    match builder.open() {
        Ok(context) => Some(context),
        Err(error) if required => panic!("a device is required: {error}"),
        Err(error) => {
            println!("skipping: {error}");
            None
        }
    }
}

/// The CPU, and the GPU APIs' devices.
pub(crate) fn everywhere() -> Vec<Context> {
    contexts(&[Backend::Cpu, Backend::OpenCl, Backend::Wgpu])
}

/// The CPU and one of the GPU APIs, for what lowering makes of a network on each of them: the test's name says which
/// comes first, and from call to call they take turns. With `scripts/test --full`, all.
pub(crate) fn in_turns() -> Vec<Context> {
    thread_local! {
        static CALLS: Cell<usize> = const { Cell::new(0) };
    }
    if std::env::var("DIPTYCH_CONFORMANCE").is_ok_and(|asked| asked == "full") {
        return everywhere();
    }
    let call = CALLS.replace(CALLS.get() + 1);
    let name: usize = std::thread::current().name().unwrap_or_default().bytes().map(usize::from).sum();
    contexts(&[Backend::Cpu, [Backend::OpenCl, Backend::Wgpu][(name + call) % 2]])
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

/// The bundled network for pictures of `side` by `side` pixels: all its steps, and the less work.
pub(crate) fn network_for(side: usize) -> Vec<u8> {
    let mut bytes = include_bytes!("../../examples/posenet/data/posenet_figures.tflite").to_vec();
    let [own, other] = [257, side as i32].map(|side| [1, side, side, 3].map(i32::to_le_bytes).concat());
    let shapes = bytes.windows(own.len()).enumerate().filter(|(_, part)| **part == own);
    let places: Vec<usize> = shapes.map(|(at, _)| at).collect();
    let &[at] = &places[..] else { panic!("the input's shape is at {places:?}") };
    bytes[at..at + other.len()].copy_from_slice(&other);
    bytes
}
