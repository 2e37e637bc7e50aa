//! Products of matrices.

use super::after::{finished, function_of};
use super::builder::Builder;
use super::operand::{Mapped, Operand};
use crate::dims::Dim;
use crate::emit::Activation;
use crate::graph::{Extras, Right, Value};
use crate::host::HostTensor;
use crate::model::constant::{Constant, broadcast, dims_of, elements_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::gemm::Gemm;

/// A factor with its matrices in the last two axes, perhaps stored the other way around.
#[derive(Clone)]
pub(crate) struct Factor {
    pub(crate) operand: Operand,
    pub(crate) extents: Vec<usize>,
    pub(crate) transposed: bool,
}

/// A slot with its last two axes exchanged.
pub(crate) fn swapped(b: &mut Builder, slot: Operand) -> Result<Operand, Reason> {
    let rank = match &slot {
        Operand::Value(mapped) => mapped.rank(),
        Operand::Constant(constant, _) => constant.extents().len(),
    };
    if rank < 2 {
        return Ok(slot);
    }
    let swap = |axis: usize| match axis {
        axis if axis == rank - 1 => rank - 2,
        axis if axis == rank - 2 => rank - 1,
        axis => axis,
    };
    Ok(match slot {
        Operand::Value(mapped) => {
            let order = mapped.order.iter().map(|&axis| swap(axis)).collect();
            Operand::Value(Mapped { order, ..mapped })
        }
        Operand::Constant(..) => {
            let order: Vec<usize> = (0..rank).map(swap).collect();
            in_order_once(b, slot, &order)?
        }
    })
}

/// A constant with its axes stored in another order: once for all operators that read it so.
fn in_order_once(b: &mut Builder, slot: Operand, order: &[usize]) -> Result<Operand, Reason> {
    let how = format!("in order {order:?}");
    b.once(&how, &[&slot], |b| {
        Ok(match &slot {
            Operand::Constant(Constant::Floats(own), kind) => {
                let moved = b.derived(own, &how, |b| {
                    let moved = b.constant_in_order(&Constant::Floats(own.clone()), order)?;
                    moved.floats(&mut b.budget)
                })?;
                Operand::Constant(Constant::Floats(moved), *kind)
            }
            Operand::Constant(constant, kind) => {
                Operand::Constant(b.constant_in_order(constant, order)?, *kind)
            }
            Operand::Value(_) => slot.clone(),
        })
    })
}

/// The product of two slots.
pub(crate) fn product(build: &mut Builder, part: &str, a: Operand, b: Operand) -> Result<Operand, Reason> {
    let extents = |build: &Builder, slot: &Operand| match slot {
        Operand::Value(mapped) => build.extents(mapped),
        Operand::Constant(constant, _) => Ok(constant.extents()),
    };
    let kind = match &a {
        Operand::Value(mapped) => mapped.kind,
        Operand::Constant(_, kind) => *kind,
    };
    let (mut own_a, mut own_b) = (extents(build, &a)?, extents(build, &b)?);
    // A vector is a row on the left and a column on the right, which fall away.
    let (row, column) = (own_a.len() == 1, own_b.len() == 1);
    let (mut a, mut b) = (a, b);
    if row {
        own_a.insert(0, 1);
        a = axis_added(build, a, &own_a)?;
    }
    if column {
        own_b.push(1);
        b = axis_added(build, b, &own_b)?;
    }
    let first = own_a.first().copied();
    let (a, b) = (factor(build, a, own_a)?, factor(build, b, own_b)?);
    let (value, mut target) = matrices(build, a, b)?;
    if column {
        target.pop();
    }
    if row {
        target.remove(if column { target.len().saturating_sub(1) } else { target.len().saturating_sub(2) });
    }
    // The first extent stays that of the left factor, where it is.
    let leads = !target.is_empty() && target.first() == first.as_ref();
    let value = match leads {
        true => build.with_leading(part, value, &target)?,
        false => build.reshaped(part, value, &target)?,
    };
    let rank = target.len();
    Ok(Operand::Value(Mapped::plain(value, rank, kind)))
}

pub(crate) fn axis_added(b: &mut Builder, slot: Operand, extents: &[usize]) -> Result<Operand, Reason> {
    Ok(match slot {
        Operand::Constant(constant, kind) => Operand::Constant(constant.reshaped(extents)?, kind),
        Operand::Value(mapped) => {
            let value = b.logical(&mapped)?;
            Operand::Value(Mapped::plain(b.reshaped("matrix", value, extents)?, extents.len(), mapped.kind))
        }
    })
}

/// The slot with its batches in order.
pub(crate) fn factor(b: &mut Builder, slot: Operand, extents: Vec<usize>) -> Result<Factor, Reason> {
    let rank = extents.len();
    if rank < 2 {
        return refused!("found a factor of {extents:?}, wanted matrices");
    }
    let Operand::Value(mapped) = &slot else {
        return Ok(Factor { operand: slot, extents, transposed: false });
    };
    let mut turned: Vec<usize> = (0..rank).collect();
    turned.swap(rank - 1, rank - 2);
    let several = extents[rank - 1] > 1 && extents[rank - 2] > 1;
    // Of a reshape, whoever wrote its source may write it in the order of the file.
    let transposed = mapped.order == turned && several && !b.is_reshaped(mapped);
    let value = if transposed { mapped.value } else { b.logical(mapped)? };
    let slot = Operand::Value(Mapped { value, ..mapped.clone() });
    Ok(Factor { operand: slot, extents, transposed })
}

/// The factor with other batches.
fn spread(b: &mut Builder, factor: Factor, batch: &[usize]) -> Result<Factor, Reason> {
    let rank = factor.extents.len();
    let matrix = [factor.extents[rank - 2], factor.extents[rank - 1]];
    let target = [batch, &matrix].concat();
    if target == factor.extents {
        return Ok(factor);
    }
    let slot = match factor.operand {
        Operand::Constant(constant, kind) => {
            Operand::Constant(constant.broadcast_to(target.clone(), &mut b.budget)?, kind)
        }
        Operand::Value(mapped) => {
            let mut own = target.clone();
            if factor.transposed {
                own.swap(target.len() - 1, target.len() - 2);
            }
            let own: Vec<Dim> = own.into_iter().map(Dim::Fixed).collect();
            let value = b.add("spread", |graph, name| graph.broadcast_to(name, mapped.value, &own))?;
            Operand::Value(Mapped { value, ..mapped })
        }
    };
    Ok(Factor { operand: slot, extents: target, ..factor })
}

/// The product, and the extents that it has: it is `batch 1 rows columns` or `rows columns`.
fn matrices(build: &mut Builder, a: Factor, b: Factor) -> Result<(Value, Vec<usize>), Reason> {
    let (mut a, mut b) = (a, b);
    let split = |factor: &Factor| -> (Vec<usize>, [usize; 2]) {
        let (batch, matrix) = factor.extents.split_at(factor.extents.len() - 2);
        (batch.to_vec(), [matrix[0], matrix[1]])
    };
    let ((a_batch, [m, k]), (b_batch, [b_rows, n])) = (split(&a), split(&b));
    if k != b_rows {
        return refused!("found products of {:?} and {:?}", a.extents, b.extents);
    }
    let batch = broadcast(&a_batch, &b_batch)?;
    let shared = b_batch.iter().all(|&extent| extent == 1);
    if !shared && elements_of(&a_batch)? != elements_of(&batch)? {
        a = spread(build, a, &batch)?;
    }
    if !shared && elements_of(&b_batch)? != elements_of(&batch)? {
        b = spread(build, b, &batch)?;
    }
    let count = elements_of(&batch)?;
    let (transpose_a, transpose_b) = (a.transposed, b.transposed);
    let stored = |transposed: bool, rows: usize, columns: usize| {
        if transposed { [columns, rows] } else { [rows, columns] }
    };
    let value = build.mapped(a.operand)?.value;
    let [rows, columns] = stored(transpose_a, m, k);
    // With one right matrix, all rows of the left ones are one matrix.
    let one = shared && !transpose_a;
    let batches = elements_of(&a_batch)?;
    let left = if one { vec![batches * rows, columns] } else { vec![batches, 1, rows, columns] };
    let left = build.with_leading("left", value, &left)?;
    let [rows, columns] = stored(transpose_b, k, n);
    let right = match b.operand {
        Operand::Constant(constant, _) => {
            let right = if shared { vec![rows, columns] } else { vec![count, 1, rows, columns] };
            let tensor = constant.floats(&mut build.budget)?;
            Right::Constant(tensor.reshaped(dims_of(&right)?)?)
        }
        Operand::Value(mapped) if shared => {
            Right::Value(build.reshaped("right", mapped.value, &[rows, columns])?)
        }
        Operand::Value(mapped) => {
            Right::Value(build.with_leading("right", mapped.value, &[count, 1, rows, columns])?)
        }
    };
    let options = Gemm { transpose_a, transpose_b, ..Gemm::default() };
    let value =
        build.add("product", |graph, name| graph.gemm(name, left, right, Extras::default(), options))?;
    Ok((value, [&batch[..], &[m, n]].concat()))
}

/// `f(x W^T + bias)`: `x` is `... features`, the weights `columns features`. Known weights become columns, which kernels
/// read side by side.
pub(crate) fn fully_connected(
    b: &mut Builder,
    x: Operand,
    weights: Operand,
    bias: Option<Operand>,
    after: Option<Function>,
) -> Result<Operand, Reason> {
    let extents = b.shape(&weights)?;
    let (weights, transposed) = match weights {
        weights @ Operand::Constant(..) => (in_order_once(b, weights, &[1, 0])?, false),
        value => (value, true),
    };
    finished(b, None, after, |b, activation| {
        let rows = Rows { weights: &weights, extents, transposed, activation };
        rows.times(b, "", x, bias.as_ref(), None)
    })
}

/// `x W^T + bias + summand`: `x` is `... features`, the weights `columns features`.
pub(crate) fn dense(
    b: &mut Builder,
    part: &str,
    x: Operand,
    weights: &Operand,
    bias: Option<&Operand>,
    summand: Option<Operand>,
) -> Result<Operand, Reason> {
    let extents = b.shape(weights)?;
    let rows = Rows { weights, extents, transposed: true, activation: Activation::None };
    rows.times(b, part, x, bias, summand)
}

/// Weights that rows of features are multiplied by.
struct Rows<'w> {
    weights: &'w Operand,
    /// `columns features`.
    extents: Vec<usize>,
    /// Whether they are stored so; else the other way around.
    transposed: bool,
    activation: Activation,
}

