//! The list of all ops and kernels: tests, benches and the tuner walk it.

use super::conv2d::{Conv2d, Conv2dOp};
use super::convert::ConvertOp;
use super::depthwise::{Depthwise, DepthwiseOp};
use super::gemm::{Gemm, GemmOp};
use super::plan::Op;
use super::pointwise::{Pointwise, PointwiseOp};
use super::separable::SeparableOp;
use crate::dtype::Precision;
use crate::emit::{Activation, Bits, Dialect, Operand};
use crate::error::Result;
use crate::layout::Layout;
use crate::shape::{Padding, Shape};
use std::sync::Arc;

/// A kernel of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariantEntry {
    /// The name of its templates.
    pub name: &'static str,
    /// The only language that has it, and why; `None` for a pair.
    pub solo: Option<(Dialect, &'static str)>,
}

impl VariantEntry {
    const fn pair(name: &'static str) -> Self {
        VariantEntry { name, solo: None }
    }

    const fn image(name: &'static str) -> Self {
        VariantEntry { name, solo: Some((Dialect::OpenClC, "WGSL has no images here")) }
    }

    const fn solo(name: &'static str, only: Dialect, why: &'static str) -> Self {
        VariantEntry { name, solo: Some((only, why)) }
    }

    /// Whether the kernel exists in `dialect`.
    pub fn speaks(&self, dialect: Dialect) -> bool {
        self.solo.is_none_or(|(only, _)| only == dialect)
    }
}

/// Makes an op's example problems in a precision.
pub type Examples = fn(Precision) -> Result<Vec<Box<dyn Op>>>;

/// Two ops that run as one.
#[derive(Debug, Clone)]
pub struct Fused {
    /// The one op.
    pub op: Arc<dyn Op>,
    /// The operands of the first: the name in the one op, the name in the first. Its output is the
    /// second one's input, and is never stored.
    pub first: &'static [(Operand, Operand)],
    /// The operands of the second, likewise.
    pub second: &'static [(Operand, Operand)],
}

/// What makes one op of two, of which the second alone reads the first one's output.
pub type Fuse = fn(&dyn Op, &dyn Op) -> Option<Fused>;

/// An op with its kernels.
#[derive(Debug, Clone, Copy)]
pub struct OpEntry {
    /// The op's name: that of its folders.
    pub name: &'static str,
    /// Its kernels.
    pub variants: &'static [VariantEntry],
    /// A few problems that between them use every kernel, every epilogue and both directions of
    /// each conversion, in the given precision.
    pub examples: Examples,
    /// For an op that two others can run as.
    pub fuse: Option<Fuse>,
}

static ALL: &[OpEntry] = &[
    OpEntry {
        name: "conv2d",
        variants: &[
            VariantEntry::pair("direct"),
            VariantEntry::pair("tiled"),
            VariantEntry::pair("split"),
            VariantEntry::pair("shallow"),
            VariantEntry::pair("grouped"),
            VariantEntry::pair("winograd2"),
            VariantEntry::pair("winograd4"),
        ],
        examples: conv2d_examples,
        fuse: None,
    },
    OpEntry {
        name: "convert",
        variants: &[
            VariantEntry::pair("pack"),
            VariantEntry::pair("unpack"),
            VariantEntry::pair("unpack_parts"),
            VariantEntry::image("pack_image2d"),
            VariantEntry::image("unpack_image2d"),
            VariantEntry::image("c4_to_image2d"),
            VariantEntry::image("image2d_to_c4"),
        ],
        examples: convert_examples,
        fuse: None,
    },
    OpEntry {
        name: "depthwise",
        variants: &[
            VariantEntry::pair("micro"),
            VariantEntry::pair("rows"),
            VariantEntry::pair("direct"),
            VariantEntry::pair("local"),
            VariantEntry::pair("multiplier"),
        ],
        examples: depthwise_examples,
        fuse: None,
    },
    OpEntry {
        name: "gemm",
        variants: &[
            VariantEntry::pair("tiled"),
            VariantEntry::pair("thin"),
            VariantEntry::pair("vec4"),
            VariantEntry::pair("micro"),
            VariantEntry::image("image2d"),
            VariantEntry::solo("wide", Dialect::OpenClC, "WGSL has no vectors longer than four"),
            VariantEntry::solo("subgroup", Dialect::Wgsl, "no OpenCL driver at hand lists cl_khr_subgroups"),
            VariantEntry::solo("matrix", Dialect::Wgsl, "OpenCL C has no cooperative matrices"),
            VariantEntry::solo("matrix_ptx", Dialect::OpenClC, "WGSL has no inline assembly"),
            VariantEntry::solo("matrix_split_ptx", Dialect::OpenClC, "WGSL has no inline assembly"),
            VariantEntry::solo("wgmma", Dialect::OpenClC, "WGSL has no inline assembly"),
            VariantEntry::solo("wgmma_tf32", Dialect::OpenClC, "WGSL has no inline assembly"),
        ],
        examples: gemm_examples,
        fuse: None,
    },
    OpEntry {
        name: "pointwise",
        variants: &[
            VariantEntry::pair("micro"),
            VariantEntry::pair("tiled"),
            VariantEntry::pair("split"),
            VariantEntry::pair("direct"),
        ],
        examples: pointwise_examples,
        fuse: None,
    },
    OpEntry {
        name: "separable",
        variants: &[VariantEntry::pair("staged")],
        examples: separable_examples,
        fuse: Some(super::separable::fuse),
    },
];

