//! `CONV_3D` and `CONV_3D_TRANSPOSE`: the elements that a window has along the depth become channels, and what is left
//! is a convolution in two dimensions of as many images as there are depths.

use super::convolution::{bias, padding, positive};
use super::elementwise::activated;
use super::import::{Import, Op};
use super::names::{self, Fused};
use super::operands::missing;
use crate::emit::{Activation, Bits};
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::build::{Builder, sizes};
use crate::model::reason::Reason;
use crate::ops::conv2d::Conv2d;
use crate::ops::remap::{AxisRange, PadMode};
use crate::ops::transposed_conv2d::TransposedConv2d;
use crate::shape::Padding;

/// The options of both.
struct Options {
    padding: Padding,
    depth_stride: usize,
    stride: [usize; 2],
    depth_dilation: usize,
    dilation: [usize; 2],
    activation: Fused,
}

fn options(op: &Op<'_>) -> Result<Options, Reason> {
    let table = op.table.volume().ok_or_else(|| missing(op, "Conv3DOptions"))?;
    let [depth_stride, depth_dilation] =
        positive("stride and dilation", [table.stride_d(), table.dilation_d()])?;
    Ok(Options {
        padding: padding(table.padding())?,
        depth_stride,
        stride: positive("stride", [table.stride_h(), table.stride_w()])?,
        depth_dilation,
        dilation: positive("dilation", [table.dilation_h(), table.dilation_w()])?,
        activation: names::fused(table.activation())?,
    })
}

/// Elements that windows take along the depth.
struct Taps {
    before: usize,
    after: usize,
    /// Where each one begins.
    starts: Vec<usize>,
    step: usize,
    count: usize,
}

/// `x` with `taps.starts.len()` times the channels, as one image for each depth of the result.
fn stacked(p: &mut Builder, x: Value, taps: &Taps) -> Result<Value, Reason> {
    let extents = p.dims(x)?.extents().to_vec();
    let &[n, _, h, w, c] = &extents[..] else { return refused!("found {extents:?}, wanted rank 5") };
    let mut padded = x;
    if taps.before + taps.after > 0 {
        let name = p.part("padded")?;
        let (before, after) = ([0, taps.before, 0, 0, 0], [0, taps.after, 0, 0, 0]);
        let zero = PadMode::Constant(Bits(0.0));
        padded = p.graph.pad(&name, x, &before, &after, zero)?;
    }
    let mut parts = Vec::with_capacity(taps.starts.len());
    for &start in &taps.starts {
        let mut ranges = [AxisRange::ALL; 5];
        let end = start + (taps.count - 1) * taps.step + 1;
        ranges[1] =
            AxisRange { begin: Some(start as isize), end: Some(end as isize), step: taps.step as isize };
        let name = p.part("depth")?;
        parts.push(p.graph.strided_slice(&name, padded, &ranges)?);
    }
    let joined = match parts[..] {
        [part] => part,
        _ => p.concat("depths", &parts, 4)?,
    };
    p.reshape("images", joined, &[n * taps.count, h, w, c * taps.starts.len()])
}

/// The weights of a convolution, `kd kh kw` and two numbers of channels.
fn weights<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(HostTensor, [usize; 5]), Reason> {
    let weights = import.floats(op, 1)?;
    let &[kd, kh, kw, a, b] = weights.dims().extents() else {
        return refused!("{}: found {}, wanted rank 5", import.describe(op, 1), weights.dims());
    };
    if weights.dims().elements() == 0 {
        return refused!("{}: found no elements", import.describe(op, 1));
    }
    import.build.budget.spend(8 * weights.dims().elements())?;
    Ok((weights, [kd, kh, kw, a, b]))
}

/// Weights `out kh kw (tap in)`, where `source` says where an element is.
fn arranged(
    weights: &HostTensor,
    [taps, kh, kw, inputs, outputs]: [usize; 5],
    source: impl Fn([usize; 5]) -> usize,
) -> Result<HostTensor, Reason> {
    let from = weights.to_nhwc();
    let mut values = Vec::with_capacity(from.len());
    for output in 0..outputs {
        for (y, x) in (0..kh).flat_map(|y| (0..kw).map(move |x| (y, x))) {
            for (tap, input) in (0..taps).flat_map(|tap| (0..inputs).map(move |input| (tap, input))) {
                values.push(from.get(source([tap, y, x, input, output])).copied().unwrap_or(0.0));
            }
        }
    }
    let dims = super::constant::dims_of(&[outputs, kh, kw, taps * inputs])?;
    HostTensor::new(dims, values).map_err(Reason::from)
}

