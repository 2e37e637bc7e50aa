//! Operators that draw. Each run draws anew, by the session's seed, the output's name and the operator's two seeds.

use super::import::{Import, Op};
use super::operands::missing;
use crate::model::build::{Kind, chosen, converted, drawn, sizes};
use crate::model::reason::Reason;
use crate::ops::random::{Random, mixed};

/// The operator's own seed.
fn seed(op: &Op<'_>) -> Result<u64, Reason> {
    let table = op.table.random().ok_or_else(|| missing(op, "RandomOptions"))?;
    let own = [table.seed(), table.other_seed()].map(i64::cast_unsigned);
    Ok(if own == [0; 2] { 0 } else { mixed(own[0]) ^ own[1].rotate_left(32) })
}

/// `RANDOM_UNIFORM` and `RANDOM_STANDARD_NORMAL`, of extents that are constants.
pub(super) fn of_shape<'a>(import: &mut Import<'a>, op: &Op<'a>, options: Random) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let extents = sizes(&import.integers(op, 0)?.values)?;
    let kind = import.kind(op.output(0)?)?;
    if !kind.is_float() {
        return refused!("found random numbers of {kind:?}, wanted floats");
    }
    let options = options.seed(seed(op)?);
    let slot = drawn(import.begin(op, 0)?, "", options, &extents)?;
    import.put(op, 0, slot)
}

/// `MULTINOMIAL`: places by logarithms of their weights.
pub(super) fn multinomial<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let listed = import.integers(op, 1)?.values;
    let count = listed.first().and_then(|&count| usize::try_from(count).ok()).filter(|count| *count > 0);
    let (Some(count), 1) = (count, listed.len()) else {
        return refused!("found {listed:?} for the number of draws, wanted one number of at least 1");
    };
    let kind = import.kind(op.output(0)?)?;
    if !matches!(kind, Kind::I32 | Kind::I64) {
        return refused!("found places of {kind:?}, wanted I32 or I64");
    }
    let (logs, seed) = (import.operand(op, 0)?, seed(op)?);
    let build = import.begin(op, 0)?;
    let places = chosen(build, logs, count, seed)?;
    let slot = converted(build, places, kind)?;
    import.put(op, 0, slot)
}
