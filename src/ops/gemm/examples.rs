//! Problems that between them use every kernel, every epilogue and every edge.

use super::{Gemm, GemmOp};
use crate::dtype::Precision;
use crate::emit::{Activation, Bits};
use crate::error::Result;
use crate::ops::plan::Op;

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
    ])
}
