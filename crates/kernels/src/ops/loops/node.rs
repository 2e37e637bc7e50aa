//! Nodes of a nest: what each gives for the places along axes.

use super::index::{AxisSet, Index};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Bits;
use crate::ops::bytes::LANES;
use crate::ops::elementwise::Function;
use crate::ops::integer::IntegerFunction;
use crate::ops::reduce::Reduction;

/// A node, by its place among those of its nest: nodes read earlier ones alone.
pub(in crate::ops) type NodeId = usize;

/// That an index is from 0 on and below `below`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::ops) struct Guard {
    pub(in crate::ops) index: Index,
    pub(in crate::ops) below: i64,
}

/// An axis of a source along which a node gives the place: a whole number, of a float too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::ops) struct GatherAxis {
    pub(in crate::ops) index: NodeId,
    /// Places are from 0 on and below it.
    pub(in crate::ops) extent: usize,
    /// Elements from one place to the next.
    pub(in crate::ops) stride: usize,
}

/// A number for each place along the axes on which it depends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::ops) enum Node {
    Number(Bits),
    /// An element of a source; `otherwise` where a guard does not hold.
    Read {
        source: usize,
        at: Index,
        guards: Vec<Guard>,
        otherwise: Bits,
    },
    /// An index, as a float.
    Place(Index),
    /// An integer of type `word`.
    Integer {
        value: i64,
        word: DType,
    },
    /// The element of a source that lies behind the one at `at` where nodes say; zero where a guard does not hold, or one of
    /// these is not within its axis.
    Gather {
        source: usize,
        at: Index,
        guards: Vec<Guard>,
        by: Vec<GatherAxis>,
    },
    /// A function of as many nodes as it takes.
    Apply(Function, Vec<NodeId>),
    /// A function of integers of type `word`, which gives a number of type `result`.
    ApplyIntegers {
        function: IntegerFunction,
        arguments: Vec<NodeId>,
        word: DType,
        result: DType,
    },
    /// What the values of a node along these axes are together. With `place` it is what that node gives where the largest or
    /// the smallest value is: the least of equal ones, and of NaNs, which come before numbers.
    Reduce {
        reduction: Reduction,
        of: NodeId,
        over: AxisSet,
        place: Option<NodeId>,
    },
    /// One node where all guards hold, else the other.
    Choose {
        guards: Vec<Guard>,
        then: NodeId,
        otherwise: NodeId,
    },
    /// A number that is whole and from 0 to 255, as a byte. It is a result, and no node reads it.
    Byte(NodeId),
}

/// The type of the words that hold elements of this type: four bytes are one.
pub(in crate::ops) fn word_of(dtype: DType) -> DType {
    if dtype == DType::U8 { DType::U32 } else { dtype }
}

/// The elements in words of `dims`, which hold elements of this type.
pub(in crate::ops) fn elements_in(dims: Dims, dtype: DType) -> usize {
    dims.elements() * if dtype == DType::U8 { LANES } else { 1 }
}

impl Node {
    /// The source of which it reads an element.
    pub(in crate::ops) const fn source(&self) -> Option<usize> {
        match self {
            Node::Read { source, .. } | Node::Gather { source, .. } => Some(*source),
            _ => None,
        }
    }

    /// The node with an element of another source, `first` elements behind.
    #[must_use]
    pub(in crate::ops) fn moved_to(mut self, place: usize, first: usize) -> Node {
        if let Node::Read { source, at, .. } | Node::Gather { source, at, .. } = &mut self {
            *source = place;
            *at = at.plus(&Index::number(first as i64), 1);
        }
        self
    }

    /// The nodes that it reads.
    pub(in crate::ops) fn arguments(&self) -> Vec<NodeId> {
        match self {
            Node::Number(_) | Node::Place(_) | Node::Integer { .. } | Node::Read { .. } => Vec::new(),
            Node::Gather { by, .. } => by.iter().map(|own| own.index).collect(),
            Node::Apply(_, arguments) | Node::ApplyIntegers { arguments, .. } => arguments.clone(),
            Node::Reduce { of, place, .. } => [*of].into_iter().chain(*place).collect(),
            Node::Choose { then, otherwise, .. } => vec![*then, *otherwise],
            Node::Byte(of) => vec![*of],
        }
    }

    /// The indices in it.
    pub(in crate::ops) fn indices(&self) -> Vec<&Index> {
        let (at, guards): (Option<&Index>, &[Guard]) = match self {
            Node::Read { at, guards, .. } | Node::Gather { at, guards, .. } => (Some(at), guards),
            Node::Place(at) => (Some(at), &[]),
            Node::Choose { guards, .. } => (None, guards),
            _ => (None, &[]),
        };
        at.into_iter().chain(guards.iter().map(|guard| &guard.index)).collect()
    }

