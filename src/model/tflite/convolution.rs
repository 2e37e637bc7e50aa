//! `CONV_2D` and `DEPTHWISE_CONV_2D` to nodes.

use super::constant::Constant;
use super::elementwise::activated;
use super::import::{Import, Op};
use super::names::{self, Fused};
use super::operands::missing;
use super::slots::Phases;
use crate::emit::Activation;
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::pointwise::Pointwise;
use crate::shape::Padding;

/// The options that both convolutions have.
struct Options {
    padding: Padding,
    stride: [usize; 2],
    dilation: [usize; 2],
    activation: Fused,
}

/// `CONV_2D`; its groups follow from the weights' channels.
pub(super) fn conv2d<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let table = op.table.conv2d().ok_or_else(|| missing(op, "Conv2DOptions"))?;
    let mut options = Options {
        padding: padding(table.padding())?,
        stride: positive("stride", [table.stride_h(), table.stride_w()])?,
        dilation: positive("dilation", [table.dilation_h(), table.dilation_w()])?,
        activation: names::fused(table.activation())?,
    };
    if let Some(Phases { dilation, padding, .. }) = import.phases.get(&op.index) {
        (options.dilation, options.padding) = (*dilation, *padding);
    }
    convolution(import, op, &options, |import, name, x, weights, extras, activation| {
        let Options { padding, stride, dilation, .. } = options;
        let (input, shape) = (import.dims(x)?.shape(), weights.shape());
        // Weights are `oc kh kw c/groups`, and never empty; the file does not store the groups.
        let groups = input.c / shape.c.max(1);
        if groups == 0 || groups * shape.c != input.c {
            return refused!(
                "found weights {shape} (oc kh kw c/groups) for input {input}, \
                 wanted channels that divide the input's"
            );
        }
        let value = if [shape.h, shape.w] == [1, 1]
            && stride == [1, 1]
            && groups == 1
            && !matches!(padding, Padding::Explicit { .. })
        {
            import.build.graph.pointwise(name, x, weights, extras, Pointwise { activation })
        } else {
            let options = Conv2d { stride, dilation, padding, groups, activation, ..Conv2d::default() };
            import.build.graph.conv2d(name, x, weights, extras, options)
        };
        value.map_err(Reason::from)
    })
}

/// `DEPTHWISE_CONV_2D`; a multiplier of 0 is left to the shapes.
pub(super) fn depthwise<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let table = op.table.depthwise().ok_or_else(|| missing(op, "DepthwiseConv2DOptions"))?;
    let mut options = Options {
        padding: padding(table.padding())?,
        stride: positive("stride", [table.stride_h(), table.stride_w()])?,
        dilation: positive("dilation", [table.dilation_h(), table.dilation_w()])?,
        activation: names::fused(table.activation())?,
    };
    if let Some(Phases { dilation, padding, .. }) = import.phases.get(&op.index) {
        (options.dilation, options.padding) = (*dilation, *padding);
    }
    let multiplier = table.multiplier();
    convolution(import, op, &options, |import, name, x, weights, extras, activation| {
        let Options { padding, stride, dilation, .. } = options;
        let (input, shape) = (import.dims(x)?.shape(), weights.shape());
        let channels = usize::try_from(multiplier).ok().and_then(|m| m.checked_mul(input.c));
        if multiplier != 0 && channels != Some(shape.c) {
            return refused!(
                "found depth_multiplier {multiplier} for {} input channels and weights {shape}, \
                 wanted weights of input channels x multiplier",
                input.c
            );
        }
        let options = Depthwise { stride, dilation, padding, activation };
        import.build.graph.depthwise(name, x, weights, extras, options).map_err(Reason::from)
    })
}

/// Adds a convolution with the activation of its options.
fn convolution<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    options: &Options,
    add: impl FnOnce(&mut Import<'a>, &str, Value, HostTensor, Extras, Activation) -> Result<Value, Reason>,
) -> Result<(), Reason> {
    op.check(&[2, 3], 1)?;
    let x = import.value(op, 0)?;
    let weights = import.floats(op, 1)?;
    if weights.dims().rank() != 4 {
        let found = weights.dims();
        return refused!("{}: found shape {found}, wanted rank 4", import.describe(op, 1));
    }
    let bias = bias(import, op, 2)?;
    let extras = Extras { bias, ..Default::default() };
    // Where batches are the phases of a dilated convolution, the result is what joins them.
    let joins = import.joined_phases(op)?;
    let end = joins.as_ref().unwrap_or(op);
    let (activation, rest) = options.activation.split();
    activated(import, end, rest, |import, name| add(import, name, x, weights, extras, activation))
}

