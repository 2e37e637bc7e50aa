//! Lists of tensors (`TensorList`), which loops of recurrent layers fill: operators of TensorFlow in a TensorFlow Lite file
//! (`Flex`), and those that have the same names without that.
//!
//! A list is known while the file is read: how many elements it has, and which value each one is. Only its elements are
//! computed by a run.

use super::import::{Import, Op};
use super::slots::{List, Slot};
use crate::model::build::{Operand, one_of, stacked};
use crate::model::constant::{Constant, Integers};
use crate::model::reason::Reason;
use std::sync::Arc;

type Done = Result<(), Reason>;

impl<'a> Import<'a> {
    /// Input `index`, which is a list.
    fn list(&self, op: &Op<'a>, index: usize) -> Result<Arc<List>, Reason> {
        let position = self.tensors.position(op.input(index)?)?;
        match self.slots.get(position) {
            Some(Slot::List(list)) => Ok(Arc::clone(list)),
            _ => refused!("{}: found no list of tensors, wanted one", self.describe(op, index)),
        }
    }

    /// Notes that output `index` is a list.
    fn write_list(&mut self, op: &Op<'a>, index: usize, list: List) -> Done {
        // Each pass of a loop has a list of its own.
        self.build.budget.spend(list.items.len().saturating_mul(size_of::<Option<Operand>>()))?;
        let position = self.tensors.position(op.output(index)?)?;
        self.check_unwritten(position)?;
        self.set(position, Slot::List(Arc::new(list)));
        Ok(())
    }

    /// Input `index`, one integer.
    fn whole_number(&mut self, op: &Op<'a>, index: usize) -> Result<i64, Reason> {
        match self.integers(op, index)?.values[..] {
            [number] => Ok(number),
            ref other => refused!("{}: found {} numbers, wanted one", self.describe(op, index), other.len()),
        }
    }

    /// The place in a list that input `index` says.
    fn place_in(&mut self, op: &Op<'a>, index: usize, list: &List) -> Result<usize, Reason> {
        let found = self.whole_number(op, index)?;
        let place = usize::try_from(found).ok().filter(|&place| place < list.items.len());
        Ok(place.ok_or_else(|| format!("found element {found} of a list of {}", list.items.len()))?)
    }

    /// The extents of an element: those that input `index` says, and what the list knows.
    fn extents_of_element(&mut self, op: &Op<'a>, index: usize, list: &List) -> Result<Vec<usize>, Reason> {
        let given = if op.has(index) { self.integers(op, index)?.values.to_vec() } else { Vec::new() };
        let known = list.items.iter().flatten().next().map(|item| self.build.shape(item)).transpose()?;
        if let Some(known) = known {
            return Ok(known);
        }
        let given = if given.iter().all(|&extent| extent >= 0) && !given.is_empty() {
            given
        } else {
            list.extents.clone()
        };
        let extents: Option<Vec<usize>> = given.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        Ok(extents.ok_or_else(|| {
            format!("found an element of extents {given:?} that was not set, wanted it set")
        })?)
    }

    /// Notes that output `index` is an element: under a name of its own, as the element may be an output, too.
    fn put_element(&mut self, op: &Op<'a>, index: usize, item: Operand) -> Done {
        match item {
            Operand::Constant(constant, _) => self.write_constant(op, index, constant),
            Operand::Value(_) => {
                self.begin(op, index)?;
                self.finish(op, index, item)
            }
        }
    }

    /// An element of a list; zeros where it was not set.
    fn element(&mut self, op: &Op<'a>, at: usize, list: &List, shape: usize) -> Result<Operand, Reason> {
        match list.items.get(at).cloned().flatten() {
            Some(item) => Ok(item),
            None => {
                let extents = self.extents_of_element(op, shape, list)?;
                self.build.filled(&extents, 0.0)
            }
        }
    }
}