/// Every op.
pub fn all() -> &'static [OpEntry] {
    ALL
}

/// Every activation, with one slope for the leaky one.
pub(crate) const ACTIVATIONS: [Activation; 8] = [
    Activation::None,
    Activation::Relu,
    Activation::Relu6,
    Activation::LeakyRelu(Bits(0.125)),
    Activation::PRelu,
    Activation::Sigmoid,
    Activation::Tanh,
    Activation::HardSwish,
];

fn conv2d_examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(1, 9, 11, 6);
    let stem = Conv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
    let grouped = Conv2d { groups: 2, dilation: [2, 1], ..Default::default() };
    let mut examples: Vec<Box<dyn Op>> = vec![
        Box::new(Conv2dOp::new(input, Shape::nhwc(9, 3, 3, 6), &stem, false, false, precision)?),
        Box::new(Conv2dOp::new(input, Shape::nhwc(10, 3, 2, 3), &grouped, true, true, precision)?),
        Box::new(Conv2dOp::new(input, Shape::nhwc(9, 3, 3, 6), &Conv2d::default(), true, true, precision)?),
        Box::new(Conv2dOp::new(input, Shape::nhwc(16, 3, 2, 3), &grouped, true, false, precision)?),
        Box::new(Conv2dOp::new(
            Shape::nhwc(1, 9, 11, 8),
            Shape::nhwc(12, 2, 2, 4),
            &grouped,
            true,
            false,
            precision,
        )?),
        Box::new(Conv2dOp::new(
            Shape::nhwc(1, 9, 11, 8),
            Shape::nhwc(16, 2, 2, 4),
            &grouped,
            true,
            false,
            precision,
        )?),
        Box::new(Conv2dOp::new(
            Shape::nhwc(1, 9, 11, 3),
            Shape::nhwc(9, 3, 3, 3),
            &stem,
            true,
            false,
            precision,
        )?),
    ];
    for activation in ACTIVATIONS {
        let options = Conv2d { activation, ..Default::default() };
        examples.push(Box::new(Conv2dOp::new(
            input,
            Shape::nhwc(5, 1, 2, 6),
            &options,
            true,
            true,
            precision,
        )?));
    }
    Ok(examples)
}

fn depthwise_examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(1, 9, 11, 6);
    let down = Depthwise {
        stride: [2, 2],
        padding: Padding::Same,
        activation: Activation::Relu6,
        ..Default::default()
    };
    let dilated = Depthwise { dilation: [2, 2], ..Default::default() };
    Ok(vec![
        Box::new(DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 6), &down, true, false, precision)?),
        Box::new(DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 6), &dilated, false, true, precision)?),
        Box::new(DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 18), &down, true, true, precision)?),
    ])
}

fn pointwise_examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(1, 9, 9, 30);
    let relu6 = Pointwise { activation: Activation::Relu6 };
    let weights = Shape::nhwc(17, 1, 1, 30);
    Ok(vec![
        Box::new(PointwiseOp::new(input, weights, &relu6, true, false, precision)?),
        Box::new(PointwiseOp::new(input, weights, &Pointwise::default(), false, true, precision)?),
    ])
}

fn separable_examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let (input, relu6) = (Shape::nhwc(1, 9, 11, 6), Activation::Relu6);
    let same = Depthwise { padding: Padding::Same, activation: relu6, ..Default::default() };
    let odd = Depthwise { stride: [2, 1], dilation: [1, 2], ..Default::default() };
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (window, activation, extras) in [(same, relu6, false), (odd, Activation::PRelu, true)] {
        let first = DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 6), &window, !extras, false, precision)?;
        let (options, weights) = (Pointwise { activation }, Shape::nhwc(9, 1, 1, 6));
        let second = PointwiseOp::new(first.0.output, weights, &options, true, extras, precision)?;
        examples.push(Box::new(SeparableOp::new(first, second)?));
    }
    Ok(examples)
}

fn gemm_examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let accumulate = Gemm { alpha: Bits(0.5), beta: Bits(2.0), ..Default::default() };
    let transposed = Gemm {
        transpose_a: true,
        transpose_b: true,
        activation: Activation::Tanh,
        ldc: Some(40),
        ..Default::default()
    };
    Ok(vec![
        Box::new(GemmOp { precision, ..GemmOp::packed(32, 32, 32) }),
        Box::new(GemmOp { precision, ..GemmOp::packed(3, 20, 36) }),
        Box::new(GemmOp::new(33, 20, 12, 2, &accumulate, true, true, precision)?),
        Box::new(GemmOp::new(7, 31, 5, 1, &transposed, true, true, precision)?),
    ])
}

fn convert_examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let shape = Shape::nhwc(2, 3, 5, 7);
    let directions = [
        (Layout::Nhwc, Layout::C4),
        (Layout::Nchw, Layout::C4),
        (Layout::C4, Layout::Nhwc),
        (Layout::C4, Layout::Nchw),
        (Layout::Nhwc, Layout::Image2d),
        (Layout::Image2d, Layout::Nhwc),
        (Layout::C4, Layout::Image2d),
        (Layout::Image2d, Layout::C4),
    ];
    let mut examples: Vec<Box<dyn Op>> = Vec::with_capacity(directions.len() + 1);
    for (from, to) in directions {
        examples.push(Box::new(ConvertOp::new(shape, from, to, precision)?));
    }
    examples.push(Box::new(ConvertOp::parts(shape, &[1, 4, 2], precision)?));
    Ok(examples)
}
