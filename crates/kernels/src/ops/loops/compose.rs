//! Two nests as one.
//!
//! What a nest reads as a source may be computed where it is read: the element's place gives the places along the axes of
//! the nest that writes the source, and its nodes are computed there. What that nest reduces has axes of its own, or those
//! of loops of the reader that are as long.

use super::OP;
use super::index::{AxisSet, Index, Term};
use super::nest::{FurtherResult, Guard, MAX_NODES, Nest, Node, NodeId, Nodes, axes_of, counted};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::collections::HashMap;

/// Sources of two nests that become those of one.
#[derive(Debug)]
pub struct Sources<'a> {
    /// All of them.
    pub all: &'a [Dims],
    /// Where each of the reader's sources is.
    pub reader: &'a [ReadFrom],
    /// Where each of the writer's sources is.
    pub writer: &'a [SourceAt],
    /// Whether the nest also writes what its writer does.
    pub keeps: bool,
}

/// Where the elements of a source are, among all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceAt {
    /// The source of this place.
    pub place: usize,
    /// The element of it with which they begin.
    pub first: usize,
}

impl SourceAt {
    /// All elements of the source at `place`.
    pub const fn whole(place: usize) -> Self {
        SourceAt { place, first: 0 }
    }
}

/// The node with elements of sources that are `from` among all.
pub(super) fn moved(node: Node, from: &[SourceAt]) -> Node {
    match node.source() {
        Some(source) => {
            let from = from.get(source).copied().unwrap_or(SourceAt::whole(source));
            node.moved_to(from.place, from.first)
        }
        None => node,
    }
}

/// The types of `count` sources, some of which are known by their places.
///
/// # Errors
/// If one is read as elements of two types: as words and as their bytes.
pub(super) fn types_of(count: usize, known: impl Iterator<Item = (usize, DType)>) -> Result<Vec<DType>> {
    let mut types = vec![None; count];
    for (place, dtype) in known {
        let Some(own) = types.get_mut(place) else { continue };
        if own.is_some_and(|own| own != dtype) {
            let found = format!("a source that is read as {dtype} and as another type");
            return Err(Error::unsupported(OP, found));
        }
        *own = Some(dtype);
    }
    Ok(types.into_iter().map(Option::unwrap_or_default).collect())
}

