//! Neural networks and matrix products on any GPU that speaks Vulkan or OpenCL, and on the CPU.
//!
//! A [`ModelFile`] is a network in a file, a [`Graph`] one that is built node by node. A [`Context`] is a device. A [`Session`]
//! is a network that is ready to run on a context: kernels chosen and compiled, weights uploaded, memory planned. A
//! [`HostTensor`] holds numbers in the host's memory.
//!
//! Each kernel is written once, in WGSL. `wgpu` runs it, and the crate prints OpenCL C from it. The CPU computes the same
//! ops in Rust, so a program also works where there is no GPU.
//!
//! ```
//! use diptych::{Backend, Context, HostTensor, LoadOptions, ModelFile, SessionOptions};
//!
//! let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
//! let context = Context::new(Backend::Cpu)?; // Backend::Auto takes a GPU if there is one
//! let mut session = file.session(&context, SessionOptions::new())?;
//!
//! let input = session.inputs()[0].clone(); // its name, extents and type
//! let image = HostTensor::new(input.dims, vec![0.5; input.dims.elements()])?;
//! let outputs = session.run(&[(&input.name, &image)])?;
//! for (port, tensor) in session.outputs().iter().zip(&outputs) {
//!     println!("{}: {}", port.name, tensor.dims());
//! }
//! # assert!(outputs.len() > 1 && outputs.iter().flat_map(|tensor| tensor.to_f32().to_vec()).all(f32::is_finite));
//! # Ok::<(), diptych::Error>(())
//! ```
//!
//! # Where to look
//!
//! | you want to | look at |
//! |---|---|
//! | run a TensorFlow Lite or ONNX file | [`ModelFile::load`] and [`ModelFile::session`], [`LoadOptions`] for what the file leaves open |
//! | have the graph of a file | [`Model::load`] |
//! | build a network | [`Graph`], [`Weights`] for safetensors files |
//! | choose a device | [`Context::builder`], [`DeviceSelector`], [`devices`], [`gpus`] |
//! | have the fastest device for a network | [`Context::fastest`], [`ModelFile::fastest`] |
//! | use your application's device | `Context::from_wgpu`, `Context::from_opencl` |
//! | say how a network runs | [`SessionOptions::new`]: precision, tuning, kernels by hand |
//! | run it | [`Session::run`]; see below |
//! | serve many tasks, or use several devices | [`Batch`], [`DevicePool`] |
//! | have it faster on this GPU | [`Tuning`], [`Tuner`], [`Database`] |
//! | multiply matrices | [`Context::gemm`], [`MatrixProduct`] |
//! | write a kernel | [`Custom`] |
//! | find a wrong result | [`Session::observe`] |
//! | go on after a lost device | [`Context::reopen`], [`Session::rebuild`] |
//!
//! The book in `docs/book` explains each of these with examples.
//!
//! # Ways to run
//!
//! | call | does |
//! |---|---|
//! | [`Session::run`] | gives the outputs as new tensors |
//! | [`Session::run_into`], [`Session::run_slices`] | write the outputs to the caller's memory, and read the inputs there |
//! | [`Session::run_async`] | does not block the thread |
//! | [`Session::submit`] | begins a run and gives a [`Flight`], to wait for or to await |
//! | [`Session::stream`] | overlaps one frame with the next |
//! | `Session::encode` | records the run into the application's own `wgpu` encoder, with its buffers and textures |
//! | `Session::enqueue` | enqueues the run on the application's own OpenCL queue, with its buffers and images |
//! | [`Session::profile`] | measures the time of each node |
//!
//! A method whose name ends in `_async` is awaited, and does what the method without this ending does while it blocks the
//! thread: [`Context::new_async`], [`ModelFile::session_async`], [`Session::new_async`].
//!
//! # Errors
//!
//! There is one type, [`Error`]. Each variant says what was found and what was wanted, and an error of a graph's node names
//! the node ([`Error::node`]). What is not supported is an error, never a slow path or a wrong result. Nothing panics.
//!
//! # Debug builds
//!
//! A debug build of an application does not optimise its dependencies, and the CPU backend is then more than a hundred
//! times slower than in a release build. With these lines in the application's `Cargo.toml`, this crate and those that compute
//! for it are optimised even then; the application's own code stays as easy to debug as before:
//!
//! ```toml
//! [profile.dev.package]
//! diptych = { opt-level = 3 }
//! diptych-base = { opt-level = 3 }
//! diptych-kernels = { opt-level = 3 }
//! gemm = { opt-level = 3 }
//! gemm-common = { opt-level = 3 }
//! gemm-f32 = { opt-level = 3 }
//! pulp = { opt-level = 3 }
//! rayon-core = { opt-level = 3 }
//! ```
//!
//! Most of such a build's size is debug information: `debug = "line-tables-only"` in `[profile.dev]` leaves most of it
//! out.
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
//! | `parallel` | yes | the CPU backend on several threads |
//! | `gemm` | yes | products of two changing matrices on the CPU by the crate `gemm` |
//! | `disk` | yes | the tuner's record and compiled kernels in files |
//! | `hub` | no | models of the Hugging Face hub by their names: `Model::from_hub` |
//! | `ndarray` | no | a [`HostTensor`] from an array of `ndarray` 0.17, and back: `try_from` |
//! | `image` | no | a [`HostTensor`] from an `RgbImage` of `image` 0.25, and back: `try_from` |
//!
//! The command line is a crate of its own, `diptych-cli`.
//!
//! Without `wgpu` and `opencl` the crate computes on the CPU. Without `cpu` it computes nothing there, and a model that needs
//! that is an error.

