//! Operators on shapes, and those that change nothing but the shape.

use super::import::{Import, Op};
use crate::model::build::{
    self, Kind, Mapped, Operand, axes, axis, channels_last, floats, integers, reshaped_to, sizes, without,
};
use crate::model::constant::{Constant, Integers, broadcast, elements_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

/// `Identity`: the output is the input.
pub(super) fn identity<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let slot = i.any(op, 0)?;
    i.set(op, 0, slot)
}

pub(super) fn constant<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = |value: f32| floats(&[], vec![value]);
    let (constant, kind) = if let Some(tensor) = op.tensor("value") {
        i.files.constant(tensor, &mut i.build.budget)?
    } else if op.has_attribute("value_float") {
        (own(op.float("value_float", 0.0))?, Kind::F32)
    } else if op.has_attribute("value_int") {
        (integers(&[], vec![op.int("value_int", 0)])?, Kind::I64)
    } else if let Some(values) = op.floats("value_floats").filter(|_| op.has_attribute("value_floats")) {
        (floats(&[values.len()], values.to_vec())?, Kind::F32)
    } else if let Some(values) = op.ints("value_ints").filter(|_| op.has_attribute("value_ints")) {
        (integers(&[values.len()], values.to_vec())?, Kind::I64)
    } else {
        return refused!("found a constant of text or of a sparse tensor, wanted numbers");
    };
    i.write_constant(op, 0, constant, kind)
}

/// The extents of a tensor, or some of them.
pub(super) fn shape<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let extents = i.extents_of(op, 0)?;
    let rank = extents.len() as i64;
    let bound =
        |place: i64| (if place < 0 { place.saturating_add(rank) } else { place }).clamp(0, rank) as usize;
    let (start, end) = (bound(op.int("start", 0)), bound(op.int("end", rank)));
    let own = extents.get(start..end.max(start)).unwrap_or(&[]);
    let values: Vec<i64> = own.iter().map(|&extent| extent as i64).collect();
    i.write_constant(op, 0, integers(&[values.len()], values)?, Kind::I64)
}

pub(super) fn size<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let count = elements_of(&i.extents_of(op, 0)?)?;
    i.write_constant(op, 0, integers(&[], vec![count as i64])?, Kind::I64)
}

/// `ConstantOfShape`: one number everywhere, 0 of f32 where none is given.
pub(super) fn constant_of_shape<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let extents = sizes(&i.integers(op, 0)?)?;
    let (constant, kind) = match op.tensor("value") {
        Some(tensor) => i.files.constant(tensor, &mut i.build.budget)?,
        None => (floats(&[1], vec![0.0])?, Kind::F32),
    };
    if extents.contains(&0) {
        return i.set(op, 0, Operand::nothing(extents, kind));
    }
    let filled = constant.strided(extents, &mut i.budget, 0, &[])?;
    i.write_constant(op, 0, filled, kind)
}

/// `Range`: numbers from one to another.
pub(super) fn range<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let kind = i.kind_of(op, 0)?;
    let ends = [i.constant(op, 0)?, i.constant(op, 1)?, i.constant(op, 2)?];
    let numbers = build::range(i, &ends)?;
    i.write_constant(op, 0, numbers, kind)
}

/// `EyeLike`: ones along a diagonal.
pub(super) fn eye_like<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let extents = i.extents_of(op, 0)?;
    let &[rows, columns] = &extents[..] else {
        return refused!("found a tensor of {extents:?}, wanted a matrix");
    };
    let kind = match op.has_attribute("dtype") {
        true => Kind::of(op.int("dtype", 1))?,
        false => i.kind_of(op, 0)?,
    };
    let offset = op.int("k", 0);
    i.budget.spend(elements_of(&extents)?.saturating_mul(16))?;
    let on = |at: usize| (at % columns) as i64 - (at / columns) as i64 == offset;
    let constant = match kind.is_float() {
        true => floats(&extents, (0..rows * columns).map(|at| f32::from(u8::from(on(at)))).collect())?,
        false => integers(&extents, (0..rows * columns).map(|at| i64::from(on(at))).collect())?,
    };
    i.write_constant(op, 0, constant, kind)
}