/// `TensorListReserve`: so many elements of an extent, none of them set.
pub(super) fn reserve<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[2], 1)?;
    let extents = import.integers(op, 0)?.values.to_vec();
    let count = import.whole_number(op, 1)?;
    let count = usize::try_from(count).map_err(|_| format!("found a list of {count} elements"))?;
    import.build.budget.spend(count.saturating_mul(size_of::<Option<Operand>>()))?;
    import.write_list(op, 0, List { items: vec![None; count], extents })
}

/// `EmptyTensorList`: no elements.
pub(super) fn empty<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[2], 1)?;
    let extents = import.integers(op, 0)?.values.to_vec();
    import.write_list(op, 0, List { items: Vec::new(), extents })
}

/// `TensorListFromTensor`: the elements along the first axis.
pub(super) fn from_tensor<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[2], 1)?;
    let whole = import.operand(op, 0)?;
    let own = import.build.shape(&whole)?;
    let Some((&count, extents)) = own.split_first() else {
        return refused!("{}: found a scalar, wanted elements along an axis", import.describe(op, 0));
    };
    let builder = import.begin(op, 0)?;
    let items = (0..count).map(|at| one_of(builder, "element", &whole, 0, at).map(Some));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    let extents = extents.iter().map(|&extent| extent as i64).collect();
    import.write_list(op, 0, List { items, extents })
}

/// `TensorListSetItem`: the list with another element.
pub(super) fn set_item<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[3], 1)?;
    let mut list = (*import.list(op, 0)?).clone();
    let place = import.place_in(op, 1, &list)?;
    list.items[place] = Some(import.operand(op, 2)?);
    import.write_list(op, 0, list)
}

/// `TensorListGetItem`: one element.
pub(super) fn get_item<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[2, 3], 1)?;
    let list = import.list(op, 0)?;
    let place = import.place_in(op, 1, &list)?;
    let item = import.element(op, place, &list, 2)?;
    import.put_element(op, 0, item)
}

/// `TensorListStack`: the elements along a new first axis.
pub(super) fn stack<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[1, 2], 1)?;
    let list = import.list(op, 0)?;
    let mut items = Vec::with_capacity(list.items.len());
    for at in 0..list.items.len() {
        items.push(import.element(op, at, &list, 1)?);
    }
    if items.is_empty() {
        let mut extents = import.extents_of_element(op, 1, &list)?;
        extents.insert(0, 0);
        return import.write_constant(op, 0, Constant::Integers(Integers::new(extents, Vec::new())));
    }
    let builder = import.begin(op, 0)?;
    let all = stacked(builder, "", items, 0)?;
    import.put(op, 0, all)
}

/// `TensorListLength`: how many elements there are.
pub(super) fn length<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[1], 1)?;
    let count = import.list(op, 0)?.items.len() as i64;
    import.write_constant(op, 0, Constant::Integers(Integers::new(Vec::new(), vec![count])))
}

/// `TensorListPushBack`: the list with one element more.
pub(super) fn push_back<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[2], 1)?;
    let mut list = (*import.list(op, 0)?).clone();
    list.items.push(Some(import.operand(op, 1)?));
    import.write_list(op, 0, list)
}

/// `TensorListPopBack`: the list without its last element, and that.
pub(super) fn pop_back<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[1, 2], 2)?;
    let mut list = (*import.list(op, 0)?).clone();
    let Some(last) = list.items.len().checked_sub(1) else {
        return refused!("found an empty list, wanted an element");
    };
    let item = import.element(op, last, &list, 1)?;
    list.items.pop();
    import.write_list(op, 0, list)?;
    import.put_element(op, 1, item)
}

/// `TensorListResize`: the first elements, and others behind them that are not set.
pub(super) fn resize<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[2], 1)?;
    let mut list = (*import.list(op, 0)?).clone();
    let count = import.whole_number(op, 1)?;
    let count = usize::try_from(count).map_err(|_| format!("found a list of {count} elements"))?;
    import.build.budget.spend(count.saturating_mul(size_of::<Option<Operand>>()))?;
    list.items.resize(count, None);
    import.write_list(op, 0, list)
}
