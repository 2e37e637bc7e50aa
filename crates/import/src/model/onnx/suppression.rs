//! `NonMaxSuppression`: how many boxes are chosen is known where the boxes are; else there are as many rows as could be,
//! those of chosen boxes first and -1 in the rest.

use super::import::{Import, Op};
use crate::emit::Bits;
use crate::graph::Value;
use crate::model::build::{Kind, Operand, above, cut, is_kept_box, suppressed};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;
use crate::ops::suppress::Suppress;

type Done = Result<(), Reason>;

/// Rows of batch, class and box.
pub(super) fn suppress<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (boxes, scores) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let (&[batch, count, 4], &[images, classes, of]) = (&boxes[..], &scores[..]) else {
        return refused!("found boxes of {boxes:?} and scores of {scores:?}, wanted b n 4 and b c n");
    };
    if batch != images || count != of {
        return refused!("found boxes of {boxes:?} and scores of {scores:?}, wanted b n 4 and b c n");
    }
    let number = |i: &mut Import<'a>, index: usize, default: f32| -> Result<f32, Reason> {
        if !op.has(index) {
            return Ok(default);
        }
        i.list(op, index)?.first().copied().ok_or_else(|| format!("input {index}: found no number").into())
    };
    let most = if op.has(2) { i.integers(op, 2)?.first().copied().unwrap_or(0).max(0) } else { 0 };
    let each = usize::try_from(most).unwrap_or(usize::MAX).min(count);
    if each == 0 || batch * classes == 0 {
        return i.set(op, 0, Operand::integers(vec![0, 3], Vec::new()));
    }
    let rows = batch * classes;
    i.is_divided_at(op, 0)?;
    i.is_divided_at(op, 1)?;
    let is_known = (0..2).all(|index| matches!(i.slot(op, index), Ok(Operand::Constant(..))));
    let score = if op.has(4) { above(number(i, 4, 0.0)?) } else { f32::MIN };
    let options = Suppress {
        count: each,
        overlap: Bits(number(i, 3, 0.0)?),
        score: Bits(score),
        sigma: Bits(0.0),
        strict: false,
    };
    let corners = corners(i, op, [batch, classes, count])?;
    let scores = i.slot(op, 1)?;
    let scores = i.with_extents("scores", scores, &[rows, count])?;
    let places = suppressed(i, corners, scores, options)?.places(i)?;
    let places = i.with_extents("places", places, &[rows * each])?;
    let is_chosen = is_kept_box(i, places.clone())?;
    i.budget.spend(rows.saturating_mul(each).saturating_mul(32))?;
    let numbers = |own: &dyn Fn(usize) -> usize| -> Operand {
        Operand::integers(vec![rows * each], (0..rows * each).map(|at| own(at / each) as i64).collect())
    };
    let (images, kinds) = (numbers(&|row| row / classes), numbers(&|row| row % classes));
    let mut columns = Vec::with_capacity(3);
    for own in [images, kinds, places] {
        let own = i.apply("column", F::Select, &[is_chosen.clone().into(), own.into(), (-1.0).into()])?;
        columns.push(i.with_extents("column", own, &[rows * each, 1])?.of_kind(Kind::I64));
    }
    let mut table = i.joined("table", columns, 1)?;
    if rows > 1 {
        // Those of chosen boxes first, in their order.
        let rank = i.counted(rows * each, 0, 1)?;
        let rank = i.apply("rank", F::Sub, &[((rows * each) as f32).into(), rank.into()])?;
        let key = i.apply("key", F::Mul, &[is_chosen.into(), rank.into()])?;
        let (key, table_value) = (plain(i, key)?, plain(i, table)?);
        let [_, order] = i.add("sorted", |graph, name| graph.top_k(name, key, rows * each))?;
        let value = i.add("rows", |graph, name| graph.gather(name, table_value, order, 0, 0))?;
        table = Operand::Value(crate::model::build::Mapped::plain(value, 2, Kind::I64));
    }
    if !is_known {
        let slot = i.apply("", F::Mul, &[table.into(), 1.0.into()])?;
        return i.set(op, 0, slot.of_kind(Kind::I64));
    }
    let table = i.known(table)?;
    let Constant::Integers(integers) = table else { return refused!("found floats") };
    let kept: Vec<i64> = integers
        .values
        .chunks(3)
        .take_while(|row| row.iter().all(|&own| own >= 0))
        .flatten()
        .copied()
        .collect();
    i.set(op, 0, Operand::integers(vec![kept.len() / 3, 3], kept))
}

fn plain(i: &mut Import<'_>, slot: Operand) -> Result<Value, Reason> {
    let mapped = i.mapped_slot(slot, None)?;
    i.logical(&mapped)
}

/// The boxes of each row of scores as two corners: one row where there is one image.
fn corners<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    [batch, classes, count]: [usize; 3],
) -> Result<Operand, Reason> {
    let mut boxes = i.slot(op, 0)?;
    if op.int("center_point_box", 0) == 1 {
        let half = |i: &mut Import<'a>, first: usize| {
            cut(i, "half", boxes.clone(), &[(0, batch, 1), (0, count, 1), (first, 2, 1)])
        };
        let (centre, size) = (half(i, 0)?, half(i, 2)?);
        let away = i.apply("away", F::Mul, &[size.into(), 0.5.into()])?;
        let low = i.apply("low", F::Sub, &[centre.clone().into(), away.clone().into()])?;
        let high = i.apply("high", F::Add, &[centre.into(), away.into()])?;
        boxes = i.joined("corners", vec![low, high], 2)?;
    }
    if batch == 1 || classes == 1 {
        return Ok(boxes);
    }
    let spread = i.with_extents("boxes", boxes, &[batch, 1, count, 4])?;
    let ones =
        Operand::Constant(crate::model::build::floats(&[1, classes, 1, 1], vec![1.0; classes])?, Kind::F32);
    let spread = i.apply("spread", F::Mul, &[spread.into(), ones.into()])?;
    i.with_extents("boxes", spread, &[batch * classes, count, 4])
}
