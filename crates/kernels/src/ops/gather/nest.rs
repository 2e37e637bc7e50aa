//! A selection as a nest of loops.

use super::GatherOp;
use crate::ops::loops::{GatherAxis, Index, Nest, Node, Nodes};

/// The element at the places along axes of these extents, counted in rows.
fn along(axes: std::ops::Range<usize>, extents: &[usize], mut stride: usize) -> Option<Index> {
    let mut at = Index::default();
    for axis in axes.rev() {
        at = at.plus(&Index::axis(axis), i64::try_from(stride).ok()?);
        stride = stride.checked_mul(*extents.get(axis)?)?;
    }
    Some(at)
}

impl GatherOp {
    /// What it selects, as a nest; none of integers of 64 bits.
    pub(super) fn as_nest(&self) -> Option<Nest> {
        let (own, target) = (self.source.extents(), self.target.extents());
        let (shared, axis, axes) = (self.batch_dims, self.axis, self.axes);
        // The axes of the result that are those of the indices.
        let looked_up = axis..(target.len() + axes).checked_sub(own.len() - axis)?;
        let inner: usize = own.get(axis + axes..)?.iter().product();
        let indexed: usize = own.get(axis..axis + axes)?.iter().product();
        // Whose element: the axes in front, those behind, and what the indices say.
        let in_front = along(0..axis, own, inner.checked_mul(indexed)?)?;
        let behind = along(looked_up.end..target.len(), target, 1)?;
        let at = in_front.plus(&behind, 1);
        // Whose index: the shared axes, and the axes of the indices.
        let rows: usize = target.get(looked_up.clone())?.iter().product();
        let row = along(looked_up, target, axes)?;
        let entry = along(0..shared, own, rows.checked_mul(axes)?)?.plus(&row, 1);
        let (mut nodes, mut by, mut stride) = (Nodes::default(), Vec::with_capacity(axes), inner);
        for place in (0..axes).rev() {
            let index = nodes.read(1, entry.plus(&Index::number(place as i64), 1));
            let extent = *own.get(axis + place)?;
            by.push(GatherAxis { index, extent, stride });
            stride = stride.checked_mul(extent)?;
        }
        let value = nodes.add(Node::Gather { source: 0, at, guards: Vec::new(), by });
        let [elements, indices] = self.dtypes;
        let sources = vec![(self.source, elements), (self.indices, indices)];
        let extents = target.to_vec();
        let written = (0..extents.len()).collect();
        Nest::of_words(extents, written, sources, nodes, value, self.target).ok()
    }
}
