//! A nest along as few axes as it can have, without what nothing needs.

use super::index::{AxisSet, Index, Term};
use super::nest::{FurtherResult, MAX_AXES, Nest, Node, Nodes, axes_of};
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

impl Nest {
    /// The nest without sources of which it reads nothing, and the places of the others.
    pub fn without_unread(self) -> (Nest, Vec<usize>) {
        let reads = |place: &usize| self.nodes.iter().any(|node| node.source() == Some(*place));
        let kept: Vec<usize> = (0..self.sources.len()).filter(reads).collect();
        if kept.is_empty() || kept.len() == self.sources.len() {
            let all = (0..self.sources.len()).collect();
            return (self, all);
        }
        let mut nest = self;
        for node in &mut nest.nodes {
            if let Node::Read { source, .. } | Node::Gather { source, .. } = node {
                *source = kept.iter().position(|own| own == source).unwrap_or_default();
            }
        }
        nest.sources = kept.iter().filter_map(|&place| nest.sources.get(place).copied()).collect();
        nest.types = kept.iter().filter_map(|&place| nest.types.get(place).copied()).collect();
        (nest, kept)
    }

    /// The nest without nodes that nothing needs, along as few axes as there can be.
    pub(super) fn tidied(self) -> Nest {
        let mut nest = self.pruned();
        while let Some((axis, by)) = nest.divided_axis() {
            nest = nest.split(axis, by);
        }
        while let Some(shared) = nest.with_shared_loop() {
            nest = shared;
        }
        while let Some((outer, inner)) = nest.neighbours() {
            nest = nest.merged(outer, inner);
        }
        nest.pruned()
    }

    /// The nest without nodes that its value does not need, and without axes of one place or of no use.
    fn pruned(self) -> Nest {
        let mut needed = vec![false; self.nodes.len()];
        for value in self.values() {
            if let Some(needed) = needed.get_mut(value) {
                *needed = true;
            }
        }
        for id in (0..self.nodes.len()).rev() {
            if needed[id] {
                for argument in self.nodes[id].arguments() {
                    needed[argument] = true;
                }
            }
        }
        let over = self.nodes.iter().zip(&needed).fold(0, |all: AxisSet, (node, &needed)| match node {
            Node::Reduce { over, .. } if needed => all | over,
            _ => all,
        });
        let stays = |axis: &usize| {
            self.extents[*axis] > 1 && (self.written.contains(axis) || over & (1 << axis) != 0)
        };
        let kept: Vec<usize> = (0..self.extents.len()).filter(stays).collect();
        let mut places = vec![Index::default(); self.extents.len()];
        let mut moved = vec![None; self.extents.len()];
        for (new, &old) in kept.iter().enumerate() {
            places[old] = Index::axis(new);
            moved[old] = Some(new);
        }
        let extents: Vec<usize> = kept.iter().map(|&axis| self.extents[axis]).collect();
        let set =
            |over: AxisSet| axes_of(over).filter_map(|axis| moved[axis]).fold(0, |all, axis| all | 1 << axis);
        let (mut nodes, mut ids) = (Nodes::default(), vec![0; self.nodes.len()]);
        for (id, node) in self.nodes.iter().enumerate().filter(|(id, _)| needed[*id]) {
            let mut node = node.mapped(&|index| index.with(&places, &extents), &|own| ids[own]);
            if let Node::Reduce { over, .. } = &mut node {
                *over = set(*over);
            }
            if let Node::Read { guards, .. } | Node::Gather { guards, .. } | Node::Choose { guards, .. } =
                &mut node
            {
                for guard in guards.iter_mut() {
                    (guard.index, guard.below) = guard.index.coarser(guard.below, &extents);
                }
                guards.retain(|guard| {
                    let [least, most] = guard.index.range(&extents);
                    least < 0 || most >= guard.below
                });
            }
            ids[id] = match node {
                Node::Choose { guards, then, .. } if guards.is_empty() => then,
                // Of one place there is nothing to reduce.
                Node::Reduce { reduction: Reduction::Any | Reduction::All, of, over: 0, .. } => {
                    let not = nodes.apply(Function::LogicalNot, &[of]);
                    nodes.apply(Function::LogicalNot, &[not])
                }
                Node::Reduce { of, over: 0, place, .. } => place.unwrap_or(of),
                node => nodes.add(node),
            };
        }
        let value = ids.get(self.value).copied().unwrap_or_default();
        let written = self.written.iter().filter_map(|&axis| moved[axis]).collect();
        let further = self.further.iter().map(|own| FurtherResult {
            value: ids.get(own.value).copied().unwrap_or_default(),
            at: own.at.with(&places, &extents),
            target: own.target,
        });
        let further = further.collect();
        let apart = set(self.apart);
        Nest { extents, written, nodes: nodes.nodes, value, further, apart, ..self }
    }

    /// An axis whose places are divided by a number of which its extent is a multiple, and that number.
    fn divided_axis(&self) -> Option<(usize, usize)> {
        let mut found = None;
        for index in self.indices() {
            index.sums(&mut |sum| {
                for term in sum.terms().keys() {
                    let (Term::Quotient(of, by) | Term::Remainder(of, by)) = term else { continue };
                    if let Some(Term::Axis(axis)) = of.as_term() {
                        let (axis, by) = (usize::from(*axis), *by as usize);
                        if by > 1 && self.extents[axis].is_multiple_of(by) && self.extents[axis] > by {
                            found = found.or(Some((axis, by)));
                        }
                    }
                }
            });
        }
        found.filter(|_| self.extents.len() < MAX_AXES)
    }

