//! The parts that the ops' plans assemble specs from.

use super::convolution::Convolution;
use super::plan::{Choice, check_work_group};
use crate::dtype::{DType, Precision};
use crate::emit::{
    Access, Activation, Binding, Dialect, Element, Interface, KernelSpec, Operand, Param, Scalar, Value,
};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::limits::Limits;

/// Scalar parameters as they are collected: a name and its value.
pub(super) type Params = Vec<(&'static str, Scalar)>;

/// `value` as a kernel's unsigned parameter; [`crate::Shape::check`] has bounded the extents.
pub(super) fn unsigned(value: usize) -> Scalar {
    Scalar::U32(u32::try_from(value).unwrap_or(u32::MAX))
}

/// `value` as a grid extent or constant.
pub(super) fn extent(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The interface with the parameters of `params`.
pub(super) fn interface(bindings: Vec<Binding>, params: &Params) -> Interface {
    Interface {
        bindings,
        params: params.iter().map(|&(name, value)| Param { name, ty: value.ty() }).collect(),
    }
}

/// A binding.
pub(super) const fn binding(operand: Operand, element: Element, access: Access) -> Binding {
    Binding::new(operand, element, access)
}

/// The layouts of a convolution's kernels that can have their feature maps in images.
pub(super) const MAPS: &[Layout] = &[Layout::C4, Layout::Image2d];

/// What stands in the way of a convolution's feature maps in the layout of `choice`; the layouts of
/// its kernel are `offered`.
pub(super) fn check_maps(
    op: &'static str,
    choice: &Choice,
    offered: &[Layout],
    problem: &Convolution,
    limits: &Limits,
) -> Result<()> {
    if choice.layout == Layout::C4 {
        return Ok(());
    }
    if choice.layout != Layout::Image2d {
        return reject(op, choice, format!("feature maps in {}, wanted c4 or image2d", choice.layout));
    }
    if !offered.contains(&choice.layout) {
        return reject(op, choice, format!("{} has its feature maps in buffers only", choice.variant));
    }
    if limits.dialect == Dialect::Wgsl {
        return reject(op, choice, "WGSL has no images here");
    }
    let Some([width, height]) = limits.max_image else {
        return reject(op, choice, "the device takes no images as kernel arguments");
    };
    for shape in [&problem.input, &problem.output] {
        let [w, h] = Layout::image_extent(shape);
        if w > width as usize || h > height as usize {
            let pixels = format!("the image of {shape} is {w} x {h} pixels");
            return reject(op, choice, format!("{pixels}, the device allows {width} x {height}"));
        }
    }
    Ok(())
}

/// The bindings of a convolution over feature maps in the layout of `choice`.
pub(super) fn convolution_bindings(problem: &Convolution, choice: &Choice) -> Vec<Binding> {
    let packed = Element::Vec4(problem.precision.storage());
    let feature = match choice.layout {
        Layout::Image2d => Element::Image2d(problem.precision.storage()),
        _ => packed,
    };
    let channel = Element::Vec4(DType::F32);
    let mut bindings =
        vec![binding(Operand::Src, feature, Access::Read), binding(Operand::Weights, packed, Access::Read)];
    if problem.epilogue.bias {
        bindings.push(binding(Operand::Bias, channel, Access::Read));
    }
    if problem.epilogue.activation == Activation::PRelu {
        bindings.push(binding(Operand::Slope, channel, Access::Read));
    }
    if problem.epilogue.residual {
        bindings.push(binding(Operand::Residual, feature, Access::Read));
    }
    bindings.push(binding(Operand::Dst, feature, Access::Write));
    bindings
}

/// The constants that a window bakes into the text.
pub(super) fn window_constants(problem: &Convolution) -> Vec<(&'static str, Value)> {
    [
        ("KERNEL_H", problem.kernel[0]),
        ("KERNEL_W", problem.kernel[1]),
        ("STRIDE_H", problem.stride[0]),
        ("STRIDE_W", problem.stride[1]),
        ("DILATION_H", problem.dilation[0]),
        ("DILATION_W", problem.dilation[1]),
    ]
    .map(|(name, value)| (name, Value::U32(extent(value))))
    .to_vec()
}

/// The kernel of `choice`.
pub(super) fn kernel(
    op: &'static str,
    choice: &Choice,
    constants: Vec<(&'static str, Value)>,
    precision: Precision,
    epilogue: crate::emit::Epilogue,
    interface: Interface,
) -> KernelSpec {
    KernelSpec {
        op,
        variant: choice.variant,
        constants,
        tile: choice.tile,
        work_group: choice.work_group,
        precision,
        native_half: precision == Precision::F16,
        between: None,
        epilogue,
        interface,
    }
}

/// The label of `choice` for a rejection.
fn label(op: &str, choice: &Choice) -> String {
    format!("{op}_{choice}")
}

/// Rejects `choice` of `op` with `reason`.
pub(super) fn reject<T>(op: &str, choice: &Choice, reason: impl Into<String>) -> Result<T> {
    Err(Error::Reject { kernel: label(op, choice), reason: reason.into() })
}

/// The constraints that every kernel has: a tile that is offered, a work-group and grid within the
/// limits, and half arithmetic only where the device has it.
pub(super) fn check_choice(
    op: &'static str,
    choice: &Choice,
    offered: &[(&'static str, [u32; 3])],
    grid: [u32; 3],
    precision: Precision,
    limits: &Limits,
) -> Result<()> {
    if choice.layout != Layout::C4 && !matches!(op, "conv2d" | "depthwise" | "pointwise") {
        return reject(op, choice, format!("{op} has no feature maps to keep in {}", choice.layout));
    }
    if !offered.contains(&(choice.variant, choice.tile)) {
        let mut names: Vec<String> = offered
            .iter()
            .filter(|(variant, _)| *variant == choice.variant)
            .map(|(_, [x, y, z])| format!("{x}x{y}x{z}"))
            .collect();
        names.sort();
        return reject(
            op,
            choice,
            if names.is_empty() {
                "this variant does not serve these shapes on this device".to_owned()
            } else {
                format!("tile is not one of {}", names.join(", "))
            },
        );
    }
    if precision == Precision::F16 && !limits.native_half {
        return reject(op, choice, "precision f16 needs native half arithmetic, which the device lacks");
    }
    check_work_group(&label(op, choice), choice.work_group, grid, limits)
}

/// One value per output channel as whole vec4s, zero beyond the last, for `slices` slices.
pub(super) fn pack_channels(data: &[f32], slices: usize) -> Vec<f32> {
    let mut out = data.to_vec();
    out.resize(4 * slices, 0.0);
    out
}

/// The weights of windows of `taps` taps as `[slice][tap][4]`, zeros beyond the channels.
pub(super) fn pack_window(data: &[f32], taps: usize, channels: usize) -> Vec<f32> {
    let mut out = vec![0.0; channels.div_ceil(4) * taps * 4];
    for (tap, row) in data.chunks_exact(channels).enumerate() {
        for (c, &weight) in row.iter().enumerate() {
            out[(c / 4 * taps + tap) * 4 + c % 4] = weight;
        }
    }
    out
}

/// The weights `oc 1 1 c` of a 1x1 convolution as the rows of a matrix, `[input slice][lane][slice][4]`
/// for `inputs` input slices, zeros beyond the channels.
pub(super) fn pack_rows(data: &[f32], channels: usize, slices: usize, inputs: usize) -> Vec<f32> {
    let mut out = vec![0.0; inputs * slices * 16];
    for (o, row) in data.chunks_exact(channels).enumerate() {
        for (k, &weight) in row.iter().enumerate() {
            out[4 * slices * k + o] = weight;
        }
    }
    out
}

/// The length that `data` must have.
pub(super) fn expect_len(op: &'static str, operand: Operand, data: &[f32], wanted: usize) -> Result<()> {
    if data.len() == wanted {
        return Ok(());
    }
    Err(Error::shape(op, format!("{} values of {}", data.len(), operand.name()), format!("{wanted}")))
}

/// An operand that the op has no constant for.
pub(super) fn no_constant<T>(op: &'static str, operand: Operand) -> Result<T> {
    Err(Error::Internal(format!("{op} has no constant operand {}", operand.name())))
}
