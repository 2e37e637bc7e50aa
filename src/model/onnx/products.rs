//! Matrix products.

use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::order::Mapped;
use crate::dims::Dim;
use crate::graph::{Extras, Right, Value};
use crate::model::constant::{Constant, broadcast, dims_of, elements_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::gemm::Gemm;

type Done = Result<(), Reason>;

/// A factor with its matrices in the last two axes, perhaps stored the other way around.
#[derive(Clone)]
struct Factor {
    slot: Slot,
    extents: Vec<usize>,
    transposed: bool,
}

/// `MatMul`: of the last two axes; those before broadcast as in numpy.
pub(super) fn matmul<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (a, b) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let slot = product(i, "", a, b)?;
    i.set(op, 0, slot)
}

/// `FusedMatMul` and `TransposeMatMul` of com.microsoft.
pub(super) fn fused<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let turned = |i: &mut Import<'a>, index: usize, name: &str| -> Result<Slot, Reason> {
        let slot = i.slot(op, index)?;
        if op.flag(name, false) { swapped(i, slot) } else { Ok(slot) }
    };
    if op.flag("transBatchA", false) || op.flag("transBatchB", false) {
        return refused!("found batches that are transposed (transBatchA, transBatchB), wanted plain ones");
    }
    let (a, b) = (turned(i, 0, "transA")?, turned(i, 1, "transB")?);
    let alpha = op.float("alpha", 1.0);
    let slot = product(i, if alpha == 1.0 { "" } else { "product" }, a, b)?;
    let slot = if alpha == 1.0 { slot } else { i.apply("", Function::Mul, &[slot.into(), alpha.into()])? };
    i.set(op, 0, slot)
}

/// A slot with its last two axes exchanged.
pub(super) fn swapped(i: &mut Import<'_>, slot: Slot) -> Result<Slot, Reason> {
    let rank = match &slot {
        Slot::Value(mapped) => mapped.rank(),
        Slot::Constant(constant, _) => constant.extents().len(),
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
        Slot::Value(mapped) => {
            let order = mapped.order.iter().map(|&axis| swap(axis)).collect();
            Slot::Value(Mapped { order, ..mapped })
        }
        Slot::Constant(constant, kind) => {
            let order: Vec<usize> = (0..rank).map(swap).collect();
            Slot::Constant(i.constant_in_order(&constant, &order)?, kind)
        }
    })
}

/// The product of two slots.
pub(super) fn product(i: &mut Import<'_>, part: &str, a: Slot, b: Slot) -> Result<Slot, Reason> {
    let extents = |i: &Import<'_>, slot: &Slot| match slot {
        Slot::Value(mapped) => i.extents(mapped),
        Slot::Constant(constant, _) => Ok(constant.extents()),
    };
    let kind = match &a {
        Slot::Value(mapped) => mapped.kind,
        Slot::Constant(_, kind) => *kind,
    };
    let (mut own_a, mut own_b) = (extents(i, &a)?, extents(i, &b)?);
    // A vector is a row on the left and a column on the right, which fall away.
    let (row, column) = (own_a.len() == 1, own_b.len() == 1);
    let (mut a, mut b) = (a, b);
    if row {
        own_a.insert(0, 1);
        a = axis_added(i, a, &own_a)?;
    }
    if column {
        own_b.push(1);
        b = axis_added(i, b, &own_b)?;
    }
    let (a, b) = (factor(i, a, own_a)?, factor(i, b, own_b)?);
    let (value, mut target) = matrices(i, a, b)?;
    if column {
        target.pop();
    }
    if row {
        target.remove(if column { target.len().saturating_sub(1) } else { target.len().saturating_sub(2) });
    }
    let value = i.reshaped(part, value, &target)?;
    let rank = target.len();
    Ok(Slot::Value(Mapped::plain(value, rank, kind)))
}

