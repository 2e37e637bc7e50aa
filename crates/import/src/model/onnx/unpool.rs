//! `MaxUnpool`: each element at the place that its index names, zeros elsewhere. Of several elements of one place the last
//! one stays.
//!
//! Indices that a `MaxPool` of the same windows writes name elements of these windows: where no two windows share one,
//! each place is chosen among the windows that reach it, on the device. Other indices may name any place, and are a
//! function of the CPU.

use super::columns::{MAX_PLACES, Table, taken};
use super::import::{Import, Op};
use crate::emit::Bits;
use crate::error::Error;
use crate::model::build::{Arg, Operand, Windows, sizes};
use crate::model::constant::{elements_of, indices, position};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;
use crate::ops::reduce::Reduction;
use crate::ops::remap::PadMode;

type Done = Result<(), Reason>;

/// What indices count in, and whether they are those of the windows.
struct Target {
    spatial: Vec<usize>,
    of_windows: bool,
}

pub(super) fn unpool<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let rank = own.len().saturating_sub(2);
    let kernel = sizes(op.ints("kernel_shape").unwrap_or(&[]))?;
    if rank == 0 || own.contains(&0) || i.extents_of(op, 1)? != own {
        return refused!(
            "found an input of {own:?} and indices of {:?}, wanted an index for each element of maps",
            i.extents_of(op, 1)?
        );
    }
    let windows = Windows::read(op, &own[2..], &kernel)?;
    let wanted = match op.has(2) {
        true => Some(sizes(&i.integers(op, 2)?)?),
        false => None,
    };
    if let Some(wanted) = wanted.as_ref().filter(|wanted| wanted.len() != own.len()) {
        return refused!("found output_shape {wanted:?} for an input of {own:?}");
    }
    let Target { spatial, of_windows } = target(i, op, &own, &windows, wanted.as_deref())?;
    let (rows, whole) = (own[0] * own[1], elements_of(&spatial)?);
    if rows.saturating_mul(whole) > MAX_PLACES {
        return refused!("found {own:?} to {spatial:?}, wanted at most {MAX_PLACES} elements");
    }
    let kind = i.kind_of(op, 0)?;
    let lists = if of_windows { reaching(i, &own[2..], &spatial, &windows)? } else { None };
    let map = match lists {
        Some(lists) => chosen(i, op, &lists, rows)?,
        None => scattered(i, op, rows * whole)?,
    };
    let extents = [&own[..2], &spatial].concat();
    let mut slot = i.with_extents("map", map, &extents)?;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != extents) {
        let around: Vec<(i64, i64)> =
            extents.iter().zip(&wanted).map(|(&a, &b)| (0, b as i64 - a as i64)).collect();
        slot = crate::model::build::padded(i, "", slot, &extents, &around, PadMode::Constant(Bits(0.0)))?;
        slot = i.with_extents("result", slot, &wanted)?;
    }
    i.set(op, 0, slot.of_kind(kind))
}

/// The map that indices count in: that of the `MaxPool` which writes them, if it is the output's; else the one that the
/// options give, to which an output of other extents adds zeros at the ends.
fn target<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    own: &[usize],
    windows: &Windows,
    wanted: Option<&[usize]>,
) -> Result<Target, Reason> {
    let mut spatial = Vec::with_capacity(own.len());
    for (axis, &(before, after)) in windows.pads.iter().enumerate() {
        let extent = ((own[2 + axis] - 1) * windows.stride[axis] + windows.kernel[axis]) as i64;
        let extent = usize::try_from(extent - before - after).ok().filter(|&extent| extent > 0);
        spatial.push(extent.ok_or_else(|| format!("found pads {:?} of {own:?}", windows.pads))?);
    }
    let name = op.input_name(1)?;
    let writes = |name: &str, node: &super::schema::Node<'a>| {
        node.op == "MaxPool" && node.domain.is_empty() && node.outputs.get(1) == Some(&name)
    };
    let Some(pool) = op.nodes.iter().find(|node| writes(name, node)) else {
        return Ok(Target { spatial, of_windows: false });
    };
    let pool = i.op(op.nodes, pool)?;
    let pooled = i.extents_of(&pool, 0)?;
    if let Some(wanted) = wanted
        && wanted == pooled
    {
        spatial = wanted[2..].to_vec();
    }
    let alike = pooled.get(2..) == Some(&spatial[..])
        && !pool.flag("storage_order", false)
        && Windows::read(&pool, &spatial, &windows.kernel).is_ok_and(|of| of == *windows)
        && sizes(pool.ints("kernel_shape").unwrap_or(&[]))? == windows.kernel;
    Ok(Target { spatial, of_windows: alike })
}