impl<'a> Import<'a> {
    /// Writes input 0 in other dimensions.
    fn write_reshaped(&mut self, op: &Op<'a>, extents: &[usize]) -> Done {
        match self.slot(op, 0)? {
            Operand::Constant(constant, kind) => {
                let constant = constant.reshaped(extents)?;
                self.write_constant(op, 0, constant, kind)
            }
            Operand::Value(mapped) => {
                let reshaped = self.reshaped_in_order("", &mapped, extents)?;
                self.write(op, 0, reshaped)
            }
        }
    }
}

/// `Reshape`: 0 is the input's extent unless zeros are allowed, -1 what is left.
pub(super) fn reshape<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let listed = i.listed(op, 1, "shape")?.ok_or(
        "found no shape, wanted the extents of the input (onnx.shape_inference or the exporter adds them)",
    )?;
    let target = reshaped_to(&own, &listed, !op.flag("allowzero", false))?;
    if target == own {
        return identity(i, op);
    }
    i.write_reshaped(op, &target)
}

/// `Flatten`: to a matrix.
pub(super) fn flatten<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let place = op.int("axis", 1);
    let place = if place == own.len() as i64 { own.len() } else { axis(place, own.len())? };
    let (outer, inner) = own.split_at(place);
    i.write_reshaped(op, &[outer.iter().product(), inner.iter().product()])
}

/// `Squeeze`: axes of one element fall away.
pub(super) fn squeeze<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let removed = match i.listed(op, 1, "axes")? {
        Some(list) => axes(&list, own.len())?,
        None => (0..own.len()).filter(|&axis| own[axis] == 1).collect(),
    };
    if let Some(axis) = removed.iter().find(|&&axis| own[axis] != 1) {
        return refused!("found axis {axis} of {own:?}, wanted one of one element");
    }
    let kept = |extents: &[usize]| -> Vec<usize> {
        (0..own.len()).filter(|axis| !removed.contains(axis)).map(|axis| extents[axis]).collect()
    };
    match i.slot(op, 0)? {
        Operand::Constant(..) => i.write_reshaped(op, &kept(&own)),
        Operand::Value(mapped) => {
            let stored = i.dims(mapped.value)?;
            let extents: Vec<usize> = (0..mapped.rank())
                .filter(|&place| !removed.contains(&mapped.order[place]))
                .map(|place| stored.extents()[place])
                .collect();
            let order = without(&mapped.order, &removed);
            let value = i.reshaped("", mapped.value, &extents)?;
            i.write(op, 0, Mapped { value, order, kind: mapped.kind })
        }
    }
}

/// `Unsqueeze`: new axes of one element.
pub(super) fn unsqueeze<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let list = i.listed(op, 1, "axes")?.ok_or("found no axes")?;
    let rank = own.len() + list.len();
    let added = axes(&list, rank)?;
    let mut rest = own.iter();
    let target: Vec<usize> = (0..rank)
        .map(|axis| if added.contains(&axis) { 1 } else { rest.next().copied().unwrap_or(1) })
        .collect();
    match i.slot(op, 0)? {
        Operand::Value(mapped) if !mapped.is_plain() => {
            // Behind the others, where they move nothing.
            let old: Vec<usize> = (0..rank).filter(|axis| !added.contains(axis)).collect();
            let mut order: Vec<usize> =
                mapped.order.iter().filter_map(|&axis| old.get(axis).copied()).collect();
            order.extend(&added);
            let mut extents = i.dims(mapped.value)?.extents().to_vec();
            extents.resize(rank, 1);
            let value = i.reshaped("", mapped.value, &extents)?;
            i.write(op, 0, Mapped { value, order, kind: mapped.kind })
        }
        _ => i.write_reshaped(op, &target),
    }
}

/// `Expand`: to what both shapes broadcast to.
pub(super) fn expand<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let target = broadcast(&own, &sizes(&i.integers(op, 1)?)?)?;
    spread(i, op, &own, &target)
}

