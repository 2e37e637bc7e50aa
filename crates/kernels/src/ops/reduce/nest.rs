//! A reduction as a nest of loops.

use super::ReduceOp;
use crate::dtype::DType;
use crate::ops::loops::{Nest, Nodes, element};

impl ReduceOp {
    /// What it computes, as a nest; none of integers.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        if self.dtype != DType::F32 {
            return None;
        }
        let extents = self.input.extents().to_vec();
        let (over, written) = (0..extents.len()).partition::<Vec<usize>, _>(|&axis| self.reduced[axis]);
        let mut nodes = Nodes::default();
        let x = nodes.read(0, element(&extents));
        let value = nodes.reduce(self.reduction, x, over.iter().fold(0, |all, axis| all | 1 << axis));
        Nest::new(extents, written, vec![self.input], nodes, value, self.output).ok()
    }
}