/// `CONV_3D`: `x` is `n d h w c`.
pub(super) fn convolution<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2, 3], 1)?;
    let Options { padding, depth_stride: step, stride, depth_dilation, dilation, activation } = options(op)?;
    let x = import.value(op, 0)?;
    let extents = import.dims(x)?.extents().to_vec();
    let (weights, shape) = weights(import, op)?;
    let [kd, kh, kw, inputs, outputs] = shape;
    let &[n, depth, _, _, channels] = &extents[..] else {
        return refused!("found input {extents:?}, wanted rank 5");
    };
    if channels != inputs {
        return refused!("found weights {shape:?} (kd kh kw in out) for input {extents:?}");
    }
    let reach = (kd - 1).checked_mul(depth_dilation).and_then(|reach| reach.checked_add(1));
    let reach = reach.ok_or("found dilations beyond any input")?;
    let (before, count) = match padding {
        Padding::Same => {
            let count = depth.div_ceil(step);
            (
                ((count.saturating_sub(1)).saturating_mul(step).saturating_add(reach)).saturating_sub(depth)
                    / 2,
                count,
            )
        }
        _ => (0, (depth + step).saturating_sub(reach) / step),
    };
    if count == 0 || depth + step < reach {
        return refused!("found a window of depth {reach} for input {extents:?}, wanted a smaller one");
    }
    let last = (count - 1).saturating_mul(step).saturating_add(reach);
    let taps = Taps {
        before,
        after: last.saturating_sub(before + depth),
        starts: (0..kd).map(|tap| tap * depth_dilation).collect(),
        step,
        count,
    };
    import.build.budget.spend(taps.before.saturating_add(taps.after))?;
    let source = |[tap, y, x, input, output]: [usize; 5]| {
        (((tap * kh + y) * kw + x) * inputs + input) * outputs + output
    };
    let weights = arranged(&weights, shape, source)?;
    let extras = Extras { bias: bias(import, op, 2)?, ..Default::default() };
    let (own, rest) = activation.split();
    activated(import, op, rest, |import, name| {
        let p = import.named(name);
        let images = stacked(p, x, &taps)?;
        let options = Conv2d { stride, dilation, padding, activation: own, ..Conv2d::default() };
        let part = p.part("images")?;
        let y = p.graph.conv2d(&part, images, weights, extras, options);
        let y = y?;
        let extents = p.dims(y)?.extents().to_vec();
        p.reshape("", y, &[&[n, count], &extents[1..]].concat())
    })
}

/// `CONV_3D_TRANSPOSE`: the output's shape is input 0, the weights are `kd kh kw out in`. Between the depths of `x`
/// are zeros, so that along the depth it is a convolution with the weights turned around.
pub(super) fn transposed<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3, 4], 1)?;
    let Options { padding, depth_stride: step, stride, depth_dilation, dilation, activation } = options(op)?;
    let target = sizes(&import.integers(op, 0)?.values)?;
    let x = import.value(op, 2)?;
    let extents = import.dims(x)?.extents().to_vec();
    let (weights, [kd, kh, kw, outputs, inputs]) = weights(import, op)?;
    let (&[n, depth, h, w, channels], &[_, count, out_h, out_w, out_c]) = (&extents[..], &target[..]) else {
        return refused!("found {extents:?} to {target:?}, wanted rank 5");
    };
    if channels != inputs
        || out_c != outputs
        || count == 0
        || [depth_dilation, dilation[0], dilation[1]] != [1; 3]
    {
        return refused!(
            "found {extents:?} to {target:?}, weights of {inputs} to {outputs} channels and dilation {dilation:?}"
        );
    }
    let span = depth.saturating_sub(1).checked_mul(step).and_then(|span| span.checked_add(kd));
    let span = span.filter(|&span| span < 1 << 24).ok_or("found strides beyond any output")?;
    let cut = match padding {
        Padding::Same => span.saturating_sub(count) / 2,
        _ => 0,
    };
    let Some(before) = (kd - 1).checked_sub(cut) else {
        return refused!("found {extents:?} to {target:?}, wanted more of the windows inside");
    };
    let wide = depth * step;
    let after = (count + kd - 1).saturating_sub(before + wide);
    import.build.budget.spend(count.saturating_add(span))?;
    let taps = Taps { before, after, starts: (0..kd).collect(), step: 1, count };
    let source = |[tap, y, x, input, output]: [usize; 5]| {
        ((((kd - 1 - tap) * kh + y) * kw + x) * outputs + output) * inputs + input
    };
    let weights = arranged(&weights, [kd, kh, kw, inputs, outputs], source)?;
    let extras = Extras { bias: bias(import, op, 3)?, ..Default::default() };
    activated(import, op, activation, |import, name| {
        let p = import.named(name);
        let mut x = x;
        if step > 1 {
            let apart = p.reshape("apart", x, &[n, depth, 1, h, w, channels])?;
            let apart = p.extended("zeros", apart, 2, step - 1, 0.0)?;
            x = p.reshape("wide", apart, &[n, wide, h, w, channels])?;
        }
        let images = stacked(p, x, &taps)?;
        let activation = Activation::None;
        let options = TransposedConv2d { stride, padding, output: Some([out_h, out_w]), activation };
        let part = p.part("images")?;
        let y = p.graph.transposed_conv2d(&part, images, weights, extras, options);
        let y = y?;
        p.reshape("", y, &[n, count, out_h, out_w, outputs])
    })
}
