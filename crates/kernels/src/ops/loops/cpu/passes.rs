//! What a nest takes to run: passes one behind the other, each of which writes results or numbers of rows for a later one.

use super::super::nest::{FurtherResult, MAX_AXES, Nest, Node, NodeId, counted};
use super::super::text::ordered;
use super::program::Program;
use super::region::Region;
use super::tile::{Room, computes_again, has_columns};
use crate::cpu::blocks::BLOCKS_PER_WORKER;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::ops::elementwise::Function;

/// Parts of a pass that are enough for any number of threads.
const PARTS: usize = 16;

/// Places of a part along an axis, of which it has whole multiples.
const LEAST: usize = 16;

/// The fewest parts without which a loop is divided for threads, and the operations for which it is, in those of
/// [`Room::work`].
const FEW: usize = 8;
const DIVIDED: usize = 8;

/// Columns of a part: so many lie together in each row.
pub(super) const LEAST_COLUMNS: usize = 128;

/// Where values of a pass are: an operand, or what an earlier pass wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Operand(usize),
    Between(usize),
}

impl Place {
    pub(super) const fn between(self) -> Option<usize> {
        match self {
            Place::Operand(_) => None,
            Place::Between(place) => Some(place),
        }
    }
}

/// A nest whose results are written in one go.
#[derive(Debug, Clone)]
pub(super) struct Pass {
    pub(super) program: Program,
    pub(super) sources: Vec<Place>,
    pub(super) results: Vec<Place>,
    /// The outermost axes of all results, along which each one's parts lie one behind the other.
    pub(super) shared: Vec<usize>,
    /// All places.
    pub(super) whole: Region,
    pub(super) work: usize,
}

/// Passes, and the lengths of what lies between them.
#[derive(Debug, Clone, Default)]
pub(super) struct Passes {
    pub(super) passes: Vec<Pass>,
    pub(super) between: Vec<usize>,
}

/// How many simple operations a function takes.
pub(super) const fn operations(function: Function) -> usize {
    use Function::{Abs, Add, Maximum, Minimum, Mul, Neg, Relu, Square, SquaredDifference, Sub};
    match function {
        Abs | Add | Maximum | Minimum | Mul | Neg | Relu | Square | SquaredDifference | Sub => 1,
        _ => 8,
    }
}

/// Simple operations of a nest, what is read and written among them.
fn work(nest: &Nest) -> usize {
    let (depends, loops) = (nest.dependences(), nest.loops());
    let each = nest.nodes.iter().enumerate().map(|(id, node)| {
        let times = loops[id] as usize;
        times.saturating_mul(nest.count(depends[id])).saturating_mul(match node {
            Node::Apply(function, _) => operations(*function),
            Node::Reduce { over, .. } => nest.count(*over),
            Node::Read { .. } => 1,
            _ => 0,
        })
    });
    let written = nest.targets().map(|target| target.elements());
    each.chain(written).fold(0, usize::saturating_add)
}

/// The axes of each result, outermost first.
fn orders(nest: &Nest) -> Vec<Vec<usize>> {
    let further =
        nest.further.iter().map(|own| counted(&own.at, &nest.written, &nest.extents).unwrap_or_default());
    std::iter::once(nest.written.clone()).chain(further).collect()
}

/// The axes with which all of these begin.
fn common<'a>(orders: impl IntoIterator<Item = &'a Vec<usize>>) -> Vec<usize> {
    let mut orders = orders.into_iter();
    let mut common = orders.next().cloned().unwrap_or_default();
    for other in orders {
        let same = common.iter().zip(other).take_while(|(a, b)| a == b).count();
        common.truncate(same);
    }
    common
}

