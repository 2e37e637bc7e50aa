//! Neural networks and matrix products on any GPU that speaks Vulkan or OpenCL, and on the CPU.
//!
//! A [`Context`] is a device to run on. A [`Graph`] is a network: read from a file, or built node by node.
//! A [`Session`] is a graph made ready to run on a context: kernels chosen and compiled, weights uploaded,
//! memory planned. The kernels are written once, in WGSL, and run by `wgpu`; OpenCL C is printed from them.
//! The CPU computes the same ops in Rust, so a program works where there is no GPU, and so do the examples
//! on this page.
//!
//! # A model from a file
//!
//! TensorFlow Lite models of floats ([`tflite::load`]) and ONNX models ([`onnx::load`]). Inputs and outputs are found by name; their elements
//! are f32, the last extent varying fastest: pictures are NHWC.
//!
//! ```
//! use diptych::{Backend, Context, HostTensor, Session, SessionOptions, tflite};
//!
//! let graph = tflite::load("examples/posenet/data/posenet_figures.tflite")?;
//! let context = Context::new(Backend::Cpu)?; // Backend::Auto takes a GPU where there is one
//! let mut session = Session::new(&context, &graph, SessionOptions::default())?;
//!
//! let input = session.inputs()[0].clone();
//! let image = HostTensor::new(input.dims, vec![0.5; input.dims.elements()])?;
//! let outputs = session.run(&[(&input.name, &image)])?;
//! for (port, tensor) in session.outputs().iter().zip(&outputs) {
//!     println!("{}: {}", port.name, tensor.dims());
//! }
//! # assert!(outputs.len() > 1 && outputs.iter().flat_map(|tensor| tensor.to_f32().to_vec()).all(f32::is_finite));
//! # Ok::<(), diptych::Error>(())
//! ```
//!
//! | to run | |
//! |---|---|
//! | [`Session::run`] | gives the outputs as new tensors |
//! | [`Session::run_into`] | writes them to memory of the caller's |
//! | [`Session::run_async`] | does not block the thread |
//! | [`Session::stream`] | overlaps one frame with the next |
//! | `Session::encode` | records the run into the application's own `wgpu` encoder, with its buffers and textures |
//! | `Session::enqueue` | enqueues the run on the application's own OpenCL queue, with its buffers and images |
//! | [`Session::profile`] | measures the time of each node |
//!
//! # A graph of one's own
//!
//! Shapes are checked when a node is added. Weights are constants of the graph.
//!
//! ```
//! use diptych::{Activation, Backend, Context, Conv2d, Extras, Graph, HostTensor, Padding, Pointwise};
//! use diptych::{Session, SessionOptions, Shape};
//!
//! let constant = |shape: Shape, value| HostTensor::new(shape, vec![value; shape.elements()]);
//! let mut graph = Graph::new();
//! let image = graph.input("image", Shape::nhwc(1, 32, 32, 3))?;
//! let stem = Conv2d {
//!     stride: [2, 2],
//!     padding: Padding::Same,
//!     activation: Activation::Relu,
//!     ..Default::default()
//! };
//! let weights = constant(Shape::nhwc(16, 3, 3, 3), 0.1)?; // output channels, rows, columns, input channels
//! let bias = Extras::bias(HostTensor::vector(vec![0.5; 16])?);
//! let x = graph.conv2d("stem", image, weights, bias, stem)?;
//! let weights = constant(Shape::nhwc(4, 1, 1, 16), 0.25)?;
//! let y = graph.pointwise("head", x, weights, Extras::default(), Pointwise::default())?;
//! graph.output(y)?;
//! assert_eq!(graph.shape(y)?, Shape::nhwc(1, 16, 16, 4));
//!
//! let context = Context::new(Backend::Cpu)?;
//! let mut session = Session::new(&context, &graph, SessionOptions::default())?;
//! let zeros = constant(Shape::nhwc(1, 32, 32, 3), 0.0)?;
//! let outputs = session.run(&[("image", &zeros)])?;
//! assert!(outputs[0].to_f32().iter().all(|&value| value == 16.0 * 0.25 * 0.5));
//! # Ok::<(), diptych::Error>(())
//! ```
//!
//! The batch may be left open: [`Graph::dimension`] names an extent, [`Graph::input_of`] uses it, and
//! [`SessionOptions::dimensions`] says what it is.
//!
//! # A matrix product
//!
//! [`Context::gemm`] takes matrices and gives one; a [`MatrixProduct`] keeps its operands on the device.
//!
//! ```
//! use diptych::Operand::{A, B, C};
//! use diptych::{Backend, Context, MatrixProduct, Precision};
//!
//! let context = Context::new(Backend::Cpu)?;
//! let product = MatrixProduct::of(&context, [2, 3], [3, 2], Precision::F32)?; // C = A B
//! product.write(A, |a| a.copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))?;
//! product.write(B, |b| b.copy_from_slice(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]))?;
//! product.run()?;
//! product.read(C, |c| assert_eq!(c, [4.0, 5.0, 10.0, 11.0]))?;
//! # Ok::<(), diptych::Error>(())
//! ```
//!
//! # Which device, and how
//!
//! [`Context::builder`] chooses a device by its place in the list of [`devices`], its name, its PCI address, its UUID or
//! its API, or all of it in one text ([`DeviceSelector`]), and says how it is opened. What it says, environment variables
//! override: see its methods. [`gpus`] lists each card once, however many APIs reach it.
//! `Context::from_wgpu` and `Context::from_opencl` run on a device of the application's.
//!
//! [`SessionOptions`] say how a network runs: in which precision, whether the tuner's record is asked, and
//! which kernel runs a node.
//!
//! ```
//! use diptych::{Backend, Context, Conv2d, Extras, Graph, HostTensor, Precision, Session, SessionOptions};
//! use diptych::{Shape, WorkGroup};
//! # let mut graph = Graph::new();
//! # let x = graph.input("image", Shape::nhwc(1, 8, 8, 3))?;
//! # let weights = HostTensor::new(Shape::nhwc(4, 3, 3, 3), vec![0.1; 108])?;
//! # let y = graph.conv2d("stem", x, weights, Extras::default(), Conv2d::default())?;
//! # graph.output(y)?;
//!
//! let context = Context::builder().backend(Backend::Cpu).open()?;
//! println!("{}", context.info()); // which device, and why this one
//! let options = SessionOptions {
//!     precision: Precision::F16Storage, // on GPUs: stored as halves, summed in f32
//!     work_group: WorkGroup::Fixed([8, 4, 1]), // of nodes that the record says nothing of
//!     ..Default::default()
//! };
//! let session = Session::new(&context, &graph, options)?;
//! for step in session.steps() {
//!     println!("{}: {} ({})", step.name, step.kernel, step.source);
//! }
//! # Ok::<(), diptych::Error>(())
//! ```
//!
//! # A kernel of one's own
//!
//! A WGSL compute shader as a node, on every API, with bounds checks ([`Custom`]). What it binds is read from
//! the text. On the CPU a closure takes its place.
//!
//! ```
//! use diptych::{Backend, Context, Custom, Graph, HostTensor, Session, SessionOptions, Shape};
//!
//! let invert = Custom::new("invert", "
//!     @group(0) @binding(0) var<storage, read> x: array<f32>;
//!     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
//!     @compute @workgroup_size(64)
//!     fn main(@builtin(global_invocation_id) id: vec3<u32>) {
//!         if id.x < arrayLength(&x) { y[id.x] = 1.0 - x[id.x]; }
//!     }
//! ")?
//! .on_cpu(|inputs, outputs| {
//!     for (y, x) in outputs[0].iter_mut().zip(inputs[0]) {
//!         *y = 1.0 - x;
//!     }
//! });
//! let mut graph = Graph::new();
//! let x = graph.input("picture", Shape::nhwc(1, 2, 2, 1))?;
//! let y = graph.custom("negative", &invert, &[x])?;
//! graph.output(y[0])?;
//!
//! let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
//! let picture = HostTensor::new(Shape::nhwc(1, 2, 2, 1), vec![0.0, 0.25, 0.5, 1.0])?;
//! let outputs = session.run(&[("picture", &picture)])?;
//! assert_eq!(*outputs[0].to_f32(), [1.0, 0.75, 0.5, 0.0]);
//! # Ok::<(), diptych::Error>(())
//! ```
//!
//! # Tuning
//!
//! The fastest kernel, tile and work-group differ from GPU to GPU. The tuner times them on the user's device:
//! each result is checked before it is timed, one replaces the default only if it is faster beyond doubt, and
//! the verdicts are kept in a file. [`Tuning::Online`] does so while a session is built; a [`Tuner`] works a
//! few milliseconds at a time, beside other work, and [`Session::refresh`] takes what it found. What the time did
//! not suffice for goes on at the next start.
//!
//! ```no_run
//! use diptych::{Backend, Context, Database, Session, SessionOptions, Tuning, tflite};
//! use std::sync::{Arc, Mutex};
//! use std::time::Duration;
//!
//! let context = Context::new(Backend::Auto)?;
//! let graph = tflite::load("model.tflite")?;
//! let database = Arc::new(Mutex::new(Database::open(Database::default_dir()?)?));
//! let tuning = Tuning::Online { database, budget: Duration::from_secs(5) };
//! let session = Session::new(&context, &graph, SessionOptions { tuning, ..Default::default() })?;
//! # Ok::<(), diptych::Error>(())
//! ```
//!
//! # Errors
//!
//! There is one type, [`Error`]; each says what was found and what was wanted. What concerns a node of a graph
//! says which ([`Error::node`]). What is not supported is an error, never a slow path or a wrong result, and
//! nothing panics.
//!
//! ```
//! use diptych::{Backend, Context, Error, HostTensor, Pointwise, Shape};
//!
//! let context = Context::new(Backend::Cpu)?;
//! let x = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![0.0; 3])?;
//! let weights = HostTensor::new(Shape::nhwc(1, 1, 1, 4), vec![0.0; 4])?;
//! let error = context.pointwise(&x, &weights, None, &Pointwise::default()).unwrap_err();
//! assert!(matches!(error.without_node(), Error::Shape { op: "pointwise", .. }), "{error}");
//! # Ok::<(), diptych::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `wgpu` | yes | kernels through wgpu: Vulkan, and Metal or DX12 where that is the platform's API |
//! | `opencl` | yes | kernels through OpenCL, whose library is found at run time |
//! | `shaders` | yes | [`Custom`], an application's own shader |
//! | `tflite` | yes | [`tflite::load`] |
//! | `onnx` | yes | [`onnx::load`] |
//! | `cpu` | yes | the CPU backend, nodes and constants that the CPU computes, and the tuner |
//!
//! The command line is a crate of its own, `diptych-cli`.
//!
//! Without `wgpu` and `opencl` the crate computes on the CPU. Without `cpu` it computes nothing there, and a model that needs
//! that is an error.

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

