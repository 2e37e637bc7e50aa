//! Boxes that are kept because they do not overlap better ones.

use super::builder::Builder;
use super::moves::cut;
use super::operand::{Mapped, Operand};
use super::reductions::reduced;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;
use crate::ops::suppress::Suppress;

/// The most pairs of boxes that are compared.
const MAX_PAIRS: u64 = 1 << 34;

/// What is kept for each row of scores, as many boxes for each.
pub(crate) struct Boxes {
    pairs: Operand,
    rows: usize,
    count: usize,
}

/// The boxes of each row of `scores` (`rows n`) that are kept, of `boxes`, which are `n 4` or some for each row.
pub(crate) fn suppressed(
    b: &mut Builder,
    boxes: Operand,
    scores: Operand,
    options: Suppress,
) -> Result<Boxes, Reason> {
    let (own, of) = (b.shape(&scores)?, b.shape(&boxes)?);
    let (&[rows, n], &[ref outer @ .., same, 4]) = (&own[..], &of[..]) else {
        return refused!("found boxes of {of:?} and scores of {own:?}, wanted n 4 and rows n");
    };
    if n != same || outer.len() > 1 {
        return refused!("found boxes of {of:?} and scores of {own:?}, wanted as many of both");
    }
    let count = options.count;
    if (rows.saturating_mul(count) as u64).saturating_mul(n as u64) > MAX_PAIRS {
        return refused!(
            "found up to {count} boxes of {n} for {rows} rows of scores, wanted fewer to be kept"
        );
    }
    let boxes = if outer.is_empty() { b.with_extents("candidates", boxes, &[1, n, 4])? } else { boxes };
    let (boxes, scores) = (b.mapped(boxes)?, b.mapped(scores)?);
    let (kind, boxes, scores) = (scores.kind, b.logical(&boxes)?, b.logical(&scores)?);
    let chosen = b.add("chosen", |graph, name| graph.suppress(name, boxes, scores, options))?;
    Ok(Boxes { pairs: Operand::Value(Mapped::plain(chosen, 2, kind)), rows, count })
}

impl Boxes {
    /// `rows count`; -1 where none is left.
    pub(crate) fn places(&self, b: &mut Builder) -> Result<Operand, Reason> {
        cut(b, "places", self.pairs.clone(), &[(0, self.rows, 1), (0, self.count, 2)])
    }

    /// `rows count`; 0 where none is left.
    pub(crate) fn scores(&self, b: &mut Builder) -> Result<Operand, Reason> {
        cut(b, "place_scores", self.pairs.clone(), &[(0, self.rows, 1), (1, self.count, 2)])
    }
}

/// Whether places are those of boxes.
pub(crate) fn is_kept_box(b: &mut Builder, places: Operand) -> Result<Operand, Reason> {
    b.apply("is_there", Function::GreaterEqual, &[places.into(), 0.0.into()])
}

/// How many of a list of places are those of boxes.
pub(crate) fn kept_boxes(b: &mut Builder, places: Operand, count: usize) -> Result<Operand, Reason> {
    let places = b.with_extents("all", places, &[count])?;
    let there = is_kept_box(b, places)?;
    reduced(b, "count", there, Reduction::Sum, &[0], true)
}

/// The threshold at which a score is kept itself, of one that scores have to be above.
pub(crate) fn above(threshold: f32) -> f32 {
    let next = threshold.next_up();
    match next.is_subnormal() {
        // A device may take these for 0.
        true if next > 0.0 => f32::MIN_POSITIVE,
        true => 0.0,
        false => next,
    }
}
