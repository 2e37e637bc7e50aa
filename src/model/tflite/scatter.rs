//! Operators that put elements in places, add those of one place, or turn some of them around.

use super::constant::{Constant, Integers, elements_of};
use super::import::{Import, Op};
use super::operands::missing;
use super::slots::Input;
use crate::graph::{Extras, Right, Term, Value};
use crate::model::build::{Builder, axis, sizes};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::one_hot::OneHot;
use crate::ops::reduce::Reduction;

/// Places of a flattened tensor, one for each row of indices; `None` for what lies outside.
fn places(indices: &Integers, extents: &[usize]) -> Vec<Option<usize>> {
    let depth = extents.len().max(1);
    let place = |row: &[i64]| {
        row.iter().zip(extents).try_fold(0usize, |place, (&index, &extent)| {
            let index = usize::try_from(index).ok().filter(|&index| index < extent)?;
            Some(place * extent + index)
        })
    };
    indices.values.chunks_exact(depth).map(place).collect()
}

/// For each place the rows that go there.
fn rows_of(places: &[Option<usize>], count: usize) -> Vec<Vec<usize>> {
    let mut rows = vec![Vec::new(); count];
    for (row, place) in places.iter().enumerate() {
        if let Some(place) = place
            && let Some(rows) = rows.get_mut(*place)
        {
            rows.push(row);
        }
    }
    rows
}

/// For each of `rows` the reduction of those of `x` (`n inner`) that it lists; of none, `identity`.
fn gathered(
    p: &mut Builder,
    x: Value,
    [n, inner]: [usize; 2],
    rows: &[Vec<usize>],
    (reduction, identity): (Reduction, f32),
) -> Result<Value, Reason> {
    let most = rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
    p.budget.spend(rows.len().saturating_mul(most).saturating_mul(4))?;
    let padded = p.extended("and_none", x, 0, 1, identity)?;
    let of = |row: &Vec<usize>| -> Vec<f32> {
        (0..most).map(|at| row.get(at).copied().unwrap_or(n) as f32).collect()
    };
    let indices = rows.iter().flat_map(of);
    let indices = p.constant("rows", &[rows.len() * most], indices)?;
    let picked = p.gather("picked", padded, indices, 0)?;
    if most == 1 {
        return Ok(picked);
    }
    let picked = p.reshape("groups", picked, &[rows.len(), most, inner])?;
    p.reduce("joined", picked, reduction, 1, false)
}

/// `SCATTER_ND`: zeros with rows of values added at places.
pub(super) fn scatter_nd<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let extents = sizes(&import.integers(op, 2)?.values)?;
    let indices = import.input(op, 0)?;
    let index_dims = match &indices {
        Input::Value(value) => import.dims(*value)?.extents().to_vec(),
        Input::Constant(constant) => constant.extents(),
    };
    let Some((&depth, rows)) = index_dims.split_last().filter(|(depth, _)| **depth <= extents.len()) else {
        return refused!(
            "found indices {index_dims:?} of {extents:?}, wanted rows of at most an index for each axis"
        );
    };
    let (outer, inner_extents) = extents.split_at(depth);
    let (count, inner) = (elements_of(outer)?, elements_of(inner_extents)?);
    let n = elements_of(rows)?;
    let updates = import.value(op, 1)?;
    if import.dims(updates)?.elements() != n * inner || count == 0 || inner == 0 {
        let found = import.dims(updates)?;
        return refused!(
            "found values {found} at {index_dims:?} of {extents:?}, wanted one for each row of indices"
        );
    }
    import.build.budget.spend(4 * count.max(n))?;
    let p = import.begin(op, 0)?;
    let flat = p.reshape("values", updates, &[n, inner])?;
    let value = match indices {
        Input::Constant(Constant::Integers(indices)) => {
            let rows = rows_of(&places(&indices, outer), count);
            gathered(p, flat, [n, inner], &rows, (Reduction::Sum, 0.0))?
        }
        Input::Constant(Constant::Floats(_)) => {
            return refused!("found indices that are floats, wanted integers");
        }
        Input::Value(indices) => {
            p.budget.spend(count.saturating_mul(n))?;
            let indices = p.reshape("indices", indices, &[n, depth])?;
            // A matrix with a 1 where a row of values goes to a place.
            let mut steps = vec![1.0; depth];
            for axis in (1..depth).rev() {
                steps[axis - 1] = steps[axis] * outer[axis] as f32;
            }
            let steps = p.constant("steps", &[1, depth], steps)?;
            let moved = p.each("moved", Function::Mul, &[indices.into(), steps.into()])?;
            let places = p.reduce("places", moved, Reduction::Sum, 1, false)?;
            let name = p.part("matrix")?;
            let bits = crate::emit::Bits;
            let options = OneHot { depth: count, on: bits(1.0), off: bits(0.0), axis: 0 };
            let matrix = p.graph.one_hot(&name, places, options)?;
            p.product("sum", matrix, Right::Value(flat), false, Extras::default())?
        }
    };
    let value = p.reshape("", value, &extents)?;
    import.write(op, 0, value)
}

