//! `TRANSPOSE_CONV` and MediaPipe's `Convolution2DTransposeBias` to nodes.

use super::convolution::{bias, padding, positive};
use super::elementwise::activated;
use super::import::{Import, Op};
use super::names::{self, Fused};
use super::operands::missing;
use crate::emit::Activation;
use crate::graph::Extras;
use crate::model::build::sizes;
use crate::model::reason::Reason;
use crate::ops::transposed_conv2d::TransposedConv2d;
use crate::shape::Padding;

/// `TRANSPOSE_CONV`: the output's shape is input 0.
pub(super) fn transposed<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3, 4], 1)?;
    let table = op.table.transposed_conv().ok_or_else(|| missing(op, "TransposeConvOptions"))?;
    let shape = sizes(&import.integers(op, 0)?.values)?;
    let [_, h, w, channels] = shape[..] else {
        return refused!("found output shape {shape:?}, wanted rank 4");
    };
    let outputs = import.floats(op, 1)?.shape().n;
    if channels != outputs {
        return refused!(
            "found output shape {shape:?} for weights of {outputs} output channels, wanted rank 4 and as many channels"
        );
    }
    let options = TransposedConv2d {
        stride: positive("stride", [table.stride_h(), table.stride_w()])?,
        padding: padding(table.padding())?,
        output: Some([h, w]),
        activation: Activation::None,
    };
    add(import, op, [2, 1, 3], options, names::fused(table.activation())?)
}

/// `Convolution2DTransposeBias`: inputs, weights and bias; its options are three integers, the padding (1 SAME,
/// 2 VALID) and the strides along width and height. SAME leaves `max(k - (extent - 1) % s - 1, 0)` out.
pub(super) fn biased<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let bytes = op.table.custom_options().map_or(&[][..], |options| options.bytes());
    let numbers: Vec<i32> = bytes.as_chunks::<4>().0.iter().take(3).map(|&n| i32::from_le_bytes(n)).collect();
    let [padding, stride_w, stride_h] = numbers[..] else {
        return refused!("found options of {} bytes, wanted a padding and two strides", bytes.len());
    };
    let stride = positive("stride", [stride_h, stride_w])?;
    let x = import.value(op, 0)?;
    let (input, weights) = (import.dims(x)?.shape(), import.floats(op, 1)?.shape());
    let extent = |input: usize, kernel: usize, stride: usize| {
        let left_out = match padding {
            1 => (kernel.saturating_sub(1)).saturating_sub((input.saturating_sub(1)) % stride),
            _ => 0,
        };
        let span = input.saturating_sub(1).checked_mul(stride).and_then(|span| span.checked_add(kernel));
        span.map(|span| span - left_out).ok_or("found strides beyond any output".to_owned())
    };
    if !matches!(padding, 1 | 2) {
        return refused!("found padding {padding}, wanted 1 (SAME) or 2 (VALID)");
    }
    let output = [extent(input.h, weights.h, stride[0])?, extent(input.w, weights.w, stride[1])?];
    let padding = if padding == 1 { Padding::Same } else { Padding::Valid };
    let options = TransposedConv2d { stride, padding, output: Some(output), activation: Activation::None };
    add(import, op, [0, 1, 2], options, Fused::Own(Activation::None))
}

/// Adds the node; `x`, the weights and the bias are at these inputs.
fn add<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    [x, weights, at]: [usize; 3],
    options: TransposedConv2d,
    activation: Fused,
) -> Result<(), Reason> {
    let x = import.value(op, x)?;
    let weights = import.floats(op, weights)?;
    let extras = Extras { bias: bias(import, op, at)?, ..Default::default() };
    let (activation, rest) = activation.split();
    let options = TransposedConv2d { activation, ..options };
    activated(import, op, rest, |import, name| {
        import.build.graph.transposed_conv2d(name, x, weights, extras, options).map_err(Reason::from)
    })
}
