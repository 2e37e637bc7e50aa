//! `Gather`: elements along one axis.

use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::moves::cut;
use super::operands::axis;
use super::order::{Mapped, without};
use crate::graph::Value;
use crate::model::constant::{Constant, Integers};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

/// `Gather`: elements along an axis by their indices, of which negative ones count from the end.
pub(super) fn gather<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let place = axis(op.int("axis", 0), own.len())?;
    let slot = i.slot(op, 0)?;
    match i.slot(op, 1)? {
        Slot::Constant(indices, _) => {
            let Constant::Integers(indices) = indices else {
                return refused!("found indices that are floats, wanted integers");
            };
            let wanted =
                indices.values.iter().map(|&index| axis(index, own[place])).collect::<Result<Vec<_>, _>>()?;
            match slot {
                Slot::Constant(constant, kind) => {
                    let constant = constant.gathered(place, &wanted, &indices.dims, &mut i.budget)?;
                    i.write_constant(op, 0, constant, kind)
                }
                Slot::Value(mapped) if indices.dims.is_empty() => one_of(i, op, mapped, place, wanted[0]),
                Slot::Value(mapped) => {
                    let list: Vec<i64> = wanted.iter().map(|&index| index as i64).collect();
                    let indices = Constant::Integers(Integers::new(indices.dims, list));
                    let indices = i.mapped_slot(Slot::Constant(indices, Kind::I64), None)?;
                    gathered(i, op, &mapped, indices.value, place)
                }
            }
        }
        Slot::Value(indices) => {
            let extent = own[place] as f32;
            let (order, kind) = (indices.order.clone(), indices.kind);
            let wrapped = |i: &mut Import<'a>, index: Slot| -> Result<Slot, Reason> {
                let negative = i.apply("negative", Function::Less, &[index.clone().into(), 0.0.into()])?;
                let moved = i.apply("moved", Function::Add, &[index.clone().into(), extent.into()])?;
                i.apply("index", Function::Select, &[negative.into(), moved.into(), index.into()])
            };
            let index = wrapped(i, Slot::Value(Mapped { order, kind, ..indices }))?;
            let index = i.mapped_slot(index, None)?;
            let index = i.logical(&index)?;
            let mapped = i.mapped_slot(slot, Some(op.input_name(0)?))?;
            gathered(i, op, &mapped, index, place)
        }
    }
}

fn gathered<'a>(i: &mut Import<'a>, op: &Op<'a>, mapped: &Mapped, indices: Value, place: usize) -> Done {
    let x = i.logical(mapped)?;
    let value = i.add("", |graph, name| graph.gather(name, x, indices, place as isize, 0))?;
    i.write_plain(op, 0, value, mapped.kind)
}

/// One element along an axis, which falls away.
fn one_of<'a>(i: &mut Import<'a>, op: &Op<'a>, mapped: Mapped, place: usize, index: usize) -> Done {
    let mut ranges: Vec<(usize, usize, i64)> =
        i.extents(&mapped)?.into_iter().map(|extent| (0, extent, 1)).collect();
    ranges[place] = (index, 1, 1);
    let Slot::Value(mapped) = cut(i, "one", Slot::Value(mapped), &ranges)? else {
        return refused!("found a constant");
    };
    let removed = mapped.place(place);
    let mut extents = i.dims(mapped.value)?.extents().to_vec();
    extents.remove(removed);
    let value = i.reshaped("", mapped.value, &extents)?;
    i.write(op, 0, Mapped { value, order: without(&mapped.order, &[place]), kind: mapped.kind })
}