/// `SPARSE_TO_DENSE`: one value with others at places that are known.
pub(super) fn sparse_to_dense<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[4], 1)?;
    let (indices, extents) = (import.integers(op, 0)?, sizes(&import.integers(op, 1)?.values)?);
    let (values, other) = (import.value(op, 2)?, import.constant(op, 3)?);
    let other =
        other.number().ok_or_else(|| format!("found default values {:?}, wanted one", other.extents()))?;
    let places = match indices.dims.len() {
        0 | 1 => places(&indices, &[elements_of(&extents)?]),
        _ => places(&indices, &extents),
    };
    let (count, n) = (elements_of(&extents)?, places.len());
    import.build.budget.spend(8 * count)?;
    let own = import.dims(values)?.elements();
    if (own != n && own != 1) || n == 0 || count == 0 {
        return refused!(
            "found {own} values at {n} places of {extents:?}, wanted one for each place, or one for all"
        );
    }
    let mut rows = rows_of(&places, count);
    for row in &mut rows {
        // The last of several.
        row.drain(..row.len().saturating_sub(1));
        if own == 1 {
            row.iter_mut().for_each(|row| *row = 0);
        }
    }
    let parts = import.begin(op, 0)?;
    let flat = parts.reshape("values", values, &[own, 1])?;
    let value = gathered(parts, flat, [own, 1], &rows, (Reduction::Sum, other))?;
    let value = parts.reshape("", value, &extents)?;
    import.write(op, 0, value)
}

/// `SEGMENT_SUM` and the unsorted ones: rows of one number joined.
pub(super) fn segments<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    reduction: Reduction,
    sorted: bool,
) -> Result<(), Reason> {
    op.check(&[if sorted { 2 } else { 3 }], 1)?;
    let x = import.value(op, 0)?;
    let ids = import.integers(op, 1)?;
    let dims = import.dims(x)?;
    let extents = dims.extents();
    if ids.dims.is_empty() || ids.dims.len() > extents.len() || ids.dims[..] != extents[..ids.dims.len()] {
        return refused!("found numbers {:?} for {dims}, wanted one for each row", ids.dims);
    }
    let inner_extents = extents[ids.dims.len()..].to_vec();
    let (n, inner) = (ids.values.len(), elements_of(&inner_extents)?);
    let count = if sorted {
        ids.values.iter().max().map_or(0, |&last| last.saturating_add(1))
    } else {
        let count = import.integers(op, 2)?.values;
        count.first().copied().unwrap_or(0)
    };
    let count = usize::try_from(count).ok().filter(|count| (1..1 << 24).contains(count));
    let count = count.ok_or_else(|| format!("found numbers {:?}", ids.values))?;
    import.build.budget.spend(8 * count)?;
    let identity = match reduction {
        Reduction::Product => 1.0,
        Reduction::Max => f32::MIN,
        Reduction::Min => f32::MAX,
        _ => 0.0,
    };
    let rows = rows_of(&places(&Integers { dims: vec![n], values: ids.values }, &[count]), count);
    let parts = import.begin(op, 0)?;
    let flat = parts.reshape("values", x, &[n, inner])?;
    let value = gathered(parts, flat, [n, inner], &rows, (reduction, identity))?;
    let value = parts.reshape("", value, &[&[count], &inner_extents[..]].concat())?;
    import.write(op, 0, value)
}

