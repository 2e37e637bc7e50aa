//! A nest as a program: what each loop computes in which order, and in which registers.

use super::super::index::AxisSet;
use super::super::nest::{MAX_AXES, Nest, Node, NodeId};
use super::functions::takes_single;
use super::offset::{Offset, Within};
use super::pairs::{Reducing, Summand};
use super::tile::{Room, Tiling};
use crate::ops::elementwise::Function;
use std::collections::BTreeMap;

/// The fewest places of which each line is computed by itself.
pub(super) const LONG: usize = 256;

/// Some nodes, a bit for each.
pub(super) type NodeSet = u128;

/// How many numbers a node has in a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One.
    Single,
    /// One for each row.
    Rows,
    /// One for each place along the inner axes of a tile, the same for others.
    Inner,
    /// One for each place.
    Places,
}

/// A node with what its indices are made of.
#[derive(Debug, Clone)]
pub(super) enum Compiled {
    Number(f32),
    Read {
        source: usize,
        at: Offset,
        within: Within,
        otherwise: f32,
    },
    Place(Offset),
    Apply(Function, [NodeId; 3], usize),
    /// `second(first(a, b), c)` of values for each place, or the power of `first(a, b)`.
    Pair {
        first: Function,
        second: Function,
        arguments: [NodeId; 3],
    },
    /// `((a - b) - c) * d`, or `((a - b) - c) * d * e + f`, of values `a` for each place.
    Normalised {
        arguments: [NodeId; MOST_GIVEN],
        count: usize,
    },
    Reduce,
    Choose {
        within: Within,
        then: NodeId,
        otherwise: NodeId,
    },
}

/// The most arguments of a node.
pub(super) const MOST_GIVEN: usize = 6;

/// Where a function finds an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    None,
    /// A value for each of the function's.
    Values(NodeId),
    /// One value for all.
    Single(NodeId),
    /// One value for each row of places, or for each column.
    Rows(NodeId),
    Columns(NodeId),
    /// Values that are spread over all places.
    Spread(NodeId),
}

/// What is computed of a tile.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) node: NodeId,
    /// The node as a set.
    pub(super) own: NodeSet,
    pub(super) kind: Kind,
    pub(super) register: usize,
    pub(super) given: [Given; MOST_GIVEN],
    /// The result that nothing else needs, so that it is computed where it is written.
    pub(super) result: Option<usize>,
}

/// A loop: tiles along some axes, nodes that are computed in each, and what is reduced or written.
#[derive(Debug, Clone)]
pub(super) struct Sweep {
    pub(super) axes: Vec<usize>,
    /// The axes along which a tile has several places, those of rows included, outermost first.
    pub(super) dims: Vec<usize>,
    /// All of these but those of rows, or the outermost one.
    pub(super) inner: Vec<usize>,
    pub(super) steps: Vec<Step>,
    pub(super) reductions: Vec<Reducing>,
    /// The results that steps compute.
    pub(super) computed: u32,
    /// The first sweep with the axes that this one has.
    pub(super) layout: usize,
}

/// A result: the node that is written, and its elements from one place to the next along each axis.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) value: NodeId,
    pub(super) strides: [usize; MAX_AXES],
}

/// A nest to run.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) extents: Vec<usize>,
    pub(super) tiling: Tiling,
    pub(super) nodes: Vec<Compiled>,
    pub(super) kinds: Vec<Kind>,
    /// For each node the source that it reads, the register of its values, and the one in which they are spread over all places.
    pub(super) reads: Vec<usize>,
    pub(super) registers: Vec<usize>,
    pub(super) spread: Vec<Option<usize>>,
    /// Numbers of each register.
    pub(super) lens: Vec<usize>,
    /// The last sweep writes.
    pub(super) sweeps: Vec<Sweep>,
    pub(super) row_dims: Vec<usize>,
    pub(super) results: Vec<Written>,
    /// For each axis the nodes that depend on it.
    pub(super) dependents: [NodeSet; MAX_AXES],
    /// The nodes whose values are kept until a place on which they depend changes.
    pub(super) kept: NodeSet,
    /// The nodes with a number for each place.
    pub(super) of_places: NodeSet,
}

/// Reductions of each loop, by its stage and axes.
type Loops = BTreeMap<(usize, AxisSet), Vec<Reducing>>;

fn loops(nest: &Nest) -> Loops {
    let (stages, mut loops) = (nest.stages(), Loops::new());
    for (id, node) in nest.nodes.iter().enumerate() {
        if let Node::Reduce { reduction, of, over, place } = node {
            let summand = place.map_or(Summand::Plain, Summand::Place);
            let own = Reducing { node: id, reduction: *reduction, of: *of, summand };
            loops.entry((stages[id], *over)).or_default().push(own);
        }
    }
    loops
}

