//! Windows as columns of their taps: the places of the largest, and columns put back.

use super::import::{Import, Op};
use crate::model::build::{Kind, Operand, Windows, sizes};
use crate::model::constant::{elements_of, indices, position};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;
use crate::ops::reduce::Reduction;

type Done = Result<(), Reason>;

/// Places that f32 counts.
pub(super) const MAX_PLACES: usize = 1 << 24;

/// For each of many results the elements that it is made of, as many for each: -1 is none.
pub(super) struct Table {
    pub(super) each: usize,
    pub(super) places: Vec<i64>,
}

impl Table {
    pub(super) fn new(i: &mut Import<'_>, lists: &[Vec<i64>]) -> Result<Self, Reason> {
        let each = lists.iter().map(Vec::len).max().unwrap_or(0).max(1);
        i.budget.spend(lists.len().saturating_mul(each).saturating_mul(16))?;
        let padded =
            |list: &Vec<i64>| (0..each).map(|at| list.get(at).copied().unwrap_or(-1)).collect::<Vec<_>>();
        Ok(Table { each, places: lists.iter().flat_map(padded).collect() })
    }
}

/// Elements along the second axis of `rows n`, zero where the place is -1.
pub(super) fn taken(i: &mut Import<'_>, part: &str, x: Operand, places: Operand) -> Result<Operand, Reason> {
    let kind = x.kind();
    let (x, places) = (i.mapped_slot(x, None)?, i.mapped_slot(places, None)?);
    let (x, places) = (i.logical(&x)?, i.logical(&places)?);
    let value = i.add(part, |graph, name| graph.gather(name, x, places, 1, 0))?;
    let rank = i.dims(value)?.rank();
    Ok(Operand::Value(crate::model::build::Mapped::plain(value, rank, kind)))
}

/// The indices that `MaxPool` writes: of the first largest element of each window, in the whole tensor.
pub(super) fn largest<'a>(i: &mut Import<'a>, op: &Op<'a>, outputs: &[usize]) -> Done {
    let own = i.extents_of(op, 0)?;
    let (spatial, rows) = (&own[2..], own[0] * own[1]);
    let kernel = sizes(op.ints("kernel_shape").unwrap_or(&[]))?;
    let windows = Windows::read(op, spatial, &kernel)?;
    let (many, whole) = (elements_of(outputs)?, elements_of(spatial)?);
    let taps = elements_of(&kernel)?;
    if rows.saturating_mul(whole) > MAX_PLACES || rows.saturating_mul(many).saturating_mul(taps) > 1 << 28 {
        return refused!("found the indices of the largest of {own:?}, wanted at most {MAX_PLACES} elements");
    }
    let by_columns = op.flag("storage_order", false);
    i.budget.spend(many.saturating_mul(taps).saturating_mul(128))?;
    let (mut places, mut numbers) = (Vec::with_capacity(many * taps), Vec::with_capacity(many * taps));
    let columns: Vec<usize> = (0..spatial.len()).map(|axis| spatial[..axis].iter().product()).collect();
    let tapped: Vec<Vec<usize>> = indices(&kernel).collect();
    let mut place = vec![0; spatial.len()];
    for at in indices(outputs) {
        let begin = places.len();
        for tap in &tapped {
            let inside = (0..spatial.len()).all(|axis| {
                let moved = at[axis] * windows.stride[axis] + tap[axis] * windows.dilation[axis];
                let moved = moved as i64 - windows.pads[axis].0;
                place[axis] = usize::try_from(moved).unwrap_or(usize::MAX);
                place[axis] < spatial[axis]
            });
            places.push(if inside { position(spatial, &place) as i64 } else { -1 });
            numbers.push(match (inside, by_columns) {
                (false, _) => 0,
                (true, false) => position(spatial, &place) as i64,
                (true, true) => place.iter().zip(&columns).map(|(at, step)| at * step).sum::<usize>() as i64,
            });
        }
        // What is padded is the first element of the window once more, so that no pad is ever the largest.
        let (own, of) = (&mut places[begin..], &mut numbers[begin..]);
        let first = own.iter().position(|place| *place >= 0);
        let first = first.ok_or_else(|| {
            format!("found pads {:?} for windows of {kernel:?}: one has no element", windows.pads)
        })?;
        for tap in 0..own.len() {
            if own[tap] < 0 {
                (own[tap], of[tap]) = (own[first], of[first]);
            }
        }
    }
    let x = i.slot(op, 0)?;
    let x = i.with_extents("rows", x, &[rows, whole])?;
    let columns = taken(i, "windows", x, Operand::integers(vec![many, taps], places))?;
    let columns = i.mapped_slot(columns, None)?;
    let value = i.add("tap", |graph, name| graph.arg_max(name, columns.value, -1, false))?;
    let tap = Operand::Value(crate::model::build::Mapped::plain(value, 2, Kind::F32));
    let begin = Operand::integers(vec![1, many], (0..many).map(|at| (at * taps) as i64).collect());
    let number = i.apply("number", F::Add, &[tap.into(), begin.into()])?;
    let list = Operand::integers(vec![1, many * taps], numbers);
    let list = i.with_extents("list", list, &[1, many * taps])?;
    let found = taken(i, "place", list, number)?;
    let found = i.with_extents("place", found, &[rows, many])?;
    let row = i.counted(rows, 0, 2)?;
    let row = i.apply("row", F::Mul, &[row.into(), (whole as f32).into()])?;
    let index = i.apply("index", F::Add, &[found.into(), row.into()])?;
    let index = i.with_extents("indices", index, &[&own[..2], outputs].concat())?;
    i.set(op, 1, index.of_kind(Kind::I64))
}

