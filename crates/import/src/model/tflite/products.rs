//! `FULLY_CONNECTED` and `BATCH_MATMUL` to matrix products.

use super::convolution::summand;
use super::elementwise::composed;
use super::import::{Import, Op};
use super::names;
use super::operands::missing;
use crate::model::build::{self, Builder, Kind, Mapped, Operand, Ranged, RunWeights, product, swapped};
use crate::model::reason::Reason;

/// `y = f(x W^T + bias)` over the rows of `x`, which is flattened to a matrix of `W`'s columns unless it keeps its axes.
pub(super) fn fully_connected<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2, 3], 1)?;
    let table = op.table.fully_connected().ok_or_else(|| missing(op, "FullyConnectedOptions"))?;
    if table.format() != 0 {
        return refused!("found weights in format {}, wanted 0 (one row per output)", table.format());
    }
    let after = names::fused(table.activation())?;
    let x = import.value(op, 0)?;
    let (dims, kind) = (import.dims(x)?, import.kind(op.input(0)?)?);
    let at_run = of_bytes(import, op)?;
    let packed = if at_run.is_some() { None } else { import.packed(op, 1)? };
    let rounds = at_run.is_none() && import.rounds_at_run(op, 0)?;
    let weights = match import.is_computed(op, 1)? || import.depth > 0 {
        _ if packed.is_some() || at_run.is_some() => None,
        // The passes of a loop share their weights.
        true => Some(Operand::Value(Mapped::plain(import.value(op, 1)?, 2, Kind::F32))),
        false => Some(Operand::Constant(import.constant(op, 1)?, Kind::F32)),
    };
    let extents = match (&weights, &packed, &at_run) {
        (Some(weights), ..) => import.build.shape(weights)?,
        (_, _, Some(RunWeights { extents: [out, _, _, depth], .. })) => vec![*out, *depth],
        (_, packed, _) => packed.iter().flat_map(|packed| [packed.rows, packed.columns]).collect(),
    };
    let [out, depth] = extents[..] else {
        return refused!("{}: found shape {extents:?}, wanted rank 2", import.describe(op, 1));
    };
    if depth == 0 || dims.elements() % depth != 0 {
        return refused!("found weights {out}x{depth} for input {dims}, wanted rows of {depth} elements");
    }
    let bias = summand(import, op, 2)?;
    let mut kept = dims.extents().to_vec();
    if let Some(last) = kept.last_mut() {
        *last = out;
    }
    let keeps = table.keep_dims() && dims.rank() != 2;
    let flat = !keeps || dims.rank() < 2 || dims.extents().last() != Some(&depth);
    composed(import, op, None, |b| {
        let x = if flat { b.with_rest("rows", x, &[depth])? } else { x };
        let x = Operand::Value(Mapped::plain(x, b.dims(x)?.rank(), kind));
        let x = if rounds { b.within("x", |b| b.rounded_at_run(x, Ranged::Rows))? } else { x };
        let times = |b: &mut Builder| match (weights, &packed, &at_run) {
            (Some(weights), ..) => build::fully_connected(b, x, weights, bias, after),
            (_, Some(packed), _) => build::packed_product(b, x, packed, bias, after),
            (.., Some(weights)) => build::product_at_run(b, x, weights, bias, after),
            (None, None, None) => refused!("found no weights"),
        };
        if flat && keeps {
            let y = b.within("product", times)?;
            return b.with_extents("", y, &kept);
        }
        times(b)
    })
}

/// The weights of a layer that rounds its rows to bytes at each run.
fn of_bytes<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<Option<RunWeights>, Reason> {
    if !import.rounds_at_run(op, 0)? {
        return Ok(None);
    }
    let extents = import.tensors.extents(import.tensors.position(op.input(1)?)?)?;
    let &[outputs, depth] = &extents[..] else { return Ok(None) };
    import.run_weights(op, [outputs, 1, 1, depth])
}

/// Products of the last two axes; those before them are batches, which broadcast as in numpy.
pub(super) fn batch_matmul<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (transpose_a, transpose_b) =
        op.table.batch_matmul().map_or((false, false), |table| (table.transpose_a(), table.transpose_b()));
    let a = import.value(op, 0)?;
    let kind = import.kind(op.input(0)?)?;
    let (mut a, mut b) =
        (Operand::Value(Mapped::plain(a, import.dims(a)?.rank(), kind)), import.operand(op, 1)?);
    if transpose_a {
        a = swapped(&mut import.build, a)?;
    }
    if import.rounds_at_run(op, 0)? {
        if transpose_b && let Some(weights) = of_bytes(import, op)? {
            return composed(import, op, None, |build| build::product_at_run(build, a, &weights, None, None));
        }
        a = import.rounded_input(op, (0, a), Ranged::Rows)?;
    }
    if transpose_b {
        b = swapped(&mut import.build, b)?;
    }
    composed(import, op, None, |build| product(build, "", a, b))
}