fn axis_added(i: &mut Import<'_>, slot: Slot, extents: &[usize]) -> Result<Slot, Reason> {
    Ok(match slot {
        Slot::Constant(constant, kind) => Slot::Constant(constant.reshaped(extents)?, kind),
        Slot::Value(mapped) => {
            let value = i.logical(&mapped)?;
            Slot::Value(Mapped::plain(i.reshaped("matrix", value, extents)?, extents.len(), mapped.kind))
        }
    })
}

/// The slot with its batches in order.
fn factor(i: &mut Import<'_>, slot: Slot, extents: Vec<usize>) -> Result<Factor, Reason> {
    let rank = extents.len();
    if rank < 2 {
        return refused!("found a factor of {extents:?}, wanted matrices");
    }
    let Slot::Value(mapped) = &slot else {
        return Ok(Factor { slot, extents, transposed: false });
    };
    let mut turned: Vec<usize> = (0..rank).collect();
    turned.swap(rank - 1, rank - 2);
    let transposed = mapped.order == turned && extents[rank - 1] > 1 && extents[rank - 2] > 1;
    let value = if transposed { mapped.value } else { i.logical(mapped)? };
    let slot = Slot::Value(Mapped { value, ..mapped.clone() });
    Ok(Factor { slot, extents, transposed })
}

/// The factor with other batches.
fn spread(i: &mut Import<'_>, factor: Factor, batch: &[usize]) -> Result<Factor, Reason> {
    let rank = factor.extents.len();
    let matrix = [factor.extents[rank - 2], factor.extents[rank - 1]];
    let target = [batch, &matrix].concat();
    if target == factor.extents {
        return Ok(factor);
    }
    let slot = match factor.slot {
        Slot::Constant(constant, kind) => {
            Slot::Constant(constant.broadcast_to(target.clone(), &mut i.budget)?, kind)
        }
        Slot::Value(mapped) => {
            let mut own = target.clone();
            if factor.transposed {
                own.swap(target.len() - 1, target.len() - 2);
            }
            let own: Vec<Dim> = own.into_iter().map(Dim::Fixed).collect();
            let value = i.add("spread", |graph, name| graph.broadcast_to(name, mapped.value, &own))?;
            Slot::Value(Mapped { value, ..mapped })
        }
    };
    Ok(Factor { slot, extents: target, ..factor })
}

/// The product, and the extents that it has: it is `batch 1 rows columns` or `rows columns`.
fn matrices(i: &mut Import<'_>, a: Factor, b: Factor) -> Result<(Value, Vec<usize>), Reason> {
    let (mut a, mut b) = (a, b);
    let split = |factor: &Factor| -> (Vec<usize>, [usize; 2]) {
        let (batch, matrix) = factor.extents.split_at(factor.extents.len() - 2);
        (batch.to_vec(), [matrix[0], matrix[1]])
    };
    let ((a_batch, [m, k]), (b_batch, [b_rows, n])) = (split(&a), split(&b));
    if k != b_rows {
        return refused!(
            "found products of {:?} and {:?}, wanted the inner extents to be equal",
            a.extents,
            b.extents
        );
    }
    let batch = broadcast(&a_batch, &b_batch)?;
    let shared = b_batch.iter().all(|&extent| extent == 1);
    if !shared && elements_of(&a_batch)? != elements_of(&batch)? {
        a = spread(i, a, &batch)?;
    }
    if !shared && elements_of(&b_batch)? != elements_of(&batch)? {
        b = spread(i, b, &batch)?;
    }
    let count = elements_of(&batch)?;
    let (transpose_a, transpose_b) = (a.transposed, b.transposed);
    let stored = |transposed: bool, rows: usize, columns: usize| {
        if transposed { [columns, rows] } else { [rows, columns] }
    };
    let value = i.mapped_slot(a.slot, None)?.value;
    let [rows, columns] = stored(transpose_a, m, k);
    // With one right matrix, all rows of the left ones are one matrix.
    let one = shared && !transpose_a;
    let left = if one { vec![count * rows, columns] } else { vec![count, 1, rows, columns] };
    let left = i.reshaped("left", value, &left)?;
    let [rows, columns] = stored(transpose_b, k, n);
    let right = if shared { vec![rows, columns] } else { vec![count, 1, rows, columns] };
    let right = match b.slot {
        Slot::Constant(constant, _) => {
            let tensor = constant.floats(&mut i.budget)?;
            Right::Constant(tensor.reshaped(dims_of(&right)?)?)
        }
        Slot::Value(mapped) => Right::Value(i.reshaped("right", mapped.value, &right)?),
    };
    let options = Gemm { transpose_a, transpose_b, ..Gemm::default() };
    let value = i.add("product", |graph, name| graph.gemm(name, left, right, Extras::default(), options))?;
    Ok((value, [&batch[..], &[m, n]].concat()))
}

