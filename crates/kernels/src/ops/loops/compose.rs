//! Two nests as one, and a nest along as few axes as it can have.
//!
//! What a nest reads as a source may be computed where it is read: the element's place gives the places along the axes of
//! the nest that writes the source, and its nodes are computed there. What that nest reduces has axes of its own, or those
//! of loops of the reader that are as long.

use super::OP;
use super::index::{AxisSet, Index, Term};
use super::nest::{Guard, MAX_AXES, MAX_NODES, Nest, Node, NodeId, Nodes, axes_of};
use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;
use std::collections::HashMap;

/// Sources of two nests that become those of one.
#[derive(Debug)]
pub struct Sources<'a> {
    /// All of them.
    pub all: &'a [Dims],
    /// Where each of the reader's sources is.
    pub reader: &'a [ReadFrom],
    /// Of the writer's sources, the place of each among all.
    pub writer: &'a [usize],
}

/// Where a source of a reader is, once its writer is a part of the nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// The source of this place among all.
    Source(usize),
    /// What the writer writes, from this element on.
    Written(usize),
}

/// The axes of the writer where the reader reads an element.
struct Places {
    indices: Vec<Index>,
    /// Of each axis over which the writer loops, the reader's.
    loops: Vec<usize>,
}

impl Places {
    fn over(&self, set: AxisSet) -> AxisSet {
        axes_of(set).fold(0, |all, axis| all | 1 << self.loops.get(axis).copied().unwrap_or(axis))
    }
}

impl Nest {
    /// This nest with `writer` in the place of the sources that show what it writes.
    ///
    /// # Errors
    /// If together they are no nest: what the writer reduces would be reduced anew within a loop, or they are too large.
    pub fn after(&self, writer: &Nest, sources: &Sources<'_>) -> Result<Nest> {
        let (mut nodes, mut extents) = (Nodes::default(), self.extents.clone());
        let mut places: Vec<NodeId> = Vec::with_capacity(self.nodes.len());
        let mut known: HashMap<(Index, Vec<Guard>), NodeId> = HashMap::new();
        for node in &self.nodes {
            let id = match node {
                Node::Read { source, at, guards, otherwise } => match sources.reader.get(*source) {
                    Some(&ReadFrom::Source(source)) => nodes.add(Node::Read {
                        source,
                        at: at.clone(),
                        guards: guards.clone(),
                        otherwise: *otherwise,
                    }),
                    written => {
                        let offset = if let Some(ReadFrom::Written(offset)) = written { *offset } else { 0 };
                        let at = at.plus(&Index::number(offset as i64), 1);
                        let key = (at, guards.clone());
                        let computed = match known.get(&key) {
                            Some(&computed) => computed,
                            None => {
                                let own = self.places_of(writer, &key.0, guards, &mut extents);
                                let id =
                                    writer.computed_at(&own, guards, sources.writer, &mut nodes, &extents);
                                known.insert(key, id);
                                id
                            }
                        };
                        guarded(&mut nodes, computed, guards, *otherwise)
                    }
                },
                other => nodes.add(other.mapped(&Index::clone, &|id| places[id])),
            };
            places.push(id);
            if nodes.nodes.len() > 4 * MAX_NODES {
                let found = format!("{} nodes", nodes.nodes.len());
                return Err(Error::unsupported(OP, format!("{found}, wanted at most {MAX_NODES}")));
            }
        }
        let value = places.get(self.value).copied().unwrap_or_default();
        let nest = Nest {
            extents,
            written: self.written.clone(),
            sources: sources.all.to_vec(),
            nodes: nodes.nodes,
            value,
            target: self.target,
        };
        nest.tidied().checked()
    }

