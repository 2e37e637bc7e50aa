//! Convolutions whose weights are computed at each run: the input's windows as the columns of a matrix, which the weights
//! multiply.

use super::builder::Builder;
use super::moves::{cut, padded, stacked};
use super::operand::{Mapped, Operand};
use super::products::product;
use super::windows::Windows;
use crate::emit::Bits;
use crate::model::constant::{elements_of, indices};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::remap::PadMode;

/// The most taps of a window: each is a slice of the input.
const MOST_TAPS: usize = 1 << 10;

/// The convolution of `x`, of extents `own` with channels behind the batch, with weights `oc ic/groups taps..`.
pub(crate) fn unfolded(
    b: &mut Builder,
    x: Operand,
    own: &[usize],
    weights: Operand,
    bias: Option<Operand>,
    windows: &Windows,
    groups: usize,
) -> Result<Operand, Reason> {
    let of_weights = b.shape(&weights)?;
    let (&[batch, channels, ..], &[outputs, inner, ..]) = (own, &of_weights[..]) else {
        return refused!("found weights {of_weights:?} for an input of {own:?}, wanted rank 3 to 5");
    };
    if own.len() != of_weights.len() || channels != inner * groups || !outputs.is_multiple_of(groups) {
        return refused!("found weights {of_weights:?} for an input of {own:?} in {groups} groups");
    }
    let taps = elements_of(&windows.kernel)?;
    if taps > MOST_TAPS {
        return refused!("found weights of {taps} taps computed at each run, wanted at most {MOST_TAPS}");
    }
    let mut around = vec![(0, 0); 2];
    around.extend(&windows.pads);
    let x = padded(b, "padded", x, own, &around, PadMode::Constant(Bits(0.0)))?;
    let whole = b.shape(&x)?;
    let mut target = vec![batch, outputs];
    for (axis, &extent) in whole.get(2..).unwrap_or(&[]).iter().enumerate() {
        let span = windows.span(axis);
        if extent < span {
            return refused!("found windows of {span} over {extent} elements, wanted no larger ones");
        }
        target.push((extent - span) / windows.stride[axis] + 1);
    }
    let positions = elements_of(&target[2..])?;
    let mut columns = Vec::with_capacity(taps);
    for tap in indices(&windows.kernel) {
        let mut ranges = vec![(0, batch, 1), (0, channels, 1)];
        let axes = tap.iter().zip(&windows.dilation).zip(&windows.stride).zip(&target[2..]);
        ranges
            .extend(axes.map(|(((tap, dilation), stride), &count)| (tap * dilation, count, *stride as i64)));
        let own = cut(b, "tap", x.clone(), &ranges)?;
        columns.push(b.with_extents("columns", own, &[batch, channels, positions])?);
    }
    let columns = stacked(b, "windows", columns, 2)?;
    let terms = inner * taps;
    let columns = b.with_extents("matrix", columns, &[batch, groups, terms, positions])?;
    let rows = b.with_extents("weights", weights, &[1, groups, outputs / groups, terms])?;
    let sums = product(b, "sums", rows, columns)?;
    let last = if bias.is_some() { "map" } else { "" };
    let sums = b.with_extents(last, sums, &target)?;
    let Some(bias) = bias else { return Ok(sums) };
    let mut of_channels = vec![1; target.len()];
    of_channels[1] = outputs;
    let bias = b.with_extents("bias", bias, &of_channels)?;
    b.apply("", Function::Add, &[sums.into(), bias.into()])
}

/// The transposed convolution of `x` with weights `ic oc/groups taps..`; the output has extents `output`.
pub(crate) fn unfolded_transposed(
    b: &mut Builder,
    x: Operand,
    own: &[usize],
    weights: Operand,
    bias: Option<Operand>,
    (windows, output): (&Windows, &[usize]),
    groups: usize,
) -> Result<Operand, Reason> {
    let of_weights = b.shape(&weights)?;
    let (&[_, channels, ..], &[inputs, outer, ..]) = (own, &of_weights[..]) else {
        return refused!("found weights {of_weights:?} for an input of {own:?}, wanted rank 3 to 5");
    };
    if own.len() != of_weights.len() || channels != inputs || !inputs.is_multiple_of(groups) {
        return refused!("found weights {of_weights:?} for an input of {own:?} in {groups} groups");
    }
    // Zeros behind each element of the input but the last.
    let (mut x, mut extents) = (x, own.to_vec());
    for axis in 2..own.len() {
        let stride = windows.stride[axis - 2];
        if stride > 1 {
            let mut split = extents.clone();
            split.insert(axis + 1, 1);
            x = b.with_extents("split", x, &split)?;
            let mut around = vec![(0, 0); split.len()];
            around[axis + 1].1 = stride as i64 - 1;
            x = padded(b, "apart", x, &split, &around, PadMode::Constant(Bits(0.0)))?;
            extents[axis] *= stride;
            x = b.with_extents("spread", x, &extents)?;
        }
    }
    // Weights of the outputs, from the last tap to the first.
    let kernel = of_weights.get(2..).unwrap_or(&[]);
    let grouped = [&[groups, inputs / groups, outer], kernel].concat();
    let mut order: Vec<usize> = (0..grouped.len()).collect();
    order.swap(1, 2);
    let weights = b.with_extents("groups", weights, &grouped)?;
    let weights = b.transposed(weights, &order)?;
    let weights =
        b.with_extents("outputs", weights, &[&[groups * outer, inputs / groups], kernel].concat())?;
    let mapped = b.mapped(weights)?;
    let turned = b.logical(&mapped)?;
    let axes: Vec<isize> = (2..own.len() as isize).collect();
    let value = b.add("turned", |graph, name| graph.reverse(name, turned, &axes))?;
    let weights = Operand::Value(Mapped { value, order: (0..own.len()).collect(), ..mapped });
    let mut pads = Vec::with_capacity(kernel.len());
    for (axis, &wanted) in output.iter().enumerate() {
        let before = windows.span(axis) as i64 - 1 - windows.pads[axis].0;
        // As many positions as the output has.
        let after = (wanted + windows.span(axis) - 1) as i64 - before - extents[axis + 2] as i64;
        pads.push((before, after));
    }
    let windows = Windows { stride: vec![1; pads.len()], pads, same: false, ..windows.clone() };
    unfolded(b, x, &extents, weights, bias, &windows, groups)
}