/// What `SPACE_TO_BATCH_ND` is, if a convolution of step 1 alone reads it and `BATCH_TO_SPACE_ND` alone reads
/// that: the dilation and the border of one convolution, of the operator at an index.
pub(super) fn dilated<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    block: &[usize],
    [before, after]: [&[usize]; 2],
) -> Result<Option<Phases>, Reason> {
    let (&[h, w], &[top, left], &[below, right]) = (block, before, after) else { return Ok(None) };
    let Some(convolution) = import.only_reader(op)? else { return Ok(None) };
    let plain = match convolution.name.as_str() {
        "CONV_2D" => convolution.table.conv2d().is_some_and(|table| {
            let steps = [table.stride_h(), table.stride_w(), table.dilation_h(), table.dilation_w()];
            steps == [1; 4] && table.padding() == 1
        }),
        "DEPTHWISE_CONV_2D" => convolution.table.depthwise().is_some_and(|table| {
            let steps = [table.stride_h(), table.stride_w(), table.dilation_h(), table.dilation_w()];
            steps == [1; 4] && table.padding() == 1
        }),
        _ => false,
    };
    let (true, [_]) = (plain, &convolution.outputs[..]) else { return Ok(None) };
    let Some(joins) = import.only_reader(&convolution)? else { return Ok(None) };
    if joins.name != "BATCH_TO_SPACE_ND" || joins.inputs.len() != 3 || joins.outputs.len() != 1 {
        return Ok(None);
    }
    let Some(blocks) = import.integers_ahead(&joins, 1)? else { return Ok(None) };
    let Some(crops) = import.integers_ahead(&joins, 2)? else { return Ok(None) };
    let (blocks, crops) = (blocks.values, crops.values);
    let (&[block_h, block_w], &[cut_top, cut_below, cut_left, cut_right]) = (&blocks[..], &crops[..]) else {
        return Ok(None);
    };
    let less = |pad: usize, cut: i64| usize::try_from(cut).ok().and_then(|cut| pad.checked_sub(cut));
    let (Some(top), Some(bottom), Some(left), Some(right)) =
        (less(top, cut_top), less(below, cut_below), less(left, cut_left), less(right, cut_right))
    else {
        return Ok(None);
    };
    if [block_h, block_w] != [h as i64, w as i64] || h == 0 || w == 0 {
        return Ok(None);
    }
    let padding = Padding::Explicit { top, bottom, left, right };
    Ok(Some(Phases { dilation: [h, w], padding, convolution: convolution.index, joins: joins.index }))
}

/// The scale of each channel's sums of integers, which some writers leave out of the bias.
fn product_scales<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<Option<Vec<f32>>, Reason> {
    let x = import.tensors.position(op.input(if op.name == "TRANSPOSE_CONV" { 2 } else { 0 })?)?;
    let weights = import.tensors.position(op.input(1)?)?;
    let (steps, scales) = (import.tensors.steps(x)?, import.tensors.scales(weights)?);
    import.build.budget.spend(4 * scales.len())?;
    let steps = steps.filter(|_| !scales.is_empty());
    Ok(steps.map(|steps| scales.iter().map(|scale| scale * steps.scale).collect()))
}

/// The bias at input `index`, of any rank, as one value per channel in f32; it may be left out.
pub(super) fn bias<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
) -> Result<Option<HostTensor>, Reason> {
    if !op.has(index) {
        return Ok(None);
    }
    let values = match (import.constant(op, index)?, product_scales(import, op)?) {
        (Constant::Integers(integers), Some(scales)) => {
            let scale = |at: usize| scales.get(at).or(scales.first()).copied().unwrap_or(1.0);
            integers.values.iter().enumerate().map(|(at, &value)| value as f32 * scale(at)).collect()
        }
        _ => import.floats(op, index)?.to_f32().into_owned(),
    };
    import.build.budget.spend(4 * values.len())?;
    HostTensor::vector(values).map(Some).map_err(Reason::from)
}

pub(super) fn padding(code: i8) -> Result<Padding, Reason> {
    match code {
        0 => Ok(Padding::Same),
        1 => Ok(Padding::Valid),
        other => refused!("found padding {other}, wanted 0 (SAME) or 1 (VALID)"),
    }
}

pub(super) fn positive(what: &str, [h, w]: [i32; 2]) -> Result<[usize; 2], Reason> {
    match (usize::try_from(h), usize::try_from(w)) {
        (Ok(h), Ok(w)) if h > 0 && w > 0 => Ok([h, w]),
        _ => refused!("found {what} {h} along height and {w} along width, wanted at least 1"),
    }
}