/// `Gemm`: `alpha op(A) op(B) + beta C`.
pub(super) fn gemm<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let slot = gemm_of(i, op, "")?;
    i.set(op, 0, slot)
}

pub(super) fn gemm_of<'a>(i: &mut Import<'a>, op: &Op<'a>, part: &str) -> Result<Slot, Reason> {
    let kind = i.kind_of(op, 0)?;
    let turned = |i: &mut Import<'a>, index: usize, name: &str| -> Result<Factor, Reason> {
        let slot = i.slot(op, index)?;
        let slot = if op.flag(name, false) { swapped(i, slot)? } else { slot };
        let extents = match &slot {
            Slot::Value(mapped) => i.extents(mapped)?,
            Slot::Constant(constant, _) => constant.extents(),
        };
        match extents.len() {
            2 => factor(i, slot, extents),
            _ => refused!("found a factor of {extents:?}, wanted a matrix"),
        }
    };
    let (a, b) = (turned(i, 0, "transA")?, turned(i, 1, "transB")?);
    let (alpha, beta) = (op.float("alpha", 1.0), op.float("beta", 1.0));
    let (&[m, k], &[b_rows, n]) = (&a.extents[..], &b.extents[..]) else {
        return refused!("found no matrices");
    };
    if k != b_rows {
        return refused!(
            "found products of {:?} and {:?}, wanted the inner extents to be equal",
            a.extents,
            b.extents
        );
    }
    let with_summand = op.has(2) && beta != 0.0;
    // A constant row is a bias.
    let bias = match with_summand.then(|| i.slot(op, 2)).transpose()? {
        Some(Slot::Constant(constant, _))
            if constant.elements() == n && constant.extents().last() == Some(&n) =>
        {
            let values = super::convolution::floats_of(i, &constant)?;
            Some(values.iter().map(|value| value * beta).collect::<Vec<f32>>())
        }
        _ => None,
    };
    let bare = !with_summand || bias.is_some();
    let bias = bias.map(crate::host::HostTensor::vector).transpose()?;
    let left = i.mapped_slot(a.slot, None)?.value;
    let right = match b.slot {
        Slot::Constant(constant, _) => Right::Constant(constant.floats(&mut i.budget)?),
        Slot::Value(mapped) => Right::Value(mapped.value),
    };
    let options = Gemm {
        transpose_a: a.transposed,
        transpose_b: b.transposed,
        alpha: crate::emit::Bits(alpha),
        ..Gemm::default()
    };
    let extras = Extras { bias, ..Extras::default() };
    let own = if bare { part } else { "product" };
    let value = i.add(own, |graph, name| graph.gemm(name, left, right, extras, options))?;
    let mut slot = Slot::Value(Mapped::plain(value, 2, kind));
    if !bare {
        let mut summand = i.slot(op, 2)?;
        if beta != 1.0 {
            summand = i.apply("scaled", Function::Mul, &[summand.into(), beta.into()])?;
        }
        slot = i.apply(part, Function::Add, &[slot.into(), summand.into()])?;
    }
    if let Slot::Value(mapped) = &slot
        && i.extents(mapped)? != [m, n]
    {
        return refused!("found a summand that does not broadcast to {m}x{n}, wanted one that does");
    }
    Ok(slot)
}

