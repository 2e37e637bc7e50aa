//! Problems that between them use every kernel, every way to give zero points, and every edge.

use super::{OP, OperandDims, QuantizedGemm, QuantizedGemmOp, packed_words};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The op of rows `m k` and weights of `n` rows. `given` are operands beside `x`, weights and scales; zero points are packed or
/// not.
pub(super) fn of_node(
    options: &QuantizedGemm,
    [m, n, k]: [usize; 3],
    given: &[Operand],
    packed: bool,
    precision: Precision,
) -> Result<QuantizedGemmOp> {
    let blocks = options.block.map_or(1, |block| k.div_ceil(block.max(1)));
    let zeros = match packed {
        true => (Dims::new(&[n, packed_words(options.bits, blocks)])?, DType::U32),
        false => (Dims::new(&[n, blocks])?, DType::F32),
    };
    let given = OperandDims {
        src: Dims::new(&[m, k])?,
        weights: Dims::new(&[n, packed_words(options.bits, k)])?,
        scales: Dims::new(&[n, blocks])?,
        zeros: given.contains(&Operand::Zeros).then_some(zeros),
        bias: given.contains(&Operand::Bias),
        residual: given.contains(&Operand::Residual),
    };
    QuantizedGemmOp::new(options, &given, precision.with_f32_sums())
}

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let blocks = |bits, block| QuantizedGemm { block: Some(block), ..QuantizedGemm::new(bits) };
    let prelu = |options| QuantizedGemm { activation: Activation::PRelu, ..options };
    let rounded = |options| QuantizedGemm { rounded: true, ..options };
    let all = [Operand::Bias, Operand::Residual];
    let zeros = [Operand::Zeros, Operand::Bias, Operand::Residual];
    let examples = [
        of_node(&blocks(4, 32), [1, 20, 256], &[], false, precision)?,
        of_node(&blocks(4, 32), [70, 36, 128], &all, false, precision)?,
        of_node(&prelu(blocks(4, 16)), [3, 7, 77], &zeros, true, precision)?,
        of_node(&prelu(blocks(8, 64)), [21, 13, 130], &zeros, false, precision)?,
        of_node(&QuantizedGemm::new(8), [2, 8, 52], &all, false, precision)?,
        of_node(&rounded(blocks(4, 32)), [1, 20, 256], &all, false, precision)?,
        of_node(&rounded(blocks(4, 16)), [3, 7, 77], &zeros, true, precision)?,
        of_node(&rounded(blocks(8, 64)), [2, 13, 130], &zeros, false, precision)?,
        of_node(&blocks(2, 32), [18, 12, 96], &[Operand::Zeros], true, precision)?,
    ];
    Ok(examples.into_iter().map(|op| Box::new(op) as Box<dyn Op>).collect())
}

const NAMES: &str = "m,n,k,bits,block";

/// A product of a language model, one token at a time.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 2048, 2048, 4, 32],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[m, n, k, bits, block] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = QuantizedGemm { block: Some(block), ..QuantizedGemm::new(bits) };
    Ok(Arc::new(of_node(&options, [m, n, k], &[], false, precision)?))
}
