//! The parts that the ops' plans assemble specs from.

use super::convolution::Convolution;
use super::definition::Definition;
use super::operands::{OperandInfo, Role};
use super::plan::Choice;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Dialect, Element, Interface, Operand, Param, Scalar, Value};
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::shape::Shape;

/// Scalar parameters as they are collected: a name and its value.
pub(super) type Params = Vec<(&'static str, Scalar)>;

/// `value` as a kernel's unsigned parameter; [`crate::Shape::check`] has bounded the extents.
pub(super) fn unsigned(value: usize) -> Scalar {
    Scalar::U32(u32::try_from(value).unwrap_or(u32::MAX))
}

/// The scalars of a window that is moved over a feature map.
pub(super) fn window_params(problem: &Convolution) -> Params {
    vec![
        ("src_w", unsigned(problem.input.w)),
        ("src_h", unsigned(problem.input.h)),
        ("dst_w", unsigned(problem.output.w)),
        ("dst_h", unsigned(problem.output.h)),
        ("dst_c4", unsigned(problem.output.slices())),
        ("batch", unsigned(problem.output.n)),
        ("before_h", unsigned(problem.before[0])),
        ("before_w", unsigned(problem.before[1])),
    ]
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

/// Why feature maps of these shapes cannot lie in the layout of `choice`, if they cannot; the layouts of
/// its kernel are `offered`.
pub(super) fn map_obstacle(
    choice: &Choice,
    offered: &[Layout],
    maps: [Shape; 2],
    limits: &Limits,
) -> Option<String> {
    if choice.layout != Layout::Image2d {
        return Some(format!("feature maps in {}, wanted c4 or image2d", choice.layout));
    }
    if !offered.contains(&choice.layout) {
        return Some(format!("{} has its feature maps in buffers only", choice.variant));
    }
    if limits.dialect == Dialect::Wgsl {
        return Some("WGSL has no images here".to_owned());
    }
    let Some([width, height]) = limits.max_image else {
        return Some("the device takes no images as kernel arguments".to_owned());
    };
    maps.iter().find_map(|shape| {
        let [w, h] = Layout::image_extent(shape);
        (w > width as usize || h > height as usize).then(|| {
            format!("the image of {shape} is {w} x {h} pixels, the device allows {width} x {height}")
        })
    })
}

/// The operands of `op`, each in its form: maps, weights and other constants in vec4s, rows in single elements.
pub(super) fn bindings<O: Definition>(op: &O, choice: &Choice) -> Vec<Binding> {
    let storage = op.precision().storage();
    bindings_as(op, |info| match (info.role, op.form(info.operand, choice)) {
        (Role::Constant, _) if info.operand == Operand::Weights => Element::Vec4(storage),
        (Role::Constant, _) => Element::Vec4(DType::F32),
        (_, Form::C4) => Element::Vec4(storage),
        (_, Form::Image) => Element::Image2d(storage),
        _ => Element::Scalar(info.dtype),
    })
}

/// The operands of `op`, each in elements as `element` says.
pub(super) fn bindings_as<O: Definition>(op: &O, element: impl Fn(&OperandInfo) -> Element) -> Vec<Binding> {
    let infos = op.operands().into_iter();
    infos.map(|info| binding(info.operand, element(&info), access(info.role))).collect()
}

/// Why so many bytes of local memory are too many, if they are.
pub(super) fn local_obstacle(bytes: u64, limits: &Limits) -> Option<String> {
    let most = limits.local_memory;
    (bytes > u64::from(most)).then(|| format!("{bytes} bytes of local memory, the device has {most}"))
}

/// What a kernel does with an operand that is not packed for it.
pub(super) const fn access(role: Role) -> Access {
    match role {
        Role::Output => Access::Write,
        Role::Update => Access::ReadWrite,
        Role::Input | Role::Constant => Access::Read,
    }
}

/// The constants that a window bakes into the text.
pub(super) fn window_constants(problem: &Convolution) -> Vec<(&'static str, Value)> {
    let window = [
        ("KERNEL_H", problem.kernel[0]),
        ("KERNEL_W", problem.kernel[1]),
        ("STRIDE_H", problem.stride[0]),
        ("STRIDE_W", problem.stride[1]),
        ("DILATION_H", problem.dilation[0]),
        ("DILATION_W", problem.dilation[1]),
    ]
    .map(|(name, value)| (name, Value::U32(extent(value))));
    window.into_iter().chain(problem.border.rule().map(|rule| ("RULE", Value::U32(rule)))).collect()
}

/// The label of `choice` for a rejection.
pub(super) fn label(op: &str, choice: &Choice) -> String {
    format!("{op}_{choice}")
}

/// Rejects `choice` of `op` with `reason`.
pub(super) fn reject<T>(op: &str, choice: &Choice, reason: impl Into<String>) -> Result<T> {
    Err(Error::Reject { kernel: label(op, choice), reason: reason.into() })
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