/// `REVERSE_SEQUENCE`: the first elements along an axis turned around, as many as each batch says.
pub(super) fn reverse_sequence<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let table = op.table.reverse_sequence().ok_or_else(|| missing(op, "ReverseSequenceOptions"))?;
    let (x, lengths) = (import.value(op, 0)?, import.value(op, 1)?);
    let extents = import.dims(x)?.extents().to_vec();
    let (time, batch) =
        (axis(i64::from(table.time()), extents.len())?, axis(i64::from(table.batch()), extents.len())?);
    if time == batch || import.dims(lengths)?.elements() != extents[batch] {
        let found = import.dims(lengths)?;
        return refused!(
            "found lengths {found} along axes {batch} and {time} of {extents:?}, wanted one for each of the batch"
        );
    }
    let (count, steps) = (extents[batch], extents[time]);
    let p = import.begin(op, 0)?;
    let order: Vec<usize> = [batch, time]
        .into_iter()
        .chain((0..extents.len()).filter(|axis| ![batch, time].contains(axis)))
        .collect();
    let front = p.transpose("front", x, &order)?;
    let at = p.constant("at", &[1, steps], (0..steps).map(|step| step as f32))?;
    let lengths = p.reshape("lengths", lengths, &[count, 1])?;
    let last = p.each("last", Function::Sub, &[lengths.into(), 1.0.into()])?;
    let turned = p.each("turned", Function::Sub, &[last.into(), at.into()])?;
    let inside = p.each("inside", Function::Less, &[at.into(), lengths.into()])?;
    let indices = p.each("indices", Function::Select, &[inside.into(), turned.into(), at.into()])?;
    let name = p.part("gathered")?;
    let gathered = p.graph.gather(&name, front, indices, 1, 1)?;
    let mut back = vec![0; order.len()];
    for (to, &from) in order.iter().enumerate() {
        back[from] = to;
    }
    let value = p.transpose("", gathered, &back)?;
    import.write(op, 0, value)
}

/// Ones where row and column are the same.
fn unit(p: &mut Builder, [rows, columns]: [usize; 2]) -> Result<Value, Reason> {
    let count = rows.saturating_mul(columns);
    let all = (0..count).map(|at| f32::from(u8::from(at / columns == at % columns)));
    p.constant("diagonal", &[rows, columns], all)
}

/// `MATRIX_DIAG`: matrices with these diagonals and zeros elsewhere.
pub(super) fn matrix_diag<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let x = import.value(op, 0)?;
    let mut extents = import.dims(x)?.extents().to_vec();
    let Some(n) = extents.pop() else { return refused!("found a scalar, wanted a diagonal") };
    extents.extend([1, n]);
    let parts = import.begin(op, 0)?;
    let unit = unit(parts, [n, n])?;
    let row = parts.reshape("row", x, &extents)?;
    let value = parts.each("", Function::Select, &[unit.into(), row.into(), 0.0.into()])?;
    import.write(op, 0, value)
}

/// `MATRIX_SET_DIAG`: matrices with other diagonals.
pub(super) fn matrix_set_diag<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (x, diagonal) = (import.value(op, 0)?, import.value(op, 1)?);
    let (own, other) = (import.dims(x)?.extents().to_vec(), import.dims(diagonal)?.extents().to_vec());
    let (&[ref outer @ .., rows, columns], Some((&n, of))) = (&own[..], other.split_last()) else {
        return refused!("found {own:?} and {other:?}, wanted matrices and diagonals");
    };
    if outer != of || n != rows.min(columns) {
        return refused!("found diagonals {other:?} for matrices {own:?}, wanted as long ones");
    }
    let p = import.begin(op, 0)?;
    let unit = unit(p, [rows, columns])?;
    let wide = if n < columns { p.extended("wide", diagonal, of.len(), columns - n, 0.0)? } else { diagonal };
    let row = p.reshape("row", wide, &[outer, &[1, columns]].concat())?;
    let value = p.each("", Function::Select, &[unit.into(), row.into(), x.into()])?;
    import.write(op, 0, value)
}

/// `WHERE` of a condition that is known: the indices of its true elements. How many there are of another one is known
/// only in a run, and no shape of a graph is.
pub(super) fn places_where<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let Input::Constant(condition) = import.input(op, 0)? else {
        return refused!(
            "found a condition that is computed at each run, so that the number of true elements is only \
                    known in a run, wanted a constant"
        );
    };
    let extents = condition.extents();
    import.build.budget.spend(condition.elements().saturating_mul(8 * extents.len().max(1)))?;
    let is_true: Vec<bool> = match &condition {
        Constant::Integers(integers) => integers.values.iter().map(|&value| value != 0).collect(),
        Constant::Floats(tensor) => tensor.to_nhwc().iter().map(|&value| value != 0.0).collect(),
    };
    let found: Vec<i64> = super::constant::indices(&extents)
        .zip(is_true)
        .filter(|(_, is_true)| *is_true)
        .flat_map(|(index, _)| index.iter().map(|&at| at as i64).collect::<Vec<_>>())
        .collect();
    let rows = found.len() / extents.len().max(1);
    import.write_constant(op, 0, Constant::Integers(Integers::new(vec![rows, extents.len()], found)))
}

