//! Operators of com.microsoft that runtimes' optimisers write: several standard ones as one.

use super::import::{Import, Op};
use super::integer_products;
use super::norms::{layer_of, root_of};
use crate::model::build::{self, Kind, Operand, by_range, converted, one_of, product};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;

type Done = Result<(), Reason>;

/// `SkipSimplifiedLayerNormalization`: of the sum of two inputs and a bias.
pub(super) fn skip_root<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, skip) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let mut sum = i.apply("sum", F::Add, &[x.into(), skip.into()])?;
    if op.has(3) {
        let bias = i.slot(op, 3)?;
        sum = i.apply("biased", F::Add, &[sum.into(), bias.into()])?;
    }
    i.set(op, 3, sum.clone())?;
    root_of(i, op, sum, -1, 2)
}

/// Rows of a table by indices.
fn rows(i: &mut Import<'_>, table: Operand, indices: Operand) -> Result<Operand, Reason> {
    let kind = table.kind();
    let (table, indices) = (i.mapped_slot(table, None)?, i.mapped_slot(indices, None)?);
    let (table, indices) = (i.logical(&table)?, i.logical(&indices)?);
    let value = i.add("rows", |graph, name| graph.gather(name, table, indices, 0, 0))?;
    let rank = i.dims(value)?.rank();
    Ok(Operand::Value(crate::model::build::Mapped::plain(value, rank, kind)))
}

/// `EmbedLayerNormalization`: the sum of the rows of words, places and segments, normalised.
pub(super) fn embed<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let &[batch, length] = &own[..] else {
        return refused!("found words of {own:?}, wanted batch and length");
    };
    if op.writes(1) && !op.has(7) {
        let none = i.filled(&[batch], 0.0)?;
        let none = converted(i, none, Kind::I32)?;
        i.set(op, 1, none)?;
    } else if op.writes(1) {
        // How many keys each query sees: those before the first that the mask leaves out.
        let mask = i.slot(op, 7)?;
        let mask = converted(i, mask, Kind::F32)?;
        let count =
            crate::model::build::reduced(i, "count", mask, crate::ops::reduce::Reduction::Sum, &[1], false)?;
        i.set(op, 1, count.of_kind(Kind::I32))?;
    }
    let (words, table) = (i.slot(op, 0)?, i.slot(op, 2)?);
    let mut sum = rows(i, table, words)?;
    let table = i.slot(op, 3)?;
    i.budget.spend(batch.saturating_add(1).saturating_mul(length).saturating_mul(16))?;
    let places = match op.has(8) {
        true => i.slot(op, 8)?,
        false => Operand::integers(vec![1, length], (0..length as i64).collect()),
    };
    let places = rows(i, table, places)?;
    sum = i.apply("placed", F::Add, &[sum.into(), places.into()])?;
    if op.has(4) {
        let table = i.slot(op, 4)?;
        let segments = match op.has(1) {
            true => i.slot(op, 1)?,
            false => Operand::integers(vec![batch, length], vec![0; batch * length]),
        };
        let segments = rows(i, table, segments)?;
        sum = i.apply("summed", F::Add, &[sum.into(), segments.into()])?;
    }
    i.set(op, 2, sum.clone())?;
    layer_of(i, op, sum, [5, 6], -1)
}

/// `DynamicQuantizeMatMul`: the left factor rounded to 8 bits of its own range, the right one integers with scales.
pub(super) fn dynamic_product<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if let Some(rounded) = integer_products::rounded(i, op)?
        && let Some(sums) =
            integer_products::floats_of_product(i, op, &integer_products::left_of(&rounded), [1, 3])?
    {
        let scale = integer_products::scale(i, &rounded)?;
        return scaled(i, op, sums, scale, 2, 4);
    }
    let x = i.slot(op, 0)?;
    let [left, scale, zero] = by_range(i, x)?;
    let left = build::centred(i, left, Some(zero))?;
    let right = centred(i, op, 1, 3)?;
    let sums = product(i, "sums", left, right)?;
    scaled(i, op, sums, scale, 2, 4)
}

/// `MatMulIntegerToFloat`: the product of integers less their zero points, times their scales.
pub(super) fn integer_product<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let scale = i.slot(op, 2)?;
    if let Some(left) = integer_products::left(i, op, [0, 4])?
        && let Some(sums) = integer_products::floats_of_product(i, op, &left, [1, 5])?
    {
        return scaled(i, op, sums, scale, 3, 6);
    }
    let (left, right) = (centred(i, op, 0, 4)?, centred(i, op, 1, 5)?);
    let sums = product(i, "sums", left, right)?;
    scaled(i, op, sums, scale, 3, 6)
}

/// An input as floats less its zero point, which broadcasts along the columns.
fn centred<'a>(i: &mut Import<'a>, op: &Op<'a>, index: usize, zero: usize) -> Result<Operand, Reason> {
    let x = i.slot(op, index)?;
    let zero = if op.has(zero) { Some(i.slot(op, zero)?) } else { None };
    build::centred(i, x, zero)
}

fn scaled<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    sums: Operand,
    scale: Operand,
    others: usize,
    bias: usize,
) -> Done {
    let others = i.slot(op, others)?;
    let scale = i.apply("scale", F::Mul, &[scale.into(), others.into()])?;
    let mut y = i.apply("floats", F::Mul, &[sums.into(), scale.into()])?;
    if op.has(bias) {
        let bias = i.slot(op, bias)?;
        y = i.apply("", F::Add, &[y.into(), bias.into()])?;
    }
    i.set(op, 0, y.of_kind(Kind::F32))
}

