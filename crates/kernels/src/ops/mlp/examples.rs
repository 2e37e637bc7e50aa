//! Problems of one layer behind a normalisation, and of two with and without one.

use super::{MlpOp, OP, RowNorm};
use crate::dtype::Precision;
use crate::emit::{Activation, Bits};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::shape::Shape;
use std::sync::Arc;

/// Rows of `k` values, by way of `hidden` where that is not 0, to `o`.
fn mlp(
    norm: Option<RowNorm>,
    [n, k, hidden, o]: [usize; 4],
    [between, activation]: [Activation; 2],
    bias: bool,
    precision: Precision,
) -> Result<MlpOp> {
    let layer = |inputs: usize, outputs: usize, activation: Activation| {
        let (rows, weights) = (Shape::nhwc(n, 1, 1, inputs), Shape::nhwc(outputs, 1, 1, inputs));
        PointwiseOp::new(rows, weights, &Pointwise { activation }, bias, false, precision)
    };
    let first = if hidden == 0 { None } else { Some(layer(k, hidden, between)?) };
    let last = layer(if hidden == 0 { k } else { hidden }, o, activation)?;
    MlpOp::new(norm, first, last)
}

const LAYER: RowNorm = RowNorm { epsilon: Bits(1e-5), centred: true };

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let (none, relu, tanh) = (Activation::None, Activation::Relu, Activation::Tanh);
    let uncentred = RowNorm { centred: false, ..LAYER };
    Ok(vec![
        Box::new(mlp(Some(LAYER), [1, 70, 0, 37], [none, none], true, precision)?),
        Box::new(mlp(Some(uncentred), [3, 130, 0, 10], [none, relu], false, precision)?),
        Box::new(mlp(None, [2, 10, 7, 5], [relu, none], true, precision)?),
        Box::new(mlp(Some(LAYER), [1, 260, 150, 9], [tanh, relu], true, precision)?),
    ])
}

const NAMES: &str = "n,k,hidden,o";

/// A token's normalisation and the product behind it. Without `hidden` there is one layer, which reads normalised rows.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[1, 384, 0, 1152], op: |extents, _, precision| of(extents, precision) };

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, k, hidden, o] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let norm = (hidden == 0).then_some(LAYER);
    Ok(Arc::new(mlp(norm, [n, k, hidden, o], [Activation::Relu, Activation::None], true, precision)?))
}
