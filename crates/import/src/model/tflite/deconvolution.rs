//! `TRANSPOSE_CONV`, `CONV_3D_TRANSPOSE` and MediaPipe's `Convolution2DTransposeBias` to nodes.

use super::convolution::{MAPS, stored, weights as weights_of};
use super::elementwise::composed;
use super::import::{Import, Op};
use super::names;
use super::operands::missing;
use super::windows::{map, of_file, padding, positive};
use crate::model::build::{Groups, INPUTS, OUTPUTS, Ranged, Windows, sizes, transposed_convolution};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// `kd kh kw oc c`.
const VOLUMES: [usize; 5] = [2, 3, 4, OUTPUTS, INPUTS];

/// A transposed convolution of a file: where its operands are, and how its windows move.
struct Transposed<'o> {
    /// The inputs that are the maps and the bias.
    inputs: [usize; 2],
    order: &'o [usize],
    stride: &'o [usize],
    dilation: &'o [usize],
    /// The extents of the result.
    output: &'o [usize],
    after: Option<Function>,
}

/// `TRANSPOSE_CONV`: the output's shape is input 0.
pub(super) fn transposed<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3, 4], 1)?;
    let table = op.table.transposed_conv().ok_or_else(|| missing(op, "TransposeConvOptions"))?;
    padding(table.padding())?;
    let stride = positive("stride", [table.stride_h(), table.stride_w()])?;
    let output = sizes(&import.integers(op, 0)?.values)?;
    let (inputs, after) = ([2, 3], names::fused(table.activation())?);
    let (order, stride, dilation, output) = (&MAPS[..], &stride[..], &[1; 2][..], &output[..]);
    add(import, op, &Transposed { inputs, order, stride, dilation, output, after })
}

/// `CONV_3D_TRANSPOSE`: the output's shape is input 0.
pub(super) fn volumes<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3, 4], 1)?;
    let table = op.table.volume().ok_or_else(|| missing(op, "Conv3DOptions"))?;
    padding(table.padding())?;
    let stride = positive("stride", [table.stride_d(), table.stride_h(), table.stride_w()])?;
    let dilation = positive("dilation", [table.dilation_d(), table.dilation_h(), table.dilation_w()])?;
    let output = sizes(&import.integers(op, 0)?.values)?;
    let (inputs, after) = ([2, 3], names::fused(table.activation())?);
    let (order, stride, dilation, output) = (&VOLUMES[..], &stride[..], &dilation[..], &output[..]);
    add(import, op, &Transposed { inputs, order, stride, dilation, output, after })
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
    let of = |import: &Import<'a>, index: usize| {
        import.tensors.extents(import.tensors.position(op.input(index)?)?)
    };
    let (own, of) = (super::shapes::extents_of(import, op, 0)?, of(import, 1)?);
    let (&[n, h, w, _], &[oc, kh, kw, _]) = (&own[..], &of[..]) else {
        return refused!("found weights {of:?} for input {own:?}, wanted rank 4");
    };
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
    let output = [n, extent(h, kh, stride[0])?, extent(w, kw, stride[1])?, oc];
    let (order, stride, dilation, output) = (&MAPS[..], &stride[..], &[1; 2][..], &output[..]);
    add(import, op, &Transposed { inputs: [0, 2], order, stride, dilation, output, after: None })
}

/// Adds the nodes. As TensorFlow Lite does, half of what windows reach beyond the output is before it.
fn add<'a>(import: &mut Import<'a>, op: &Op<'a>, own: &Transposed<'_>) -> Result<(), Reason> {
    let [input, bias] = own.inputs;
    let x = map(import, op, input, own.order.len())?;
    let x = match op.name.as_str() {
        "TRANSPOSE_CONV" => import.rounded_input(op, (input, x), Ranged::Batches)?,
        _ => x,
    };
    let weights = stored(import, op)?;
    let weights = weights_of(import, op, (weights, bias), own.order, Groups { count: 1, transposed: true })?;
    let (input, kernel) = (import.build.shape(&x)?, weights.kernel(&import.build)?);
    let (&[_, ref output @ .., channels], Some(spatial)) = (own.output, input.get(2..)) else {
        return refused!(
            "found output shape {:?} for input {input:?}, wanted rank {}",
            own.output,
            own.order.len()
        );
    };
    let outputs = weights.outputs(&import.build)?;
    if output.len() != kernel.len() || spatial.len() != kernel.len() || channels != outputs {
        return refused!(
            "found output shape {:?} for weights of {outputs} output channels, wanted rank {} and as many channels",
            own.output,
            own.order.len()
        );
    }
    let mut windows =
        Windows { stride: own.stride.to_vec(), dilation: own.dilation.to_vec(), ..Windows::new(&kernel) };
    for axis in 0..kernel.len() {
        let steps = spatial[axis].saturating_sub(1).saturating_mul(windows.stride[axis]);
        let beyond = steps.saturating_add(windows.span(axis)).saturating_sub(output[axis]);
        windows.pads[axis] = ((beyond / 2) as i64, (beyond - beyond / 2) as i64);
    }
    composed(import, op, None, |b| {
        let y = transposed_convolution(b, x, weights, windows, output, own.after)?;
        of_file(b, y)
    })
}
