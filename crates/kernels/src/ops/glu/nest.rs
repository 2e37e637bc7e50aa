//! A gated linear unit as a nest of loops.

use super::GluOp;
use crate::ops::loops::{Index, Nest, Nodes};

impl GluOp {
    /// What it computes, as a nest.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let columns = self.columns();
        let extents = vec![self.dst.elements() / columns.max(1), columns];
        let (mut nodes, wide) = (Nodes::default(), i64::try_from(columns).ok()?);
        let row = Index::axis(1).plus(&Index::axis(0), 2 * wide);
        let value = self.program.node(&mut nodes, &|nodes, half| {
            Some(nodes.read(0, row.plus(&Index::number(wide), i64::try_from(half).ok()?)))
        })?;
        Nest::new(extents, vec![0, 1], vec![self.src], nodes, value, self.dst).ok()
    }
}
