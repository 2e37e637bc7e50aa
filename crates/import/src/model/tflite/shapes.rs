//! Operators that change dimensions or give them, and constants made of them.

use super::constant::{Constant, Integers, broadcast};
use super::import::{Import, Op};
use super::names::element;
use super::slots::Input;
use super::stored::is_quantised;
use crate::dims::Dim;
use crate::model::build::{self, axis, reshaped_to, sizes};
use crate::model::reason::Reason;

/// `RESHAPE` to an input of extents or to those of the options; one may be -1.
pub(super) fn reshape<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1, 2], 1)?;
    let wanted: Vec<i64> = if op.has(1) {
        import.integers(op, 1)?.values.to_vec()
    } else {
        let shape = op.table.reshape().and_then(|table| table.shape());
        let shape = shape.ok_or("found no shape among the inputs and options, wanted one")?;
        shape.iter().map(i64::from).collect()
    };
    // Old writers made scalars so.
    let wanted = if wanted == [0] { Vec::new() } else { wanted };
    let extents = extents(import, op)?;
    let target = reshaped_to(&extents, &wanted, false)?;
    put(import, op, &target, &wanted)
}

/// `SQUEEZE`: without the axes of the options, or without all of one element.
pub(super) fn squeeze<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let extents = extents(import, op)?;
    let listed = op.table.squeeze().and_then(|table| table.axes());
    let listed: Vec<i32> = listed.map_or_else(Vec::new, |axes| axes.iter().take(64).collect());
    let mut axes = Vec::new();
    for &listed in &listed {
        let axis = axis(i64::from(listed), extents.len())?;
        if extents[axis] != 1 {
            return refused!("found axis {listed} of {extents:?}, wanted one of extent 1");
        }
        axes.push(axis);
    }
    let dropped = |axis: usize| if listed.is_empty() { extents[axis] == 1 } else { axes.contains(&axis) };
    let kept = (0..extents.len()).filter(|&axis| !dropped(axis));
    let target: Vec<usize> = kept.map(|axis| extents[axis]).collect();
    put(import, op, &target, &[])
}

/// `EXPAND_DIMS`: an axis of one element more.
pub(super) fn expand_dims<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let mut target = extents(import, op)?;
    let place = import.integers(op, 1)?;
    let [place] = place.values[..] else {
        return refused!("found axes {:?}, wanted one", place.values);
    };
    let axis = axis(place, target.len() + 1)?;
    target.insert(axis, 1);
    put(import, op, &target, &[])
}

/// `SHAPE`: the extents as a constant.
pub(super) fn shape<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let extents = extents(import, op)?.into_iter().map(|extent| extent as i64).collect();
    import.write_constant(op, 0, Constant::Integers(Integers::vector(extents)))
}

/// `RANK`: the number of extents as a constant.
pub(super) fn rank<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let rank = extents(import, op)?.len() as i64;
    import.write_constant(op, 0, Constant::Integers(Integers::new(Vec::new(), vec![rank])))
}

/// `BROADCAST_ARGS`: the extents that two lists of extents broadcast to.
pub(super) fn broadcast_args<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (a, b) = (sizes(&import.integers(op, 0)?.values)?, sizes(&import.integers(op, 1)?.values)?);
    let extents = broadcast(&a, &b)?.into_iter().map(|extent| extent as i64).collect();
    import.write_constant(op, 0, Constant::Integers(Integers::vector(extents)))
}

/// `FILL`: a constant of one value.
pub(super) fn fill<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let extents = sizes(&import.integers(op, 0)?.values)?;
    let value = import.constant(op, 1)?;
    if value.elements() != 1 {
        return refused!("found a value of extents {:?}, wanted one element", value.extents());
    }
    let filled = value.strided(extents, &mut import.build.budget, 0, &[])?;
    import.write_constant(op, 0, filled)
}