impl Passes {
    pub(super) fn of(nest: &Nest, room: &Room) -> Self {
        let mut passes = Passes::default();
        let nest = &nest.clone().tidied();
        let orders = orders(nest);
        let extent = |axes: &[usize]| axes.iter().map(|&axis| nest.extents[axis]).product::<usize>();
        // Results whose parts lie together are written in one go.
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for result in 0..orders.len() {
            let enough = extent(&orders[result]).min(PARTS);
            let joins = |group: &&mut Vec<usize>| {
                let all = group.iter().chain([&result]).map(|&own| &orders[own]);
                extent(&common(all)) >= enough
            };
            match groups.iter_mut().find(joins) {
                Some(group) => group.push(result),
                None => groups.push(vec![result]),
            }
        }
        let sources: Vec<Place> = (0..nest.sources.len()).map(Place::Operand).collect();
        let whole = groups.len() == 1;
        for group in groups {
            let own = if whole { nest.clone() } else { some(nest, &group) };
            passes.add(own, &sources, group.into_iter().map(Place::Operand).collect(), room);
        }
        passes
    }

    /// Adds the passes of a nest whose results are written in one go.
    fn add(&mut self, nest: Nest, sources: &[Place], results: Vec<Place>, room: &Room) {
        let row = nest.row_axes();
        let mut shared = common(&orders(&nest));
        if nest.reduces() {
            let of_rows = shared.iter().take_while(|&&axis| row & (1 << axis) != 0).count();
            shared.truncate(of_rows);
        }
        let parts: usize = shared.iter().map(|&axis| nest.extents[axis]).product();
        let work = work(&nest);
        let enough = work >= 2 * room.work && (has_columns(&nest) || nest.count(row) >= room.columns[2]);
        let of_rows = nest.written_axes() == row;
        if nest.reduces() && !of_rows && parts < PARTS && enough && !computes_again(&nest) {
            let reductions = reductions(&nest);
            return self.add_apart(&nest, &reductions, sources, results, room);
        }
        let beside = if has_columns(&nest) { LEAST_COLUMNS } else { 1 };
        if nest.reduces() && of_rows && parts < FEW * beside && work >= DIVIDED * room.work {
            let first = nest.first_reductions();
            if nest.values().any(|value| !first.contains(&value)) {
                return self.add_apart(&nest, &first, sources, results, room);
            }
            if let Some([parts, joins]) = nest.divided() {
                let between: Vec<Place> =
                    results.iter().map(|_| self.between(parts.target.elements())).collect();
                let shared = parts.written.clone();
                self.push(parts, shared, sources, between.clone(), room);
                let shared = joins.written.clone();
                return self.push(joins, shared, &between, results, room);
            }
        }
        self.push(nest, shared, sources, results, room);
    }

    /// A place for so many numbers between passes.
    fn between(&mut self, len: usize) -> Place {
        self.between.push(len);
        Place::Between(self.between.len() - 1)
    }

    /// Adds a pass, whose parts lie together along the axes of `shared`.
    fn push(&mut self, nest: Nest, shared: Vec<usize>, sources: &[Place], results: Vec<Place>, room: &Room) {
        let work = work(&nest);
        let strides = nest.results().map(|(at, _)| {
            let mut strides = [0; MAX_AXES];
            for (axis, own) in strides.iter_mut().enumerate().take(nest.extents.len()) {
                *own = at.stride(axis).and_then(|own| usize::try_from(own).ok()).unwrap_or_default();
            }
            strides
        });
        let program = Program::of(&nest, strides.collect(), room);
        let mut whole = Region { from: [0; MAX_AXES], to: [1; MAX_AXES] };
        whole.to.iter_mut().zip(&nest.extents).for_each(|(to, extent)| *to = *extent);
        self.passes.push(Pass { program, sources: sources.to_vec(), results, shared, whole, work });
    }