    /// Where along the axes of `writer` element `at` of its result is; axes over which it loops are added to `extents`, unless
    /// the reader has one that is as long and free.
    fn places_of(&self, writer: &Nest, at: &Index, guards: &[Guard], extents: &mut Vec<usize>) -> Places {
        // Guards hold within its loops as well.
        let kept = guards.iter().fold(self.row_axes(), |all, guard| all | guard.index.axes());
        let mut indices = vec![Index::default(); writer.extents.len()];
        let mut loops: Vec<usize> = (0..writer.extents.len()).collect();
        let strides = writer.strides();
        for (order, &axis) in writer.written.iter().enumerate() {
            let quotient = at.quotient(strides[axis].max(1) as i64, extents);
            let extent = writer.extents[axis] as i64;
            let [least, most] = quotient.range(extents);
            let outermost = order == 0 && least >= 0 && most < extent;
            indices[axis] = if outermost { quotient } else { quotient.remainder(extent, extents) };
        }
        let mut taken = indices.iter().fold(kept, |all, index| all | index.axes());
        for axis in (0..writer.extents.len()).filter(|axis| !writer.written.contains(axis)) {
            let free = |own: &usize| taken & (1 << own) == 0 && extents[*own] == writer.extents[axis];
            let own = (0..extents.len()).find(free).unwrap_or_else(|| {
                extents.push(writer.extents[axis]);
                extents.len() - 1
            });
            taken |= 1 << own.min(31);
            indices[axis] = Index::axis(own);
            loops[axis] = own;
        }
        // Along axes of its result over which it loops as well, such as a softmax's, a loop has an axis of its own.
        let looped = writer.nodes.iter().fold(0, |all: AxisSet, node| match node {
            Node::Reduce { over, .. } => all | over,
            _ => all,
        });
        for axis in axes_of(looped).filter(|axis| writer.written.contains(axis)) {
            let own = indices[axis].as_term().and_then(|term| match term {
                Term::Axis(own) => Some(usize::from(*own)),
                _ => None,
            });
            let rest = indices.iter().enumerate().filter(|(other, _)| *other != axis);
            let shared = rest.fold(kept, |all, (_, index)| all | index.axes());
            // The reader's own axis serves where it goes along the whole of it and is not one of its rows.
            let whole = own.filter(|&own| extents[own] == writer.extents[axis] && shared & (1 << own) == 0);
            loops[axis] = whole.unwrap_or_else(|| {
                extents.push(writer.extents[axis]);
                extents.len() - 1
            });
        }
        Places { indices, loops }
    }

    /// Adds the nodes of this nest where `places` says, as far as `guards` hold, and gives the one that is written.
    fn computed_at(
        &self,
        places: &Places,
        guards: &[Guard],
        sources: &[usize],
        nodes: &mut Nodes,
        extents: &[usize],
    ) -> NodeId {
        // Within a reduction its loops' axes are places, elsewhere those of the result.
        let mut looped = places.indices.clone();
        for (axis, &own) in places.loops.iter().enumerate() {
            if self.loop_axes() & (1 << axis) != 0 {
                looped[axis] = Index::axis(own);
            }
        }
        let mut known: HashMap<(NodeId, bool), NodeId> = HashMap::new();
        self.computed(
            self.value,
            false,
            &mut Inlining { places, looped, guards, sources, nodes, extents, known: &mut known },
        )
    }

    /// The axes over which reductions loop.
    pub(super) fn loop_axes(&self) -> AxisSet {
        let each = self.nodes.iter().map(|node| if let Node::Reduce { over, .. } = node { *over } else { 0 });
        each.fold(0, |all, over| all | over)
    }

    fn computed(&self, id: NodeId, within: bool, inlining: &mut Inlining<'_>) -> NodeId {
        if let Some(&known) = inlining.known.get(&(id, within)) {
            return known;
        }
        let node = &self.nodes[id];
        let inside = within || matches!(node, Node::Reduce { .. });
        let arguments: HashMap<NodeId, NodeId> =
            node.arguments().into_iter().map(|own| (own, self.computed(own, inside, inlining))).collect();
        let place = |index: &Index| {
            let places = if within { &inlining.looped } else { &inlining.places.indices };
            index.with(places, inlining.extents)
        };
        let mut node = node.mapped(&place, &|own| arguments.get(&own).copied().unwrap_or_default());
        match &mut node {
            Node::Read { source, guards, .. } => {
                *source = inlining.sources.get(*source).copied().unwrap_or_default();
                guards.extend(inlining.guards.iter().cloned());
                crate::sorted::sort(guards, Ord::cmp);
                guards.dedup();
            }
            Node::Reduce { over, .. } => *over = inlining.places.over(*over),
            _ => {}
        }
        let new = inlining.nodes.add(node);
        inlining.known.insert((id, within), new);
        new
    }