/// `DYNAMIC_UPDATE_SLICE` at a place that a run computes: along one axis after the other the elements of the update
/// that would lie at each index, then those of them that do.
fn update_at<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    [x, update, starts]: [Value; 3],
) -> Result<(), Reason> {
    let (own, part) = (import.dims(x)?.extents().to_vec(), import.dims(update)?.extents().to_vec());
    let count = import.dims(starts)?.elements();
    if own.len() != part.len() || count != own.len() || own.iter().zip(&part).any(|(own, part)| part > own) {
        return refused!("found {part:?} at {count} places of {own:?}, wanted a part of it");
    }
    let p = import.begin(op, 0)?;
    let starts = p.reshape("starts", starts, &[count])?;
    let (mut spread, mut inside) = (update, None);
    for axis in (0..own.len()).filter(|&axis| part[axis] < own[axis]) {
        let start = p.slice("start", starts, 0, [axis, axis + 1])?;
        // A start is moved so that the part fits.
        let most = (own[axis] - part[axis]) as f32;
        let start = p.each("start", Function::Clamp, &[start.into(), 0.0.into(), most.into()])?;
        let at = p.constant("at", &[own[axis]], (0..own[axis]).map(|at| at as f32))?;
        let moved = p.each("moved", Function::Sub, &[at.into(), start.into()])?;
        let last = (part[axis] - 1) as f32;
        let near = p.each("near", Function::Clamp, &[moved.into(), 0.0.into(), last.into()])?;
        let own_inside = p.each("inside", Function::Equal, &[moved.into(), near.into()])?;
        let mut extents = vec![1; own.len()];
        extents[axis] = own[axis];
        let own_inside = p.reshape("inside", own_inside, &extents)?;
        inside = Some(match inside {
            Some(inside) => p.each("inside", Function::Mul, &[Term::from(inside), own_inside.into()])?,
            None => own_inside,
        });
        spread = p.gather("spread", spread, near, axis as isize)?;
    }
    let value = match inside {
        Some(inside) => p.each("", Function::Select, &[inside.into(), spread.into(), x.into()])?,
        None => p.reshape("", update, &own)?,
    };
    import.write(op, 0, value)
}

/// `DYNAMIC_UPDATE_SLICE`: one value with another over a part of it.
pub(super) fn update_slice<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let (x, update) = (import.value(op, 0)?, import.value(op, 1)?);
    if let Input::Value(starts) = import.input(op, 2)? {
        return update_at(import, op, [x, update, starts]);
    }
    let starts = import.integers(op, 2)?.values;
    let (own, part) = (import.dims(x)?.extents().to_vec(), import.dims(update)?.extents().to_vec());
    if own.len() != part.len()
        || starts.len() != own.len()
        || own.iter().zip(&part).any(|(own, part)| part > own)
    {
        return refused!("found {part:?} at {starts:?} of {own:?}, wanted a part of it");
    }
    // A start is moved so that the part fits.
    let first: Vec<usize> = starts
        .iter()
        .zip(own.iter().zip(&part))
        .map(|(&start, (own, part))| start.clamp(0, (own - part) as i64) as usize)
        .collect();
    let p = import.begin(op, 0)?;
    let mut value = update;
    // Along one axis after the other, with what lies before and behind it.
    for axis in (0..own.len()).rev() {
        if part[axis] == own[axis] {
            continue;
        }
        let mut around = x;
        for other in 0..axis {
            around = p.slice("around", around, other, [first[other], first[other] + part[other]])?;
        }
        let last = first[axis] + part[axis];
        let mut joined = Vec::new();
        if first[axis] > 0 {
            joined.push(p.slice("before", around, axis, [0, first[axis]])?);
        }
        joined.push(value);
        if last < own[axis] {
            joined.push(p.slice("behind", around, axis, [last, own[axis]])?);
        }
        value = p.concat("joined", &joined, axis as isize)?;
    }
    let value = p.reshape("", value, &own)?;
    import.write(op, 0, value)
}
