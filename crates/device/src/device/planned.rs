//! The kernels of the crate's own ops.

use super::{Device, Pipeline};
use crate::emit::KernelSource;
use crate::error::Result;

/// Compiles a kernel without checks in it. `source` is what [`crate::emit::KernelSpec::render_written`] made of
/// an op's plan, and is dispatched with the plan's parameters and grid, on operands of the op's shapes; or it is the
/// kernel of pictures, dispatched on an image of the extents that it is told, or the product by which the tuner knows a device
/// that computes (`tune/proof.rs`).
///
/// This is the only way from safe code to an unchecked kernel, and it ends at this crate: what an
/// application compiles goes through [`Device::compile`].
#[cfg(not(target_family = "wasm"))]
pub fn compile_planned(device: &dyn Device, source: &KernelSource) -> Result<Pipeline> {
    crate::task::block_on(compile_planned_async(device, source))
}

/// [`compile_planned`], awaited.
pub async fn compile_planned_async(device: &dyn Device, source: &KernelSource) -> Result<Pipeline> {
    // SAFETY: the kernels are rendered from this crate's own templates, which guard their edges
    // themselves: every access is behind a comparison with the extents in the parameters, every loop has
    // a bound, no divisor is zero, and what is shared is written before it is read. The ops check their
    // shapes, only this crate implements `Op`, and a dispatch with less than the plan reaches is refused
    // (`Dispatch::check`). Tests run each kernel over ragged extents between canaries, and
    // `DIPTYCH_CHECKED_SHADERS=1` runs the same kernels with checks.
    unsafe { device.compile_unchecked_async(source) }.await
}

/// Compiles kernels ahead that [`compile_planned`] is to be asked for, together where the driver takes less time for it.
#[cfg(not(target_family = "wasm"))]
pub fn compile_planned_together(device: &dyn Device, sources: &[&KernelSource]) {
    // SAFETY: as above.
    unsafe { device.compile_together(sources) }
}
