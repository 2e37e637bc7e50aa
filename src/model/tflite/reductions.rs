//! Reductions, softmax, and changes of size.

use super::constant::{Constant, Integers, elements_of};
use super::convolution::missing;
use super::import::{Import, Input, Op};
use super::moves::node;
use super::shapes::axis;
use super::tensors::Budget;
use crate::emit::Bits;
use crate::model::reason::Reason;
use crate::ops::reduce::Reduction;
use crate::ops::resize::{Resize, ResizeMode};
use crate::ops::softmax::Softmax;

/// `MEAN`, `SUM` and the others, over the axes that input 1 lists; negative and repeated ones are allowed.
pub(super) fn reduce<'a>(import: &mut Import<'a>, op: &Op<'a>, reduction: Reduction) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let keeps = op.table.reducer().is_some_and(|table| table.keep_dims());
    let listed = import.integers(op, 1)?.values;
    let input = import.input(op, 0)?;
    let extents = match &input {
        Input::Value(value) => import.dims(*value)?.extents().to_vec(),
        Input::Constant(constant) => constant.extents(),
    };
    let mut axes = listed.iter().map(|&at| axis(at, extents.len())).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    axes.dedup();
    if let Input::Constant(Constant::Integers(integers)) = &input {
        let folded = folded(integers, &axes, keeps, reduction, &mut import.budget)?;
        return import.write_constant(op, 0, Constant::Integers(folded));
    }
    let x = import.value(op, 0)?;
    let axes: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
    node(import, op, |import, name| import.graph.reduce(name, x, reduction, &axes, keeps))
}

fn folded(
    x: &Integers,
    axes: &[usize],
    keeps: bool,
    reduction: Reduction,
    budget: &mut Budget,
) -> Result<Integers, Reason> {
    let kept = |axis: usize| if axes.contains(&axis) { 1 } else { x.dims[axis] };
    let whole: Vec<usize> = (0..x.dims.len()).map(kept).collect();
    let elements = elements_of(&whole)?;
    budget.spend((elements + x.values.len()).saturating_mul(16))?;
    let count = x.values.len() / elements.max(1);
    let first = match reduction {
        Reduction::Sum | Reduction::Mean | Reduction::Any => 0,
        Reduction::Product | Reduction::All => 1,
        Reduction::Max => i64::MIN,
        Reduction::Min => i64::MAX,
    };
    let mut values = vec![first; elements];
    for (index, &value) in super::constant::indices(&x.dims).zip(x.values.iter()) {
        let place = &mut values[super::constant::broadcast_position(&whole, &index)];
        *place = match reduction {
            Reduction::Sum | Reduction::Mean => place.wrapping_add(value),
            Reduction::Product => place.wrapping_mul(value),
            Reduction::Max => value.max(*place),
            Reduction::Min => value.min(*place),
            Reduction::Any => i64::from(*place != 0 || value != 0),
            Reduction::All => i64::from(*place != 0 && value != 0),
        };
    }
    if reduction == Reduction::Mean {
        values.iter_mut().for_each(|value| *value /= count.max(1) as i64);
    }
    let dropped = (0..x.dims.len()).filter(|axis| !axes.contains(axis)).map(|axis| x.dims[axis]).collect();
    Ok(Integers::new(if keeps { whole } else { dropped }, values))
}

/// `ARG_MAX` and `ARG_MIN` along one axis.
pub(super) fn arg<'a>(import: &mut Import<'a>, op: &Op<'a>, largest: bool) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let x = import.value(op, 0)?;
    let listed = import.integers(op, 1)?.values;
    let [place] = listed[..] else { return refused!("found axes {listed:?}, wanted one") };
    let axis = axis(place, import.dims(x)?.rank())? as isize;
    node(import, op, |import, name| match largest {
        true => import.graph.arg_max(name, x, axis, false),
        false => import.graph.arg_min(name, x, axis, false),
    })
}

/// `SOFTMAX` along the last axis.
pub(super) fn softmax<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let beta = op.table.softmax().ok_or_else(|| missing(op, "SoftmaxOptions"))?.beta();
    if !beta.is_finite() {
        return refused!("found beta {beta}, wanted a finite number");
    }
    let x = import.value(op, 0)?;
    let options = Softmax { axis: -1, beta: Bits(beta), log: false };
    node(import, op, |import, name| import.graph.softmax(name, x, options))
}

/// `LOG_SOFTMAX` along the last axis.
pub(super) fn log_softmax<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let x = import.value(op, 0)?;
    let options = Softmax { axis: -1, beta: Bits(1.0), log: true };
    node(import, op, |import, name| import.graph.softmax(name, x, options))
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
    let size = super::shapes::sizes(&import.integers(op, 1)?.values)?;
    let [h, w] = size[..] else { return refused!("found size {size:?}, wanted height and width") };
    let options = Resize { size: [h, w], mode, align_corners, half_pixel_centers };
    node(import, op, |import, name| import.graph.resize(name, x, options))
}