/// `FusedGemm`: a product and a function.
pub(super) fn fused_gemm<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let sum = super::products::gemm_of(i, op, "sum")?;
    let number = |name: &str, default: f32| op.float(name, default);
    let y = match op.text("activation", "")? {
        "" => i.apply("", F::Mul, &[sum.into(), 1.0.into()])?,
        "Relu" => i.apply("", F::Relu, &[sum.into()])?,
        "Sigmoid" => i.apply("", F::Sigmoid, &[sum.into()])?,
        "Tanh" => i.apply("", F::Tanh, &[sum.into()])?,
        "LeakyRelu" => i.apply("", F::LeakyRelu, &[sum.into(), number("activation_alpha", 0.01).into()])?,
        other => return refused!("found the activation {other:?}"),
    };
    i.set(op, 0, y)
}

/// `QGemm`: a product of integers less their zero points, a summand, and the scales; rounded if there is one for it.
pub(super) fn quantised_gemm<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let kind = i.kind_of(op, 0)?;
    if let Some(y) = super::quantised::gemm_on_numbers(i, op)? {
        let slot = if op.has(7) { super::quantised::rounded(i, op, y, 7, 8, 0, kind)? } else { y };
        return i.set(op, 0, slot);
    }
    // The zero points of the right factor are those of its columns, however it is stored.
    let [a, b] = [(0, 2, "transA"), (3, 5, "transB")].map(|(index, zero, flag)| -> Result<Operand, Reason> {
        let x = i.slot(op, index)?;
        let x = if op.flag(flag, false) { crate::model::build::swapped(i, x)? } else { x };
        let zero = if op.has(zero) { Some(i.slot(op, zero)?) } else { None };
        build::centred(i, x, zero)
    });
    let (a, b) = (a?, b?);
    let mut sums = product(i, "sums", a, b)?;
    if op.has(6) {
        let more = i.slot(op, 6)?;
        let more = converted(i, more, Kind::F32)?;
        sums = i.apply("biased", F::Add, &[sums.into(), more.into()])?;
    }
    let (own, others) = (i.slot(op, 1)?, i.slot(op, 4)?);
    let scale = i.apply("scale", F::Mul, &[own.into(), others.into()])?;
    let scale = i.apply("scaled", F::Mul, &[scale.into(), op.preset("alpha")?.into()])?;
    let y = i.apply(if op.has(7) { "floats" } else { "" }, F::Mul, &[sums.into(), scale.into()])?;
    if !op.has(7) {
        return i.set(op, 0, y.of_kind(Kind::F32));
    }
    let y = super::quantised::rounded(i, op, y, 7, 8, 0, kind)?;
    i.set(op, 0, y)
}

/// `QLinearAveragePool`: of the floats of a quantised tensor, rounded.
pub(super) fn quantised_average<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if op.flag("channels_last", false) {
        return refused!("found channels last (channels_last = 1), wanted them after the batch");
    }
    let x = i.slot(op, 0)?;
    let kind = x.kind();
    let x = super::quantised::floats(i, op, x, 1, 2, "x")?;
    let y = super::pooling::average_of(i, op, x)?.of_kind(Kind::F32);
    let y = super::quantised::rounded(i, op, y, 3, 4, 0, kind)?;
    i.set(op, 0, y)
}

/// Whether weights are integers with scales, the features in front of the gates.
pub(super) fn is_packed(op: &Op<'_>) -> bool {
    op.node.op == "DynamicQuantizeLSTM"
}

/// The weights of a direction of a `DynamicQuantizeLSTM` as those of an `LSTM`: floats, the gates in front. Inputs and
/// states stay the floats that they are, where ONNX Runtime rounds them to 8 bits at each step.
pub(super) fn unpacked<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
    direction: usize,
) -> Result<Operand, Reason> {
    let (scale, zero) = (6 + 2 * index, 7 + 2 * index);
    let spread = |i: &mut Import<'a>, index: usize| -> Result<Operand, Reason> {
        let own = i.extents_of(op, index)?;
        let target = match own[..] {
            [_] => [1, 1, 1],
            [_, gates] => [1, 1, gates],
            _ => {
                return refused!(
                    "found scales of {own:?}, wanted one for each direction, or for each gate of it"
                );
            }
        };
        let slot = i.slot(op, index)?;
        let slot = one_of(i, "direction", &slot, 0, direction)?;
        let slot = i.with_extents("part", slot, &target)?;
        converted(i, slot, Kind::F32)
    };
    let own = i.extents_of(op, index)?;
    let &[_, features, gates] = &own[..] else {
        return refused!("found weights of {own:?}, wanted directions, features and gates");
    };
    let weights = i.slot(op, index)?;
    let weights = one_of(i, "direction", &weights, 0, direction)?;
    let weights = i.with_extents("part", weights, &[1, features, gates])?;
    let mut weights = converted(i, weights, Kind::F32)?;
    if op.has(zero) {
        let zero = spread(i, zero)?;
        weights = i.apply("centred", F::Sub, &[weights.into(), zero.into()])?;
    }
    let scale = spread(i, scale)?;
    let weights = i.apply("weights", F::Mul, &[weights.into(), scale.into()])?;
    crate::model::build::swapped(i, weights)
}
