//! `RotaryEmbedding`: pairs of features turned by an angle of their place.

use super::import::{Import, Op};
use crate::model::build::{Angles, Operand, places_from, turned};
use crate::model::constant::elements_of;
use crate::model::reason::Reason;

/// The standard operator, and that of com.microsoft, which has the places in front of the angles and may have the first
/// one alone.
pub(super) fn embedding<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let [cosines, sines, places] = if op.node.domain.is_empty() { [1, 2, 3] } else { [2, 3, 1] };
    let x = i.slot(op, 0)?;
    let shape = i.shape(&x)?;
    let count = |name: &str| usize::try_from(op.int(name, 0)).ok().filter(|&count| count > 0);
    let pairs = i.extents_of(op, cosines)?.last().copied().unwrap_or(1).max(1);
    let (x, flat) = match shape[..] {
        [batch, rows, wide] => {
            let heads = count("num_heads").unwrap_or(wide / (2 * pairs)).max(1);
            if !wide.is_multiple_of(heads) {
                return refused!("found {wide} features for {heads} heads, wanted a multiple");
            }
            (i.with_extents("heads", x, &[batch, rows, heads, wide / heads])?, true)
        }
        [_, _, _, _] => (i.transposed(x, &[0, 2, 1, 3])?, false),
        _ => return refused!("found an input of {shape:?}, wanted rank 3 or 4"),
    };
    let own = i.shape(&x)?;
    let (batch, rows) = (own[0], own[1]);
    let half = count("rotary_embedding_dim").unwrap_or(own[3]) / 2;
    let at = match op.has(places) {
        true => Some(places_of(i, op, places, [batch, rows])?),
        false => None,
    };
    let tables = [i.slot(op, cosines)?, i.slot(op, sines)?];
    let angles = Angles::new(i, tables, at.as_ref(), (half, op.flag("interleaved", false)))?;
    let result = turned(i, x, &angles)?;
    let result = match flat {
        true => i.with_extents("", result, &shape)?,
        false => i.transposed(result, &[0, 2, 1, 3])?,
    };
    i.set(op, 0, result)
}

/// Places as `batch place`: those that an input has, or those behind the one that it has.
fn places_of<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
    [batch, rows]: [usize; 2],
) -> Result<Operand, Reason> {
    let places = i.slot(op, index)?;
    let own = i.shape(&places)?;
    match elements_of(&own)? {
        count if count == batch * rows => i.with_extents("places", places, &[batch, rows]),
        count if count == rows && own.len() == 2 => i.with_extents("places", places, &[1, rows]),
        1 => places_from(i, &places, rows),
        _ => refused!("found places of {own:?}, wanted [1] or [{batch}, {rows}]"),
    }
}
