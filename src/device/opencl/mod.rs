//! OpenCL through opencl3.

/// Raw.
#[derive(Debug, Clone)]
pub(crate) struct RawBuffer;
/// Raw.
#[derive(Debug, Clone)]
pub(crate) struct RawImage;
/// Raw.
#[derive(Debug, Clone)]
pub(crate) struct RawPipeline;
/// Raw.
#[derive(Debug, Clone)]
pub(crate) struct RawRecording;
