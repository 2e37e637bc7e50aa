//! A nest that reduces long columns or rows as two: one that reduces parts of these, which threads share, and one that joins them.

use super::super::index::Index;
use super::super::nest::{FurtherResult, Nest, Node, NodeId, Nodes};
use super::super::text::ordered;
use crate::dims::Dims;

/// The most parts of a loop.
const MOST: usize = 16;

impl Nest {
    /// The reductions before which there is no other.
    pub(super) fn first_reductions(&self) -> Vec<NodeId> {
        let each = self.nodes.iter().zip(self.stages()).enumerate();
        let own = each.filter(|(_, (node, stage))| matches!(node, Node::Reduce { .. }) && *stage == 1);
        own.map(|(id, _)| id).collect()
    }

    /// The nest of the reductions of parts, which writes those of one part behind those of another, and the one that joins these,
    /// if all results are reductions of one loop that has equal parts, and lie in one order.
    pub(super) fn divided(&self) -> Option<[Nest; 2]> {
        let at = self.position();
        if self.further.iter().any(|own| own.at != at) {
            return None;
        }
        let reduced = |id: NodeId| match self.nodes.get(id) {
            // Places of the largest do not follow from those of parts alone.
            Some(Node::Reduce { reduction, over, place: None, .. }) => Some((*reduction, *over)),
            _ => None,
        };
        let (_, over) = reduced(self.value)?;
        let results: Vec<_> = self.values().map(reduced).collect::<Option<_>>()?;
        if results.iter().any(|(_, own)| *own != over) {
            return None;
        }
        let parts = |axis: usize| (2..=MOST).rev().find(|&parts| self.extents[axis].is_multiple_of(parts));
        let (axis, count) = ordered(self, over).into_iter().find_map(|axis| Some((axis, parts(axis)?)))?;
        let rows: usize = self.written.iter().map(|&axis| self.extents[axis]).product();
        let between = Dims::new(&[count * rows]).ok()?;

        let mut own = self.clone().split(axis, self.extents[axis] / count);
        for node in &mut own.nodes {
            if let Node::Reduce { over, .. } = node {
                *over &= !(1 << axis);
            }
        }
        own.written.insert(0, axis);
        let at = own.position();
        for further in &mut own.further {
            (further.at, further.target) = (at.clone(), between);
        }
        own.target = between;

        let mut nodes = Nodes::default();
        let part = Index::axis(1).plus(&Index::axis(0), rows as i64);
        let joined = results.iter().enumerate().map(|(source, (reduction, _))| {
            let read = nodes.read(source, part.clone());
            nodes.reduce(*reduction, read, 1)
        });
        let joined: Vec<NodeId> = joined.collect();
        let further = self.further.iter().zip(joined.iter().skip(1));
        let further =
            further.map(|(own, &value)| FurtherResult { value, at: Index::axis(1), target: own.target });
        let joins = Nest {
            extents: vec![count, rows],
            written: vec![1],
            sources: vec![between; results.len()],
            types: vec![crate::dtype::DType::F32; results.len()],
            value: joined.first().copied()?,
            target: self.target,
            further: further.collect(),
            nodes: nodes.nodes,
            apart: 0,
        };
        Some([own.tidied(), joins.tidied()])
    }
}
