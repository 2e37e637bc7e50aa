//! Few long rows as many short ones, which keep a GPU busy: a nest as two, of which the first reduces parts of each row and the
//! second what the parts gave.
//!
//! | reduction of a row | of what its parts give |
//! |---|---|
//! | sum, product, largest, smallest, any, all, mean | the reduction of what they give, since parts are equally long |
//! | mean of `(x - m)^2`, `m` the mean of `x` | the mean of `q_i + (m_i - m)^2`, `m_i` and `q_i` those of part `i` |
//!
//! The second line is Chan, Golub and LeVeque, *Updating Formulae and a Pairwise Algorithm for Computing Sample Variances*, 1979.

use super::index::Index;
use super::nest::{FurtherResult, Nest, Node, NodeId, Nodes, axes_of, element};
use super::rows::{lanes_of, width_along};
use super::text::ordered;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

/// Places of a row that is long: more than a work-group of any device keeps in registers.
const LONG: usize = 36 * 256;

/// Rows, or fours of them, of which a work-group each keeps a GPU busy.
const MANY_ROWS: usize = 512;

/// Places of a part: the least, those that are wanted, the most.
const PLACES: [usize; 3] = [512, 2048, 8192];

/// A nest in two.
#[derive(Debug, Clone)]
pub struct InParts {
    /// What the parts of each row give.
    pub parts: Nest,
    /// The rest, whose last sources are the results of `parts`.
    pub whole: Nest,
}

/// A divisor of `extent` by which `places` are nearest to what is wanted of a part.
fn divisor(extent: usize, places: usize) -> Option<usize> {
    let [least, wanted, most] = PLACES;
    let of_part = |by: usize| places / by;
    // Four elements at once stay so.
    let fours = |by: &usize| !extent.is_multiple_of(4) || (extent / by).is_multiple_of(4) || *by == extent;
    let all = places.div_ceil(most).max(2)..=extent.min(places / least);
    let found = all.filter(|&by| extent.is_multiple_of(by)).filter(fours);
    let off = |&by: &usize| of_part(by).max(wanted) * 1024 / of_part(by).min(wanted);
    found.min_by_key(off)
}

impl Nest {
    /// The nest in two, if it has few long rows whose reductions follow from those of parts.
    pub fn in_parts(&self) -> Option<InParts> {
        let reductions: Vec<NodeId> =
            (0..self.nodes.len()).filter(|&id| matches!(self.nodes[id], Node::Reduce { .. })).collect();
        let over = match self.nodes.get(*reductions.first()?) {
            Some(Node::Reduce { over, .. }) => *over,
            _ => return None,
        };
        let (row, types) = (self.row_axes(), self.node_types());
        let alike = |&id: &NodeId| {
            matches!(&self.nodes[id], Node::Reduce { over: own, place: None, .. } if *own == over)
                && types[id] == DType::F32
        };
        let rows = self.count(row) / width_along(lanes_of(self), row);
        let places = self.count(over);
        if !reductions.iter().all(alike)
            || row & !self.written_axes() != 0
            || places <= LONG
            || rows >= MANY_ROWS
        {
            return None;
        }
        let (axis, count) =
            axes_of(over).find_map(|axis| Some((axis, divisor(self.extents[axis], places)?)))?;
        let mut nest = self.clone();
        if count < self.extents[axis] {
            nest = nest.split(axis, self.extents[axis] / count);
        }
        let parts = nest.of_parts(axis, &reductions)?;
        let whole = nest.of_whole(axis, &reductions, &parts)?;
        Some(InParts { parts, whole })
    }

    /// Its reductions for each place along `axis` apart: all parts, of each its rows.
    fn of_parts(&self, axis: usize, reductions: &[NodeId]) -> Option<Nest> {
        let mut nest = self.clone();
        for node in &mut nest.nodes {
            if let Node::Reduce { over, .. } = node {
                *over &= !(1 << axis);
            }
        }
        let rows = ordered(self, self.row_axes());
        nest.written = [axis].into_iter().chain(rows).collect();
        nest.target = Dims::new(&[self.extents[axis], self.count(self.row_axes())]).ok()?;
        let (&first, others) = reductions.split_first()?;
        let (at, target) = (nest.position(), nest.target);
        nest.value = first;
        nest.further = others.iter().map(|&value| FurtherResult { value, at: at.clone(), target }).collect();
        nest.tidied().checked().ok()
    }

