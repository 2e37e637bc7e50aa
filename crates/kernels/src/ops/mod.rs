//! The op set: an op and its shapes in, kernel specs and grids out. Pure: nothing here talks to a
//! device.
//!
//! Each op is a folder with its maths and shape rule (`mod.rs`), its definition (`plan.rs`), a file for
//! each kernel, and a naive double-precision oracle (`oracle.rs`). The kernels' texts are in a folder of the
//! same name under `shaders/`.

mod activated;
pub mod arg;
pub mod attention;
pub mod attention_join;
pub mod concat;
pub mod conv2d;
pub mod convert;
pub mod copy;
pub mod cumsum;
pub mod custom;
pub mod depthwise;
pub mod dequantize;
pub mod dynamic_conv2d;
pub mod dynamic_quantize;
pub mod dynamic_range;
pub mod elementwise;
pub mod followed;
pub mod gate;
pub mod gather;
pub mod gemm;
pub mod gemm_rows;
pub mod glu;
pub mod integer;
pub mod loops;
pub mod mlp;
pub mod normalize;
pub mod one_hot;
pub mod operator;
pub mod pointwise;
pub mod pool;
pub mod prologue;
pub mod quantization;
pub mod quantize;
pub mod quantized_binary;
pub mod quantized_conv2d;
pub mod quantized_depthwise;
pub mod quantized_gemm;
pub mod quantized_lookup;
pub mod quantized_pool;
pub mod random;
pub mod reduce;
pub mod remap;
pub mod resize;
pub mod softmax;
pub mod squeeze;
pub mod suppress;
pub mod top_k;
pub mod transposed_conv2d;
pub mod update_slice;
pub mod view;

mod arrival;
mod bound;
mod byte_windows;
pub mod bytes;
mod convolution;
pub(crate) mod cost;
mod defined;
mod definition;
mod effort;
mod examples;
mod expected;
mod group_product;
mod halves;
mod kernel;
mod last_resort;
mod map_product;
mod matrix;
mod op;
mod operands;
mod plan;
mod problem;
mod reference;
mod registers;
mod registry;
mod row_place;
mod rows;
mod spec;
mod split;
mod stored;
mod text_arguments;
mod tiled;
mod tolerance;
mod turns;
mod windowed;

pub use crate::cpu::CpuKernel;
pub use bound::{BoundKernel, Kernels, Offered};
pub use convolution::Convolution;
pub use effort::Effort;
pub use examples::ACTIVATIONS;
pub use examples::{Examples, Numbers, OfNumbers};
pub use expected::{on_cpu, tolerance as expected_tolerance};
pub use halves::LARGEST_HALF;
pub use halves::{Reach, Reaches};
pub use kernel::{Offer, Ordinary, VariantEntry};
pub use op::{Answer, Op, Purpose};
pub use operands::{OperandInfo, Operands, Role};
pub use plan::{Choice, Launch};
pub use problem::EXTENTS;
pub use reference::{Reference, Sum};
pub use registry::{OpEntry, all};

/// What `op` writes, in the order of its operands.
pub fn outputs(op: &dyn Op) -> impl Iterator<Item = OperandInfo> {
    op.operands().into_iter().filter(|info| info.role.writes())
}
