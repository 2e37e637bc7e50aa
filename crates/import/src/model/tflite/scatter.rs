//! Operators that put elements in places, add those of one place, or turn some of them around.

use super::constant::{Constant, Integers, elements_of};
use super::import::{Import, Op};
use super::operands::missing;
use super::slots::Input;
use crate::graph::{Term, Value};
use crate::model::build::{
    Builder, Combine, Count, Data, axis, scattered, scattered_rows, sequences_reversed, sizes, spread,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// `SCATTER_ND`: zeros with rows of values added at places; those that are computed at each run are a function of the CPU.
pub(super) fn scatter_nd<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let extents = sizes(&import.integers(op, 2)?.values)?;
    let (indices, updates) = (import.operand(op, 0)?, import.shared(op, 1)?);
    let how = (Combine::Add, Count::FromStart);
    let result = scattered_rows(import.begin(op, 0)?, Data::Each(0.0), (indices, updates), &extents, how)?;
    import.put(op, 0, result)
}

/// `SPARSE_TO_DENSE`: one value with others at places that are known.
pub(super) fn sparse_to_dense<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[4], 1)?;
    let (indices, extents) = (import.integers(op, 0)?, sizes(&import.integers(op, 1)?.values)?);
    let (values, other) = (import.shared(op, 2)?, import.constant(op, 3)?);
    let other =
        other.number().ok_or_else(|| format!("found default values {:?}, wanted one", other.extents()))?;
    let count = elements_of(&extents)?;
    import.build.budget.spend(8 * indices.values.len())?;
    let places = match indices.dims.len() {
        0 | 1 => Count::FromStart.places(&indices.values, &[count])?,
        _ => Count::FromStart.places(&indices.values, &extents)?,
    };
    let (n, own) = (places.len(), elements_of(&import.build.shape(&values)?)?);
    if (own != n && own != 1) || n == 0 || count == 0 {
        return refused!(
            "found {own} values at {n} places of {extents:?}, wanted one for each place, or one for all"
        );
    }
    let b = import.begin(op, 0)?;
    let values = b.with_extents("values", values, &[own])?;
    let values = if own == n { values } else { spread(b, values, &[n])? };
    let result = scattered(b, Data::Each(other), values, &places, [count, 1], Combine::Replace)?;
    let result = b.with_extents("", result, &extents)?;
    import.put(op, 0, result)
}

/// `SEGMENT_SUM` and the unsorted ones: rows of one number joined.
pub(super) fn segments<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    combine: Combine,
    sorted: bool,
) -> Result<(), Reason> {
    op.check(&[if sorted { 2 } else { 3 }], 1)?;
    let x = import.shared(op, 0)?;
    let ids = import.integers(op, 1)?;
    let extents = import.build.shape(&x)?;
    if ids.dims.is_empty() || ids.dims.len() > extents.len() || ids.dims[..] != extents[..ids.dims.len()] {
        return refused!("found numbers {:?} for {extents:?}, wanted one for each row", ids.dims);
    }
    let inner_extents = extents[ids.dims.len()..].to_vec();
    let count = if sorted {
        ids.values.iter().max().map_or(0, |&last| last.saturating_add(1))
    } else {
        let count = import.integers(op, 2)?.values;
        count.first().copied().unwrap_or(0)
    };
    let count = usize::try_from(count).ok().filter(|count| (1..1 << 24).contains(count));
    let count = count.ok_or_else(|| format!("found numbers {:?}", ids.values))?;
    import.build.budget.spend(8 * ids.values.len())?;
    let places = Count::FromStart.places(&ids.values, &[count])?;
    // What a number has that no row has: the least that the largest can be, and so on.
    let [low, high] = x.kind().range().map_or([f32::MIN, f32::MAX], |range| range.map(|end| end as f32));
    let none = match combine {
        Combine::Mul => 1.0,
        Combine::Max => low,
        Combine::Min => high,
        Combine::Add | Combine::Replace => 0.0,
    };
    let b = import.begin(op, 0)?;
    let rows = [count, elements_of(&inner_extents)?];
    let result = scattered(b, Data::Each(none), x, &places, rows, combine)?;
    let result = b.with_extents("", result, &[&[count], &inner_extents[..]].concat())?;
    import.put(op, 0, result)
}

/// `REVERSE_SEQUENCE`: the first elements along an axis turned around, as many as each batch says.
pub(super) fn reverse_sequence<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let table = op.table.reverse_sequence().ok_or_else(|| missing(op, "ReverseSequenceOptions"))?;
    let (x, lengths) = (import.shared(op, 0)?, import.operand(op, 1)?);
    let rank = import.build.shape(&x)?.len();
    let axes = [axis(i64::from(table.batch()), rank)?, axis(i64::from(table.time()), rank)?];
    let result = sequences_reversed(import.begin(op, 0)?, x, lengths, axes)?;
    import.put(op, 0, result)
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
