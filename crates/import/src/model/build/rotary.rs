//! Rotary embeddings: pairs of features turned by an angle of their place.

use super::axes::Count;
use super::builder::Builder;
use super::casts::converted;
use super::moves::{columns, gathered};
use super::operand::{Mapped, Operand};
use crate::model::constant::elements_of;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// What features are multiplied with: `batch place 1 feature`, one batch for all or one for each.
pub(crate) struct Angles {
    /// The cosine of the angle of each feature's pair.
    cosine: Operand,
    /// What the pair's other feature is multiplied with: the sine, in front of which the first of both has a minus.
    sine: Operand,
    /// Whether pairs are neighbours; else they are of the first and of the second half.
    interleaved: bool,
}

impl Angles {
    /// Of tables of cosines and sines, `angle pair`, by places, `batch place`; without places, of tables of
    /// `batch place pair`. What several operators ask for is made once.
    pub(crate) fn new(
        b: &mut Builder,
        [cosines, sines]: [Operand; 2],
        places: Option<&Operand>,
        (pairs, interleaved): (usize, bool),
    ) -> Result<Self, Reason> {
        let mut of = |table: Operand, minus: bool| {
            let how = format!("angles of {pairs} {interleaved} {minus}");
            let sources: Vec<&Operand> = places.into_iter().chain([&table]).collect();
            b.once(&how, &sources, |b| {
                let found = match places {
                    Some(places) => rows_at(b, table.clone(), places)?,
                    None => table.clone(),
                };
                let found = columns(b, "angles", &found, 0, pairs)?;
                of_features(b, found, minus, interleaved)
            })
        };
        Ok(Angles { cosine: of(cosines, false)?, sine: of(sines, true)?, interleaved })
    }
}

/// The rows of a table at places, `batch place`.
fn rows_at(b: &mut Builder, table: Operand, places: &Operand) -> Result<Operand, Reason> {
    let (own, at) = (b.shape(&table)?, b.shape(places)?);
    if own.len() != 2 || at.len() != 2 {
        return refused!("found angles of {own:?} at places of {at:?}, wanted rank 2");
    }
    match places {
        Operand::Constant(..) => gathered(b, table, places.clone(), (0, 0), Count::FromEnd),
        Operand::Value(places) => {
            let mapped = b.mapped(table)?;
            let (own, index) = (b.logical(&mapped)?, b.logical(places)?);
            let value = b.gather("angles", own, index, 0)?;
            Ok(Operand::Value(Mapped::plain(value, 3, mapped.kind)))
        }
    }
}

/// Numbers of pairs, `batch place pair`, as those of both features; of the first one with a minus, if `minus`.
fn of_features(b: &mut Builder, pairs: Operand, minus: bool, interleaved: bool) -> Result<Operand, Reason> {
    let own = b.shape(&pairs)?;
    let &[batch, rows, count] = &own[..] else { return refused!("found angles of {own:?}, wanted rank 3") };
    let pairs = match interleaved {
        true => b.with_extents("pairs", pairs, &[batch, rows, count, 1])?,
        false => pairs,
    };
    let first = match minus {
        true => b.apply("minus", Function::Neg, &[pairs.clone().into()])?,
        false => pairs.clone(),
    };
    let both = b.joined("both", vec![first, pairs], if interleaved { 3 } else { 2 })?;
    b.with_extents("angles", both, &[batch, rows, 1, 2 * count])
}

/// `x`, `batch place head feature`, with its first pairs of features turned.
pub(crate) fn turned(b: &mut Builder, x: Operand, angles: &Angles) -> Result<Operand, Reason> {
    let (own, wanted) = (b.shape(&x)?, b.shape(&angles.cosine)?);
    let (&[batch, rows, heads, wide], &[.., count]) = (&own[..], &wanted[..]) else {
        return refused!("found {own:?} to turn by {wanted:?}, wanted heads");
    };
    if count > wide {
        return refused!("found angles of {count} features for {wide}, wanted as many or fewer");
    }
    let first = columns(b, "first", &x, 0, count)?;
    let (pairs, axis) = match angles.interleaved {
        true => ([batch, rows, heads, count / 2, 2], 4),
        false => ([batch, rows, heads, 2, count / 2], 3),
    };
    let other = b.with_extents("pairs", first.clone(), &pairs)?;
    let mapped = b.mapped(other)?;
    let along = mapped.place(axis) as isize;
    let value = b.add("others", |graph, name| graph.reverse(name, mapped.value, &[along]))?;
    let other = Operand::Value(Mapped { value, ..mapped });
    let other = b.with_extents("others", other, &[batch, rows, heads, count])?;
    let one = b.apply("cosine", Function::Mul, &[first.into(), angles.cosine.clone().into()])?;
    let other = b.apply("sine", Function::Mul, &[other.into(), angles.sine.clone().into()])?;
    let turned = b.apply("turned", Function::Add, &[one.into(), other.into()])?;
    let rest = columns(b, "rest", &x, count, wide - count)?;
    b.joined("all", vec![turned, rest], 3)
}

/// The places `0..rows` behind a first one, of one batch or of each: `batch place`.
pub(crate) fn places_from(b: &mut Builder, first: &Operand, rows: usize) -> Result<Operand, Reason> {
    b.once(&format!("places of {rows}"), &[first], |b| {
        let batch = elements_of(&b.shape(first)?)?;
        let first = b.with_extents("first", first.clone(), &[batch, 1])?;
        let row = b.counted(rows, 1, 2)?;
        let row = converted(b, row, first.kind())?;
        b.apply("places", Function::Add, &[first.into(), row.into()])
    })
}

/// Places that are known, of all batches.
pub(crate) fn known_places(b: &mut Builder, first: usize, rows: usize) -> Result<Operand, Reason> {
    b.once(&format!("places of {rows} from {first}"), &[], |_| {
        Ok(Operand::integers(vec![1, rows], (first as i64..).take(rows).collect()))
    })
}
