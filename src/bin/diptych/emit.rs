//! `diptych emit`: the text of a kernel.

use crate::flags::{FamilyName, numbers, triple};
use anyhow::{Result, bail};
use clap::ValueEnum;
use diptych::ops::conv2d::Conv2dOp;
use diptych::ops::convert::ConvertOp;
use diptych::ops::depthwise::DepthwiseOp;
use diptych::ops::gemm::GemmOp;
use diptych::ops::pointwise::PointwiseOp;
use diptych::ops::separable::SeparableOp;
use diptych::ops::{self, Launch, Op};
use diptych::tune::work_group;
use diptych::{
    Activation, Choice, Conv2d, Depthwise, Gemm, Layout, Limits, Padding, Pointwise, Precision, Shape,
    WorkGroup,
};
use std::io::Write;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The op.
    op: OpName,

    /// The language.
    #[arg(long)]
    backend: Language,

    /// The kernel variant.
    #[arg(long, value_name = "V")]
    variant: Option<String>,

    /// Outputs per invocation along the grid's axes; what they count, each kernel says.
    #[arg(long, value_name = "X,Y,Z", value_parser = triple)]
    tile: Option<[u32; 3]>,

    /// Invocations per work-group.
    #[arg(long, value_name = "X,Y,Z", value_parser = triple)]
    work_group: Option<[u32; 3]>,

    /// Storage and arithmetic: f32, f16s (f16 storage, f32 arithmetic), f16.
    #[arg(long, default_value = "f32")]
    precision: PrecisionName,

    /// The GPU whose table is used.
    #[arg(long, default_value = "default")]
    family: FamilyName,

    /// The problem, as numbers with commas; if left out, the one in parentheses:
    ///   conv2d     n,h,w,c,oc,kh,kw,stride  (1,257,257,3,32,3,3,2)
    ///   depthwise  n,h,w,c,oc,kh,kw,stride  (1,129,129,32,32,3,3,1)
    ///   pointwise  n,h,w,c,oc               (1,9,9,1024,1024)
    ///   separable  n,h,w,c,oc,kh,kw,stride  (1,17,17,512,512,3,3,1)
    ///   gemm       m,n,k                    (1024,1024,1024)
    ///   convert    n,h,w,c                  (1,257,257,3)
    /// Convolutions have SAME padding, a bias and ReLU6; products are plain; convert goes from
    /// NHWC to C4 unless the variant says otherwise.
    #[arg(long, value_name = "NUMBERS", verbatim_doc_comment)]
    shape: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OpName {
    Conv2d,
    Convert,
    Depthwise,
    Gemm,
    Pointwise,
    Separable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// WGSL.
    Wgsl,
    /// OpenCL C.
    Opencl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PrecisionName {
    F32,
    Tf32,
    Splitf16,
    F16s,
    F16,
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let text = emit(arguments)?;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

fn emit(arguments: &Arguments) -> Result<String> {
    let precision = match arguments.precision {
        PrecisionName::F32 => Precision::F32,
        PrecisionName::Tf32 => Precision::Tf32,
        PrecisionName::Splitf16 => Precision::SplitF16,
        PrecisionName::F16s => Precision::F16Storage,
        PrecisionName::F16 => Precision::F16,
    };
    let least = match arguments.backend {
        Language::Wgsl => Limits::webgpu(),
        Language::Opencl => Limits::opencl(),
    };
    let native_half = precision == Precision::F16;
    let limits = Limits { family: arguments.family.family(), native_half, ..least };
    let (shape, variant) = (arguments.shape.as_deref(), arguments.variant.as_deref());
    let problem = problem(arguments.op, shape, variant, precision)?;
    let launch = launch(&*problem, arguments, &limits)?;
    let source = launch.spec.render(limits.dialect)?;
    let [x, y, z] = source.work_group;
    // Both languages have this comment.
    Ok(format!("// {}, work-group ({x},{y},{z})\n{}", source.label, source.text))
}

/// The kernel that the flags leave: an untuned session's if they say nothing of variant and tile,
/// else the first that fits of those they allow.
fn launch(op: &dyn Op, arguments: &Arguments, limits: &Limits) -> Result<Launch> {
    let given = arguments.work_group.map_or(WorkGroup::Table, WorkGroup::Fixed);
    if arguments.variant.is_none() && arguments.tile.is_none() {
        let choice = work_group::untuned(op, given, limits)?;
        return Ok(op.plan(&choice, limits)?);
    }
    let wanted = arguments.variant.as_deref();
    let entry = ops::all().iter().find(|entry| entry.name == op.name());
    let variants: Vec<&'static str> =
        entry.iter().flat_map(|entry| entry.variants()).map(|variant| variant.name).collect();
    if let Some(name) = wanted.filter(|name| !variants.contains(name)) {
        bail!("{} has no variant {name:?}; it has {}", op.name(), variants.join(", "));
    }
    let space = op.space(limits);
    let allowed = |variant: &str| wanted.is_none_or(|wanted| wanted == variant);
    let mut choices: Vec<(&'static str, [u32; 3])> = space
        .iter()
        .copied()
        .filter(|(variant, tile)| allowed(variant) && arguments.tile.is_none_or(|wanted| wanted == *tile))
        .collect();
    if choices.is_empty() {
        // Asked all the same, because the op says best why it does not offer them.
        let tile = arguments.tile.unwrap_or([1; 3]);
        choices =
            variants.into_iter().filter(|variant| allowed(variant)).map(|variant| (variant, tile)).collect();
    }
    let mut refused = Vec::new();
    for (variant, tile) in choices {
        let work_group = match given {
            WorkGroup::Fixed(size) => size,
            // Not every tile that is asked for can be divided by.
            WorkGroup::Table => work_group::table(op, variant, tile.map(|extent| extent.max(1)), limits),
        };
        match op.plan(&Choice::new(variant, tile, work_group), limits) {
            Ok(launch) => return Ok(launch),
            Err(error) => refused.push(error.to_string()),
        }
    }
    bail!("{}", refused.join("; "))
}

/// The op of `shape` (see [`Arguments::shape`]), or of the default shape. The variant decides the
/// direction of a conversion.
pub(crate) fn problem(
    name: OpName,
    shape: Option<&str>,
    variant: Option<&str>,
    precision: Precision,
) -> Result<Arc<dyn Op>> {
    let (names, default) = match name {
        OpName::Conv2d => ("n,h,w,c,oc,kh,kw,stride", "1,257,257,3,32,3,3,2"),
        OpName::Depthwise => ("n,h,w,c,oc,kh,kw,stride", "1,129,129,32,32,3,3,1"),
        OpName::Pointwise => ("n,h,w,c,oc", "1,9,9,1024,1024"),
        OpName::Separable => ("n,h,w,c,oc,kh,kw,stride", "1,17,17,512,512,3,3,1"),
        OpName::Gemm => ("m,n,k", "1024,1024,1024"),
        OpName::Convert => ("n,h,w,c", "1,257,257,3"),
    };
    let text = shape.unwrap_or(default);
    let extents: Vec<usize> = numbers(text)
        .and_then(|numbers| {
            numbers.into_iter().map(|n| usize::try_from(n).map_err(|error| error.to_string())).collect()
        })
        .map_err(|error| anyhow::anyhow!("--shape {text}: {error}"))?;
    let (activation, padding) = (Activation::Relu6, Padding::Same);
    Ok(match (name, &extents[..]) {
        (OpName::Conv2d, &[n, h, w, c, oc, kh, kw, stride]) => {
            let options = Conv2d { stride: [stride; 2], padding, activation, ..Default::default() };
            let weights = Shape::nhwc(oc, kh, kw, c);
            Arc::new(Conv2dOp::new(Shape::nhwc(n, h, w, c), weights, &options, true, false, precision)?)
        }
        (OpName::Depthwise, &[n, h, w, c, oc, kh, kw, stride]) => {
            let options = Depthwise { stride: [stride; 2], padding, activation, ..Default::default() };
            let weights = Shape::nhwc(1, kh, kw, oc);
            Arc::new(DepthwiseOp::new(Shape::nhwc(n, h, w, c), weights, &options, true, false, precision)?)
        }
        (OpName::Pointwise, &[n, h, w, c, oc]) => {
            let (input, weights) = (Shape::nhwc(n, h, w, c), Shape::nhwc(oc, 1, 1, c));
            Arc::new(PointwiseOp::new(input, weights, &Pointwise { activation }, true, false, precision)?)
        }
        (OpName::Separable, &[n, h, w, c, oc, kh, kw, stride]) => {
            let options = Depthwise { stride: [stride; 2], padding, activation, ..Default::default() };
            let (input, window) = (Shape::nhwc(n, h, w, c), Shape::nhwc(1, kh, kw, c));
            let first = DepthwiseOp::new(input, window, &options, true, false, precision)?;
            let (options, weights) = (Pointwise { activation }, Shape::nhwc(oc, 1, 1, c));
            let second =
                PointwiseOp::new(first.convolution().output, weights, &options, true, false, precision)?;
            Arc::new(SeparableOp::new(first, second)?)
        }
        (OpName::Gemm, &[m, n, k]) => {
            Arc::new(GemmOp::new(m, n, k, 1, &Gemm::default(), false, false, precision)?)
        }
        (OpName::Convert, &[n, h, w, c]) => {
            let (from, to) = match variant {
                Some("unpack") => (Layout::C4, Layout::Nhwc),
                Some("pack_image2d") => (Layout::Nhwc, Layout::Image2d),
                Some("unpack_image2d") => (Layout::Image2d, Layout::Nhwc),
                Some("c4_to_image2d") => (Layout::C4, Layout::Image2d),
                Some("image2d_to_c4") => (Layout::Image2d, Layout::C4),
                _ => (Layout::Nhwc, Layout::C4),
            };
            Arc::new(ConvertOp::new(Shape::nhwc(n, h, w, c), from, to, precision)?)
        }
        _ => bail!("--shape {text}: found {} numbers, wanted {names}", extents.len()),
    })
}
