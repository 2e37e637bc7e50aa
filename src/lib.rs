//! Convolutional networks and matrix products on any GPU that speaks Vulkan or OpenCL.
//!
//! One op set is described once and emitted twice: as WGSL compute shaders, run by `wgpu`, and as
//! OpenCL C kernels, run by `opencl3`. The same ops run on the CPU where there is neither.

#![warn(missing_docs, unreachable_pub)]
// The library answers with an error; it does not stop the program.
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]
#![cfg_attr(
    not(any(feature = "wgpu", feature = "opencl")),
    expect(unused, reason = "no API, so no device has a value")
)]

#[cfg(feature = "opencl")]
pub use opencl3;
#[cfg(feature = "wgpu")]
pub use wgpu;

pub mod device;
pub mod emit;
#[cfg(feature = "tflite")]
pub mod model;
pub mod ops;
pub mod pick;
pub mod tune;

mod context;
mod cpu;
mod dims;
mod dtype;
mod eager;
mod error;
mod file;
mod graph;
mod host;
mod layout;
mod limits;
mod lower;
mod options;
mod product;
mod session;
mod shape;
mod tuner;

pub use context::{Backend, Context, ContextBuilder, ContextInfo, DeviceListing, devices};
pub use device::{DeviceInfo, Memory, PciAddress};
pub use dims::{Dim, Dims, MAX_RANK};
pub use dtype::{DType, Precision};
pub use emit::{Activation, Bits, Dialect, Epilogue, Scalar};
pub use error::{Error, Result};
pub use graph::{Extras, Graph, Node, Right, TensorType, Value};
pub use host::HostTensor;
pub use layout::{Form, Layout};
pub use limits::{Family, Limits, MaliArchitecture, MatrixUnit};
#[cfg(feature = "tflite")]
pub use model::tflite;
pub use ops::Choice;
pub use ops::conv2d::Conv2d;
pub use ops::custom::Custom;
pub use ops::depthwise::Depthwise;
pub use ops::gemm::Gemm;
pub use ops::pointwise::Pointwise;
pub use options::{Fusing, Picking, SessionOptions, Tuning};
pub use product::{MatrixProduct, ProductOptions};
pub use session::{NodeTime, Port, Profile, Session, StageTimes, Stream};
pub use shape::{Axis, Padding, Shape, Window};
pub use tune::db::SharedDatabase;
pub use tune::work_group::WorkGroup;
pub use tuner::{Comparison, ProblemReport, Report, Tuner, TunerProgress};

/// The README's examples, as tests.
#[cfg(all(doctest, feature = "tflite"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    /// What threads may share, and what they may hand on.
    #[test]
    fn public_types_go_from_thread_to_thread() {
        fn shared<T: ?Sized + Send + Sync + 'static>() {}
        fn handed_on<T: Send + 'static>() {}
        shared::<Context>();
        shared::<ContextBuilder>();
        shared::<ContextInfo>();
        shared::<DeviceListing>();
        shared::<Error>();
        shared::<Graph>();
        shared::<HostTensor>();
        shared::<MatrixProduct>();
        shared::<Value>();
        shared::<device::Buffer>();
        shared::<device::Dispatch>();
        shared::<device::Image>();
        shared::<device::Pipeline>();
        shared::<device::Recording>();
        shared::<dyn device::Device>();
        handed_on::<Session>();
        handed_on::<SessionOptions>();
        handed_on::<Tuner>();
        handed_on::<Box<dyn device::Pending>>();
        #[cfg(feature = "wgpu")]
        shared::<device::wgpu::WgpuDevice>();
        #[cfg(feature = "opencl")]
        shared::<device::opencl::OpenClDevice>();
    }
}
