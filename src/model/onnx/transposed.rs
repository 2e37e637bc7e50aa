//! Transposed convolutions.

use super::filter::{filter, follow, groups};
use super::import::{Import, Op};
use crate::emit::Bits;
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::build::{Filter, Kind, Mapped, Operand, Windows, channels_last, convolved, cut, padded};
use crate::model::constant::dims_of;
use crate::model::reason::Reason;
use crate::ops::remap::PadMode;
use crate::ops::transposed_conv2d::TransposedConv2d;

type Done = Result<(), Reason>;

/// `ConvTranspose` in one to three dimensions.
pub(super) fn transposed<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let mut filter = filter(i, op, 1)?;
    let rank = own.len();
    if filter.extents.len() != rank || !(3..=5).contains(&rank) || filter.extents[0] != own[1] {
        return refused!(
            "found weights {:?} for an input of {own:?}, wanted one to three dimensions",
            filter.extents
        );
    }
    let groups = groups(op)?;
    if !own[1].is_multiple_of(groups) {
        return refused!("found {} channels in {groups} groups", own[1]);
    }
    let (windows, output) = transposed_windows(op, &own[2..], &filter.extents[2..])?;
    let target = follow(i, op, &mut filter, groups)?;
    if rank == 5 {
        let kind = i.kind_of(op, 0)?;
        let value = deep(i, op, filter, windows, &output, groups)?;
        return i.set_name(target, Operand::Value(Mapped { value, order: channels_last(rank), kind }));
    }
    let (mut x, kind) = i.map_input(op, 0)?;
    let (mut windows, mut output) = (windows, output);
    let line = rank == 3;
    if line {
        x = i.reshaped("line", x, &[own[0], 1, own[2], own[1]])?;
        filter.extents.insert(2, 1);
        windows = windows.flat();
        output.insert(0, 1);
    }
    let part = if line { "map" } else { "" };
    let mut value = transposed_groups(i, part, x, &filter, &windows, &output, groups)?;
    if line {
        let channels = filter.channels(groups);
        value = i.reshaped("", value, &[own[0], output[1], channels])?;
    }
    i.set_name(target, Operand::Value(Mapped { value, order: channels_last(rank), kind }))
}

/// A transposed convolution in three dimensions: a convolution with the weights turned round, of the input with zeros
/// between its elements.
fn deep<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    filter: Filter,
    windows: Windows,
    output: &[usize],
    groups: usize,
) -> Result<Value, Reason> {
    let mut own = i.extents_of(op, 0)?;
    let mut slot = i.slot(op, 0)?;
    let mut pads = Vec::with_capacity(3);
    for (axis, &wanted) in output.iter().enumerate() {
        let (place, stride, span) = (2 + axis, windows.stride[axis], windows.span(axis));
        let (outer, extent, inner): (usize, usize, usize) =
            (own[..place].iter().product(), own[place], own[place + 1..].iter().product());
        let wide = (extent - 1) * stride + 1;
        if stride > 1 {
            let split = [outer, extent, 1, inner];
            slot = i.with_extents("apart", slot, &split)?;
            let around = [(0, 0), (0, 0), (0, stride as i64 - 1), (0, 0)];
            slot = padded(i, "apart", slot, &split, &around, PadMode::Constant(Bits(0.0)))?;
            slot = i.with_extents("apart", slot, &[outer, extent * stride, inner])?;
            slot = cut(i, "apart", slot, &[(0, outer, 1), (0, wide, 1), (0, inner, 1)])?;
        }
        own[place] = wide;
        let before = span as i64 - 1 - windows.pads[axis].0;
        pads.push((before, (wanted + span) as i64 - 1 - wide as i64 - before));
    }
    let slot = i.with_extents("apart", slot, &own)?;
    let mapped = i.mapped_slot(slot, None)?;
    let x = i.in_order(&mapped, &channels_last(5))?;
    let (ic, oc) = (filter.extents[0], filter.extents[1]);
    let (taps, inner) = (filter.extents[2..].iter().product::<usize>(), ic / groups);
    i.budget.spend(filter.weights.len().saturating_mul(8))?;
    let mut weights = vec![0.0; filter.weights.len()];
    for (at, &weight) in filter.weights.iter().enumerate() {
        let (c, o, tap) = (at / (oc * taps), at / taps % oc, at % taps);
        let row = c / inner * oc + o;
        weights[(row * inner + c % inner) * taps + taps - 1 - tap] = weight;
    }
    let mut extents = vec![oc * groups, inner];
    extents.extend_from_slice(&filter.extents[2..]);
    let filter = Filter { weights, extents, bias: filter.bias, outputs: 0 };
    let windows = Windows { stride: vec![1; 3], pads, ..windows };
    convolved(i, x, &own, filter, windows, groups)
}