/// Writes input 0 broadcast to other extents.
pub(super) fn spread<'a>(i: &mut Import<'a>, op: &Op<'a>, own: &[usize], target: &[usize]) -> Done {
    if own == target {
        return identity(i, op);
    }
    let x = i.slot(op, 0)?;
    if target.contains(&0) {
        return i.set(op, 0, Operand::nothing(target.to_vec(), x.kind()));
    }
    let slot = build::spread(i, x, target)?;
    i.set(op, 0, slot)
}

/// `DepthToSpace`: groups of channels as blocks of pixels.
pub(super) fn depth_to_space<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let block = block_size(op)?;
    let (x, kind) = i.map_input(op, 0)?;
    let value = match op.text("mode", "DCR")? {
        "DCR" => i.add("", |graph, name| graph.depth_to_space(name, x, block))?,
        "CRD" => {
            let dims = i.dims(x)?;
            let &[n, h, w, c] = dims.extents() else {
                return refused!("found a tensor of {dims}, wanted rank 4");
            };
            if !c.is_multiple_of(block * block) {
                return refused!(
                    "found {c} channels for blocks of {block}x{block}, wanted a multiple of their pixels"
                );
            }
            // Height and batch are one axis, so that no more than six are needed.
            let depth = c / (block * block);
            let split = i.reshaped("split", x, &[n * h, w, depth, block, block])?;
            let moved = i.add("blocks", |graph, name| graph.transpose(name, split, &[0, 3, 1, 4, 2]))?;
            i.reshaped("", moved, &[n, h * block, w * block, depth])?
        }
        other => return refused!("found mode {other:?}, wanted DCR or CRD"),
    };
    i.write(op, 0, Mapped { value, order: channels_last(4), kind })
}

pub(super) fn space_to_depth<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let block = block_size(op)?;
    let (x, kind) = i.map_input(op, 0)?;
    let value = match op.text("mode", "DCR")? {
        "DCR" => i.add("", |graph, name| graph.space_to_depth(name, x, block))?,
        "CRD" => {
            let dims = i.dims(x)?;
            let &[n, h, w, c] = dims.extents() else {
                return refused!("found a tensor of {dims}, wanted rank 4");
            };
            if !h.is_multiple_of(block) || !w.is_multiple_of(block) {
                return refused!("found a map of {h}x{w} for blocks of {block}x{block}, wanted multiples");
            }
            let split = i.reshaped("split", x, &[n * (h / block), block, w / block, block, c])?;
            let moved = i.add("blocks", |graph, name| graph.transpose(name, split, &[0, 2, 4, 1, 3]))?;
            i.reshaped("", moved, &[n, h / block, w / block, c * block * block])?
        }
        other => return refused!("found mode {other:?}, wanted DCR or CRD"),
    };
    i.write(op, 0, Mapped { value, order: channels_last(4), kind })
}

fn block_size(op: &Op<'_>) -> Result<usize, Reason> {
    usize::try_from(op.int("blocksize", 0))
        .ok()
        .filter(|block| (1..=4096).contains(block))
        .ok_or_else(|| format!("found blocks of {}, wanted at least 1", op.int("blocksize", 0)).into())
}

/// `Trilu`: the upper or the lower triangle of matrices, zeros elsewhere.
pub(super) fn trilu<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let extents = i.extents_of(op, 0)?;
    let &[.., rows, columns] = &extents[..] else {
        return refused!("found a tensor of {extents:?}, wanted matrices");
    };
    let diagonal = if op.has(1) { i.integers(op, 1)?.first().copied().unwrap_or(0) } else { 0 };
    let upper = op.flag("upper", true);
    i.budget.spend(rows.saturating_mul(columns).saturating_mul(16))?;
    let inside = |at: usize| {
        let distance = (at % columns) as i64 - (at / columns) as i64;
        if upper { distance >= diagonal } else { distance <= diagonal }
    };
    let mask: Vec<i64> = (0..rows * columns).map(|at| i64::from(inside(at))).collect();
    let mask = Operand::Constant(Constant::Integers(Integers::new(vec![rows, columns], mask)), Kind::Bool);
    let x = i.slot(op, 0)?;
    let slot = i.apply("", Function::Select, &[mask.into(), x.into(), 0.0.into()])?;
    i.set(op, 0, slot)
}
