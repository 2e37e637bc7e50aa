//! Simple functions that are computed together with what they give: the function of their result, or its sum.

use super::super::nest::NodeId;
use super::program::{Compiled, Kind, LONG, Program};
use super::registers::LINE;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

/// What a reduction joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summand {
    /// The values of a node.
    Plain,
    /// Their squares.
    Squares,
    /// Their products with those of another node.
    Products(NodeId),
    /// Their differences from one value for each row.
    Differences(NodeId),
    /// The powers of these.
    Powers(NodeId),
    /// The squares of these differences.
    Deviations(NodeId),
    /// The squares of what their differences from the first one differ from the second one.
    DeviationsOfDifferences([NodeId; 2]),
    /// The place of the largest or the smallest, which another node gives.
    Place(NodeId),
}

/// A reduction of a loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reducing {
    pub(super) node: NodeId,
    pub(super) reduction: Reduction,
    pub(super) of: NodeId,
    pub(super) summand: Summand,
}

impl Reducing {
    /// The node that gives places, if it finds one.
    pub(super) const fn place(&self) -> Option<NodeId> {
        match self.summand {
            Summand::Place(place) => Some(place),
            _ => None,
        }
    }

    /// The nodes whose values it reads.
    pub(super) fn read(&self) -> impl Iterator<Item = NodeId> {
        let others = match self.summand {
            Summand::Products(other)
            | Summand::Differences(other)
            | Summand::Powers(other)
            | Summand::Place(other)
            | Summand::Deviations(other) => [Some(other), None],
            Summand::DeviationsOfDifferences(others) => others.map(Some),
            Summand::Plain | Summand::Squares => [None; 2],
        };
        std::iter::once(self.of).chain(others.into_iter().flatten())
    }
}

const fn is_simple(function: Function) -> bool {
    matches!(function, Function::Add | Function::Sub | Function::Mul)
}

impl Program {
    /// Has reductions compute what they add, and functions what they are of, where nothing else needs it in a register.
    pub(super) fn pair(&mut self) {
        for sweep in 0..self.sweeps.len() {
            for place in 0..self.sweeps[sweep].reductions.len() {
                let own = self.sweeps[sweep].reductions[place];
                if let Some(summed) = self.summed(own) {
                    self.sweeps[sweep].reductions[place] = summed;
                }
            }
        }
        // What is reduced or written has a register.
        let mut wanted = vec![false; self.nodes.len()];
        for sweep in 0..self.sweeps.len() {
            self.wanted(sweep).into_iter().for_each(|id| wanted[id] = true);
        }
        let mut needed = wanted.clone();
        for id in (0..self.nodes.len()).rev() {
            if needed[id] {
                self.read_by(id).into_iter().for_each(|own| needed[own] = true);
            }
        }
        for inner in (0..self.nodes.len()).rev() {
            if needed[inner] && !wanted[inner] && self.dissolve(inner, &needed) {
                needed[inner] = false;
            }
        }
        for id in (0..self.nodes.len()).rev() {
            if needed[id] {
                self.normalise(id, &wanted, &mut needed);
            }
        }
    }

    fn is_of_places(&self, id: NodeId) -> bool {
        self.kinds[id] == Kind::Places
    }

    /// The function of two nodes that a node is.
    fn binary(&self, id: NodeId) -> Option<(Function, NodeId, NodeId)> {
        match self.nodes[id] {
            Compiled::Apply(function, [a, b, _], 2) => Some((function, a, b)),
            _ => None,
        }
    }