    /// Some reductions of all rows first, and then the results, which read them.
    fn add_apart(
        &mut self,
        nest: &Nest,
        reductions: &[NodeId],
        sources: &[Place],
        results: Vec<Place>,
        room: &Room,
    ) {
        let row = nest.row_axes();
        let (Some((&first, others)), Ok(rows)) = (reductions.split_first(), Dims::new(&[nest.count(row)]))
        else {
            return;
        };
        let mut own = Nest {
            written: ordered(nest, row),
            value: first,
            target: rows,
            further: Vec::new(),
            ..nest.clone()
        };
        let at = own.position();
        own.further =
            others.iter().map(|&value| FurtherResult { value, at: at.clone(), target: rows }).collect();
        let mut reader = nest.clone();
        let mut read_by = sources.to_vec();
        let mut between = Vec::with_capacity(reductions.len());
        for &reduction in reductions {
            between.push(self.between(rows.elements()));
            reader.nodes[reduction] = Node::Read {
                source: read_by.len(),
                at: at.clone(),
                guards: Vec::new(),
                otherwise: crate::emit::Bits(0.0),
            };
            read_by.extend(between.last());
            reader.sources.push(rows);
            reader.types.push(DType::F32);
        }
        self.add(own.tidied(), sources, between, room);
        self.add(reader.tidied(), &read_by, results, room);
    }
}

/// The nest that writes some results alone.
fn some(nest: &Nest, results: &[usize]) -> Nest {
    let each: Vec<(NodeId, FurtherResult)> = nest
        .values()
        .zip(nest.results())
        .map(|(value, (at, target))| (value, FurtherResult { value, at, target }))
        .collect();
    let mut own = nest.only(results.first().copied().unwrap_or_default());
    own.further = results.iter().skip(1).map(|&result| each[result].1.clone()).collect();
    own.tidied()
}

/// The reductions that results read, but for those that are reduced again.
fn reductions(nest: &Nest) -> Vec<NodeId> {
    let mut needed = vec![false; nest.nodes.len()];
    nest.values().for_each(|value| needed[value] = true);
    let mut found = Vec::new();
    for id in (0..nest.nodes.len()).rev() {
        if !needed[id] {
            continue;
        }
        match &nest.nodes[id] {
            Node::Reduce { .. } => found.push(id),
            node => node.arguments().into_iter().for_each(|own| needed[own] = true),
        }
    }
    found
}

impl Pass {
    /// The parts of the pass, about as many as wanted: the places of each, and its elements of each result.
    pub(super) fn parts(&self, wanted: usize) -> Vec<(Region, usize)> {
        let program = &self.program;
        let extent = |axis: usize| program.extents[axis];
        let elements: usize = self.written().map(extent).product();
        // Rows of some of the columns do not lie together: no more parts of these than must be.
        let columns = program.tiling.columns;
        let inner = program.tiling.rows.last().filter(|axis| columns && self.shared.last() == Some(axis));
        let wanted = if inner.is_some() { wanted.div_ceil(BLOCKS_PER_WORKER) } else { wanted };
        let (mut singles, mut depth) = (1, 0);
        while depth + 1 < self.shared.len() && singles * extent(self.shared[depth]) < wanted {
            singles *= extent(self.shared[depth]);
            depth += 1;
        }
        let Some(&axis) = self.shared.get(depth).filter(|_| wanted > 1) else {
            return vec![(self.whole, elements)];
        };
        // A part has whole tiles of a few places.
        let wide = inner == Some(&axis);
        let least = program.tiling.sizes[axis].min(if wide { LEAST_COLUMNS } else { LEAST });
        let size = extent(axis).div_ceil(wanted.div_ceil(singles)).next_multiple_of(least);
        let behind = elements / singles / extent(axis);
        let mut parts = Vec::with_capacity(singles * extent(axis).div_ceil(size));
        for single in 0..singles {
            let (mut rest, mut part) = (single, self.whole);
            for &own in self.shared[..depth].iter().rev() {
                (part.from[own], part.to[own]) = (rest % extent(own), rest % extent(own) + 1);
                rest /= extent(own);
            }
            for first in (0..extent(axis)).step_by(size) {
                (part.from[axis], part.to[axis]) = (first, (first + size).min(extent(axis)));
                parts.push((part, behind * (part.to[axis] - first)));
            }
        }
        parts
    }

    /// The axes of the results.
    fn written(&self) -> impl Iterator<Item = usize> + '_ {
        let strides = self.program.results.first().map(|result| result.strides);
        (0..self.program.extents.len()).filter(move |&axis| strides.is_some_and(|own| own[axis] > 0))
    }
}
