//! `CONV_2D`, `DEPTHWISE_CONV_2D`, `CONV_3D` and their transposes to nodes.

use super::constant::Constant;
use super::elementwise::composed;
use super::import::{Import, Op};
use super::names;
use super::operands::missing;
use super::slots::Phases;
use super::windows::{map, of_file, positive, windows};
use crate::host::HostTensor;
use crate::model::build::{
    Groups, INPUTS, Kind, OUTPUTS, Operand, Ranged, RunWeights, Weights, Windows, convolution,
    convolution_at_run,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// `oc kh kw c`, as maps and transposed maps have their weights.
pub(super) const MAPS: [usize; 4] = [OUTPUTS, 2, 3, INPUTS];
/// `1 kh kw oc`.
pub(super) const BY_CHANNEL: [usize; 4] = [INPUTS, 2, 3, OUTPUTS];
/// `kd kh kw c oc`.
const VOLUMES: [usize; 5] = [2, 3, 4, INPUTS, OUTPUTS];

/// `CONV_2D`; its groups follow from the weights' channels.
pub(super) fn conv2d<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2, 3], 1)?;
    let table = op.table.conv2d().ok_or_else(|| missing(op, "Conv2DOptions"))?;
    let (stride, dilation) = (
        positive("stride", [table.stride_h(), table.stride_w()])?,
        positive("dilation", [table.dilation_h(), table.dilation_w()])?,
    );
    let x = map(import, op, 0, 4)?;
    let after = names::fused(table.activation())?;
    if let Some((weights, height, width)) = of_bytes(import, op, &x)? {
        let spatial = import.build.shape(&x)?.get(2..).unwrap_or_default().to_vec();
        let windows = windows(table.padding(), &[height, width], &stride, &dilation, &spatial)?;
        let bias = summand(import, op, 2)?;
        return composed(import, op, None, |b| {
            let y = convolution_at_run(b, x, &weights, bias, &windows, after)?;
            of_file(b, y)
        });
    }
    let own = stored(import, op)?;
    let groups = Groups::of(groups(import, &x, &own)?);
    let x = match import.phases.contains_key(&op.index) {
        true => x,
        false => import.rounded_input(op, (0, x), Ranged::Batches)?,
    };
    let weights = weights(import, op, (own, 2), &MAPS, groups)?;
    let over = over(import, &x, &weights, (table.padding(), &stride, &dilation))?;
    add(import, op, x, weights, over, after)
}

/// The weights of a convolution without groups that rounds its input to bytes at each run, and its windows.
fn of_bytes<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    x: &Operand,
) -> Result<Option<(RunWeights, usize, usize)>, Reason> {
    if import.phases.contains_key(&op.index) || !import.rounds_at_run(op, 0)? {
        return Ok(None);
    }
    let extents = import.tensors.extents(import.tensors.position(op.input(1)?)?)?;
    let &[outputs, height, width, channels] = &extents[..] else { return Ok(None) };
    if import.build.shape(x)?.get(1) != Some(&channels) {
        return Ok(None);
    }
    let weights = import.run_weights(op, [outputs, height, width, channels])?;
    Ok(weights.map(|weights| (weights, height, width)))
}

/// How often the weights' input channels are in the input's; the file does not store it.
fn groups(import: &Import<'_>, x: &Operand, weights: &Operand) -> Result<usize, Reason> {
    let (input, own) = (import.build.shape(x)?, import.build.shape(weights)?);
    let (channels, of) = (input[1], own.last().copied().unwrap_or(0));
    let groups = channels.checked_div(of).filter(|groups| *groups > 0 && groups * of == channels);
    groups.ok_or_else(|| {
        format!("found weights {own:?} (oc kh kw c/groups) for {channels} input channels, wanted channels that divide these")
            .into()
    })
}