    /// The nest whose reductions are those of what the parts along `axis` give, its last sources.
    fn of_whole(&self, axis: usize, reductions: &[NodeId], parts: &Nest) -> Option<Nest> {
        let loop_axis = self.extents.len();
        let rows = ordered(self, self.row_axes());
        let extents: Vec<usize> = rows.iter().map(|&axis| self.extents[axis]).collect();
        let places: Vec<Index> = rows.iter().map(|&axis| Index::axis(axis)).collect();
        let mut whole = self.clone();
        whole.extents.push(self.extents[axis]);
        let own_row = element(&extents).with(&places, &whole.extents);
        let at = own_row.plus(&Index::axis(loop_axis), self.count(self.row_axes()) as i64);
        let (mut nodes, mut ids) = (Nodes::default(), Vec::with_capacity(self.nodes.len()));
        for node in &self.nodes {
            let new = |id: NodeId| ids.get(id).copied().unwrap_or_default();
            let of_parts = |id: NodeId, nodes: &mut Nodes| {
                let place = reductions.iter().position(|&own| own == id)?;
                Some(nodes.read(self.sources.len() + place, at.clone()))
            };
            let id = match node {
                &Node::Reduce { reduction, of, .. } => {
                    let mut own = of_parts(ids.len(), &mut nodes)?;
                    if self.stages()[of] > 0 {
                        let mean = self.squared_deviation(of).filter(|_| reduction == Reduction::Mean)?;
                        let of_part = of_parts(mean, &mut nodes)?;
                        let off = nodes.apply(Function::Sub, &[of_part, new(mean)]);
                        let square = nodes.apply(Function::Mul, &[off, off]);
                        own = nodes.apply(Function::Add, &[own, square]);
                    }
                    nodes.reduce(reduction, own, 1 << loop_axis)
                }
                other => nodes.add(other.mapped(&Index::clone, &new)),
            };
            ids.push(id);
        }
        whole.value = *ids.get(self.value)?;
        for own in &mut whole.further {
            own.value = *ids.get(own.value)?;
        }
        whole.nodes = nodes.nodes;
        whole.sources.extend(parts.targets());
        whole.types.resize(whole.sources.len(), DType::F32);
        whole.tidied().checked().ok()
    }

    /// The mean `m` of `x` where node `id` is `(x - m)^2`.
    fn squared_deviation(&self, id: NodeId) -> Option<NodeId> {
        let off = match self.nodes.get(id)? {
            Node::Apply(Function::Mul, own) if own.first() == own.last() => *own.first()?,
            Node::Apply(Function::Square, own) => *own.first()?,
            _ => return None,
        };
        let Node::Apply(Function::Sub, own) = self.nodes.get(off)? else { return None };
        let &[x, mean] = &own[..] else { return None };
        let is_mean = matches!(
            self.nodes.get(mean)?,
            Node::Reduce { reduction: Reduction::Mean, of, .. } if *of == x && self.stages()[x] == 0
        );
        is_mean.then_some(mean)
    }

