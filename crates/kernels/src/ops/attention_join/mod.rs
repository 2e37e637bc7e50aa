//! `y = sum_p w_p y_p` with `w = softmax of l`: one attention of those to the parts of its keys
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `y_p`, and behind it `l_p` (`src`) | `parts queries (width + tail)`: what `attention` makes of keys in parts | rows |
//! | `y` | the attention's own | rows |
//!
//! In f16 storage the result is stored as halves where all rows are of whole vec4s; parts are f32.
//!
//! `l_p` is the logarithm of the sum of the exponentials of the part's scores (Dao et al., *Flash-Decoding for long-context
//! inference*, 2023). A part without an attended key has no share; where all are such, `y` is 0, or NaN if the attention asks
//! for that. A NaN in a part or its logarithm makes the query's row NaN.

mod examples;
mod operator;
mod oracle;
mod rows;

pub(super) use examples::{NUMBERS, examples};
pub use operator::AttentionJoin;

use super::attention::{AttentionOp, Strided};
use super::definition::Definition;
use crate::dtype::Precision;
use crate::error::Result;
use crate::shape::Shape;

const OP: &str = "attention_join";

/// The join of concrete shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttentionJoinOp {
    /// The attention to all keys.
    whole: Strided,
    /// What one to keys in parts makes.
    parts: usize,
    source: Shape,
    precision: Precision,
}

impl AttentionJoinOp {
    /// The join of `parts` of the keys of `whole`, in its precision.
    ///
    /// # Errors
    /// If there are more elements than a tensor may have.
    pub fn of(whole: &AttentionOp, parts: usize) -> Result<Self> {
        AttentionJoinOp::new(whole.strided(), parts, Definition::precision(whole))
    }

    fn new(whole: Strided, parts: usize, precision: Precision) -> Result<Self> {
        let source = whole.in_parts(parts)?.output.shape();
        let precision = precision.with_f32_sums();
        Ok(AttentionJoinOp { whole, parts, source, precision })
    }

    /// Elements that an invocation has.
    fn lanes(&self) -> usize {
        if self.whole.tail() == 4 && self.whole.dst.is_whole(4) { 4 } else { 1 }
    }

    /// Queries of all heads and batches.
    fn queries(&self) -> usize {
        let sizes = &self.whole.sizes;
        sizes.batch * sizes.heads * sizes.group * sizes.rows
    }

    /// Elements of a part's row with what lies behind it.
    fn row(&self) -> usize {
        self.whole.sizes.width + self.whole.tail()
    }

    /// Where the result of a query lies.
    fn place(&self, query: usize) -> usize {
        let sizes = &self.whole.sizes;
        let (row, query) = (query % sizes.rows, query / sizes.rows);
        let (g, query) = (query % sizes.group, query / sizes.group);
        self.whole.dst.at([query / sizes.heads, query % sizes.heads, g, row])
    }
}