#![recursion_limit = "256"]
#![cfg_attr(optimize_attribute, feature(optimize_attribute))]
#![warn(missing_docs, unreachable_pub)]
// The library answers with an error; it does not stop the program.
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]
// Its tests may do all that `clippy.toml` lists.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(
    not(any(feature = "wgpu", feature = "opencl")),
    expect(unused, reason = "no API, so no device has a value")
)]

#[cfg(feature = "opencl")]
pub use opencl3;
#[cfg(feature = "wgpu")]
pub use wgpu;

// The crates below, by their modules.
use diptych_base::*;
use diptych_device::*;
use diptych_emit::*;
use diptych_graph::*;
use diptych_import::*;
use diptych_kernels::*;

#[cfg(not(target_family = "wasm"))]
mod batch;
mod calibration;
mod context;
#[cfg(not(target_family = "wasm"))]
mod eager;
#[cfg(not(target_family = "wasm"))]
mod fastest;
mod lower;
#[cfg(any(feature = "tflite", feature = "onnx"))]
mod model;
pub mod nn;
mod options;
mod pick;
#[cfg(not(target_family = "wasm"))]
mod product;
mod session;
mod tune;
mod tune_network;

#[cfg(not(target_family = "wasm"))]
#[doc(inline)]
pub use batch::{Batch, BatchCounts, BatchOptions, DevicePool, PoolDevice, PoolStream, Ticket};
#[doc(inline)]
pub use calibration::{CalibratedNode, CalibratedOutput, Calibration};
#[doc(inline)]
pub use context::{Backend, Context, ContextBuilder, ContextInfo, DeviceListing, DeviceSelector};
#[cfg(not(target_family = "wasm"))]
#[doc(inline)]
pub use context::{Gpu, devices, gpus};
#[cfg(feature = "wgpu")]
#[doc(inline)]
pub use device::wgpu::WgpuCalls;
#[doc(inline)]
pub use device::{DeviceInfo, DeviceUuid, Memory, PciAddress};
#[doc(inline)]
pub use dims::{Dim, Dims, MAX_RANK};
#[cfg(all(any(feature = "onnx", feature = "tflite"), feature = "cpu", not(target_family = "wasm")))]
#[doc(inline)]
pub use diptych_import::model::with_random_weights;
#[cfg(any(feature = "tflite", feature = "onnx"))]
#[doc(inline)]
pub use diptych_import::model::{LoadOptions, ModelInfo, Pixels, Quantised, TensorInfo};
#[doc(inline)]
pub use dtype::{DType, Precision};
#[doc(inline)]
pub use emit::{Activation, Bits, Dialect, Operand, Scalar};
#[doc(inline)]
pub use error::{Error, Hint, Result, Setting};
#[cfg(not(target_family = "wasm"))]
#[doc(inline)]
pub use fastest::{Fastest, FastestOptions, Measured};
#[doc(inline)]
pub use graph::{
    AttentionInputs, DynamicWeights, Expression, Extras, Graph, Node, QuantizedMatrix, QuantizedWeights,
    Right, Sampling, TensorType, Term, Value,
};
#[doc(inline)]
pub use host::{HostTensor, TensorElement};
#[doc(inline)]
pub use layout::Layout;
#[doc(inline)]
pub use limits::{Family, Limits, MaliArchitecture, MatrixUnit};
#[cfg(any(feature = "tflite", feature = "onnx"))]
#[doc(inline)]
#[expect(deprecated, reason = "programs of the last version name it")]
pub use model::ModelPort;
#[cfg(feature = "onnx")]
#[doc(inline)]
pub use model::onnx;
#[cfg(feature = "tflite")]
#[doc(inline)]
pub use model::tflite;
#[cfg(any(feature = "tflite", feature = "onnx"))]
#[doc(inline)]
pub use model::{FileInput, Model, ModelFile};
// The options of all operators are in `nn`; here are those of common layers.
#[doc(inline)]
pub use ops::Choice;
#[doc(inline)]
pub use ops::concat::Concat;
#[doc(inline)]
pub use ops::conv2d::Conv2d;
#[doc(inline)]
pub use ops::custom::Custom;
#[doc(inline)]
pub use ops::depthwise::Depthwise;
#[doc(inline)]
pub use ops::elementwise::{Elementwise, Function};
#[doc(inline)]
pub use ops::gemm::{Gemm, GemmOp};
#[doc(inline)]
pub use ops::operator::Operator;
#[doc(inline)]
pub use ops::pointwise::Pointwise;
#[doc(inline)]
pub use ops::pool::{Pool, Pooling};
#[doc(inline)]
pub use ops::reduce::{Reduce, Reduction};
#[doc(inline)]
pub use ops::resize::{Resize, ResizeMode};
#[doc(inline)]
pub use ops::softmax::Softmax;
#[doc(inline)]
pub use options::{Picking, Rewrite, SessionOptions, Tuning};
#[doc(inline)]
pub use pick::{Place, Target};
#[cfg(not(target_family = "wasm"))]
#[doc(inline)]
pub use product::{MatrixProduct, ProductOptions};
#[cfg(feature = "wgpu")]
#[doc(inline)]
pub use session::WgpuInput;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
#[doc(inline)]
pub use session::{BufferBinding, Pictures, RequiredUsage};
#[doc(inline)]
pub use session::{
    BuildProgress, Caches, Flight, MemoryUse, Outputs, Profile, RunInput, Session, StageTimes, Step,
    TimedStep,
};
#[doc(inline)]
pub use session::{
    ChromaSiting, ColourMatrix, ColourRange, Colours, Fit, Frame, FrameLayout, FramePlane, Frames, Framing,
    PixelFormat,
};
#[cfg(not(target_family = "wasm"))]
#[doc(inline)]
pub use session::{ComparedRewrites, Stream, TryStream};
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
#[doc(inline)]
pub use session::{Deviation, KernelTexts, ObservedRun, ObservedStep};
#[cfg(feature = "opencl")]
#[doc(inline)]
pub use session::{OpenClBinding, OpenClInput};
#[doc(inline)]
pub use shape::{Border, Padding, Shape};
#[doc(inline)]
pub use source::{OpenAxis, Port};
#[doc(inline)]
pub use tune::Search;
#[doc(inline)]
pub use tune::db::{Database, SharedDatabase};
#[doc(inline)]
pub use tune::journal::Journal;
#[doc(inline)]
pub use tune::work_group::WorkGroup;
#[doc(inline)]
pub use tune_network::{ProblemReport, Report, Tuner, TunerProgress};
#[doc(inline)]
pub use weights::Weights;

