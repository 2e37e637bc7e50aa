//! What is computed of the elements along one axis.

use super::builder::Builder;
use super::kind::Kind;
use super::operand::{Mapped, Operand, without};
use crate::emit::Bits;
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::cumsum::CumSum;
use crate::ops::elementwise::Function;
use crate::ops::one_hot::OneHot;
use crate::ops::softmax::Softmax;

/// The softmax along an axis, of `beta` times the elements, or its logarithm.
pub(crate) fn softmax(
    b: &mut Builder,
    part: &str,
    x: Operand,
    axis: usize,
    (beta, log): (f32, bool),
) -> Result<Operand, Reason> {
    let mapped = b.mapped(x)?;
    let options = Softmax { axis: mapped.place(axis) as isize, log, beta: Bits(beta) };
    let value = b.add(part, |graph, name| graph.softmax(name, mapped.value, options))?;
    Ok(Operand::Value(Mapped { value, ..mapped }))
}

/// Sums along an axis.
pub(crate) fn cumsum(
    b: &mut Builder,
    x: Operand,
    axis: usize,
    [exclusive, reverse]: [bool; 2],
) -> Result<Operand, Reason> {
    let mapped = b.mapped(x)?;
    let options = CumSum { axis: mapped.place(axis) as isize, exclusive, reverse };
    let value = b.add("", |graph, name| graph.cumsum(name, mapped.value, options))?;
    Ok(Operand::Value(Mapped { value, ..mapped }))
}

/// Which extreme element is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extreme {
    pub(crate) largest: bool,
    /// Whether the last of equal elements is taken, and not the first.
    pub(crate) last: bool,
    /// Whether the axis stays, with one element.
    pub(crate) keep: bool,
}

/// The index of the largest or smallest element along an axis.
pub(crate) fn arg(
    b: &mut Builder,
    x: Operand,
    axis: usize,
    Extreme { largest, last, keep }: Extreme,
) -> Result<Operand, Reason> {
    let mapped = b.mapped(x)?;
    let along = mapped.place(axis) as isize;
    let x = match last {
        true => b.add("turned", |graph, name| graph.reverse(name, mapped.value, &[along]))?,
        false => mapped.value,
    };
    let value = b.add(if last { "index" } else { "" }, |graph, name| match largest {
        true => graph.arg_max(name, x, along, keep),
        false => graph.arg_min(name, x, along, keep),
    })?;
    let order = if keep { mapped.order.clone() } else { without(&mapped.order, &[axis]) };
    let index = Operand::Value(Mapped { value, order, kind: Kind::I64 });
    if !last {
        return Ok(index);
    }
    let end = b.extents(&mapped)?.get(axis).copied().unwrap_or(1) as f32 - 1.0;
    b.apply("", Function::Sub, &[end.into(), index.into()])
}

/// The `count` largest or smallest elements along an axis, in order, and their indices.
pub(crate) fn top_k(
    b: &mut Builder,
    x: Operand,
    axis: usize,
    count: usize,
    largest: bool,
) -> Result<[Operand; 2], Reason> {
    let rank = b.shape(&x)?.len();
    let kind = x.kind();
    let mapped = b.mapped(x)?;
    let order: Vec<usize> = (0..rank).filter(|&own| own != axis).chain([axis]).collect();
    let x = b.in_order(&mapped, &order)?;
    let [values, indices] = b.add("", |graph, name| match largest {
        true => graph.top_k(name, x, count),
        false => graph.bottom_k(name, x, count),
    })?;
    let values = Operand::Value(Mapped { value: values, order: order.clone(), kind });
    Ok([values, Operand::Value(Mapped { value: indices, order, kind: Kind::I64 })])
}

/// One number where an index is along a new axis, another one elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hot {
    pub(crate) depth: usize,
    pub(crate) on: f32,
    pub(crate) off: f32,
    /// The new axis.
    pub(crate) axis: usize,
    pub(crate) kind: Kind,
}

pub(crate) fn one_hot(b: &mut Builder, index: Operand, hot: Hot) -> Result<Operand, Reason> {
    let mapped = b.mapped(index)?;
    let index = b.logical(&mapped)?;
    let options = OneHot { depth: hot.depth, on: Bits(hot.on), off: Bits(hot.off), axis: hot.axis as isize };
    let value = b.add("", |graph, name| graph.one_hot(name, index, options))?;
    Ok(Operand::Value(Mapped::plain(value, mapped.rank() + 1, hot.kind)))
}

/// Indices of which negative ones count from the end of `extent` elements, as ones from 0 on.
pub(crate) fn from_start(b: &mut Builder, index: Operand, extent: usize) -> Result<Operand, Reason> {
    if is_from_start(&index) {
        return Ok(index);
    }
    let negative = b.apply("negative", Function::Less, &[index.clone().into(), 0.0.into()])?;
    let moved = b.apply("moved", Function::Add, &[index.clone().into(), (extent as f32).into()])?;
    b.apply("index", Function::Select, &[negative.into(), moved.into(), index.into()])
}

/// Whether indices are known and none is negative.
pub(crate) fn is_from_start(index: &Operand) -> bool {
    match index {
        Operand::Constant(Constant::Integers(known), _) => known.values.iter().all(|&index| index >= 0),
        _ => false,
    }
}