    /// The reduction with the last function of what it adds.
    fn summed(&self, own: Reducing) -> Option<Reducing> {
        let adds = matches!(own.reduction, Reduction::Sum | Reduction::Mean);
        if !adds || !self.is_of_places(own.of) {
            return None;
        }
        let (of, summand) = match self.nodes[own.of] {
            Compiled::Apply(Function::Square, [of, ..], _) if self.is_of_places(of) => {
                self.deviations(of, Function::Sub).unwrap_or((of, Summand::Squares))
            }
            Compiled::Apply(Function::SquaredDifference, ..) => {
                self.deviations(own.of, Function::SquaredDifference)?
            }
            Compiled::Apply(Function::Mul, [a, b, _], _) if self.is_of_places(a) && self.is_of_places(b) => {
                if a == b {
                    self.deviations(a, Function::Sub).unwrap_or((a, Summand::Squares))
                } else {
                    (a, Summand::Products(b))
                }
            }
            Compiled::Apply(Function::Sub, [of, from, _], _)
                if self.is_of_places(of) && self.is_by_row(from) =>
            {
                (of, Summand::Differences(from))
            }
            Compiled::Apply(Function::Exp, [exponent, ..], _)
                if self.has_lines() && self.is_alone(own.of) =>
            {
                match self.binary(exponent)? {
                    (Function::Sub, of, from) if self.is_of_places(of) && self.is_by_row(from) => {
                        (of, Summand::Powers(from))
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Reducing { of, summand, ..own })
    }

    /// What differs in node `id`, which is `function`, from one value for each row.
    fn deviations(&self, id: NodeId, function: Function) -> Option<(NodeId, Summand)> {
        let (own, of, from) = self.binary(id)?;
        if own != function || !self.is_by_row(from) || !self.is_of_places(of) {
            return None;
        }
        match self.binary(of) {
            Some((Function::Sub, value, first)) if self.is_of_places(value) && self.is_by_row(first) => {
                Some((value, Summand::DeviationsOfDifferences([first, from])))
            }
            _ => Some((of, Summand::Deviations(from))),
        }
    }

    /// Whether it takes no longer to compute a power row by row than of all places of a tile one behind the other: what is left
    /// of a short row is no whole vector.
    fn has_lines(&self) -> bool {
        let size = |axes: &[usize]| axes.iter().map(|&axis| self.tiling.sizes[axis]).product::<usize>();
        let blocks = self.tiling.blocks.len();
        let loops = self.tiling.loops.iter().map(|axes| size(axes)).min().unwrap_or(1);
        let line = match (self.tiling.columns, self.tiling.rows.get(blocks..)) {
            (true, Some(columns)) => size(columns),
            _ => loops,
        };
        line >= LONG || line.is_multiple_of(LINE)
    }

    /// Whether one reduction reads a node, and nothing else.
    fn is_alone(&self, id: NodeId) -> bool {
        let reductions = self.sweeps.iter().flat_map(|sweep| &sweep.reductions);
        let readers = reductions.filter(|own| own.read().any(|read| read == id)).count();
        let by_nodes = (0..self.nodes.len()).any(|reader| self.read_by(reader).contains(&id));
        readers == 1 && !by_nodes && self.results.iter().all(|result| result.value != id)
    }

    /// Whether a node has a value for each row: a single one of a tile of one row.
    fn is_by_row(&self, id: NodeId) -> bool {
        match self.kinds[id] {
            Kind::Rows => true,
            Kind::Single => self.most_rows() == 1 && !matches!(self.nodes[id], Compiled::Number(_)),
            _ => false,
        }
    }

    /// Has the functions that read node `inner` compute it themselves, if it is simple and so are they, and nothing else of
    /// what is needed reads it.
    fn dissolve(&mut self, inner: NodeId, needed: &[bool]) -> bool {
        let Some((first, mut a, mut b)) = self.binary(inner) else { return false };
        if first != Function::Sub && !self.is_of_places(a) {
            (a, b) = (b, a);
        }
        if !is_simple(first) || !self.is_of_places(inner) || !self.is_of_places(a) {
            return false;
        }
        let mut pairs = Vec::new();
        for reader in (0..self.nodes.len()).filter(|&reader| needed[reader]) {
            let reads = match &self.nodes[reader] {
                Compiled::Choose { .. } => self.read_by(reader).contains(&inner),
                _ => self.arguments(reader).contains(&inner),
            };
            if !reads {
                continue;
            }
            if self.has_lines() && matches!(self.nodes[reader], Compiled::Apply(Function::Exp, ..)) {
                pairs.push((reader, Compiled::Pair { first, second: Function::Exp, arguments: [a, b, b] }));
                continue;
            }
            let Some((second, left, right)) = self.binary(reader) else { return false };
            let other = match (left == inner, right == inner) {
                (true, false) => right,
                (false, true) if second != Function::Sub => left,
                _ => return false,
            };
            if !is_simple(second) {
                return false;
            }
            pairs.push((reader, Compiled::Pair { first, second, arguments: [a, b, other] }));
        }
        for (reader, pair) in pairs {
            self.nodes[reader] = pair;
        }
        true
    }

    /// Has the scaling of what is normalised compute the differences that it scales, if nothing else needs these.
    fn normalise(&mut self, id: NodeId, wanted: &[bool], needed: &mut [bool]) {
        let scaled = |of: NodeId| match self.nodes[of] {
            Compiled::Pair { first: Function::Sub, second: Function::Mul, arguments: [difference, c, d] } => {
                let (function, a, b) = self.binary(difference)?;
                let by_row = self.kinds[b] == self.kinds[c] && self.kinds[c] == self.kinds[d];
                let by_row = by_row && self.kinds[b] != Kind::Places;
                let is_it = function == Function::Sub && self.is_of_places(a) && by_row;
                is_it.then_some((difference, [a, b, c, d]))
            }
            _ => None,
        };
        let each = |of: NodeId| match self.kinds[of] {
            Kind::Places | Kind::Inner => true,
            Kind::Rows => self.tiling.columns,
            Kind::Single => false,
        };
        let readers =
            |of: NodeId| (0..needed.len()).filter(|&id| needed[id] && self.read_by(id).contains(&of)).count();
        let alone = |of: NodeId| !wanted[of] && readers(of) == 1;
        let (inner, arguments, count) = match self.nodes[id] {
            Compiled::Pair { first: Function::Mul, second: Function::Add, arguments: [of, e, f] }
                if each(e) == each(f) && alone(of) =>
            {
                let Some((difference, [a, b, c, d])) = scaled(of) else { return };
                (vec![difference, of], [a, b, c, d, e, f], 6)
            }
            _ => {
                let Some((difference, [a, b, c, d])) = scaled(id) else { return };
                (vec![difference], [a, b, c, d, d, d], 4)
            }
        };
        if alone(inner[0]) {
            inner.into_iter().for_each(|own| needed[own] = false);
            self.nodes[id] = Compiled::Normalised { arguments, count };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::dtype::Precision;
    use crate::emit::Bits;
    use crate::ops::loops::cpu::passes::Passes;
    use crate::ops::loops::cpu::tile::Room;
    use crate::ops::normalize::{Normalize, NormalizeOp};
    use crate::ops::op::Op;

    /// Functions that scale and sums of a normalisation of these extents along the last axis or the second one.
    fn found(extents: &[usize], axis: isize) -> (usize, Vec<Summand>) {
        let dims = Dims::new(extents).expect("extents");
        let options = Normalize { axes: vec![axis], epsilon: Bits(1e-5), centred: true };
        let op = NormalizeOp::new(dims, &options, true, true, Precision::F32).expect("a normalisation");
        let passes = Passes::of(&op.nest().expect("a nest").nest, &Room::USUAL);
        let programs = passes.passes.iter().map(|pass| &pass.program);
        let scaled = programs.clone().flat_map(|program| {
            let steps = program.sweeps.iter().flat_map(|sweep| &sweep.steps);
            steps.filter(|step| matches!(program.nodes[step.node], Compiled::Normalised { .. }))
        });
        let sums =
            programs.clone().flat_map(|program| program.sweeps.iter().flat_map(|sweep| &sweep.reductions));
        (scaled.count(), sums.map(|own| own.summand).collect())
    }

    #[test]
    fn a_normalisation_has_one_function_and_two_sums() {
        for (extents, axis) in [(&[197, 768][..], 1), (&[5, 9000], 1), (&[2, 49, 128], 1)] {
            let (scaled, sums) = found(extents, axis);
            assert_eq!(scaled, 1, "{extents:?}");
            assert!(
                matches!(sums[..], [Summand::Differences(_), Summand::DeviationsOfDifferences(_)]),
                "{extents:?} has sums of {sums:?}"
            );
        }
    }
}
