//! Convolutional networks and matrix products on any GPU that speaks Vulkan or OpenCL.
pub mod device;
pub mod dtype;
pub mod emit;
pub mod error;
pub mod graph;
pub mod host;
pub mod layout;
pub mod limits;
#[cfg(feature = "tflite")]
pub mod model;
pub mod ops;
pub mod shape;

pub use dtype::{DType, Precision};
pub use emit::{Activation, Bits, Epilogue};
pub use error::{Error, Result};
pub use graph::{Extras, Graph, NodeOp, Right, Value};
pub use host::HostTensor;
pub use layout::Layout;
pub use limits::{Family, Limits};
#[cfg(feature = "tflite")]
pub use model::tflite;
pub use ops::conv2d::Conv2d;
pub use ops::depthwise::Depthwise;
pub use ops::gemm::Gemm;
pub use ops::pointwise::Pointwise;
pub use shape::{Padding, Shape};
