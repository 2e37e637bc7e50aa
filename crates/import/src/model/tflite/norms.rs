//! Norms over channels, sums along an axis, encodings of indices and choices of the largest.

use super::import::{Import, Op};
use super::operands::missing;
use crate::model::build::{self, Hot, LocalResponse, axis, of_size_one};
use crate::model::reason::Reason;

type Done = Result<(), Reason>;

/// `L2_NORMALIZATION`: divided by the root of the sum of the channels' squares, which is at least `1e-6`.
pub(super) fn l2_normalization<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[1], 1)?;
    let x = import.operand(op, 0)?;
    let last = import.build.shape(&x)?.len().saturating_sub(1);
    let result = of_size_one(import.begin(op, 0)?, x, last, true, 1e-6)?;
    import.put(op, 0, result)
}

/// `LOCAL_RESPONSE_NORMALIZATION`: `x / (bias + alpha sum x_j^2)^beta`, over the channels `j` that are at most
/// `radius` away.
pub(super) fn local_response<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[1], 1)?;
    let table = op.table.local_response().ok_or_else(|| missing(op, "LocalResponseNormalizationOptions"))?;
    let Ok(radius) = usize::try_from(table.radius()) else {
        return refused!("found radius {}, wanted at least 0", table.radius());
    };
    let norm =
        LocalResponse { reach: [radius; 2], share: table.alpha(), bias: table.bias(), beta: table.beta() };
    let x = import.operand(op, 0)?;
    let result = norm.of(import.begin(op, 0)?, x, 3)?;
    import.put(op, 0, result)
}

/// `CUMSUM` along a constant axis.
pub(super) fn cumsum<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[2], 1)?;
    let options = op.table.cumsum().map_or([false; 2], |table| [table.exclusive(), table.reverse()]);
    let x = import.operand(op, 0)?;
    let listed = import.integers(op, 1)?.values;
    let [place] = listed[..] else { return refused!("found axes {listed:?}, wanted one") };
    let axis = axis(place, import.build.shape(&x)?.len())?;
    let sums = build::cumsum(import.begin(op, 0)?, x, axis, options)?;
    import.put(op, 0, sums)
}

/// `ONE_HOT`: along a new axis, one value where the index is, another elsewhere.
pub(super) fn one_hot<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[4], 1)?;
    let place = op.table.one_hot().map_or(-1, |table| table.axis());
    let x = import.operand(op, 0)?;
    let axis = axis(i64::from(place), import.build.shape(&x)?.len() + 1)?;
    let depth = import.integers(op, 1)?.values;
    let (&[depth], on, off) = (&depth[..], import.constant(op, 2)?, import.constant(op, 3)?) else {
        return refused!("found depths {depth:?}, wanted one");
    };
    let (Ok(depth @ 1..), Some(on), Some(off)) = (usize::try_from(depth), on.number(), off.number()) else {
        return refused!("found depth {depth}, wanted at least 1, and numbers on and off");
    };
    let kind = import.kind(op.output(0)?)?;
    let result = build::one_hot(import.begin(op, 0)?, x, Hot { depth, on, off, axis, kind })?;
    import.put(op, 0, result)
}

/// `TOPK_V2`: the largest elements of each row, and their indices.
pub(super) fn top_k<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[2], 2)?;
    let x = import.operand(op, 0)?;
    let count = import.integers(op, 1)?.values;
    let &[count] = &count[..] else { return refused!("found numbers {count:?}, wanted one") };
    let count = usize::try_from(count).map_err(|_| format!("found {count}, wanted at least 0"))?;
    let last = import.build.shape(&x)?.len().saturating_sub(1);
    let [values, indices] = build::top_k(import.begin(op, 0)?, x, last, count, true)?;
    import.put(op, 0, values)?;
    import.put(op, 1, indices)
}
