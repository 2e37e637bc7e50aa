//! The options of operators: what methods of [`Graph`](crate::Graph) take beside values and weights, and what
//! [`Graph::add`](crate::Graph::add) takes alone. Those of common layers are at the crate's root too.
//!
//! ```
//! use diptych::{Graph, Shape, nn};
//!
//! let mut graph = Graph::new();
//! let x = graph.input("scores", Shape::nhwc(1, 1, 1, 1000))?;
//! let likely = graph.softmax("likely", x, nn::Softmax::default())?;
//! graph.output(likely)?;
//! # Ok::<(), diptych::Error>(())
//! ```

#[doc(inline)]
pub use crate::ops::arg::ArgReduce;
#[doc(inline)]
pub use crate::ops::attention::{Attention, MaskRule};
#[doc(inline)]
pub use crate::ops::bytes::ByteRange;
#[doc(inline)]
pub use crate::ops::concat::Concat;
#[doc(inline)]
pub use crate::ops::conv2d::Conv2d;
#[doc(inline)]
pub use crate::ops::cumsum::CumSum;
#[doc(inline)]
pub use crate::ops::custom::Custom;
#[doc(inline)]
pub use crate::ops::depthwise::Depthwise;
#[doc(inline)]
pub use crate::ops::dynamic_conv2d::DynamicConv2d;
#[doc(inline)]
pub use crate::ops::dynamic_range::RangeRule;
#[doc(inline)]
pub use crate::ops::elementwise::{Elementwise, Function};
#[doc(inline)]
pub use crate::ops::gather::{Gather, GatherNd};
#[doc(inline)]
pub use crate::ops::gemm::Gemm;
#[doc(inline)]
pub use crate::ops::integer::{Integer, IntegerFunction};
#[doc(inline)]
pub use crate::ops::normalize::Normalize;
#[doc(inline)]
pub use crate::ops::one_hot::OneHot;
#[doc(inline)]
pub use crate::ops::pointwise::Pointwise;
#[doc(inline)]
pub use crate::ops::pool::{Pool, Pooling};
#[doc(inline)]
pub use crate::ops::quantization::Quantization;
#[doc(inline)]
pub use crate::ops::quantized_binary::{QuantizedBinary, QuantizedFunction};
#[doc(inline)]
pub use crate::ops::quantized_conv2d::QuantizedConv2d;
#[doc(inline)]
pub use crate::ops::quantized_depthwise::QuantizedDepthwise;
#[doc(inline)]
pub use crate::ops::quantized_gemm::QuantizedGemm;
#[doc(inline)]
pub use crate::ops::quantized_pool::{QuantizedPool, QuantizedPooling};
#[doc(inline)]
pub use crate::ops::random::Random;
#[doc(inline)]
pub use crate::ops::reduce::{Reduce, Reduction};
#[doc(inline)]
pub use crate::ops::remap::{
    AxisRange, BatchToSpace, BroadcastTo, DepthToSpace, Pad, PadMode, Reverse, SpaceToBatch, SpaceToDepth,
    StridedSlice, Tile, Transpose,
};
#[doc(inline)]
pub use crate::ops::resize::{Resize, ResizeMode};
#[doc(inline)]
pub use crate::ops::softmax::Softmax;
#[doc(inline)]
pub use crate::ops::suppress::Suppress;
#[doc(inline)]
pub use crate::ops::top_k::TopK;
#[doc(inline)]
pub use crate::ops::transposed_conv2d::TransposedConv2d;
#[doc(inline)]
pub use crate::ops::update_slice::UpdateSlice;
