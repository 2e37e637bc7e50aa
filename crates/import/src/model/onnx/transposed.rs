//! Transposed convolutions.

use super::filter::{follow, inputs_first, weights};
use super::import::{Import, Op};
use crate::model::build::{Operand, Windows, transposed_convolution};
use crate::model::reason::Reason;

type Done = Result<(), Reason>;

/// `ConvTranspose` in one to three dimensions.
pub(super) fn transposed<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let mut weights = weights(i, op, &inputs_first(own.len()), true)?;
    let (windows, output) = transposed_windows(op, own.get(2..).unwrap_or(&[]), &weights.kernel(i)?)?;
    let target = follow(i, op, &mut weights)?;
    let x = Operand::Value(i.mapped(op, 0)?);
    let y = transposed_convolution(i, x, weights, windows, &output, None)?;
    i.set_name(target, y)
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
