//! Rotary embeddings: pairs of features turned by an angle of their place.

use super::builder::Builder;
use super::casts::converted;
use super::moves::{cut, gathered};
use super::operand::{Mapped, Operand};
use crate::model::constant::elements_of;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// The cosines and sines of angles: `batch place 1 pair`, one batch for all or one for each.
pub(crate) struct Angles {
    pub(crate) cosine: Operand,
    pub(crate) sine: Operand,
}

/// The rows of a table of angles at places, `batch place`.
pub(crate) fn angles(b: &mut Builder, table: Operand, places: &Operand) -> Result<Operand, Reason> {
    let (own, at) = (b.shape(&table)?, b.shape(places)?);
    let (&[_, pairs], &[batch, rows]) = (&own[..], &at[..]) else {
        return refused!("found angles of {own:?} at places of {at:?}, wanted rank 2");
    };
    let found = match places {
        Operand::Constant(..) => gathered(b, table, places.clone(), 0)?,
        Operand::Value(places) => {
            let mapped = b.mapped(table)?;
            let (own, index) = (b.logical(&mapped)?, b.logical(places)?);
            let value = b.gather("angles", own, index, 0)?;
            Operand::Value(Mapped::plain(value, 3, mapped.kind))
        }
    };
    b.with_extents("angles", found, &[batch, rows, 1, pairs])
}

/// `x`, `batch place head feature`, with its first pairs of features turned: neighbours if `interleaved`, else those of
/// the first and of the second half.
pub(crate) fn turned(
    b: &mut Builder,
    x: Operand,
    Angles { cosine, sine }: &Angles,
    interleaved: bool,
) -> Result<Operand, Reason> {
    let (own, angles) = (b.shape(&x)?, b.shape(cosine)?);
    let (&[batch, rows, heads, wide], &[.., half]) = (&own[..], &angles[..]) else {
        return refused!("found {own:?} to turn by {angles:?}, wanted heads");
    };
    if 2 * half > wide {
        return refused!("found {half} angles for {wide} features, wanted at most one for two");
    }
    let range = |first: usize, count: usize, step: i64| {
        [(0, batch, 1), (0, rows, 1), (0, heads, 1), (first, count, step)]
    };
    let (one, other) = match interleaved {
        true => (range(0, half, 2), range(1, half, 2)),
        false => (range(0, half, 1), range(half, half, 1)),
    };
    let (one, other) = (cut(b, "a", x.clone(), &one)?, cut(b, "b", x.clone(), &other)?);
    let mut term = |function, parts: [(&Operand, &Operand); 2]| -> Result<Operand, Reason> {
        let [a, c] = parts
            .map(|(angle, x)| b.apply("turned", Function::Mul, &[angle.clone().into(), x.clone().into()]));
        b.apply("sum", function, &[a?.into(), c?.into()])
    };
    let real = term(Function::Sub, [(cosine, &one), (sine, &other)])?;
    let imaginary = term(Function::Add, [(sine, &one), (cosine, &other)])?;
    let result = if interleaved {
        let [real, imaginary] =
            [real, imaginary].map(|slot| b.with_extents("pair", slot, &[batch, rows, heads, half, 1]));
        let both = b.joined("pairs", vec![real?, imaginary?], 4)?;
        b.with_extents("features", both, &[batch, rows, heads, 2 * half])?
    } else {
        b.joined("features", vec![real, imaginary], 3)?
    };
    if 2 * half == wide {
        return Ok(result);
    }
    let rest = cut(b, "rest", x, &range(2 * half, wide - 2 * half, 1))?;
    b.joined("all", vec![result, rest], 3)
}

/// The places `0..rows` behind a first one, of one batch or of each: `batch place`.
pub(crate) fn places_from(b: &mut Builder, first: Operand, rows: usize) -> Result<Operand, Reason> {
    let batch = elements_of(&b.shape(&first)?)?;
    let first = b.with_extents("first", first, &[batch, 1])?;
    let row = b.counted(rows, 1, 2)?;
    let row = converted(b, row, first.kind())?;
    b.apply("places", Function::Add, &[first.into(), row.into()])
}

/// Places that are known, of all batches.
pub(crate) fn known_places(first: usize, rows: usize) -> Operand {
    let list = (first as i64..).take(rows).collect();
    Operand::integers(vec![1, rows], list)
}