/// The windows, and the extents of the output.
fn transposed_windows(
    op: &Op<'_>,
    input: &[usize],
    kernel: &[usize],
) -> Result<(Windows, Vec<usize>), Reason> {
    let mode = op.text("auto_pad", "NOTSET")?;
    let mut windows = Windows::read(op, input, kernel)?;
    let rank = input.len();
    let more = op.ints("output_padding").map_or_else(|| vec![0; rank], <[i64]>::to_vec);
    let given = op.ints("output_shape");
    let given = given.map(|list| list.get(list.len().saturating_sub(rank)..).unwrap_or(&[]));
    if more.len() != rank || given.is_some_and(|given| given.len() != rank) {
        return refused!("found output_padding {more:?}, output_shape {given:?} for {rank} axes");
    }
    let mut output = Vec::new();
    for axis in 0..rank {
        let whole =
            (input[axis] as i64 - 1) * windows.stride[axis] as i64 + more[axis] + windows.span(axis) as i64;
        let wanted = match (given, mode) {
            (Some(given), _) => Some(given[axis]),
            (None, "SAME_UPPER" | "SAME_LOWER") => Some((input[axis] * windows.stride[axis]) as i64),
            _ => None,
        };
        if let Some(wanted) = wanted {
            let surplus = whole - wanted;
            let half = surplus.div_euclid(2);
            let before = if mode == "SAME_UPPER" { half } else { surplus - half };
            windows.pads[axis] = (before, surplus - before);
        }
        let (before, after) = windows.pads[axis];
        let extent =
            usize::try_from(whole - before - after).ok().filter(|extent| (1..1 << 20).contains(extent));
        output.push(
            extent.ok_or_else(|| format!("found pads {:?} of an output of {whole}", windows.pads[axis]))?,
        );
        if before < 0 {
            return refused!("found pads {:?}, wanted none below 0", windows.pads);
        }
    }
    Ok((windows, output))
}

fn transposed_groups(
    i: &mut Import<'_>,
    part: &str,
    x: Value,
    filter: &Filter,
    windows: &Windows,
    output: &[usize],
    groups: usize,
) -> Result<Value, Reason> {
    let &[ic, oc, kh, kw] = &filter.extents[..] else { return refused!("found no weights") };
    let inner = ic / groups;
    let span = [windows.span(0), windows.span(1)];
    i.budget.spend(ic.saturating_mul(oc).saturating_mul(span[0] * span[1]).saturating_mul(8))?;
    let options = TransposedConv2d {
        stride: [windows.stride[0], windows.stride[1]],
        padding: windows.padding(),
        output: Some([output[0], output[1]]),
        ..TransposedConv2d::default()
    };
    let mut parts = Vec::with_capacity(groups);
    for group in 0..groups {
        // Taps that are apart have zeros between them.
        let mut own = vec![0.0; oc * span[0] * span[1] * inner];
        for (c, o) in (0..inner).flat_map(|c| (0..oc).map(move |o| (c, o))) {
            for (y, x) in (0..kh).flat_map(|y| (0..kw).map(move |x| (y, x))) {
                let from = (((group * inner + c) * oc + o) * kh + y) * kw + x;
                let (row, column) = (y * windows.dilation[0], x * windows.dilation[1]);
                own[((o * span[0] + row) * span[1] + column) * inner + c] = filter.weights[from];
            }
        }
        let weights = HostTensor::new(dims_of(&[oc, span[0], span[1], inner])?, own)?;
        let bias = filter.bias.as_ref().map(|bias| bias[group * oc..(group + 1) * oc].to_vec());
        let bias = bias.map(HostTensor::vector).transpose()?;
        let extras = Extras { bias, ..Extras::default() };
        if groups == 1 {
            return i.add(part, |graph, name| graph.transposed_conv2d(name, x, weights, extras, options));
        }
        let dims = i.dims(x)?.shape();
        let slot = Operand::Value(Mapped::plain(x, 4, Kind::F32));
        let ranges = [(0, dims.n, 1), (0, dims.h, 1), (0, dims.w, 1), (group * inner, inner, 1)];
        let slot = cut(i, "group", slot, &ranges)?;
        let own = i.mapped_slot(slot, None)?.value;
        parts
            .push(i.add("part", |graph, name| graph.transposed_conv2d(name, own, weights, extras, options))?);
    }
    i.add(part, |graph, name| graph.concat(name, &parts, -1))
}
