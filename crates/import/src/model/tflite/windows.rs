//! Windows over maps and volumes, as options have them, and the maps themselves: a file has channels last, the builder
//! has them behind the batch, and both store them alike.

use super::import::{Import, Op};
use crate::model::build::{Builder, Mapped, Operand, Windows, channels_last};
use crate::model::reason::Reason;
use crate::shape::Padding;

/// The spatial axes, the last of them for maps.
const AXES: [&str; 3] = ["depth", "height", "width"];

pub(super) fn padding(code: i8) -> Result<Padding, Reason> {
    match code {
        0 => Ok(Padding::Same),
        1 => Ok(Padding::Valid),
        other => refused!("found padding {other}, wanted 0 (SAME) or 1 (VALID)"),
    }
}

/// A number from 1 on for each axis.
pub(super) fn positive<const N: usize>(what: &str, numbers: [i32; N]) -> Result<[usize; N], Reason> {
    let mut sizes = [1; N];
    for ((size, &number), axis) in
        sizes.iter_mut().zip(&numbers).zip(AXES.iter().skip(3_usize.saturating_sub(N)))
    {
        let found = usize::try_from(number).ok().filter(|&number| number > 0);
        *size = found.ok_or_else(|| format!("found {what} {number} along {axis}, wanted at least 1"))?;
    }
    Ok(sizes)
}

/// How windows move over an input, by the code of their padding.
pub(super) fn windows(
    code: i8,
    kernel: &[usize],
    stride: &[usize],
    dilation: &[usize],
    input: &[usize],
) -> Result<Windows, Reason> {
    let same = padding(code)? == Padding::Same;
    if kernel.len() != input.len() || kernel.len() != stride.len() || kernel.contains(&0) {
        return refused!("found windows of {kernel:?} over {input:?}, wanted {} axes", stride.len());
    }
    let mut windows =
        Windows { stride: stride.to_vec(), dilation: dilation.to_vec(), ..Windows::new(kernel) };
    if same {
        windows.surround(input, true);
        windows.same = true;
    }
    Ok(windows)
}

/// Input `index`, of this rank, as a map or a volume with channels behind the batch.
pub(super) fn map<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
    rank: usize,
) -> Result<Operand, Reason> {
    let (value, kind) = (import.value(op, index)?, import.kind(op.input(index)?)?);
    let dims = import.dims(value)?;
    if dims.rank() != rank {
        return refused!(
            "{}: found rank {} ({dims}), wanted rank {rank}",
            import.describe(op, index),
            dims.rank()
        );
    }
    Ok(Operand::Value(Mapped { value, order: channels_last(rank), kind }))
}

/// A map or a volume with channels last. Where it is stored otherwise, it is moved under the operator's name.
pub(super) fn of_file(b: &mut Builder, map: Operand) -> Result<Operand, Reason> {
    let mapped = b.mapped(map)?;
    let order = channels_last(mapped.rank());
    let is_moved = mapped.order != order;
    let value = b.in_order(&mapped, &order)?;
    let value = Operand::Value(Mapped::plain(value, order.len(), mapped.kind));
    if !is_moved {
        return Ok(value);
    }
    let extents = b.shape(&value)?;
    b.with_extents("", value, &extents)
}