fn compiled(nest: &Nest) -> Vec<Compiled> {
    let each = nest.nodes.iter().map(|node| match node {
        Node::Number(number) => Compiled::Number(number.0),
        Node::Read { source, at, guards, otherwise } => Compiled::Read {
            source: *source,
            at: Offset::of(at, &nest.extents),
            within: Within::of(guards, &nest.extents),
            otherwise: otherwise.0,
        },
        Node::Apply(function, arguments) => {
            let mut own = [0; 3];
            own.iter_mut().zip(arguments).for_each(|(own, argument)| *own = *argument);
            Compiled::Apply(*function, own, arguments.len())
        }
        Node::Place(at) => Compiled::Place(Offset::of(at, &nest.extents)),
        // Nests with integers or bytes have a kernel of their own (`words`).
        Node::Integer { .. } | Node::Gather { .. } | Node::ApplyIntegers { .. } | Node::Byte(_) => {
            Compiled::Number(f32::NAN)
        }
        Node::Reduce { .. } => Compiled::Reduce,
        Node::Choose { guards, then, otherwise } => {
            Compiled::Choose { within: Within::of(guards, &nest.extents), then: *then, otherwise: *otherwise }
        }
    });
    each.collect()
}

/// Whether a node is found where it is placed, without a register.
fn is_placed(node: &Compiled) -> bool {
    use Compiled::{Choose, Number, Place, Read};
    matches!(node, Number(_) | Place(_) | Read { .. } | Choose { .. })
}

impl Program {
    /// The program of `nest`, which writes its results at these strides.
    pub(super) fn of(nest: &Nest, results: Vec<[usize; MAX_AXES]>, room: &Room) -> Self {
        let loops = loops(nest);
        let over: Vec<AxisSet> = loops.keys().map(|(_, over)| *over).collect();
        let tiling = Tiling::of(nest, &over, room);
        let (nodes, depends) = (compiled(nest), nest.dependences());
        let several = |axes: &[usize]| {
            let own = axes.iter().copied().filter(|&axis| tiling.sizes[axis] > 1);
            own.collect::<Vec<_>>()
        };
        let row_dims = several(&tiling.rows);
        let set = |axes: &[usize]| axes.iter().fold(0, |all, &axis| all | 1 << axis);
        let of_rows: AxisSet = set(&row_dims);
        let of_loops: AxisSet = tiling.loops.iter().fold(0, |all, axes| all | set(&several(axes)));
        // Where neighbours are places of one row, all rows have the same values of what depends on none.
        let outer = match (tiling.columns, &row_dims[..]) {
            (true, _) => AxisSet::MAX,
            (false, []) if !over.is_empty() => AxisSet::MAX,
            (false, []) => {
                several(&tiling.loops[tiling.loops.len() - 1]).first().map_or(AxisSet::MAX, |axis| 1 << axis)
            }
            (false, _) => of_rows,
        };
        let inner = |axes: &[usize]| -> Vec<usize> {
            axes.iter().copied().filter(|&axis| outer & (1 << axis) == 0).collect()
        };
        let kind = |depends: &AxisSet| match (depends & of_loops, depends & of_rows) {
            (0, 0) => Kind::Single,
            (0, _) => Kind::Rows,
            _ if depends & outer == 0 => Kind::Inner,
            _ => Kind::Places,
        };
        let kinds: Vec<Kind> = depends.iter().map(kind).collect();
        let mut dependents = [0; MAX_AXES];
        for (axis, dependents) in dependents.iter_mut().enumerate() {
            for (id, own) in depends.iter().enumerate() {
                *dependents |= NodeSet::from(own & (1 << axis) != 0) << id;
            }
        }
        let of_places = (0..nodes.len())
            .fold(0, |all, id| all | NodeSet::from(matches!(kinds[id], Kind::Places | Kind::Inner)) << id);
        let reductions = loops.into_values().chain([Vec::new()]);
        let sweeps = tiling.loops.iter().zip(reductions).enumerate().map(|(place, (axes, reductions))| {
            let (mut dims, own) = (row_dims.clone(), several(axes));
            if tiling.columns {
                let blocks = tiling.blocks.iter().filter(|axis| row_dims.contains(axis)).count();
                dims.splice(blocks..blocks, own);
            } else {
                dims.extend(own);
            }
            let layout = tiling.loops.iter().position(|other| other == axes).unwrap_or(place);
            Sweep {
                axes: axes.clone(),
                inner: inner(&dims),
                dims,
                steps: Vec::new(),
                reductions,
                computed: 0,
                layout,
            }
        });
        let read = |node: &Compiled| match node {
            Compiled::Read { source, .. } => *source,
            _ => 0,
        };
        let mut program = Program {
            extents: nest.extents.clone(),
            reads: nodes.iter().map(read).collect(),
            registers: vec![0; nodes.len()],
            spread: vec![None; nodes.len()],
            lens: Vec::new(),
            sweeps: sweeps.collect(),
            results: nest.values().zip(results).map(|(value, strides)| Written { value, strides }).collect(),
            kept: 0,
            tiling,
            nodes,
            kinds,
            row_dims,
            dependents,
            of_places,
        };
        program.pair();
        program.plan();
        program
    }

    /// The most rows of a tile.
    pub(super) fn most_rows(&self) -> usize {
        self.row_dims.iter().map(|&axis| self.tiling.sizes[axis]).product()
    }