#[cfg(not(target_family = "wasm"))]
mod batch;
mod calibration;
mod clock;
mod context;
mod cpu;
mod device;
mod dims;
mod disk;
mod dtype;
#[cfg(not(target_family = "wasm"))]
mod eager;
mod emit;
mod erf;
mod error;
mod file;
mod graph;
mod host;
mod layout;
mod limits;
mod lower;
#[cfg(any(feature = "tflite", feature = "onnx"))]
mod model;
mod ops;
mod options;
mod parallel;
mod pick;
#[cfg(not(target_family = "wasm"))]
mod product;
mod session;
mod shape;
mod sorted;
mod sync;
mod task;
mod tune;
mod tuner;
mod vector;
mod weights;

#[cfg(not(target_family = "wasm"))]
pub use batch::{Batch, BatchCounts, BatchOptions, DevicePool, PoolDevice, PoolStream, Ticket};
pub use calibration::{CalibratedNode, CalibratedOutput, Calibration};
pub use context::{Backend, Context, ContextBuilder, ContextInfo, DeviceListing, DeviceSelector};
#[cfg(not(target_family = "wasm"))]
pub use context::{Gpu, devices, gpus};
#[doc(inline)]
pub use device::{DeviceInfo, DeviceUuid, Memory, PciAddress};
pub use dims::{Dim, Dims, MAX_RANK};
pub use dtype::{DType, Precision};
#[doc(inline)]
pub use emit::{Activation, Bits, Dialect, Operand, Scalar};
pub use error::{Error, Result};
pub use graph::{Extras, Graph, Node, Right, TensorType, Term, Value};
pub use host::HostTensor;
pub use layout::Layout;
pub use limits::{Family, Limits, MaliArchitecture, MatrixUnit};
#[cfg(feature = "onnx")]
pub use model::onnx;
#[cfg(feature = "tflite")]
pub use model::tflite;
#[cfg(all(any(feature = "onnx", feature = "tflite"), feature = "cpu", not(target_family = "wasm")))]
pub use model::with_random_weights;
#[cfg(any(feature = "tflite", feature = "onnx"))]
pub use model::{LoadOptions, Model, ModelInfo, Port as ModelPort, TensorInfo};
#[doc(inline)]
pub use ops::Choice;
#[doc(inline)]
pub use ops::arg::ArgReduce;
#[doc(inline)]
pub use ops::concat::Concat;
#[doc(inline)]
pub use ops::conv2d::Conv2d;
pub use ops::cumsum::CumSum;
#[doc(inline)]
pub use ops::custom::Custom;
#[doc(inline)]
pub use ops::depthwise::Depthwise;
#[doc(inline)]
pub use ops::elementwise::{Elementwise, Function};
pub use ops::gather::{Gather, GatherNd};
#[doc(inline)]
pub use ops::gemm::{Gemm, GemmOp};
#[doc(inline)]
pub use ops::normalize::Normalize;
pub use ops::one_hot::OneHot;
#[doc(inline)]
pub use ops::operator::Operator;
#[doc(inline)]
pub use ops::pointwise::Pointwise;
pub use ops::pool::{Pool, Pooling};
pub use ops::reduce::{Reduce, Reduction};
pub use ops::remap::{
    AxisRange, BatchToSpace, BroadcastTo, DepthToSpace, Pad, PadMode, Reverse, SpaceToBatch, SpaceToDepth,
    StridedSlice, Tile, Transpose,
};
pub use ops::resize::{Resize, ResizeMode};
#[doc(inline)]
pub use ops::softmax::Softmax;
pub use ops::suppress::Suppress;
pub use ops::top_k::TopK;
#[doc(inline)]
pub use ops::transposed_conv2d::TransposedConv2d;
pub use options::{Picking, SessionOptions, Tuning};
#[doc(inline)]
pub use pick::{Place, Target};
#[cfg(not(target_family = "wasm"))]
pub use product::{MatrixProduct, ProductOptions};
#[cfg(feature = "wgpu")]
pub use session::WgpuInput;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub use session::{BufferBinding, Pictures, RequiredUsage};
pub use session::{BuildProgress, MemoryUse, NodeTime, Port, Profile, Session};
pub use session::{Colours, Fit, Framing};
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
pub use session::{Deviation, KernelTexts, ObservedRun, ObservedStep};
#[cfg(feature = "opencl")]
pub use session::{OpenClBinding, OpenClInput};
#[cfg(not(target_family = "wasm"))]
pub use session::{StageTimes, Started, Stream, TryStream};
pub use shape::{Border, Padding, Shape};
#[doc(inline)]
pub use tune::Search;
#[doc(inline)]
pub use tune::db::{Database, SharedDatabase};
#[doc(inline)]
pub use tune::journal::Journal;
#[doc(inline)]
pub use tune::work_group::WorkGroup;
pub use tuner::{ProblemReport, Report, Tuner, TunerProgress};
pub use weights::Weights;

/// What the command line, the tests and the benches need of the crate's inside: kernels and their texts, devices, the
/// tuner's parts.
///
/// None of it is part of the API, and all of it may change in any version: the command line asks for exactly its own
/// version of this crate. `docs/public-api.txt` lists what the API is.
#[doc(hidden)]
pub mod internals {
    pub use crate::layout::Form;
    #[cfg(not(target_family = "wasm"))]
    pub use crate::tuner::Comparison;

    pub mod device {
        pub use crate::device::*;
    }
    pub mod emit {
        pub use crate::emit::*;
    }
    pub mod file {
        pub use crate::file::*;
    }
    pub mod ops {
        pub use crate::ops::*;
    }
    pub mod pick {
        pub use crate::pick::*;
    }
    pub mod tune {
        pub use crate::tune::*;
    }
}

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
        handed_on::<Started>();
        handed_on::<SessionOptions>();
        handed_on::<Tuner>();
        handed_on::<Box<dyn device::Pending>>();
        #[cfg(feature = "wgpu")]
        shared::<device::wgpu::WgpuDevice>();
        #[cfg(feature = "opencl")]
        shared::<device::opencl::OpenClDevice>();
    }
}