/// `RANGE`: a constant that counts from a start to before a limit.
pub(super) fn range<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let ends = [import.constant(op, 0)?, import.constant(op, 1)?, import.constant(op, 2)?];
    let numbers = build::range(&mut import.build, &ends)?;
    import.write_constant(op, 0, numbers)
}

/// `DEQUANTIZE` and `DENSIFY`, which reading a constant does already; a half is a float.
pub(super) fn dequantise<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    match import.input(op, 0)? {
        Input::Constant(constant) => {
            let constant = match constant {
                Constant::Integers(_) if is_float(import, op) => {
                    return refused!("{}: found integers without scales", import.describe(op, 0));
                }
                constant => constant,
            };
            import.write_constant(op, 0, constant)
        }
        Input::Value(value) => import.write(op, 0, value),
    }
}

/// Whether the file says that output 0 is of floats.
pub(super) fn is_float(import: &Import<'_>, op: &Op<'_>) -> bool {
    let output = op.outputs.first().copied().unwrap_or(-1);
    let tensor = import.tensors.position(output).and_then(|position| import.tensors.tensor(position));
    tensor.is_ok_and(|tensor| {
        let kinds = [element::FLOAT32, element::FLOAT16, element::FLOAT64, element::BFLOAT16];
        kinds.contains(&tensor.element_type()) || is_quantised(&tensor)
    })
}

/// The extents of input 0.
pub(super) fn extents<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<Vec<usize>, Reason> {
    extents_of(import, op, 0)
}

/// Input 0 in the extents `target` as output 0; `wanted` as the file has them, -1 where any fits.
fn put<'a>(import: &mut Import<'a>, op: &Op<'a>, target: &[usize], wanted: &[i64]) -> Result<(), Reason> {
    match import.input(op, 0)? {
        Input::Constant(constant) => {
            let constant = constant.reshaped(target)?;
            import.write_constant(op, 0, constant)
        }
        Input::Value(value) => {
            let dims = import.dims(value)?;
            let mut dims_to = extents_to(target, dims.extents());
            if dims_to.first() != Some(&Dim::Rest)
                && !target.contains(&0)
                && let Some(open) = wanted.iter().position(|&extent| extent == -1)
                && let Some(extent) = dims_to.get_mut(open)
            {
                *extent = Dim::Rest;
            }
            let name = import.name(op, 0)?;
            let source = value;
            let value = import.build.graph.reshape(&name, source, &dims_to)?;
            if let Some(&imaginary) = import.imaginary.get(&source) {
                let part = import.part_name(&name, "imaginary")?;
                let imaginary = import.build.graph.reshape(&part, imaginary, &dims_to);
                import.imaginary.insert(value, imaginary?);
            }
            import.write(op, 0, value)
        }
    }
}

/// `target` as the extents of a reshape from `source`: a leading extent that stays follows the source's, so
/// that the batch may become another one.
pub(super) fn extents_to(target: &[usize], source: &[usize]) -> Vec<Dim> {
    rest_of(target, source, source)
}

/// `target` as the extents of a reshape from `source`, whose leading extent becomes [`Dim::Rest`] if it is that of `leading`
/// and `source` is no scalar.
pub(super) fn rest_of(target: &[usize], source: &[usize], leading: &[usize]) -> Vec<Dim> {
    let mut dims: Vec<Dim> = target.iter().map(|&extent| Dim::Fixed(extent)).collect();
    if let (Some(first), Some(extent)) = (dims.first_mut(), leading.first())
        && !source.is_empty()
        && !target.contains(&0)
        && *first == Dim::Fixed(*extent)
    {
        *first = Dim::Rest;
    }
    dims
}

/// The extents of input `index`.
pub(super) fn extents_of<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
) -> Result<Vec<usize>, Reason> {
    if let Some(joined) = import.joined(op, index)? {
        return Ok(joined.extents.clone());
    }
    Ok(match import.input(op, index)? {
        Input::Value(value) => import.dims(value)?.extents().to_vec(),
        Input::Constant(constant) => constant.extents(),
    })
}