/// The largest matrices whose determinant is worked out: the products of it are as many as its sets of columns.
const MAX_ROWS: usize = 6;

/// `Det`: of the last two axes, row by row; a minor of the first rows is kept for each set of columns.
pub(super) fn determinant<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let (rows, outer) = match &own[..] {
        [outer @ .., rows, columns] if rows == columns && (1..=MAX_ROWS).contains(rows) => {
            (*rows, outer.to_vec())
        }
        _ => {
            return refused!("found a tensor of {own:?}, wanted square matrices of at most {MAX_ROWS} rows");
        }
    };
    let x = i.slot(op, 0)?;
    let element = |i: &mut Import<'a>, row: usize, column: usize| -> Result<Slot, Reason> {
        let mut ranges: Vec<(usize, usize, i64)> = outer.iter().map(|&extent| (0, extent, 1)).collect();
        ranges.extend([(row, 1, 1), (column, 1, 1)]);
        let one = super::moves::cut(i, "element", x.clone(), &ranges)?;
        i.slot_reshaped("element", one, &outer)
    };
    let mut minors: Vec<Option<Slot>> = vec![None; 1 << rows];
    for row in 0..rows {
        let elements = (0..rows).map(|column| element(i, row, column)).collect::<Result<Vec<_>, _>>()?;
        for set in (0usize..1 << rows).filter(|set| set.count_ones() as usize == row + 1) {
            let mut sum: Option<Slot> = None;
            for (column, element) in
                elements.iter().enumerate().filter(|(column, _)| set & (1 << column) != 0)
            {
                let behind = (set >> (column + 1)).count_ones();
                let term = match &minors[set & !(1 << column)] {
                    None => element.clone(),
                    Some(minor) => {
                        i.apply("term", Function::Mul, &[element.clone().into(), minor.clone().into()])?
                    }
                };
                sum = Some(match (sum, behind % 2) {
                    (None, 0) => term,
                    (None, _) => i.apply("minus", Function::Neg, &[term.into()])?,
                    (Some(sum), 0) => i.apply("sum", Function::Add, &[sum.into(), term.into()])?,
                    (Some(sum), _) => i.apply("sum", Function::Sub, &[sum.into(), term.into()])?,
                });
            }
            minors[set] = sum;
        }
    }
    let whole = minors.pop().flatten().ok_or("found no minors")?;
    let slot = i.apply("", Function::Mul, &[whole.into(), 1.0.into()])?;
    i.set(op, 0, slot)
}

/// `MatMulInteger`: of integers less their zero points; exact while sums are within 2^24.
pub(super) fn integer<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (a, b) = (centred(i, op, 0, 2, true)?, centred(i, op, 1, 3, false)?);
    match product(i, "", a, b)? {
        Slot::Value(mapped) => i.write(op, 0, Mapped { kind: Kind::I32, ..mapped }),
        constant => i.set(op, 0, constant),
    }
}

/// An input less its zero point, which may be one for each row (of the left factor) or column.
fn centred<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
    zero: usize,
    rows: bool,
) -> Result<Slot, Reason> {
    let slot = i.slot(op, index)?;
    // As floats, which do not wrap.
    let slot = super::casts::converted(i, slot, Kind::F32)?;
    if !op.has(zero) {
        return Ok(slot);
    }
    let zeros = i.slot(op, zero)?;
    let mut zeros = super::casts::converted(i, zeros, Kind::F32)?;
    let extents = i.extents_of(op, zero)?;
    if rows && extents.len() == 1 && extents[0] > 1 {
        zeros = match zeros {
            Slot::Constant(constant, kind) => {
                let constant: Constant = constant.reshaped(&[extents[0], 1])?;
                Slot::Constant(constant, kind)
            }
            value => axis_added(i, value, &[extents[0], 1])?,
        };
    }
    i.apply("centred", Function::Sub, &[slot.into(), zeros.into()])
}
