//! Simple functions that are computed together with what they give: the function of their result, or its sum.

use super::super::nest::NodeId;
use super::program::{Compiled, Kind, Program};
use super::tile::Room;
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
    /// The squares of their differences from one value for each row.
    Deviations(NodeId),
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
    /// The nodes whose values it reads.
    pub(super) fn read(&self) -> impl Iterator<Item = NodeId> {
        let other = match self.summand {
            Summand::Products(other) | Summand::Deviations(other) => Some(other),
            Summand::Plain | Summand::Squares => None,
        };
        std::iter::once(self.of).chain(other)
    }
}

const fn is_simple(function: Function) -> bool {
    matches!(function, Function::Add | Function::Sub | Function::Mul)
}

impl Program {
    /// Has reductions compute what they add, and functions what they are of, where nothing else needs it in a register.
    pub(super) fn pair(&mut self, room: &Room) {
        let narrow = self.tiling.columns && self.most_rows() < room.summed;
        for sweep in 0..self.sweeps.len() {
            for place in 0..self.sweeps[sweep].reductions.len() {
                let own = self.sweeps[sweep].reductions[place];
                if let (false, Some(summed)) = (narrow, self.summed(own)) {
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
            _ => return None,
        };
        Some(Reducing { of, summand, ..own })
    }

    /// What differs in node `id`, which is `function`, from one value for each row.
    fn deviations(&self, id: NodeId, function: Function) -> Option<(NodeId, Summand)> {
        let (own, of, from) = self.binary(id)?;
        // Of a tile of one row there is one value.
        let by_row = match self.kinds[from] {
            Kind::Rows => true,
            Kind::Single => self.most_rows() == 1 && !matches!(self.nodes[from], Compiled::Number(_)),
            _ => false,
        };
        (own == function && by_row && self.is_of_places(of)).then_some((of, Summand::Deviations(from)))
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::dtype::Precision;
    use crate::emit::Bits;
    use crate::ops::loops::cpu::passes::Passes;
    use crate::ops::normalize::{Normalize, NormalizeOp};
    use crate::ops::op::Op;

    /// Pairs and sums of a normalisation of these extents along the last axis or the second one.
    fn found(extents: &[usize], axis: isize) -> (usize, Vec<Summand>) {
        let dims = Dims::new(extents).expect("extents");
        let options = Normalize { axes: vec![axis], epsilon: Bits(1e-5), centred: true };
        let op = NormalizeOp::new(dims, &options, true, true, Precision::F32).expect("a normalisation");
        let passes = Passes::of(&op.nest().expect("a nest").nest, &Room::USUAL);
        let programs = passes.passes.iter().map(|pass| &pass.program);
        let pairs = programs.clone().flat_map(|program| {
            let steps = program.sweeps.iter().flat_map(|sweep| &sweep.steps);
            steps.filter(|step| matches!(program.nodes[step.node], Compiled::Pair { .. }))
        });
        let sums =
            programs.clone().flat_map(|program| program.sweeps.iter().flat_map(|sweep| &sweep.reductions));
        (pairs.count(), sums.map(|own| own.summand).collect())
    }

    #[test]
    fn a_normalisation_has_two_pairs_and_a_sum_of_deviations() {
        for (extents, axis) in [(&[197, 768][..], 1), (&[5, 9000], 1), (&[2, 49, 128], 1)] {
            let (pairs, sums) = found(extents, axis);
            assert_eq!(pairs, 2, "{extents:?}");
            assert!(
                matches!(sums[..], [Summand::Plain, Summand::Deviations(_)]),
                "{extents:?} has sums of {sums:?}"
            );
        }
    }
}