/// `DEPTHWISE_CONV_2D`; a multiplier of 0 is left to the shapes.
pub(super) fn depthwise<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2, 3], 1)?;
    let table = op.table.depthwise().ok_or_else(|| missing(op, "DepthwiseConv2DOptions"))?;
    let (x, own) = (map(import, op, 0, 4)?, stored(import, op)?);
    let (channels, multiplier) = (import.build.shape(&x)?[1], table.multiplier());
    let of = import.build.shape(&own)?;
    let wanted = usize::try_from(multiplier).ok().and_then(|multiplier| multiplier.checked_mul(channels));
    if multiplier != 0 && wanted != of.last().copied() {
        return refused!(
            "found depth_multiplier {multiplier} for {channels} input channels and weights {of:?}, \
             wanted weights of input channels x multiplier"
        );
    }
    let x = match import.phases.contains_key(&op.index) {
        true => x,
        false => import.rounded_input(op, (0, x), Ranged::Batches)?,
    };
    let weights = weights(import, op, (own, 2), &BY_CHANNEL, Groups::of(channels))?;
    let (stride, dilation) = (
        positive("stride", [table.stride_h(), table.stride_w()])?,
        positive("dilation", [table.dilation_h(), table.dilation_w()])?,
    );
    let over = over(import, &x, &weights, (table.padding(), &stride, &dilation))?;
    add(import, op, x, weights, over, names::fused(table.activation())?)
}

/// `CONV_3D`: `x` is `n d h w c`.
pub(super) fn conv3d<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2, 3], 1)?;
    let table = op.table.volume().ok_or_else(|| missing(op, "Conv3DOptions"))?;
    let (x, own) = (map(import, op, 0, 5)?, stored(import, op)?);
    let weights = weights(import, op, (own, 2), &VOLUMES, Groups::of(1))?;
    let (stride, dilation) = (
        positive("stride", [table.stride_d(), table.stride_h(), table.stride_w()])?,
        positive("dilation", [table.dilation_d(), table.dilation_h(), table.dilation_w()])?,
    );
    let over = over(import, &x, &weights, (table.padding(), &stride, &dilation))?;
    add(import, op, x, weights, over, names::fused(table.activation())?)
}

fn over(
    import: &Import<'_>,
    x: &Operand,
    weights: &Weights,
    (padding, stride, dilation): (i8, &[usize], &[usize]),
) -> Result<Windows, Reason> {
    let (own, kernel) = (import.build.shape(x)?, weights.kernel(&import.build)?);
    windows(padding, &kernel, stride, dilation, own.get(2..).unwrap_or(&[]))
}

/// The weights at input 1.
pub(super) fn stored<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<Operand, Reason> {
    match import.is_computed(op, 1)? {
        true => import.operand(op, 1),
        false => Ok(Operand::Constant(Constant::Floats(import.floats(op, 1)?), Kind::F32)),
    }
}

/// Weights, and the bias at an input.
pub(super) fn weights<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    (weights, bias): (Operand, usize),
    order: &[usize],
    groups: Groups,
) -> Result<Weights, Reason> {
    let bias = summand(import, op, bias)?;
    let place = import.describe(op, 1);
    let weights = Weights::new(&mut import.build, weights, bias, order, groups);
    weights.map_err(|reason| reason.behind(format_args!("{place}: ")))
}

/// Adds a convolution.
fn add<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    x: Operand,
    weights: Weights,
    windows: Windows,
    after: Option<Function>,
) -> Result<(), Reason> {
    let mut windows = windows;
    if let Some(Phases { dilation, pads, .. }) = import.phases.get(&op.index) {
        (windows.dilation, windows.pads, windows.same) = (dilation.to_vec(), pads.to_vec(), false);
    }
    // Where batches are the phases of a dilated convolution, the result is what joins them.
    let joins = import.joined_phases(op)?;
    composed(import, joins.as_ref().unwrap_or(op), None, |b| {
        let y = convolution(b, x, weights, windows, after)?;
        of_file(b, y)
    })
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
    let pads = [[top, bottom], [left, right]].map(|[before, after]| (before as i64, after as i64));
    Ok(Some(Phases { dilation: [h, w], pads, convolution: convolution.index, joins: joins.index }))
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

/// The bias at input `index` as an operand of one axis; it may be left out.
pub(super) fn summand<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
) -> Result<Option<Operand>, Reason> {
    if !op.has(index) {
        return Ok(None);
    }
    if import.is_computed(op, index)? {
        return import.operand(op, index).map(Some);
    }
    let bias = bias(import, op, index)?;
    Ok(bias.map(|bias| Operand::Constant(Constant::Floats(bias), Kind::F32)))
}
