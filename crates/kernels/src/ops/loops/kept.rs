//! What several loops of a row need: the first one keeps it in registers where an invocation has few places.
//!
//! A softmax reads each element for the largest one, for the sum and for the result; a normalisation for the mean, for the
//! variance and for the result. All of their loops go along the same axes, so that an invocation has the same places in each.

use super::index::AxisSet;
use super::nest::{Nest, Node, NodeId};
use super::rows::{loops, width_along};
use super::text::Text;
use crate::ops::elementwise::Function;

/// The most places of a loop that an invocation has, with what it computes written once for each.
const MAX_PLACES: usize = 12;

/// The most numbers that an invocation keeps.
const MAX_KEPT: usize = 48;

/// The most invocations of a row.
const MAX_LANES: usize = 256;

/// The nodes that loops over some axes keep for later ones.
pub(super) struct Kept {
    axes: AxisSet,
    /// The places that an invocation has along them.
    pub(super) places: usize,
    /// Each node, and in which loop it is computed, counted in their order.
    pub(super) nodes: Vec<(NodeId, usize)>,
}

/// Whether it takes less to compute a function again than to keep its result.
const fn is_cheap(function: Function) -> bool {
    matches!(
        function,
        Function::Abs | Function::Add | Function::Mul | Function::Neg | Function::Sub | Function::Square
    )
}

/// The loops over `axes` in their order, the one that writes the result among them as the last: what each computes.
fn loops_over(nest: &Nest, axes: AxisSet) -> Vec<(usize, Vec<NodeId>)> {
    let each = loops(nest).into_iter().enumerate();
    let own = each.filter(|(_, ((_, over), _))| *over == axes);
    let mut found: Vec<(usize, Vec<NodeId>)> =
        own.map(|(order, (_, reductions))| (order, reductions.iter().map(|own| own.of).collect())).collect();
    let written = nest.written_axes();
    if written & !nest.row_axes() == axes {
        found.push((usize::MAX, nest.values().collect()));
    }
    found
}

/// For each node which of some loops compute it, a bit for each in their order.
fn wanted(nest: &Nest, loops: &[(usize, Vec<NodeId>)]) -> Vec<u64> {
    let mut wanted = vec![0u64; nest.nodes.len()];
    for (place, (_, values)) in loops.iter().enumerate().take(63) {
        for &value in values {
            wanted[value] |= 1 << place;
        }
    }
    for id in (0..nest.nodes.len()).rev() {
        // What a reduction reads is computed in its own loop.
        if matches!(nest.nodes[id], Node::Reduce { .. }) {
            continue;
        }
        for argument in nest.nodes[id].arguments() {
            wanted[argument] |= wanted[id];
        }
    }
    wanted
}

/// The axes of the result along which a row's elements are written, or those of its first loop.
fn axes(nest: &Nest) -> AxisSet {
    let written = nest.written_axes();
    match written & !nest.row_axes() {
        0 => loops(nest).into_keys().next().map_or(0, |(_, over)| over),
        along => along,
    }
}

impl Nest {
    /// The nodes that later loops over the same axes read again, each with the loop that computes it; and these axes.
    fn read_again(&self) -> (AxisSet, Vec<(NodeId, usize)>) {
        let axes = axes(self);
        let loops = loops_over(self, axes);
        let (wanted, depends) = (wanted(self, &loops), self.dependences());
        let first = |id: NodeId| wanted[id].trailing_zeros();
        let several = |id: NodeId| wanted[id].count_ones() > 1 && depends[id] & axes != 0;
        let mut kept = vec![false; self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate() {
            let cheap = match node {
                Node::Number(_)
                | Node::Place(_)
                | Node::Integer { .. }
                | Node::Reduce { .. }
                | Node::Byte(_) => true,
                Node::Apply(function, arguments) => {
                    is_cheap(*function) && arguments.iter().all(|&own| kept[own] || depends[own] & axes == 0)
                }
                Node::ApplyIntegers { .. }
                | Node::Choose { .. }
                | Node::Gather { .. }
                | Node::Read { .. } => false,
            };
            kept[id] = several(id) && !cheap;
        }
        // What only others that are kept are made of is not read again.
        for id in 0..self.nodes.len() {
            let read_later = |(user, node): (usize, &Node)| {
                let later = wanted[user] & !(1 << first(id));
                let again = if kept[user] { later & (1 << first(user)) } else { later };
                node.arguments().contains(&id) && again != 0
            };
            let of_loop = loops
                .iter()
                .enumerate()
                .any(|(place, (_, values))| place as u32 > first(id) && values.contains(&id));
            kept[id] = kept[id] && (of_loop || self.nodes.iter().enumerate().any(read_later));
        }
        let nodes = kept.iter().enumerate().filter(|(_, kept)| **kept);
        (axes, nodes.map(|(id, _)| (id, loops[first(id) as usize].0)).collect())
    }

    /// For each node whether all loops but one find it in registers, if a row has few enough places.
    pub(super) fn once(&self) -> Vec<bool> {
        let mut once = vec![false; self.nodes.len()];
        let (axes, nodes) = self.read_again();
        if self.count(axes) > MAX_PLACES * MAX_LANES {
            return once;
        }
        for (id, _) in nodes {
            once[id] = true;
        }
        // What these are made of is not computed again, but for what others read.
        let depends = self.dependences();
        let again = |id: usize, once: &[bool]| {
            self.nodes.iter().enumerate().any(|(user, node)| node.arguments().contains(&id) && !once[user])
        };
        for id in (0..self.nodes.len()).rev() {
            if !once[id]
                && depends[id] & axes != 0
                && !self.values().any(|value| value == id)
                && !again(id, &once)
            {
                once[id] = true;
            }
        }
        once
    }
}

impl Kept {
    /// What so many invocations of a row keep, each of which has four elements along the axis of `lanes`: nothing, if it has
    /// many.
    pub(super) fn of(nest: &Nest, invocations: usize, lanes: Option<usize>) -> Self {
        let (axes, nodes) = nest.read_again();
        let width = if lanes.is_some() { 4 } else { 1 };
        let places = (nest.count(axes) / width_along(lanes, axes)).div_ceil(invocations.max(1));
        let fits = places <= MAX_PLACES && places * width * nodes.len() <= MAX_KEPT;
        Kept { axes, places, nodes: if fits { nodes } else { Vec::new() } }
    }

    /// The numbers that an invocation keeps.
    pub(super) fn numbers(&self, lanes: Option<usize>) -> usize {
        let width = if lanes.is_some() { 4 } else { 1 };
        self.places * width * self.nodes.len()
    }

    /// The places that are written one behind the other in a loop over `axes`, if something is kept there.
    pub(super) fn places_of(&self, axes: AxisSet) -> Option<usize> {
        (axes == self.axes && !self.nodes.is_empty()).then_some(self.places)
    }

    /// Gives what earlier loops kept its name in loop `order`.
    pub(super) fn name(&self, text: &mut Text<'_>, axes: AxisSet, order: usize, place: usize) {
        for &(id, _) in self.nodes.iter().filter(|(_, first)| axes == self.axes && *first < order) {
            text.known(id, &format!("k{id}_{place}"));
        }
    }

    /// Keeps what is computed in loop `order`.
    pub(super) fn keep(&self, text: &mut Text<'_>, axes: AxisSet, order: usize, place: usize) {
        for &(id, _) in self.nodes.iter().filter(|(_, first)| axes == self.axes && *first == order) {
            let value = text.value(id);
            text.line(&format!("k{id}_{place} = {value};"));
        }
    }
}
