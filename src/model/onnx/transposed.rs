//! Transposed convolutions.

use super::convolution::Windows;
use super::filter::{Filter, filter, follow, groups};
use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::moves::cut;
use super::order::{Mapped, channels_last};
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::budget::Reason;
use crate::model::constant::dims_of;
use crate::ops::transposed_conv2d::TransposedConv2d;

type Done = Result<(), Reason>;

/// `ConvTranspose` in one and two dimensions.
pub(super) fn transposed<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let mut filter = filter(i, op, 1)?;
    let rank = own.len();
    if filter.extents.len() != rank || !(3..=4).contains(&rank) || filter.extents[0] != own[1] {
        return Err(format!(
            "found weights {:?} for an input of {own:?}, wanted 1 or 2 dimensions",
            filter.extents
        ));
    }
    let groups = groups(op)?;
    if !own[1].is_multiple_of(groups) {
        return Err(format!("found {} channels in {groups} groups", own[1]));
    }
    let (windows, output) = transposed_windows(op, &own[2..], &filter.extents[2..])?;
    let target = follow(i, op, &mut filter, groups)?;
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
    i.set_name(target, Slot::Value(Mapped { value, order: channels_last(rank), kind }))
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
        return Err(format!("found output_padding {more:?}, output_shape {given:?} for {rank} axes"));
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
            return Err(format!("found pads {:?}, wanted none below 0", windows.pads));
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
    let &[ic, oc, kh, kw] = &filter.extents[..] else { return Err("found no weights".to_owned()) };
    let inner = ic / groups;
    let span = [windows.span(0), windows.span(1)];
    i.budget.spend(ic.saturating_mul(oc).saturating_mul(span[0] * span[1]).saturating_mul(4))?;
    let options = TransposedConv2d {
        stride: [windows.stride[0], windows.stride[1]],
        padding: windows.padding(),
        output: Some([output[0], output[1]]),
        ..TransposedConv2d::default()
    };
    let told = |error: crate::Error| error.to_string();
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
        let weights = HostTensor::new(dims_of(&[oc, span[0], span[1], inner])?, own).map_err(told)?;
        let bias = filter.bias.as_ref().map(|bias| bias[group * oc..(group + 1) * oc].to_vec());
        let bias = bias.map(HostTensor::vector).transpose().map_err(told)?;
        let extras = Extras { bias, ..Extras::default() };
        if groups == 1 {
            return i.add(part, |graph, name| graph.transposed_conv2d(name, x, weights, extras, options));
        }
        let dims = i.dims(x)?.shape();
        let slot = Slot::Value(Mapped::plain(x, 4, Kind::F32));
        let ranges = [(0, dims.n, 1), (0, dims.h, 1), (0, dims.w, 1), (group * inner, inner, 1)];
        let slot = cut(i, "group", slot, &ranges)?;
        let own = i.mapped_slot(slot, None)?.value;
        parts
            .push(i.add("part", |graph, name| graph.transposed_conv2d(name, own, weights, extras, options))?);
    }
    i.add(part, |graph, name| graph.concat(name, &parts, -1))
}
