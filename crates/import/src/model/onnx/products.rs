//! Matrix products.

use super::import::{Import, Op};
use super::integer_products;
use crate::graph::{Extras, Right};
use crate::model::build::{
    self, Factor, Kind, Mapped, Operand, axis_added, factor, packed_product, product, swapped,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::gemm::Gemm;

type Done = Result<(), Reason>;

/// `MatMul`: of the last two axes; those before broadcast as in numpy.
pub(super) fn matmul<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if let Some(packed) = i.packed(op, 1, 1) {
        let x = i.slot(op, 0)?;
        let slot = packed_product(i, x, &packed, None, None)?;
        return i.set(op, 0, slot);
    }
    let (a, b) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let slot = product(i, "", a, b)?;
    i.set(op, 0, slot)
}

/// `FusedMatMul` and `TransposeMatMul` of com.microsoft.
pub(super) fn fused<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let turned = |i: &mut Import<'a>, index: usize, name: &str| -> Result<Operand, Reason> {
        let slot = i.slot(op, index)?;
        if op.flag(name, false) { swapped(i, slot) } else { Ok(slot) }
    };
    if op.flag("transBatchA", false) || op.flag("transBatchB", false) {
        return refused!("found batches that are transposed (transBatchA, transBatchB), wanted plain ones");
    }
    let (a, b) = (turned(i, 0, "transA")?, turned(i, 1, "transB")?);
    let alpha = op.preset("alpha")?;
    let slot = product(i, if alpha == 1.0 { "" } else { "product" }, a, b)?;
    let slot = if alpha == 1.0 { slot } else { i.apply("", Function::Mul, &[slot.into(), alpha.into()])? };
    i.set(op, 0, slot)
}

/// `Gemm`: `alpha op(A) op(B) + beta C`.
pub(super) fn gemm<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let plain = op.preset("alpha")? == 1.0 && op.preset("beta")? == 1.0 && !op.flag("transA", false);
    let along = usize::from(!op.flag("transB", false));
    if let Some(packed) = plain.then(|| i.packed(op, 1, along)).flatten() {
        let x = i.slot(op, 0)?;
        let bias = if op.has(2) { Some(i.slot(op, 2)?) } else { None };
        let slot = packed_product(i, x, &packed, bias, None)?;
        return i.set(op, 0, slot);
    }
    let slot = gemm_of(i, op, "")?;
    i.set(op, 0, slot)
}

pub(super) fn gemm_of<'a>(i: &mut Import<'a>, op: &Op<'a>, part: &str) -> Result<Operand, Reason> {
    let kind = i.kind_of(op, 0)?;
    let turned = |i: &mut Import<'a>, index: usize, name: &str| -> Result<Factor, Reason> {
        let slot = i.slot(op, index)?;
        let slot = if op.flag(name, false) { swapped(i, slot)? } else { slot };
        let extents = match &slot {
            Operand::Value(mapped) => i.extents(mapped)?,
            Operand::Constant(constant, _) => constant.extents(),
        };
        match extents.len() {
            2 => factor(i, slot, extents),
            _ => refused!("found a factor of {extents:?}, wanted a matrix"),
        }
    };
    let (a, b) = (turned(i, 0, "transA")?, turned(i, 1, "transB")?);
    let (alpha, beta) = (op.preset("alpha")?, op.preset("beta")?);
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
        Some(Operand::Constant(constant, _))
            if constant.elements() == n && constant.extents().last() == Some(&n) =>
        {
            let values = super::convolution::floats_of(i, &constant)?;
            Some(values.iter().map(|value| value * beta).collect::<Vec<f32>>())
        }
        _ => None,
    };
    let bare = !with_summand || bias.is_some();
    let bias = bias.map(crate::host::HostTensor::vector).transpose()?;
    let left = i.mapped_slot(a.operand, None)?.value;
    let right = match b.operand {
        Operand::Constant(constant, _) => Right::Constant(constant.floats(&mut i.budget)?),
        Operand::Value(mapped) => Right::Value(mapped.value),
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
    let mut slot = Operand::Value(Mapped::plain(value, 2, kind));
    if !bare {
        let mut summand = i.slot(op, 2)?;
        if beta != 1.0 {
            summand = i.apply("scaled", Function::Mul, &[summand.into(), beta.into()])?;
        }
        slot = i.apply(part, Function::Add, &[slot.into(), summand.into()])?;
    }
    if let Operand::Value(mapped) = &slot
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
    let element = |i: &mut Import<'a>, row: usize, column: usize| -> Result<Operand, Reason> {
        let mut ranges: Vec<(usize, usize, i64)> = outer.iter().map(|&extent| (0, extent, 1)).collect();
        ranges.extend([(row, 1, 1), (column, 1, 1)]);
        let one = crate::model::build::cut(i, "element", x.clone(), &ranges)?;
        i.with_extents("element", one, &outer)
    };
    let mut minors: Vec<Option<Operand>> = vec![None; 1 << rows];
    for row in 0..rows {
        let elements = (0..rows).map(|column| element(i, row, column)).collect::<Result<Vec<_>, _>>()?;
        for set in (0usize..1 << rows).filter(|set| set.count_ones() as usize == row + 1) {
            let mut sum: Option<Operand> = None;
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

/// `MatMulInteger`: of integers less their zero points. Of two values it is a product of floats, which is exact while sums are
/// within 2^24.
pub(super) fn integer<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if integer_products::matmul(i, op)? {
        return Ok(());
    }
    let (a, b) = (centred(i, op, 0, 2, true)?, centred(i, op, 1, 3, false)?);
    match product(i, "", a, b)? {
        Operand::Value(mapped) => i.write(op, 0, Mapped { kind: Kind::I32, ..mapped }),
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
) -> Result<Operand, Reason> {
    let x = i.slot(op, index)?;
    if !op.has(zero) {
        return build::centred(i, x, None);
    }
    let mut zeros = i.slot(op, zero)?;
    let extents = i.extents_of(op, zero)?;
    if rows && extents.len() == 1 && extents[0] > 1 {
        zeros = axis_added(i, zeros, &[extents[0], 1])?;
    }
    build::centred(i, x, Some(zeros))
}
