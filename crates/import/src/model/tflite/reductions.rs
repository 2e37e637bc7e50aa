//! Reductions, softmax, and changes of size.

use super::import::{Import, Op};
use super::operands::{missing, node};
use crate::model::build::{self, Extreme, axis, reduced};
use crate::model::reason::Reason;
use crate::ops::reduce::Reduction;
use crate::ops::resize::{Resize, ResizeMode};
use crate::sorted;

/// `MEAN`, `SUM` and the others, over the axes that input 1 lists; negative and repeated ones are allowed.
pub(super) fn reduce<'a>(import: &mut Import<'a>, op: &Op<'a>, reduction: Reduction) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let keeps = op.table.reducer().is_some_and(|table| table.keep_dims());
    let listed = import.integers(op, 1)?.values;
    let x = import.operand(op, 0)?;
    let rank = import.build.shape(&x)?.len();
    let mut axes = listed.iter().map(|&at| axis(at, rank)).collect::<Result<Vec<_>, _>>()?;
    sorted::sort(&mut axes, Ord::cmp);
    axes.dedup();
    let build = import.begin(op, 0)?;
    let result = reduced(build, "", x, reduction, &axes, keeps)?;
    import.put(op, 0, result)
}

/// `ARG_MAX` and `ARG_MIN` along one axis.
pub(super) fn arg<'a>(import: &mut Import<'a>, op: &Op<'a>, largest: bool) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let x = import.operand(op, 0)?;
    let listed = import.integers(op, 1)?.values;
    let [place] = listed[..] else { return refused!("found axes {listed:?}, wanted one") };
    let axis = axis(place, import.build.shape(&x)?.len())?;
    let extreme = Extreme { largest, last: false, keep: false };
    let index = build::arg(import.begin(op, 0)?, x, axis, extreme)?;
    import.put(op, 0, index)
}

/// `SOFTMAX` along the last axis.
pub(super) fn softmax<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let beta = op.table.softmax().ok_or_else(|| missing(op, "SoftmaxOptions"))?.beta();
    if !beta.is_finite() {
        return refused!("found beta {beta}, wanted a finite number");
    }
    along_last(import, op, (beta, false))
}

/// `LOG_SOFTMAX` along the last axis.
pub(super) fn log_softmax<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    along_last(import, op, (1.0, true))
}

fn along_last<'a>(import: &mut Import<'a>, op: &Op<'a>, options: (f32, bool)) -> Result<(), Reason> {
    let x = import.operand(op, 0)?;
    let last = import.build.shape(&x)?.len().saturating_sub(1);
    let shares = build::softmax(import.begin(op, 0)?, "", x, last, options)?;
    import.put(op, 0, shares)
}

/// `RESIZE_BILINEAR` to a constant height and width.
pub(super) fn resize_bilinear<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let table = op.table.resize_bilinear();
    let flags = table.map(|table| (table.align_corners(), table.half_pixel_centers()));
    resize(import, op, ResizeMode::Bilinear, flags.unwrap_or_default())
}

/// `RESIZE_NEAREST_NEIGHBOR` to a constant height and width.
pub(super) fn resize_nearest<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let table = op.table.resize_nearest();
    let flags = table.map(|table| (table.align_corners(), table.half_pixel_centers()));
    resize(import, op, ResizeMode::Nearest, flags.unwrap_or_default())
}

fn resize<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    mode: ResizeMode,
    (align_corners, half_pixel_centers): (bool, bool),
) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let x = import.value(op, 0)?;
    let size = crate::model::build::sizes(&import.integers(op, 1)?.values)?;
    let [h, w] = size[..] else { return refused!("found size {size:?}, wanted height and width") };
    let options = Resize { size: [h, w], mode, align_corners, half_pixel_centers };
    node(import, op, |import, name| import.build.graph.resize(name, x, options))
}