    /// The node with other indices and arguments.
    pub(in crate::ops) fn mapped(
        &self,
        index: &dyn Fn(&Index) -> Index,
        argument: &dyn Fn(NodeId) -> NodeId,
    ) -> Node {
        let guard = |guard: &Guard| Guard { index: index(&guard.index), below: guard.below };
        match self {
            Node::Number(_) | Node::Integer { .. } => self.clone(),
            Node::Place(at) => Node::Place(index(at)),
            Node::Gather { source, at, guards, by } => {
                let axis = |own: &GatherAxis| GatherAxis { index: argument(own.index), ..own.clone() };
                Node::Gather {
                    source: *source,
                    at: index(at),
                    guards: guards.iter().map(guard).collect(),
                    by: by.iter().map(axis).collect(),
                }
            }
            Node::Read { source, at, guards, otherwise } => Node::Read {
                source: *source,
                at: index(at),
                guards: guards.iter().map(guard).collect(),
                otherwise: *otherwise,
            },
            Node::Apply(function, arguments) => {
                Node::Apply(*function, arguments.iter().map(|&own| argument(own)).collect())
            }
            Node::ApplyIntegers { function, arguments, word, result } => Node::ApplyIntegers {
                function: *function,
                arguments: arguments.iter().map(|&own| argument(own)).collect(),
                word: *word,
                result: *result,
            },
            Node::Reduce { reduction, of, over, place } => Node::Reduce {
                reduction: *reduction,
                of: argument(*of),
                over: *over,
                place: place.map(argument),
            },
            Node::Choose { guards, then, otherwise } => Node::Choose {
                guards: guards.iter().map(guard).collect(),
                then: argument(*then),
                otherwise: argument(*otherwise),
            },
            Node::Byte(of) => Node::Byte(argument(*of)),
        }
    }
}

/// A result beside the first: for each place along the written axes one element of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::ops) struct FurtherResult {
    /// The node that is written.
    pub(in crate::ops) value: NodeId,
    /// The element that it is.
    pub(in crate::ops) at: Index,
    pub(in crate::ops) target: Dims,
}

/// The axes in the order in which `at` counts the places along all of `written`: none if it does not count each once.
pub(in crate::ops) fn counted(at: &Index, written: &[usize], extents: &[usize]) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = written.iter().copied().filter(|&axis| extents[axis] > 1).collect();
    if at.constant() != 0 || at.terms().len() != axes.len() {
        return None;
    }
    let strides: Vec<(usize, i64)> =
        axes.iter().filter_map(|&axis| Some((axis, at.stride(axis).filter(|&stride| stride > 0)?))).collect();
    if strides.len() != axes.len() {
        return None;
    }
    let stride = |axis: &usize| strides.iter().find(|(own, _)| own == axis).map_or(0, |(_, stride)| *stride);
    crate::sorted::sort(&mut axes, |a, b| stride(b).cmp(&stride(a)));
    let mut wanted = 1;
    for axis in axes.iter().rev() {
        if stride(axis) != wanted {
            return None;
        }
        wanted *= extents[*axis] as i64;
    }
    Some(axes)
}

/// A nest as it is put together: nodes that are alike are one.
#[derive(Debug, Default)]
pub(in crate::ops) struct Nodes {
    pub(in crate::ops) nodes: Vec<Node>,
}

impl Nodes {
    pub(in crate::ops) fn add(&mut self, node: Node) -> NodeId {
        match self.nodes.iter().position(|known| *known == node) {
            Some(known) => known,
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        }
    }

    pub(in crate::ops) fn number(&mut self, number: f32) -> NodeId {
        self.add(Node::Number(Bits(number)))
    }

    /// An element that is always there.
    pub(in crate::ops) fn read(&mut self, source: usize, at: Index) -> NodeId {
        self.add(Node::Read { source, at, guards: Vec::new(), otherwise: Bits(0.0) })
    }

    pub(in crate::ops) fn apply(&mut self, function: Function, arguments: &[NodeId]) -> NodeId {
        self.add(Node::Apply(function, arguments.to_vec()))
    }

    pub(in crate::ops) fn reduce(&mut self, reduction: Reduction, of: NodeId, over: AxisSet) -> NodeId {
        self.add(Node::Reduce { reduction, of, over, place: None })
    }
}
