//! Reductions, softmax, norms over channels, and changes of size.

use super::constant::{Constant, Integers};
use super::import::{Import, Input, Op};
use super::moves::node;
use super::shapes::axis;
use super::tensors::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;
use crate::ops::resize::{Resize, ResizeMode};

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
        let folded = folded(integers, &axes, keeps, reduction)?;
        return import.write_constant(op, 0, Constant::Integers(folded));
    }
    let x = import.value(op, 0)?;
    let axes: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
    node(import, op, |import, name| import.graph.reduce(name, x, reduction, &axes, keeps))
}

fn folded(x: &Integers, axes: &[usize], keeps: bool, reduction: Reduction) -> Result<Integers, Reason> {
    let kept = |axis: usize| if axes.contains(&axis) { 1 } else { x.dims[axis] };
    let whole: Vec<usize> = (0..x.dims.len()).map(kept).collect();
    let count = x.values.len() / whole.iter().product::<usize>().max(1);
    let first = match reduction {
        Reduction::Sum | Reduction::Mean | Reduction::Any => 0,
        Reduction::Product | Reduction::All => 1,
        Reduction::Max => i64::MIN,
        Reduction::Min => i64::MAX,
    };
    let mut values = vec![first; whole.iter().product()];
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

/// `L2_NORMALIZATION`: divided by the root of the sum of the channels' squares, which is at least `1e-6`.
pub(super) fn l2_normalization<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let x = import.value(op, 0)?;
    let name = import.name(op, 0)?;
    let parts = [
        import.part_name(&name, "squares")?,
        import.part_name(&name, "sum")?,
        import.part_name(&name, "bounded")?,
        import.part_name(&name, "factor")?,
    ];
    let graph = &mut import.graph;
    let explain = |error: crate::Error| error.to_string();
    let squares = graph.elementwise(&parts[0], Function::Square, &[x.into()]).map_err(explain)?;
    let sum = graph.reduce(&parts[1], squares, Reduction::Sum, &[-1], true).map_err(explain)?;
    let bounded =
        graph.elementwise(&parts[2], Function::Maximum, &[sum.into(), 1e-12.into()]).map_err(explain)?;
    let factor = graph.elementwise(&parts[3], Function::Rsqrt, &[bounded.into()]).map_err(explain)?;
    let value = graph.elementwise(&name, Function::Mul, &[x.into(), factor.into()]).map_err(explain)?;
    import.write(op, 0, value)
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
    let [h, w] = size[..] else { return Err(format!("found size {size:?}, wanted height and width")) };
    let options = Resize { size: [h, w], mode, align_corners, half_pixel_centers };
    node(import, op, |import, name| import.graph.resize(name, x, options))
}
