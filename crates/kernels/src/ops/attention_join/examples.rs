//! Problems that between them use every text.

use super::{AttentionJoinOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::attention::{RowStrides, Rules, Sizes, Strided};
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The join of heads, queries of each, parts, and features of keys and values; results lie query by query.
pub(super) fn of_extents(
    [heads, rows, parts, depth, width]: [usize; 5],
    nan_if_nothing: bool,
    precision: Precision,
) -> Result<AttentionJoinOp> {
    let sizes = Sizes { batch: 1, heads, group: 1, rows, keys: 8 * parts, depth, width };
    let place = |features: usize| RowStrides { first: 0, steps: [0, features, 0, heads * features] };
    let whole = Strided {
        sizes,
        query: place(depth),
        key: place(depth),
        value: place(width),
        dst: place(width),
        bias: None,
        mask: None,
        rules: Rules { nan_if_nothing, ..Rules::plain(1.0) },
        parts: 1,
        output: Dims::new(&[rows, heads * width])?,
    };
    AttentionJoinOp::new(whole, parts, precision)
}

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let all = [([3, 2, 5, 8, 12], false), ([2, 3, 4, 5, 3], false), ([1, 1, 2, 4, 8], true)];
    all.into_iter()
        .map(|(extents, nan)| Ok(Box::new(of_extents(extents, nan, precision)?) as Box<dyn Op>))
        .collect()
}

const NAMES: &str = "heads,rows,parts,width";

/// One token of a large language model.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[32, 1, 8, 128], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, precision: Precision) -> Result<Arc<dyn Op>> {
    let &[heads, rows, parts, width] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(of_extents([heads, rows, parts, width, width], false, precision)?))
}