    /// The most parts of columns that a loop reduces.
    pub(super) fn most_parts(&self) -> usize {
        let most = self.sweeps.iter().map(|sweep| sweep.reductions.len()).max().unwrap_or_default();
        self.most_rows() * most
    }

    /// Numbers of all registers, and of the parts of columns.
    pub(super) fn scratch(&self) -> usize {
        self.lens.iter().sum::<usize>() + self.most_parts()
    }

    /// The fewest places of a tile along its inner axes.
    fn inner_len(&self) -> usize {
        let each =
            self.sweeps.iter().map(|sweep| sweep.inner.iter().map(|&axis| self.tiling.sizes[axis]).product());
        each.min().unwrap_or_default()
    }

    /// Whether a node is a function, or several of them.
    pub(super) fn is_function(&self, id: NodeId) -> bool {
        matches!(self.nodes[id], Compiled::Apply(..) | Compiled::Pair { .. } | Compiled::Normalised { .. })
    }

    pub(super) fn arguments(&self, id: NodeId) -> &[NodeId] {
        match &self.nodes[id] {
            Compiled::Apply(_, arguments, count) => &arguments[..*count],
            Compiled::Pair { arguments, .. } => arguments,
            Compiled::Normalised { arguments, count } => &arguments[..*count],
            _ => &[],
        }
    }

    /// Where a node finds its arguments.
    pub(super) fn given(&self, id: NodeId) -> [Given; MOST_GIVEN] {
        let mut given = [Given::None; MOST_GIVEN];
        let (own, columns) = (self.kinds[id], self.tiling.columns);
        let (function, arguments) = match &self.nodes[id] {
            Compiled::Apply(function, arguments, count) => (function, &arguments[..*count]),
            Compiled::Pair { .. } | Compiled::Normalised { .. } => {
                for (given, &argument) in given.iter_mut().zip(self.arguments(id)) {
                    *given = match self.kinds[argument] {
                        Kind::Places => Given::Values(argument),
                        Kind::Single => Given::Single(argument),
                        Kind::Rows if columns => Given::Columns(argument),
                        Kind::Rows => Given::Rows(argument),
                        Kind::Inner if self.inner_len() >= LONG => Given::Columns(argument),
                        Kind::Inner => Given::Spread(argument),
                    };
                }
                return given;
            }
            _ => return given,
        };
        let whole = arguments.iter().filter(|&&argument| self.kinds[argument] == own).count();
        let single = arguments.iter().filter(|&&argument| self.kinds[argument] == Kind::Single).count();
        // One of two arguments may be a number, or one for each row or column.
        let is_first = arguments.first().is_some_and(|&argument| self.kinds[argument] == own);
        let numbers = arguments.len() == 2 || arguments.len() == 3 && single == 2 && is_first;
        let by_number = takes_single(*function) && whole == 1 && numbers;
        for (given, &argument) in given.iter_mut().zip(arguments) {
            *given = match (own, self.kinds[argument]) {
                (own, other) if own == other => Given::Values(argument),
                (_, Kind::Single) if by_number => Given::Single(argument),
                (Kind::Places, Kind::Rows) if by_number && columns => Given::Columns(argument),
                (Kind::Places, Kind::Rows) if by_number => Given::Rows(argument),
                (Kind::Places, Kind::Inner) if by_number && self.inner_len() >= LONG => {
                    Given::Columns(argument)
                }
                _ => Given::Spread(argument),
            };
        }
        given
    }

    /// The nodes that are computed for a node which is placed.
    fn needed_by_placed(&self, id: NodeId, found: &mut Vec<NodeId>) {
        match &self.nodes[id] {
            Compiled::Choose { then, otherwise, .. } => {
                self.needed_by_placed(*then, found);
                self.needed_by_placed(*otherwise, found);
            }
            node if is_placed(node) => {}
            _ => found.push(id),
        }
    }

    /// The nodes that a sweep reduces, or writes.
    pub(super) fn wanted(&self, sweep: usize) -> Vec<NodeId> {
        let mut wanted: Vec<NodeId> = self.sweeps[sweep].reductions.iter().flat_map(Reducing::read).collect();
        if sweep + 1 == self.sweeps.len() {
            for result in &self.results {
                self.needed_by_placed(result.value, &mut wanted);
            }
        }
        wanted
    }

    /// How many steps of a sweep, or results, need each node.
    pub(super) fn users(&self, sweep: usize, needed: &[bool]) -> Vec<usize> {
        let mut users = vec![0; self.nodes.len()];
        for id in self.wanted(sweep) {
            users[id] += 1;
        }
        for id in (0..self.nodes.len()).filter(|&id| needed[id]) {
            for own in self.read_by(id) {
                users[own] += 1;
            }
        }
        users
    }

    /// The nodes whose registers a step reads.
    pub(super) fn read_by(&self, id: NodeId) -> Vec<NodeId> {
        let mut found = Vec::new();
        match &self.nodes[id] {
            Compiled::Choose { then, otherwise, .. } => {
                self.needed_by_placed(*then, &mut found);
                self.needed_by_placed(*otherwise, &mut found);
            }
            _ => found.extend(self.arguments(id)),
        }
        found
    }
}
