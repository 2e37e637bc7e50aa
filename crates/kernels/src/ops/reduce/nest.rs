//! A reduction as a nest of loops.

use super::ReduceOp;
use crate::ops::loops::{Nest, Nodes, element};

impl ReduceOp {
    /// What it computes, as a nest; none of integers of 64 bits.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let extents = self.input.extents().to_vec();
        let (over, written) = (0..extents.len()).partition::<Vec<usize>, _>(|&axis| self.reduced[axis]);
        let mut nodes = Nodes::default();
        let x = nodes.read(0, element(&extents));
        let value = nodes.reduce(self.reduction, x, over.iter().fold(0, |all, axis| all | 1 << axis));
        Nest::of_words(extents, written, vec![(self.input, self.dtype)], nodes, value, self.output).ok()
    }
}