/// What the command line, the packages for other languages, the tests and the benches use of this crate beside the API.
///
/// None of it is part of the API, and all of it may change in any version: those crates ask for exactly their own version of
/// this one. `docs/public-api.txt` lists what the API is.
#[doc(hidden)]
pub mod internals {
    #[cfg(not(target_family = "wasm"))]
    pub use crate::tune_network::{Checked, Comparison, Finding};
    #[cfg(all(any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
    pub use crate::{lower::By, session::PlannedStep};

    /// Loading and precision, as the packages for other languages have them.
    #[cfg(all(any(feature = "onnx", feature = "tflite"), not(target_family = "wasm")))]
    pub mod package {
        pub use crate::model::package::{precision, read};
    }
    /// The kernel of a node.
    pub mod pick {
        pub use crate::pick::{Place, Target};
    }
    /// The parts of the tuner.
    pub mod tune {
        #[cfg(not(target_family = "wasm"))]
        pub use crate::tune::facts;
        pub use crate::tune::{
            Bench, Check, OpBench, Outcome, Progress, Repeats, Round, Search, TuneOptions, TuningRun,
        };
        pub use crate::tune::{
            clock, db, generators, journal, key, quirks, repeat, search, statistics, tables, work_group,
        };
    }
}

/// The programs of the README and of the book, as tests. `tests/it/book.rs` sees that no chapter is missing.
#[cfg(all(
    doctest,
    feature = "wgpu",
    feature = "opencl",
    feature = "tflite",
    feature = "onnx",
    feature = "cpu"
))]
mod documents {
    macro_rules! documents {
        ($($name:ident $path:literal),* $(,)?) => { $(#[doc = include_str!($path)] struct $name;)* };
    }
    documents! {
        Readme "../README.md",
        Browsers "../docs/book/src/browsers.md",
        Cameras "../docs/book/src/cameras.md",
        CustomKernels "../docs/book/src/custom-kernels.md",
        Devices "../docs/book/src/devices.md",
        FirstNetwork "../docs/book/src/first-network.md",
        LostDevices "../docs/book/src/lost-devices.md",
        Memory "../docs/book/src/memory.md",
        OwnDevice "../docs/book/src/own-device.md",
        Precision "../docs/book/src/precision.md",
        Random "../docs/book/src/random.md",
        Serving "../docs/book/src/serving.md",
        Shapes "../docs/book/src/shapes.md",
        Tuning "../docs/book/src/tuning.md",
        WrongResults "../docs/book/src/wrong-results.md",
    }
}

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
        handed_on::<Flight>();
        handed_on::<Outputs>();
        handed_on::<SessionOptions>();
        handed_on::<Tuner>();
        handed_on::<Box<dyn device::Pending>>();
        #[cfg(feature = "wgpu")]
        shared::<device::wgpu::WgpuDevice>();
        #[cfg(feature = "opencl")]
        shared::<device::opencl::OpenClDevice>();
    }
}