/// Where a source of a reader is, once its writer is a part of the nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// Among all sources.
    Source(SourceAt),
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
    /// If together they are no nest: what the writer reduces would be reduced anew within a loop, they are too large, or what
    /// the writer writes is to be kept, and the reader does not read each element of it once for its result.
    pub fn after(&self, writer: &Nest, sources: &Sources<'_>) -> Result<Nest> {
        let (mut nodes, mut extents) = (Nodes::default(), self.extents.clone());
        let mut places: Vec<NodeId> = Vec::with_capacity(self.nodes.len());
        let mut known: HashMap<(Index, Vec<Guard>), NodeId> = HashMap::new();
        let mut once: Option<(Index, Places, NodeId)> = None;
        let (written_type, value) = writer.number_written();
        let other_words = |(&dtype, from): (&DType, &ReadFrom)| {
            matches!(from, ReadFrom::Written(_)) && dtype != writer.result_type(0)
        };
        if self.types.iter().zip(sources.reader).any(other_words) {
            let found = format!("words of {} as others", writer.result_type(0));
            return Err(Error::unsupported(OP, found));
        }
        for node in &self.nodes {
            let id = match node {
                Node::Read { source, at, guards, otherwise } => match sources.reader.get(*source) {
                    Some(&ReadFrom::Source(source)) => {
                        nodes.add(node.clone().moved_to(source.place, source.first))
                    }
                    written => {
                        let offset = if let Some(ReadFrom::Written(offset)) = written { *offset } else { 0 };
                        let at = at.plus(&Index::number(offset as i64), 1);
                        let key = (at, guards.clone());
                        let computed = match known.get(&key) {
                            Some(&computed) => computed,
                            None => {
                                // It may add as many axes as the writer has.
                                let (axes, most) = (extents.len() + writer.extents.len(), AxisSet::BITS);
                                if axes > most as usize {
                                    let found = format!("{axes} axes, wanted at most {most}");
                                    return Err(Error::unsupported(OP, found));
                                }
                                let own = self.places_of(writer, &key.0, guards, &mut extents);
                                let id = writer.computed_of(
                                    value,
                                    &own,
                                    guards,
                                    sources.writer,
                                    &mut nodes,
                                    &extents,
                                );
                                let each = || counted(&key.0, &self.written, &self.extents).is_some();
                                if once.is_none() && guards.is_empty() && each() {
                                    once = Some((key.0.clone(), own, id));
                                }
                                known.insert(key, id);
                                id
                            }
                        };
                        guarded(&mut nodes, computed, guards, *otherwise, written_type)
                    }
                },
                Node::Gather { source, .. } => {
                    let Some(&ReadFrom::Source(from)) = sources.reader.get(*source) else {
                        let found = "an element of what is computed, where another node says";
                        return Err(Error::unsupported(OP, found));
                    };
                    let node = node.mapped(&Index::clone, &|id| places[id]);
                    nodes.add(node.moved_to(from.place, from.first))
                }
                other => nodes.add(other.mapped(&Index::clone, &|id| places[id])),
            };
            places.push(id);
            if nodes.nodes.len() > 4 * MAX_NODES {
                let found = format!("{} nodes", nodes.nodes.len());
                return Err(Error::unsupported(OP, format!("{found}, wanted at most {MAX_NODES}")));
            }
        }
        let new = |own: NodeId| places.get(own).copied().unwrap_or_default();
        let value = new(self.value);
        let mut further: Vec<FurtherResult> =
            self.further.iter().map(|own| FurtherResult { value: new(own.value), ..own.clone() }).collect();
        if sources.keeps || !writer.further.is_empty() {
            let Some((at, own, computed)) = once else {
                let found = "elements of a result that is kept, which are not read once each";
                return Err(Error::unsupported(OP, found));
            };
            if sources.keeps {
                let is_byte = writer.result_type(0) == DType::U8;
                let value = if is_byte { nodes.add(Node::Byte(computed)) } else { computed };
                further.push(FurtherResult { value, at, target: writer.target });
            }
            for other in &writer.further {
                let value = writer.computed_of(other.value, &own, &[], sources.writer, &mut nodes, &extents);
                let at = other.at.with(&own.indices, &extents);
                further.push(FurtherResult { value, at, target: other.target });
            }
        }
        let of_reader = self.types.iter().zip(sources.reader).filter_map(|(&dtype, from)| match from {
            ReadFrom::Source(from) => Some((from.place, dtype)),
            ReadFrom::Written(_) => None,
        });
        let of_writer = writer.types.iter().zip(sources.writer).map(|(&dtype, from)| (from.place, dtype));
        let nest = Nest {
            extents,
            written: self.written.clone(),
            types: types_of(sources.all.len(), of_reader.chain(of_writer))?,
            sources: sources.all.to_vec(),
            nodes: nodes.nodes,
            value,
            target: self.target,
            further,
            apart: 0,
        };
        nest.tidied().checked()
    }

    /// The type of what it writes first, and the node that gives it: the number that a byte holds.
    fn number_written(&self) -> (DType, NodeId) {
        match self.nodes.get(self.value) {
            Some(Node::Byte(of)) => (DType::F32, *of),
            _ => (self.result_type(0), self.value),
        }
    }

    /// The nest with the sources of `all`, where each of its own is `from`.
    ///
    /// # Errors
    /// If an element beyond a source would be read.
    pub fn with_sources(&self, all: &[Dims], from: &[SourceAt]) -> Result<Nest> {
        let mut nest = self.clone();
        for node in &mut nest.nodes {
            *node = moved(node.clone(), from);
        }
        let types = self.types.iter().zip(from).map(|(&dtype, from)| (from.place, dtype));
        nest.types = types_of(all.len(), types)?;
        nest.sources = all.to_vec();
        nest.tidied().checked()
    }

    /// The nest with its operands in other extents.
    ///
    /// # Errors
    /// If an operand has another number of elements.
    pub fn with_extents(&self, sources: &[Dims], targets: &[Dims]) -> Result<Nest> {
        let mut targets = targets.iter().copied();
        let target = targets.next().unwrap_or(self.target);
        let further =
            self.further.iter().zip(targets).map(|(own, target)| FurtherResult { target, ..own.clone() });
        let nest = Nest { sources: sources.to_vec(), target, further: further.collect(), ..self.clone() };
        match self.sources.iter().zip(sources).find(|(own, other)| own.elements() != other.elements()) {
            Some((own, other)) => Err(Error::shape(OP, other.to_string(), format!("the elements of {own}"))),
            None => nest.checked(),
        }
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

    /// Adds node `id` of this nest and what it reads where `places` says, as far as `guards` hold.
    fn computed_of(
        &self,
        id: NodeId,
        places: &Places,
        guards: &[Guard],
        sources: &[SourceAt],
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
            id,
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
            Node::Read { guards, .. } | Node::Gather { guards, .. } => {
                guards.extend(inlining.guards.iter().cloned());
                crate::sorted::sort(guards, Ord::cmp);
                guards.dedup();
                node = moved(node, inlining.sources);
            }
            Node::Reduce { over, .. } => *over = inlining.places.over(*over),
            _ => {}
        }
        let new = inlining.nodes.add(node);
        inlining.known.insert((id, within), new);
        new
    }
}

/// What is known while the nodes of a writer are added.
struct Inlining<'a> {
    places: &'a Places,
    /// The places within a reduction.
    looped: Vec<Index>,
    guards: &'a [Guard],
    sources: &'a [SourceAt],
    nodes: &'a mut Nodes,
    extents: &'a [usize],
    known: &'a mut HashMap<(NodeId, bool), NodeId>,
}

/// `computed`, of type `dtype`, where all guards hold, and a number elsewhere.
fn guarded(
    nodes: &mut Nodes,
    computed: NodeId,
    guards: &[Guard],
    otherwise: crate::emit::Bits,
    dtype: DType,
) -> NodeId {
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
    let otherwise = nodes.add(match dtype {
        DType::F32 => Node::Number(otherwise),
        word => Node::Integer { value: otherwise.0 as i64, word },
    });
    nodes.add(Node::Choose { guards: guards.to_vec(), then: computed, otherwise })
}
