//! Vulkan (and Metal or DX12) through wgpu.

/// Raw.
#[derive(Debug, Clone)]
pub(crate) struct RawPipeline;
/// Raw.
#[derive(Debug, Clone)]
pub(crate) struct RawRecording;
