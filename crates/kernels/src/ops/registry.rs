//! The list of all ops and kernels: tests, benches and the tuner walk it.

use super::arg::{self, ArgOp};
use super::attention::{self, AttentionOp};
use super::attention_join::{self, AttentionJoinOp};
use super::concat::{self, ConcatOp};
use super::conv2d::{self, Conv2dOp};
use super::convert::{self, ConvertOp};
use super::copy::{self, CopyOp};
use super::cumsum::{self, CumSumOp};
use super::definition::Definition;
use super::depthwise::{self, DepthwiseOp};
use super::dequantize::{self, DequantizeOp};
use super::dynamic_conv2d::{self, DynamicConv2dOp};
use super::dynamic_quantize::{self, DynamicQuantizeOp};
use super::dynamic_range::{self, DynamicRangeOp};
use super::elementwise::{self, ElementwiseOp};
use super::examples::{Examples, Numbers};
use super::gate::{self, GateOp};
use super::gather::{self, GatherOp};
use super::gemm::{self, GemmOp};
use super::gemm_rows::{self, GemmRowsOp};
use super::glu::{self, GluOp};
use super::integer::{self, IntegerOp};
use super::kernel::VariantEntry;
use super::loops::{self, LoopsOp};
use super::mlp::{self, MlpOp};
use super::normalize::{self, NormalizeOp};
use super::one_hot::{self, OneHotOp};
use super::pointwise::{self, PointwiseOp};
use super::pool::{self, PoolOp};
use super::quantize::{self, QuantizeOp};
use super::quantized_binary::{self, QuantizedBinaryOp};
use super::quantized_conv2d::{self, QuantizedConv2dOp};
use super::quantized_depthwise::{self, QuantizedDepthwiseOp};
use super::quantized_gemm::{self, QuantizedGemmOp};
use super::quantized_lookup::{self, QuantizedLookupOp};
use super::quantized_pool::{self, QuantizedPoolOp};
use super::random::{self, RandomOp};
use super::reduce::{self, ReduceOp};
use super::remap::{self, RemapOp};
use super::resize::{self, ResizeOp};
use super::softmax::{self, SoftmaxOp};
use super::squeeze::{self, SqueezeOp};
use super::suppress::{self, SuppressOp};
use super::top_k::{self, TopKOp};
use super::transposed_conv2d::{self, TransposedConv2dOp};
use super::update_slice::{self, UpdateSliceOp};

/// An op with its kernels.
#[derive(Debug, Clone, Copy)]
pub struct OpEntry {
    /// The op's name: that of its folders.
    pub name: &'static str,
    variants: fn() -> Vec<VariantEntry>,
    /// A few problems that between them use every kernel, every epilogue and both directions of
    /// each conversion, in the given precision.
    pub examples: Examples,
    /// The op by its extents.
    pub numbers: Numbers,
}

impl OpEntry {
    const fn of<O: Definition>(examples: Examples, numbers: Numbers) -> Self {
        OpEntry { name: O::NAME, variants: variants::<O>, examples, numbers }
    }

    /// Its kernels.
    pub fn variants(&self) -> Vec<VariantEntry> {
        (self.variants)()
    }
}

fn variants<O: Definition>() -> Vec<VariantEntry> {
    O::kernels().iter().map(|kernel| kernel.entry()).collect()
}

