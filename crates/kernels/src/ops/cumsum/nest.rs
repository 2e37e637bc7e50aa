//! Running sums as a nest of loops, each with all of its terms.

use super::CumSumOp;
use crate::emit::Bits;
use crate::ops::loops::{Guard, Index, Nest, Node, Nodes, element};
use crate::ops::reduce::Reduction;

/// The most terms of all sums together. By estimate, adding so many takes a GPU about as long as it takes to begin a step.
const MAX_TERMS: usize = 1 << 20;

impl CumSumOp {
    /// What it computes, as a nest: terms beyond a sum are 0. None of many terms, or of integers of 64 bits.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let (extent, inner) = (self.extent(), self.inner());
        if self.dims.elements().saturating_mul(extent) > MAX_TERMS {
            return None;
        }
        // `y[o, i, n]` is the sum of `x[o, j, n]`; `j` is the last axis.
        let extents = vec![self.dims.elements() / (extent * inner).max(1), extent, inner, extent];
        let [of_sum, of_term] = [Index::axis(1), Index::axis(3)];
        let before = if self.reverse { of_term.plus(&of_sum, -1) } else { of_sum.plus(&of_term, -1) };
        let index = before.plus(&Index::number(if self.exclusive { -1 } else { 0 }), 1);
        let guards = vec![Guard { index, below: extent as i64 }];
        let places = [Index::axis(0), Index::axis(3), Index::axis(2)];
        let at = element(&[extents[0], extent, inner]).with(&places, &extents);
        let mut nodes = Nodes::default();
        let term = nodes.add(Node::Read { source: 0, at, guards, otherwise: Bits(0.0) });
        let sum = nodes.reduce(Reduction::Sum, term, 0b1000);
        let sources = vec![(self.dims, self.dtype)];
        Nest::of_words(extents, vec![0, 1, 2], sources, nodes, sum, self.dims).ok()
    }
}
