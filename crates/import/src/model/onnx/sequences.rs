//! Lists of tensors, whose lengths are known while the file is read, and tensors that may not be there.

use super::import::{Import, Op};
use crate::model::build::{Kind, Operand, axis, cut};
use crate::model::constant::{Constant, Integers};
use crate::model::reason::Reason;

type Done = Result<(), Reason>;

/// The most tensors of a sequence.
const MAX_LENGTH: usize = 4096;

impl<'a> Import<'a> {
    /// The tensors of a sequence.
    fn sequence(&self, op: &Op<'a>, index: usize) -> Result<&Vec<Operand>, Reason> {
        let own = match self.any(op, index)? {
            Operand::Constant(Constant::Integers(own), Kind::Sequence) => own,
            _ => return refused!("input {index}: found a tensor, wanted a sequence"),
        };
        let number = own.values.first().and_then(|&number| usize::try_from(number).ok());
        number.and_then(|number| self.sequences.get(number)).ok_or_else(|| "found no such sequence".into())
    }

    /// Writes a sequence.
    fn set_sequence(&mut self, op: &Op<'a>, tensors: Vec<Operand>) -> Done {
        if tensors.len() > MAX_LENGTH {
            return refused!("found a sequence of {}, wanted at most {MAX_LENGTH}", tensors.len());
        }
        self.budget.spend(256 * (tensors.len() + 1))?;
        let number = Integers::new(Vec::new(), vec![self.sequences.len() as i64]);
        self.sequences.push(tensors);
        self.set(op, 0, Operand::Constant(Constant::Integers(number), Kind::Sequence))
    }

    /// A position below `end` in a list of `count`, of which negative ones count from its end.
    fn position(&mut self, op: &Op<'a>, index: usize, count: usize, end: usize) -> Result<usize, Reason> {
        let list = self.integers(op, index)?;
        let &[position] = &list[..] else { return refused!("found positions {list:?}, wanted one") };
        let place = if position < 0 { position.saturating_add(count as i64) } else { position };
        let place = usize::try_from(place).ok().filter(|&place| place < end);
        place.ok_or_else(|| {
            format!("found position {position} in a sequence of {count}, wanted one that is there").into()
        })
    }
}

/// `SequenceEmpty`.
pub(super) fn empty<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    i.set_sequence(op, Vec::new())
}

/// `SequenceConstruct`: of the inputs.
pub(super) fn construct<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let tensors = (0..op.inputs()).map(|index| i.slot(op, index)).collect::<Result<Vec<_>, _>>()?;
    i.set_sequence(op, tensors)
}

/// `SequenceInsert`: at the end where no position is given.
pub(super) fn insert<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (mut tensors, tensor) = (i.sequence(op, 0)?.clone(), i.slot(op, 1)?);
    let place = if op.has(2) { i.position(op, 2, tensors.len(), tensors.len() + 1)? } else { tensors.len() };
    tensors.insert(place, tensor);
    i.set_sequence(op, tensors)
}

/// `SequenceErase`: the last one where no position is given.
pub(super) fn erase<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let mut tensors = i.sequence(op, 0)?.clone();
    let place = match op.has(1) {
        true => i.position(op, 1, tensors.len(), tensors.len())?,
        false => tensors.len().checked_sub(1).ok_or("found an empty sequence, wanted an element")?,
    };
    tensors.remove(place);
    i.set_sequence(op, tensors)
}

/// `SequenceAt`.
pub(super) fn at<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let count = i.sequence(op, 0)?.len();
    let place = i.position(op, 1, count, count)?;
    let slot = i.sequence(op, 0)?[place].clone();
    i.set(op, 0, slot)
}

/// `SequenceLength`.
pub(super) fn length<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let count = i.sequence(op, 0)?.len() as i64;
    i.set(op, 0, Operand::integers(Vec::new(), vec![count]))
}

/// `SplitToSequence`: in parts of one size, of sizes that are listed, or one by one.
pub(super) fn split<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let place = axis(op.int("axis", 0), own.len())?;
    let whole = own[place];
    let equal = |size: usize| -> Result<Vec<usize>, Reason> {
        let parts = whole.div_ceil(size.max(1));
        if parts > MAX_LENGTH {
            return refused!("found {parts} parts of axis {place} of {own:?}, wanted at most {MAX_LENGTH}");
        }
        Ok((0..whole).step_by(size.max(1)).map(|begin| size.max(1).min(whole - begin)).collect())
    };
    let sizes = match op.has(1) {
        false => equal(1)?,
        true => match (i.extents_of(op, 1)?.len(), crate::model::build::sizes(&i.integers(op, 1)?)?) {
            (0, list) => equal(list.first().copied().unwrap_or(1))?,
            (_, list) => list,
        },
    };
    if sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)) != Some(whole)
        || sizes.len() > MAX_LENGTH
    {
        return refused!("found sizes {sizes:?} of axis {place} of {own:?}, wanted sizes that add up to it");
    }
    let falls_away = !op.has(1) && !op.flag("keepdims", true);
    let (slot, mut begin) = (i.slot(op, 0)?, 0);
    let mut parts = Vec::with_capacity(sizes.len());
    for size in sizes {
        let mut ranges: Vec<(usize, usize, i64)> = own.iter().map(|&extent| (0, extent, 1)).collect();
        ranges[place] = (begin, size, 1);
        begin += size;
        let part = cut(i, "part", slot.clone(), &ranges)?;
        parts.push(match falls_away {
            true => {
                let mut extents = own.clone();
                extents.remove(place);
                i.with_extents("part", part, &extents)?
            }
            false => part,
        });
    }
    i.set_sequence(op, parts)
}

/// `ConcatFromSequence`: along an axis, or along a new one.
pub(super) fn concat<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let mut tensors = i.sequence(op, 0)?.clone();
    let is_new = op.flag("new_axis", false);
    let first = tensors.first().ok_or("found an empty sequence, wanted tensors")?;
    let rank = i.shape(first)?.len();
    let place = axis(op.int("axis", 0), rank + usize::from(is_new))?;
    if is_new {
        for tensor in &mut tensors {
            let mut extents = i.shape(tensor)?;
            if extents.len() != rank {
                return refused!("found tensors of rank {rank} and {}, wanted one rank", extents.len());
            }
            extents.insert(place, 1);
            *tensor = i.with_extents("row", tensor.clone(), &extents)?;
        }
    }
    let slot = match &tensors[..] {
        [one] => one.clone(),
        _ => i.joined("", tensors, place)?,
    };
    i.set(op, 0, slot)
}

/// `Optional`: the input, or nothing.
pub(super) fn optional<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if op.has(0) {
        return super::shapes::identity(i, op);
    }
    let nothing = Constant::Integers(Integers::new(Vec::new(), vec![0]));
    i.set(op, 0, Operand::Constant(nothing, Kind::Nothing))
}

/// `OptionalHasElement`.
pub(super) fn has_element<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let has = op.has(0) && !matches!(i.any(op, 0)?, Operand::Constant(_, Kind::Nothing));
    i.set(op, 0, Operand::integers(Vec::new(), vec![i64::from(has)]).of_kind(Kind::Bool))
}

/// `OptionalGetElement`.
pub(super) fn element<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    match i.any(op, 0)? {
        Operand::Constant(_, Kind::Nothing) => refused!("found nothing, wanted an element"),
        slot => i.set(op, 0, slot),
    }
}