impl Rows<'_> {
    fn times(
        self,
        b: &mut Builder,
        part: &str,
        x: Operand,
        bias: Option<&Operand>,
        summand: Option<Operand>,
    ) -> Result<Operand, Reason> {
        let (extents, shape) = (self.extents, b.shape(&x)?);
        let &[columns, features] = &extents[..] else {
            return refused!("found weights of {extents:?}, wanted a matrix");
        };
        if shape.len() < 2 || shape.last() != Some(&features) {
            return refused!(
                "found an input of {shape:?} for weights of {extents:?}, wanted {features} features"
            );
        }
        let mapped = b.mapped(x)?;
        // The axes before the features may be in any order.
        let in_place = mapped.order.last() == Some(&(shape.len() - 1));
        let mapped = match in_place {
            true => mapped,
            false => Mapped::plain(b.logical(&mapped)?, shape.len(), mapped.kind),
        };
        let mut stored = b.dims(mapped.value)?.extents().to_vec();
        let rows = elements_of(stored.split_last().map_or(&[], |(_, rows)| rows))?;
        let left = b.with_leading("rows", mapped.value, &[rows, features])?;
        let right = match self.weights {
            Operand::Constant(constant, _) => Right::Constant(constant.floats(&mut b.budget)?),
            Operand::Value(weights) => Right::Value(b.logical(weights)?),
        };
        let mut extras = Extras::default();
        let mut more = Vec::new();
        match bias {
            Some(Operand::Constant(constant, _)) if constant.elements() == columns => {
                let list = constant.floats(&mut b.budget)?.to_nhwc().into_owned();
                extras.bias = Some(HostTensor::vector(list)?);
            }
            other => more.extend(other.cloned()),
        }
        match summand {
            Some(Operand::Value(own)) if own.is_plain() && shape.len() == 2 => {
                extras.residual = Some(own.value);
            }
            other => more.extend(other),
        }
        let (flat, bare) = (shape.len() == 2, more.is_empty());
        let activation = if bare { self.activation } else { Activation::None };
        let options = Gemm { transpose_b: self.transposed, activation, ..Gemm::default() };
        let own = if flat && bare { part } else { "product" };
        let value = b.add(own, |graph, name| graph.gemm(name, left, right, extras, options))?;
        if let Some(last) = stored.last_mut() {
            *last = columns;
        }
        let value = match flat {
            true => value,
            false => b.with_leading(if bare { part } else { "sums" }, value, &stored)?,
        };
        let mut result = Operand::Value(Mapped { value, ..mapped });
        let function = function_of(self.activation);
        let count = more.len();
        for (index, more) in more.into_iter().enumerate() {
            let part = if index + 1 == count && function.is_none() { part } else { "biased" };
            result = b.apply(part, Function::Add, &[result.into(), more.into()])?;
        }
        match function {
            Some(function) if !bare => b.apply(part, function, &[result.into()]),
            _ => Ok(result),
        }
    }
}