/// `Col2Im`: columns of taps put back to where windows have them, and added up.
pub(super) fn image<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let (spatial, kernel) = (sizes(&i.integers(op, 1)?)?, sizes(&i.integers(op, 2)?)?);
    let windows = Windows::read(op, &spatial, &kernel)?;
    let (taps, whole) = (elements_of(&kernel)?, elements_of(&spatial)?);
    let &[n, wide, columns] = &own[..] else {
        return refused!("found an input of {own:?}, wanted rank 3");
    };
    let mut blocks = Vec::with_capacity(spatial.len());
    for (axis, &extent) in spatial.iter().enumerate() {
        let padded = extent as i64 + windows.pads[axis].0 + windows.pads[axis].1 - windows.span(axis) as i64;
        let count = usize::try_from(padded).ok().map(|rest| rest / windows.stride[axis] + 1);
        blocks.push(count.ok_or_else(|| {
            format!("found blocks of {kernel:?} for an image of {spatial:?}, wanted smaller ones")
        })?);
    }
    if !wide.is_multiple_of(taps.max(1)) || elements_of(&blocks)? != columns || whole == 0 {
        return refused!(
            "found columns of {own:?} for blocks of {kernel:?} in an image of {spatial:?}, wanted one for each block"
        );
    }
    let rows = n * (wide / taps);
    if taps.saturating_mul(columns) > MAX_PLACES {
        return refused!("found {taps} taps of {columns} blocks, wanted at most {MAX_PLACES}");
    }
    i.budget.spend(taps.saturating_mul(columns).saturating_mul(128))?;
    i.budget.spend(whole.saturating_mul(size_of::<Vec<i64>>()))?;
    let mut lists = vec![Vec::new(); whole];
    for (tap_number, tap) in indices(&kernel).enumerate() {
        for (number, at) in indices(&blocks).enumerate() {
            let place: Option<Vec<usize>> = (0..spatial.len())
                .map(|axis| {
                    let moved = at[axis] * windows.stride[axis] + tap[axis] * windows.dilation[axis];
                    let place = moved as i64 - windows.pads[axis].0;
                    usize::try_from(place).ok().filter(|&place| place < spatial[axis])
                })
                .collect();
            if let Some(place) = place {
                lists[position(&spatial, &place)].push((tap_number * columns + number) as i64);
            }
        }
    }
    let table = Table::new(i, &lists)?;
    let x = i.slot(op, 0)?;
    let kind = x.kind();
    let x = i.with_extents("rows", x, &[rows, taps * columns])?;
    let picked = taken(i, "parts", x, Operand::integers(vec![whole, table.each], table.places))?;
    let sum = crate::model::build::reduced(i, "sum", picked, Reduction::Sum, &[2], false)?;
    let slot = i.with_extents("", sum, &[&[n, wide / taps], &spatial[..]].concat())?;
    i.set(op, 0, slot.of_kind(kind))
}
