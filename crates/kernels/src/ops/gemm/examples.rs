//! Problems that between them use every kernel, every epilogue and every edge.

use super::{Gemm, GemmOp, OP};
use crate::dtype::Precision;
use crate::emit::{Activation, Bits};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
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
    Ok(vec![
        Box::new(GemmOp { precision, ..GemmOp::packed(32, 32, 32) }),
        Box::new(GemmOp { precision, ..GemmOp::packed(3, 20, 36) }),
        Box::new(GemmOp::new(33, 20, 12, 2, &accumulate, true, true, precision)?),
        Box::new(GemmOp::new(7, 31, 5, 1, &transposed, true, true, precision)?),
        Box::new(GemmOp::new(33, 42, 131, 2, &Gemm { ldc: None, ..transposed }, true, true, precision)?),
        Box::new(GemmOp::new(2, 7, 130, 1, &Gemm { ldc: None, ..transposed }, true, true, precision)?),
    ])
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