    /// The nest without sources of which it reads nothing, and the places of the others.
    pub fn without_unread(self) -> (Nest, Vec<usize>) {
        let reads = |place: &usize| {
            self.nodes.iter().any(|node| matches!(node, Node::Read { source, .. } if source == place))
        };
        let kept: Vec<usize> = (0..self.sources.len()).filter(reads).collect();
        if kept.is_empty() || kept.len() == self.sources.len() {
            let all = (0..self.sources.len()).collect();
            return (self, all);
        }
        let mut nest = self;
        for node in &mut nest.nodes {
            if let Node::Read { source, .. } = node {
                *source = kept.iter().position(|own| own == source).unwrap_or_default();
            }
        }
        nest.sources = kept.iter().filter_map(|&place| nest.sources.get(place).copied()).collect();
        (nest, kept)
    }

    /// The nest without nodes that nothing needs, along as few axes as there can be.
    pub(super) fn tidied(self) -> Nest {
        let mut nest = self.pruned();
        while let Some((axis, by)) = nest.divided_axis() {
            nest = nest.split(axis, by);
        }
        while let Some((outer, inner)) = nest.neighbours() {
            nest = nest.merged(outer, inner);
        }
        nest.pruned()
    }

    /// The nest without nodes that its value does not need, and without axes of one place or of no use.
    fn pruned(self) -> Nest {
        let mut needed = vec![false; self.nodes.len()];
        if let Some(needed) = needed.get_mut(self.value) {
            *needed = true;
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
            if let Node::Read { guards, .. } | Node::Choose { guards, .. } = &mut node {
                guards.retain(|guard| {
                    let [least, most] = guard.index.range(&extents);
                    least < 0 || most >= guard.below
                });
            }
            ids[id] = match node {
                Node::Choose { guards, then, .. } if guards.is_empty() => then,
                // Of one place there is nothing to reduce.
                Node::Reduce { reduction: Reduction::Any | Reduction::All, of, over: 0 } => {
                    let not = nodes.apply(Function::LogicalNot, &[of]);
                    nodes.apply(Function::LogicalNot, &[not])
                }
                Node::Reduce { of, over: 0, .. } => of,
                node => nodes.add(node),
            };
        }
        let value = ids.get(self.value).copied().unwrap_or_default();
        let written = self.written.iter().filter_map(|&axis| moved[axis]).collect();
        Nest { extents, written, nodes: nodes.nodes, value, ..self }
    }

    /// An axis whose places are divided by a number of which its extent is a multiple, and that number.
    fn divided_axis(&self) -> Option<(usize, usize)> {
        let mut found = None;
        for index in self.nodes.iter().flat_map(Node::indices) {
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
    fn split(self, axis: usize, by: usize) -> Nest {
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
        Nest { extents, written, nodes, ..self }
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
            for index in self.nodes.iter().flat_map(Node::indices) {
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
        Nest { extents, written, nodes, ..self }.pruned()
    }
}

/// What is known while the nodes of a writer are added.
struct Inlining<'a> {
    places: &'a Places,
    /// The places within a reduction.
    looped: Vec<Index>,
    guards: &'a [Guard],
    sources: &'a [usize],
    nodes: &'a mut Nodes,
    extents: &'a [usize],
    known: &'a mut HashMap<(NodeId, bool), NodeId>,
}

/// `computed` where all guards hold, and a number elsewhere.
fn guarded(nodes: &mut Nodes, computed: NodeId, guards: &[Guard], otherwise: crate::emit::Bits) -> NodeId {
    if guards.is_empty() {
        return computed;
    }
    if let Some(Node::Read { source, at, guards: own, otherwise: number }) =
        nodes.nodes.get(computed).cloned()
    {
        // All guards are the reader's, or give the same number.
        if own.iter().all(|guard| guards.contains(guard)) || number == otherwise {
            return nodes.add(Node::Read { source, at, guards: own, otherwise });
        }
    }
    let otherwise = nodes.add(Node::Number(otherwise));
    nodes.add(Node::Choose { guards: guards.to_vec(), then: computed, otherwise })
}