    /// The nest with its rows apart in parts of what is written for each, if each has few places to reduce and many to write, and
    /// rows are few.
    pub(super) fn with_rows_apart(&self) -> Option<Nest> {
        let row = self.row_axes();
        let along = self.written_axes() & !row;
        let places = self.count(along);
        if places <= LONG || !self.reduces() {
            return None;
        }
        let over = |node: &Node| matches!(node, Node::Reduce { over, .. } if self.count(*over) > PLACES[0]);
        let rows = self.count(row) / width_along(lanes_of(self), row);
        if rows >= MANY_ROWS || self.nodes.iter().any(over) {
            return None;
        }
        let mut nest = self.clone();
        for axis in ordered(self, along & !self.loop_axes()) {
            let left = nest.count(along & !nest.apart);
            let extent = nest.extents[axis];
            if let Some(count) = divisor(extent, left) {
                if count < extent {
                    nest = nest.split(axis, extent / count);
                }
                nest.apart |= 1 << axis;
                return nest.checked().ok();
            }
            // Each place of the whole axis has too many along the others.
            if left / extent <= PLACES[2] {
                return None;
            }
            nest.apart |= 1 << axis;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::CpuKernel;
    use crate::dtype::Precision;
    use crate::emit::{Bits, Operand};
    use crate::ops::loops::cpu::LoopsKernel;
    use crate::ops::loops::{OpNest, result_operand};
    use crate::ops::normalize::{Normalize, NormalizeOp};
    use crate::ops::op::{Answer, Op};
    use crate::ops::operands::of;
    use crate::ops::reduce::{Reduce, ReduceOp};
    use crate::ops::softmax::{Softmax, SoftmaxOp};

    /// What a nest gives of these sources.
    fn results(nest: &Nest, sources: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let given: Vec<(Operand, &[f32])> =
            sources.iter().enumerate().map(|(place, own)| (Operand::Arg(place as u8), &own[..])).collect();
        let mut written: Vec<Vec<f32>> = nest.targets().map(|own| vec![f32::NAN; own.elements()]).collect();
        let mut outputs: Vec<(Operand, &mut [f32])> = written
            .iter_mut()
            .enumerate()
            .map(|(order, own)| (result_operand(order), &mut own[..]))
            .collect();
        LoopsKernel::of(nest).run(&given, &mut outputs).expect("it runs");
        written
    }

    /// Numbers around 4, so that a mean counts.
    fn noise(count: usize) -> Vec<f32> {
        (0..count).map(|index| ((index * 7919 + 13) % 1009) as f32 / 504.5 + 3.0).collect()
    }

    /// Whether the nest of `op` gives in two what the op's own oracle says.
    fn in_two_as_in_one(op: &dyn Op, OpNest { nest, operands, .. }: &OpNest, what: &str) {
        let InParts { parts, whole } = nest.in_parts().expect(what);
        assert!(nest.count(nest.row_axes()) < parts.target.elements(), "{what}");
        let mut sources: Vec<Vec<f32>> = nest.sources.iter().map(|dims| noise(dims.elements())).collect();
        let given: Vec<(Operand, &[f32])> =
            operands.iter().zip(&sources).map(|(operand, own)| (*operand, &own[..])).collect();
        let wanted = op.reference(&of(&given), Answer::Exact).expect("operands of the op");
        sources.extend(results(&parts, &sources));
        let found = results(&whole, &sources).swap_remove(0);
        assert_eq!(found.len(), wanted.value().len(), "{what}");
        for (place, (&found, &exact)) in found.iter().zip(wanted.value()).enumerate() {
            // What lies between is rounded too: less often than the terms, which the bound counts.
            let bound = 2.0 * wanted.tolerance(place, Precision::F32);
            assert!((f64::from(found) - exact).abs() <= bound, "{what}: {found} for {exact} +- {bound}");
        }
    }

    const CASES: [(&[usize], &[isize]); 5] = [
        (&[2, 9600], &[1]),
        (&[9600, 8], &[0]),
        (&[2, 98, 96, 6], &[1, 2]),
        (&[3, 2, 97, 99], &[2, 3]),
        (&[20, 2, 513], &[0, 2]),
    ];

    #[test]
    fn normalisations_in_parts_are_those_of_whole_rows() {
        for (extents, axes) in CASES {
            for centred in [true, false] {
                let options = Normalize { axes: axes.to_vec(), epsilon: Bits(1e-3), centred };
                let dims = Dims::new(extents).expect("small");
                let op = NormalizeOp::new(dims, &options, true, true, Precision::F32).expect("an op");
                let nest = op.as_nest().expect("a nest");
                in_two_as_in_one(&op, &nest, &format!("{extents:?} over {axes:?}, centred {centred}"));
            }
        }
    }

    #[test]
    fn reductions_in_parts_are_those_of_whole_rows() {
        for (extents, axes) in CASES {
            for reduction in Reduction::ALL {
                let options = Reduce { reduction, axes: axes.to_vec(), keep_dims: false };
                let dims = Dims::new(extents).expect("small");
                let op = ReduceOp::new(dims, &options, Precision::F32).expect("an op");
                let nest = Op::nest(&op).expect("a nest");
                if reduction != Reduction::Product {
                    in_two_as_in_one(
                        &op,
                        &nest,
                        &format!("{} of {extents:?} over {axes:?}", reduction.name()),
                    );
                }
            }
        }
    }

    #[test]
    fn what_does_not_follow_from_parts_stays_one() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let softmax = SoftmaxOp::new(dims(&[2, 9600]), &Softmax::default(), Precision::F32).expect("an op");
        assert!(Op::nest(&softmax).expect("a nest").nest.in_parts().is_none());
        for extents in [[2, 9216], [512, 9600], [2, 9601]] {
            let options = Normalize { axes: vec![1], ..Normalize::default() };
            let op = NormalizeOp::new(dims(&extents), &options, false, false, Precision::F32).expect("an op");
            let nest = op.as_nest().expect("a nest").nest;
            // Short rows, many of them, and 9601, which is a prime.
            assert!(nest.in_parts().is_none(), "{extents:?}");
        }
    }

    #[test]
    fn several_work_groups_write_a_long_row_of_which_little_is_reduced() {
        let options = Normalize { axes: vec![1], ..Normalize::default() };
        let dims = Dims::new(&[2, 9600]).expect("small");
        let op = NormalizeOp::new(dims, &options, false, false, Precision::F32).expect("an op");
        let nest = op.as_nest().expect("a nest").nest;
        assert!(nest.with_rows_apart().is_none());
        let whole = nest.in_parts().expect("parts").whole;
        let apart = whole.with_rows_apart().expect("rows apart");
        assert_eq!([whole.count(whole.row_axes()), apart.count(apart.row_axes())], [2, 10]);
    }

    #[test]
    fn an_axis_that_a_reduction_loops_over_is_in_no_row() {
        // What softmax(x0)[i] * x1[i, j] is, once it is one nest: the softmax goes along the axis that is written.
        let (extents, wide) = ([29, 512], 512);
        let mut nodes = Nodes::default();
        let x = nodes.read(0, Index::axis(0));
        let largest = nodes.reduce(Reduction::Max, x, 1);
        let difference = nodes.apply(Function::Sub, &[x, largest]);
        let power = nodes.apply(Function::Exp, &[difference]);
        let sum = nodes.reduce(Reduction::Sum, power, 1);
        let share = nodes.apply(Function::Div, &[power, sum]);
        let y = nodes.read(1, Index::axis(1).plus(&Index::axis(0), wide));
        let value = nodes.apply(Function::Mul, &[share, y]);
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let sources = vec![dims(&[29]), dims(&extents)];
        let nest = Nest::new(extents.to_vec(), vec![0, 1], sources, nodes, value, dims(&extents));
        let nest = nest.expect("a nest");
        assert!(nest.with_rows_apart().is_none_or(|apart| apart.row_axes() & apart.loop_axes() == 0));
    }
}