static ALL: &[OpEntry] = &[
    OpEntry::of::<ArgOp>(arg::examples, arg::NUMBERS),
    OpEntry::of::<AttentionOp>(attention::examples, attention::NUMBERS),
    OpEntry::of::<AttentionJoinOp>(attention_join::examples, attention_join::NUMBERS),
    OpEntry::of::<ConcatOp>(concat::examples, concat::NUMBERS),
    OpEntry::of::<Conv2dOp>(conv2d::examples, conv2d::NUMBERS),
    OpEntry::of::<ConvertOp>(convert::examples, convert::NUMBERS),
    OpEntry::of::<CopyOp>(copy::examples, copy::NUMBERS),
    OpEntry::of::<CumSumOp>(cumsum::examples, cumsum::NUMBERS),
    OpEntry::of::<DepthwiseOp>(depthwise::examples, depthwise::NUMBERS),
    OpEntry::of::<ElementwiseOp>(elementwise::examples, elementwise::NUMBERS),
    OpEntry::of::<GateOp>(gate::examples, gate::NUMBERS),
    OpEntry::of::<GatherOp>(gather::examples, gather::NUMBERS),
    OpEntry::of::<GemmOp>(gemm::examples, gemm::NUMBERS),
    OpEntry::of::<GemmRowsOp>(gemm_rows::examples, gemm_rows::NUMBERS),
    OpEntry::of::<GluOp>(glu::examples, glu::NUMBERS),
    OpEntry::of::<IntegerOp>(integer::examples, integer::NUMBERS),
    OpEntry::of::<LoopsOp>(loops::examples, loops::NUMBERS),
    OpEntry::of::<MlpOp>(mlp::examples, mlp::NUMBERS),
    OpEntry::of::<OneHotOp>(one_hot::examples, one_hot::NUMBERS),
    OpEntry::of::<NormalizeOp>(normalize::examples, normalize::NUMBERS),
    OpEntry::of::<PointwiseOp>(pointwise::examples, pointwise::NUMBERS),
    OpEntry::of::<PoolOp>(pool::examples, pool::NUMBERS),
    OpEntry::of::<DequantizeOp>(dequantize::examples, dequantize::NUMBERS),
    OpEntry::of::<DynamicConv2dOp>(dynamic_conv2d::examples, dynamic_conv2d::NUMBERS),
    OpEntry::of::<DynamicQuantizeOp>(dynamic_quantize::examples, dynamic_quantize::NUMBERS),
    OpEntry::of::<DynamicRangeOp>(dynamic_range::examples, dynamic_range::NUMBERS),
    OpEntry::of::<QuantizeOp>(quantize::examples, quantize::NUMBERS),
    OpEntry::of::<QuantizedBinaryOp>(quantized_binary::examples, quantized_binary::NUMBERS),
    OpEntry::of::<QuantizedConv2dOp>(quantized_conv2d::examples, quantized_conv2d::NUMBERS),
    OpEntry::of::<QuantizedDepthwiseOp>(quantized_depthwise::examples, quantized_depthwise::NUMBERS),
    OpEntry::of::<QuantizedLookupOp>(quantized_lookup::examples, quantized_lookup::NUMBERS),
    OpEntry::of::<QuantizedPoolOp>(quantized_pool::examples, quantized_pool::NUMBERS),
    OpEntry::of::<QuantizedGemmOp>(quantized_gemm::examples, quantized_gemm::NUMBERS),
    OpEntry::of::<RandomOp>(random::examples, random::NUMBERS),
    OpEntry::of::<RemapOp>(remap::examples, remap::NUMBERS),
    OpEntry::of::<ReduceOp>(reduce::examples, reduce::NUMBERS),
    OpEntry::of::<ResizeOp>(resize::examples, resize::NUMBERS),
    OpEntry::of::<TopKOp>(top_k::examples, top_k::NUMBERS),
    OpEntry::of::<SuppressOp>(suppress::examples, suppress::NUMBERS),
    OpEntry::of::<SoftmaxOp>(softmax::examples, softmax::NUMBERS),
    OpEntry::of::<SqueezeOp>(squeeze::examples, squeeze::NUMBERS),
    OpEntry::of::<TransposedConv2dOp>(transposed_conv2d::examples, transposed_conv2d::NUMBERS),
    OpEntry::of::<UpdateSliceOp>(update_slice::examples, update_slice::NUMBERS),
];

/// Every op.
pub fn all() -> &'static [OpEntry] {
    ALL
}
