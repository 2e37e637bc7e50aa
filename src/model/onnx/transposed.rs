//! Transposed convolutions.

use super::filter::{computed_weights, filter, follow, groups};
use super::import::{Import, Op};
use crate::model::build::{
    Mapped, Operand, Windows, channels_last, transposed_map, transposed_volume, unfolded_transposed,
};
use crate::model::reason::Reason;

type Done = Result<(), Reason>;

/// `ConvTranspose` in one to three dimensions.
pub(super) fn transposed<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let rank = own.len();
    if let Some((weights, bias)) = computed_weights(i, op)? {
        let kernel = i.shape(&weights)?;
        if kernel.len() != rank || !(3..=5).contains(&rank) {
            return refused!(
                "found weights {kernel:?} for an input of {own:?}, wanted one to three dimensions"
            );
        }
        let (windows, output) = transposed_windows(op, &own[2..], &kernel[2..])?;
        let (x, groups) = (i.slot(op, 0)?, groups(op)?);
        let result = unfolded_transposed(i, x, &own, weights, bias, (&windows, &output), groups)?;
        return i.set(op, 0, result);
    }
    let mut filter = filter(i, op, 1)?;
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
        let x = i.slot(op, 0)?;
        let kind = x.kind();
        let value = transposed_volume(i, x, filter, windows, &output, groups)?;
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
    let mut value = transposed_map(i, part, x, &filter, &windows, &output, groups)?;
    if line {
        let channels = filter.channels(groups);
        value = i.reshaped("", value, &[own[0], output[1], channels])?;
    }
    i.set_name(target, Operand::Value(Mapped { value, order: channels_last(rank), kind }))
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