    /// The nest with an axis more: `axis` has every `by`-th place of its own, and the new one the places between.
    pub(super) fn split(self, axis: usize, by: usize) -> Nest {
        let inner = self.extents.len();
        let mut extents = self.extents.clone();
        extents[axis] /= by;
        extents.push(by);
        let mut places: Vec<Index> = (0..inner).map(Index::axis).collect();
        places[axis] = Index::axis(inner).plus(&Index::axis(axis), by as i64);
        let both = |over: AxisSet| if over & (1 << axis) == 0 { over } else { over | 1 << inner };
        let mut written = self.written.clone();
        if let Some(place) = written.iter().position(|&own| own == axis) {
            written.insert(place + 1, inner);
        }
        let nodes = self.nodes.iter().map(|node| {
            let mut node = node.mapped(&|index| index.with(&places, &extents), &|id| id);
            if let Node::Reduce { over, .. } = &mut node {
                *over = both(*over);
            }
            node
        });
        let nodes = nodes.collect();
        let further = self
            .further
            .iter()
            .map(|own| FurtherResult { at: own.at.with(&places, &extents), ..own.clone() });
        let further = further.collect();
        Nest { extents, written, nodes, further, ..self }
    }

    /// The indices of its nodes and of results beside the first.
    fn indices(&self) -> impl Iterator<Item = &Index> {
        self.nodes.iter().flat_map(Node::indices).chain(self.further.iter().map(|own| &own.at))
    }

    /// The nest with a loop along an axis that it had for itself going along another one that is as long, so that nodes
    /// along both are one: a sum over a row, and what is made of the row's elements with it.
    fn with_shared_loop(&self) -> Option<Nest> {
        let row = self.row_axes();
        let looped = axes_of(self.loop_axes()).filter(|axis| !self.written.contains(axis));
        // What a node depends on while it is computed, not what is left behind a reduction.
        let depends = self.dependences();
        for own in looped {
            let like = |&other: &usize| {
                let both = (1 << own) | (1 << other);
                let free =
                    other != own && row & (1 << other) == 0 && self.extents[other] == self.extents[own];
                let of_both = |node: &Node| matches!(node, Node::Reduce { over, .. } if over & both == both);
                free && !self.nodes.iter().any(of_both) && depends.iter().all(|set| set & both != both)
            };
            for other in (0..self.extents.len()).filter(like) {
                let mut places: Vec<Index> = (0..self.extents.len()).map(Index::axis).collect();
                places[own] = Index::axis(other);
                let mut nest = self.clone();
                for node in &mut nest.nodes {
                    *node = node.mapped(&|index| index.with(&places, &self.extents), &|id| id);
                    if let Node::Reduce { over, .. } = node
                        && *over & (1 << own) != 0
                    {
                        *over = (*over & !(1 << own)) | 1 << other;
                    }
                }
                let nest = nest.pruned();
                if nest.nodes.len() < self.nodes.len() {
                    return Some(nest);
                }
            }
        }
        None
    }

    /// Two axes along which all places are as far apart as along one: the outer and the inner one.
    fn neighbours(&self) -> Option<(usize, usize)> {
        let row = self.row_axes();
        let together = |a: usize, b: usize| {
            let both = (1 << a) | (1 << b);
            let split = |set: AxisSet| set & both != 0 && set & both != both;
            let reduced = |node: &Node| matches!(node, Node::Reduce { over, .. } if split(*over));
            if split(row) || self.nodes.iter().any(reduced) {
                return false;
            }
            let extent = self.extents[b] as i64;
            let mut all = true;
            for index in self.indices() {
                index.sums(&mut |sum| {
                    let factor =
                        |axis: usize| sum.terms().get(&Term::Axis(axis as u8)).copied().unwrap_or_default();
                    all &= factor(a) == extent * factor(b);
                });
            }
            all
        };
        let written = self.written.windows(2).map(|pair| (pair[0], pair[1]));
        let others: Vec<usize> =
            (0..self.extents.len()).filter(|axis| !self.written.contains(axis)).collect();
        let looped = others.iter().flat_map(|&a| others.iter().map(move |&b| (a, b))).filter(|(a, b)| a != b);
        written.chain(looped).find(|&(a, b)| together(a, b))
    }

    /// The nest with one axis in the place of two neighbours.
    fn merged(self, outer: usize, inner: usize) -> Nest {
        let mut extents = self.extents.clone();
        extents[inner] *= extents[outer];
        extents[outer] = 1;
        let mut places: Vec<Index> = (0..extents.len()).map(Index::axis).collect();
        places[outer] = Index::default();
        let nodes = self.nodes.iter().map(|node| {
            let mut node = node.mapped(&|index| index.with(&places, &extents), &|id| id);
            if let Node::Reduce { over, .. } = &mut node {
                *over &= !(1 << outer);
            }
            node
        });
        let nodes = nodes.collect();
        let written = self.written.iter().copied().filter(|&axis| axis != outer).collect();
        let further = self
            .further
            .iter()
            .map(|own| FurtherResult { at: own.at.with(&places, &extents), ..own.clone() });
        let further = further.collect();
        Nest { extents, written, nodes, further, ..self }.pruned()
    }
}
