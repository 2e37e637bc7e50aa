//! Problems that between them use every kernel and every rule.

use super::{Added, Attention, AttentionOp, MaskRule, OP, RowStrides, Rules, Strided};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::ops::operator::{Argument, Arguments};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a node is given.
type NodeInputs<'a> = &'a [(Operand, &'a [usize], DType)];

/// The op of a node with these inputs.
pub(super) fn of_node(
    options: &Attention,
    given: NodeInputs<'_>,
    precision: Precision,
) -> Result<AttentionOp> {
    let argument = |&(operand, dims, dtype): &(Operand, &[usize], DType)| {
        Ok(Argument { operand, dims: Dims::new(dims)?, dtype })
    };
    let inputs = given.iter().map(argument).collect::<Result<Vec<_>>>()?;
    let dimensions = BTreeMap::new();
    let arguments = Arguments { inputs: &inputs, dimensions: &dimensions, narrow: true };
    let strided = options.strided(arguments)?;
    let given = inputs.iter().map(|argument| (argument.operand, (argument.dims, argument.dtype.word())));
    AttentionOp::new(&strided, crate::sorted::map(given), precision)
}

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let (q, k, v) = (Operand::Query, Operand::Key, Operand::Value);
    let (f, i) = (DType::F32, DType::I32);
    let plain = Attention::default();
    let causal = Attention { behind: Some(0), ..plain };
    let mut all = vec![
        of_node(
            &plain,
            &[(q, &[2, 3, 21, 8], f), (k, &[2, 3, 37, 8], f), (v, &[2, 3, 37, 12], f)],
            precision,
        )?,
        of_node(
            &Attention { softcap: Bits(2.0), places_first: true, scale: Some(Bits(0.7)), ..plain },
            &[
                (q, &[1, 9, 4, 16], f),
                (k, &[1, 19, 2, 16], f),
                (v, &[1, 19, 2, 16], f),
                (Operand::Bias, &[4, 9, 19], f),
            ],
            precision,
        )?,
        of_node(
            &Attention { begin: 3, before: Some(5), ..causal },
            &[(q, &[1, 2, 7, 5], f), (k, &[1, 2, 10, 5], f), (v, &[1, 2, 10, 3], f)],
            precision,
        )?,
        of_node(
            &causal,
            &[
                (q, &[2, 6, 1, 8], f),
                (k, &[2, 2, 90, 8], f),
                (v, &[2, 2, 90, 8], f),
                (Operand::Begins, &[2], i),
                (Operand::Ends, &[2], i),
            ],
            precision,
        )?,
        of_node(
            &Attention { mask: MaskRule { hides: true, fill: Bits(-3.0) }, ..plain },
            &[
                (q, &[2, 1, 6, 8], f),
                (k, &[2, 1, 6, 8], f),
                (v, &[2, 1, 6, 8], f),
                (Operand::Mask, &[2, 1, 1, 6], DType::Bool),
            ],
            precision,
        )?,
        of_node(
            &Attention { nan_if_nothing: true, before: Some(2), ..causal },
            &[
                (q, &[1, 1, 5, 4], f),
                (k, &[1, 1, 5, 4], f),
                (v, &[1, 1, 5, 4], f),
                (Operand::Mask, &[5, 5], f),
                (Operand::Begins, &[1], f),
            ],
            precision,
        )?,
    ];
    all.extend([packed(precision, [1, 33])?, packed(precision, [33, 1])?]);
    for (place, parts) in [(3, 4), (2, 3)] {
        if let Some(op) = all.get(place) {
            all.push(op.in_parts(parts)?);
        }
    }
    Ok(all.into_iter().map(|op| Box::new(op) as Box<dyn Op>).collect())
}

/// Queries, keys and values side by side, as one product writes them, and a bias and a mask of each head, whose steps from key
/// to key and from query to query are these.
fn packed(precision: Precision, [key, query]: [usize; 2]) -> Result<AttentionOp> {
    let (rows, heads, depth) = (33, 2, 8);
    let own = of_node(
        &Attention { places_first: true, nan_if_nothing: true, ..Attention::default() },
        &[
            (Operand::Query, &[1, rows, heads, depth], DType::F32),
            (Operand::Key, &[1, rows, heads, depth], DType::F32),
            (Operand::Value, &[1, rows, heads, depth], DType::F32),
        ],
        precision,
    )?;
    let wide = heads * depth;
    let place = |part: usize| RowStrides { first: part * wide, steps: [0, depth, 0, 3 * wide] };
    let strided = Strided {
        sizes: own.sizes,
        query: place(0),
        key: place(1),
        value: place(2),
        dst: own.dst,
        bias: Some(Added { steps: [0, rows * rows, 0, query, key] }),
        mask: (key > 1).then_some(Added { steps: [0, 0, 0, query, key] }),
        rules: Rules { mask_adds: key > 1, ..own.rules },
        parts: 1,
        output: own.output,
    };
    let whole = (Dims::new(&[rows, 3 * wide])?, DType::F32);
    let bias = (Dims::new(&[heads, rows, rows])?, DType::F32);
    let mut given =
        vec![(Operand::Query, whole), (Operand::Key, whole), (Operand::Value, whole), (Operand::Bias, bias)];
    if strided.mask.is_some() {
        given.push((Operand::Mask, (Dims::new(&[rows, rows])?, DType::F32)));
    }
    AttentionOp::new(&strided, crate::sorted::map(given), precision)
}

const NAMES: &str = "heads,rows,keys,depth";

/// One image of a vision transformer.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[12, 197, 197, 64], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, precision: Precision) -> Result<Arc<dyn Op>> {
    let &[heads, rows, keys, depth] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Attention { places_first: true, ..Attention::default() };
    let op = of_node(
        &options,
        &[
            (Operand::Query, &[1, rows, heads, depth], DType::F32),
            (Operand::Key, &[1, keys, heads, depth], DType::F32),
            (Operand::Value, &[1, keys, heads, depth], DType::F32),
        ],
        precision,
    )?;
    Ok(Arc::new(op))
}
