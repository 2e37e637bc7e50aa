//! The list of all ops and kernels: tests, benches and the tuner walk it.

use super::arg::{self, ArgOp};
use super::concat::{self, ConcatOp};
use super::conv2d::{self, Conv2dOp};
use super::convert::{self, ConvertOp};
use super::copy::{self, CopyOp};
use super::cumsum::{self, CumSumOp};
use super::definition::Definition;
use super::depthwise::{self, DepthwiseOp};
use super::elementwise::{self, ElementwiseOp};
use super::gate::{self, GateOp};
use super::gather::{self, GatherOp};
use super::gemm::{self, GemmOp};
use super::moments::{self, MomentsOp};
use super::normalize::{self, NormalizeOp};
use super::one_hot::{self, OneHotOp};
use super::plan::Op;
use super::pointwise::{self, PointwiseOp};
use super::pool::{self, PoolOp};
use super::reduce::{self, ReduceOp};
use super::remap::{self, RemapOp};
use super::resize::{self, ResizeOp};
use super::softmax::{self, SoftmaxOp};
use super::suppress::{self, SuppressOp};
use super::top_k::{self, TopKOp};
use super::transposed_conv2d::{self, TransposedConv2dOp};
use crate::dtype::Precision;
use crate::emit::{Activation, Bits, Dialect, Template};
use crate::error::{Error, Result};
use std::sync::Arc;

/// A kernel of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariantEntry {
    /// The name of its text.
    pub name: &'static str,
    /// Its text.
    pub template: Template,
    /// The only language that has it, and why.
    pub solo: Option<(Dialect, &'static str)>,
}

impl VariantEntry {
    /// A kernel in WGSL, from which OpenCL C is printed.
    pub(super) const fn wgsl(name: &'static str, text: &'static str) -> Self {
        VariantEntry { name, template: Template { dialect: Dialect::Wgsl, text }, solo: None }
    }

    /// The same with images, which only OpenCL has here.
    pub(super) const fn image(name: &'static str, text: &'static str) -> Self {
        VariantEntry::wgsl(name, text).only(Dialect::OpenClC, "WGSL has no images here")
    }

    /// A kernel in OpenCL C, and why it is not in WGSL.
    pub(super) const fn opencl(name: &'static str, text: &'static str, why: &'static str) -> Self {
        // No browser has OpenCL.
        let text = if cfg!(target_family = "wasm") { "" } else { text };
        let template = Template { dialect: Dialect::OpenClC, text };
        VariantEntry { name, template, solo: Some((Dialect::OpenClC, why)) }
    }

    /// The same for devices that take `dialect` alone.
    pub(super) const fn only(self, dialect: Dialect, why: &'static str) -> Self {
        VariantEntry { solo: Some((dialect, why)), ..self }
    }

    /// Whether the kernel exists in `dialect`.
    pub fn speaks(&self, dialect: Dialect) -> bool {
        self.solo.is_none_or(|(only, _)| only == dialect)
    }
}

/// Makes an op's example problems in a precision.
pub type Examples = fn(Precision) -> Result<Vec<Box<dyn Op>>>;

/// Makes an op of extents, a kernel's name and a precision.
pub type OfNumbers = fn(&[usize], Option<&str>, Precision) -> Result<Arc<dyn Op>>;

/// An op by its extents alone, as a command line or a table of benchmarks has it.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// What the extents are.
    pub names: &'static str,
    /// A usual problem.
    pub usual: &'static [usize],
    /// The op of as many extents as there are names. Convolutions have SAME padding, a bias and ReLU6,
    /// products are plain. A kernel, if it is named, may say which way round the op is.
    pub op: OfNumbers,
}

impl Numbers {
    /// The error of another count of extents.
    pub(super) fn refuse<T>(op: &'static str, names: &str, found: &[usize]) -> Result<T> {
        Err(Error::input(format!("extents of {op}"), format!("{} numbers", found.len()), names))
    }
}

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
    OpEntry::of::<MomentsOp>(moments::examples, moments::NUMBERS),
    OpEntry::of::<OneHotOp>(one_hot::examples, one_hot::NUMBERS),
    OpEntry::of::<NormalizeOp>(normalize::examples, normalize::NUMBERS),
    OpEntry::of::<PointwiseOp>(pointwise::examples, pointwise::NUMBERS),
    OpEntry::of::<PoolOp>(pool::examples, pool::NUMBERS),
    OpEntry::of::<RemapOp>(remap::examples, remap::NUMBERS),
    OpEntry::of::<ReduceOp>(reduce::examples, reduce::NUMBERS),
    OpEntry::of::<ResizeOp>(resize::examples, resize::NUMBERS),
    OpEntry::of::<TopKOp>(top_k::examples, top_k::NUMBERS),
    OpEntry::of::<SuppressOp>(suppress::examples, suppress::NUMBERS),
    OpEntry::of::<SoftmaxOp>(softmax::examples, softmax::NUMBERS),
    OpEntry::of::<TransposedConv2dOp>(transposed_conv2d::examples, transposed_conv2d::NUMBERS),
];

/// Every op.
pub fn all() -> &'static [OpEntry] {
    ALL
}

/// Every activation, with one slope for the leaky one.
pub(crate) const ACTIVATIONS: [Activation; 11] = [
    Activation::None,
    Activation::Relu,
    Activation::Relu6,
    Activation::LeakyRelu(Bits(0.125)),
    Activation::PRelu,
    Activation::Sigmoid,
    Activation::Tanh,
    Activation::HardSwish,
    Activation::Silu,
    Activation::Gelu,
    Activation::GeluTanh,
];
