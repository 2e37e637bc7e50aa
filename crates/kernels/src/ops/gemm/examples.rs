//! Problems that between them use every kernel, every epilogue and every edge.

use super::{Gemm, GemmOp, OP, Place, Places};
use crate::dtype::Precision;
use crate::emit::{Activation, Bits, Operand};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::followed::behind;
use crate::ops::op::Op;
use crate::ops::prologue::before;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let accumulate = Gemm { alpha: Bits(0.5), beta: Bits(2.0), ..Default::default() };
    let transposed = Gemm {
        transpose_a: true,
        transpose_b: true,
        activation: Activation::Tanh,
        ldc: Some(40),
        ..Default::default()
    };
    let mut examples: Vec<Box<dyn Op>> = vec![
        Box::new(GemmOp { precision, ..GemmOp::packed(32, 32, 32) }),
        Box::new(heads(12, 8, false, precision)?),
        Box::new(heads(9, 5, true, precision)?),
        Box::new(heads(64, 32, true, precision)?),
        Box::new(GemmOp { precision, ..GemmOp::packed(3, 20, 36) }),
        Box::new(GemmOp::new(33, 20, 12, 2, &accumulate, true, true, precision)?),
        // Terms enough for several layers of a work-group, and no whole steps of them.
        Box::new(GemmOp::new(33, 20, 532, 2, &accumulate, true, true, precision)?),
        Box::new(GemmOp::new(7, 31, 5, 1, &transposed, true, true, precision)?),
        Box::new(GemmOp::new(33, 42, 131, 2, &Gemm { ldc: None, ..transposed }, true, true, precision)?),
        Box::new(GemmOp::new(2, 7, 130, 1, &Gemm { ldc: None, ..transposed }, true, true, precision)?),
    ];
    for (n, bias) in [(64, true), (31, true), (32, false)] {
        let op = GemmOp::new(37, n, 64, 1, &Gemm::default(), bias, bias && n == 64, precision)?;
        examples.extend(behind(&(Arc::new(op) as Arc<dyn Op>))?);
    }
    for (m, n, k) in [(3, 64, 132), (1, 36, 20)] {
        let op: Arc<dyn Op> = Arc::new(GemmOp::new(m, n, k, 2, &Gemm::default(), true, true, precision)?);
        examples.extend(before(&op, Operand::A)?);
    }
    Ok(examples)
}

/// The shares of two images with three heads each, times values that lie among queries and keys; the results of heads lie side
/// by side.
fn heads(tokens: usize, depth: usize, bias: bool, precision: Precision) -> Result<GemmOp> {
    let (images, heads) = (2, 3);
    let (row, all) = (heads * depth, 3 * heads * depth);
    let shares = tokens * tokens;
    let places = Places {
        within: heads,
        a: Place { elements: images * heads * shares, first: 0, outer: heads * shares, inner: shares },
        b: Place { elements: images * tokens * all, first: 2 * row, outer: tokens * all, inner: depth },
        c: Place { elements: images * tokens * row, first: 0, outer: tokens * row, inner: depth },
    };
    let options = Gemm { activation: Activation::Relu6, ..Gemm::default() };
    let op = GemmOp::new(tokens, depth, tokens, images * heads, &options, bias, false, precision)?;
    op.at(places, [tokens, all, row])
}

const NAMES: &str = "m,n,k or m,n,k,batch";

/// Plain products.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[1024, 1024, 1024], op: |extents, _, precision| of(extents, precision) };

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let [m, n, k, batch] = match *extents {
        [m, n, k] => [m, n, k, 1],
        [m, n, k, batch] => [m, n, k, batch],
        _ => return Numbers::refuse(OP, NAMES, extents),
    };
    Ok(Arc::new(GemmOp::new(m, n, k, batch, &Gemm::default(), false, false, precision)?))
}
