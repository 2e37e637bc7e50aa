//! Two nests along the same axes as one that writes the results of both.

use super::OP;
use super::compose::{SourceAt, moved, types_of};
use super::index::{AxisSet, Index};
use super::nest::{FurtherResult, Nest, Node, NodeId, Nodes, axes_of};
use crate::dims::Dims;
use crate::error::{Error, Result};

impl Nest {
    /// This nest and another one along the same axes, in whatever order, as one that writes the results of both. Of the other
    /// one's sources, each is `from` among all.
    ///
    /// # Errors
    /// If their axes differ, or together they are too large.
    pub fn beside(&self, other: &Nest, all: &[Dims], from: &[SourceAt]) -> Result<Nest> {
        if let Some(axes) = self.axes_like(other) {
            return self.beside_along(other, &axes, all, from);
        }
        // One may have two axes where the other has one.
        let halves = |one: &Nest, other: &Nest| {
            let split =
                (0..one.extents.len()).flat_map(|axis| other.extents.iter().map(move |&by| (axis, by)));
            let whole = split.filter(|&(axis, by)| {
                by > 1 && one.extents[axis] > by && one.extents[axis].is_multiple_of(by)
            });
            whole.map(|(axis, by)| one.clone().split(axis, by)).collect::<Vec<Nest>>()
        };
        if self.extents.len() + 1 == other.extents.len() {
            for own in halves(self, other) {
                if let Some(axes) = own.axes_like(other) {
                    return own.beside_along(other, &axes, all, from);
                }
            }
        } else if self.extents.len() == other.extents.len() + 1 {
            for other in halves(other, self) {
                if let Some(axes) = self.axes_like(&other) {
                    return self.beside_along(&other, &axes, all, from);
                }
            }
        }
        let found = format!("axes of {:?} and {:?} in one nest", self.extents, other.extents);
        Err(Error::unsupported(OP, found))
    }

    /// This nest and another one, whose axes are `axes` of this one, as one.
    fn beside_along(&self, other: &Nest, axes: &[usize], all: &[Dims], from: &[SourceAt]) -> Result<Nest> {
        let places: Vec<Index> = axes.iter().map(|&axis| Index::axis(axis)).collect();
        let along = |index: &Index| index.with(&places, &self.extents);
        let (mut nodes, mut ids) =
            (Nodes { nodes: self.nodes.clone() }, Vec::with_capacity(other.nodes.len()));
        for node in &other.nodes {
            let mut node = node.mapped(&along, &|own| ids.get(own).copied().unwrap_or_default());
            if let Node::Reduce { over, .. } = &mut node {
                *over = axes_of(*over).fold(0, |all, axis| all | 1 << axes[axis]);
            }
            let node = moved(node, from);
            ids.push(nodes.add(node));
        }
        let new = |own: NodeId| ids.get(own).copied().unwrap_or_default();
        let first =
            FurtherResult { value: new(other.value), at: along(&other.position()), target: other.target };
        let others = other.further.iter().map(|own| FurtherResult {
            value: new(own.value),
            at: along(&own.at),
            target: own.target,
        });
        let further = self.further.iter().cloned().chain([first]).chain(others).collect();
        let of_other = other.types.iter().zip(from).map(|(&dtype, from)| (from.place, dtype));
        let types = types_of(all.len(), self.types.iter().copied().enumerate().chain(of_other))?;
        let nest = Nest { sources: all.to_vec(), types, nodes: nodes.nodes, further, ..self.clone() };
        nest.tidied().checked()
    }

    /// For each axis of another nest one of this nest that is as long and of the same use: those in the same place first. One that
    /// reduces nothing goes along the rows and the loops of one that does.
    fn axes_like(&self, other: &Nest) -> Option<Vec<usize>> {
        let reduce = self.reduces() && other.reduces();
        let uses = |nest: &Nest, axis: usize| {
            let of = |set: AxisSet| reduce && set & (1 << axis) != 0;
            (nest.extents[axis], nest.written.contains(&axis), of(nest.row_axes()), of(nest.loop_axes()))
        };
        let count = self.extents.len();
        if count != other.extents.len() {
            return None;
        }
        let mut axes = vec![None; count];
        let mut free: Vec<usize> = (0..count).collect();
        for same in [true, false] {
            for (axis, found) in axes.iter_mut().enumerate().filter(|(_, found)| found.is_none()) {
                let like = |own: &usize| uses(self, *own) == uses(other, axis) && (!same || *own == axis);
                *found = free.iter().position(like).map(|place| free.remove(place));
            }
        }
        axes.into_iter().collect()
    }
}