/// For each place of a map the windows that reach it; none if two reach one.
fn reaching(
    i: &mut Import<'_>,
    pooled: &[usize],
    spatial: &[usize],
    windows: &Windows,
) -> Result<Option<Vec<Vec<i64>>>, Reason> {
    let (many, whole) = (elements_of(pooled)?, elements_of(spatial)?);
    i.budget.spend(many.saturating_mul(elements_of(&windows.kernel)?).saturating_mul(128))?;
    i.budget.spend(whole.saturating_mul(size_of::<Vec<i64>>()))?;
    let mut lists = vec![Vec::new(); whole];
    let tapped: Vec<Vec<usize>> = indices(&windows.kernel).collect();
    let mut place = vec![0; spatial.len()];
    for (number, at) in indices(pooled).enumerate() {
        for tap in &tapped {
            let inside = (0..spatial.len()).all(|axis| {
                let moved = at[axis] * windows.stride[axis] + tap[axis] * windows.dilation[axis];
                place[axis] = usize::try_from(moved as i64 - windows.pads[axis].0).unwrap_or(usize::MAX);
                place[axis] < spatial[axis]
            });
            if inside {
                lists[position(spatial, &place)].push(number as i64);
            }
        }
    }
    Ok(lists.iter().all(|list| list.len() <= 1).then_some(lists))
}

/// Each place from the window that reaches it, if that names it.
fn chosen<'a>(i: &mut Import<'a>, op: &Op<'a>, lists: &[Vec<i64>], rows: usize) -> Result<Operand, Reason> {
    let whole = lists.len();
    let table = Table::new(i, lists)?;
    let shaped = |i: &mut Import<'a>, index: usize| -> Result<Operand, Reason> {
        let slot = i.slot(op, index)?;
        let many = i.shape(&slot)?.iter().product::<usize>() / rows.max(1);
        i.with_extents("rows", slot, &[rows, many])
    };
    let (x, index) = (shaped(i, 0)?, shaped(i, 1)?);
    let row = i.counted(rows, 0, 2)?;
    let row = i.apply("row", F::Mul, &[row.into(), (whole as f32).into()])?;
    // Counted from 1, so that no window is none's.
    let index = i.apply("own", F::Sub, &[index.into(), row.into()])?;
    let index = i.apply("from_one", F::Add, &[index.into(), 1.0.into()])?;
    let list = Operand::integers(vec![whole, table.each], table.places);
    let (values, named) = (taken(i, "values", x, list.clone())?, taken(i, "named", index, list)?);
    let place: Arg = Operand::integers(vec![whole, 1], (1..=whole as i64).collect()).into();
    let here = i.apply("here", F::Equal, &[named.into(), place])?;
    let kept = i.apply("kept", F::Select, &[here.into(), values.into(), 0.0.into()])?;
    crate::model::build::reduced(i, "sum", kept, Reduction::Sum, &[2], false)
}

/// Elements at any places of a tensor of `count`.
fn scattered<'a>(i: &mut Import<'a>, op: &Op<'a>, count: usize) -> Result<Operand, Reason> {
    let inputs = vec![i.slot(op, 0)?, i.slot(op, 1)?];
    let written = i.hosted("scattered", "unpool", inputs, &[vec![count]], move |inputs, outputs| {
        let ([x], [index], [dst]) = (&inputs[..1], &inputs[1..], outputs) else { return Ok(()) };
        dst.fill(0.0);
        for (&value, &place) in x.iter().zip(index.iter()) {
            let target = (place >= 0.0).then(|| dst.get_mut(place as usize)).flatten();
            let target = target.ok_or_else(|| {
                let wanted = format!("places among {count} elements");
                Error::input("indices of MaxUnpool", format!("place {place}"), wanted)
            })?;
            *target = value;
        }
        Ok(())
    })?;
    written.into_iter().next().ok_or_else(|| "found no result of MaxUnpool".into())
}
