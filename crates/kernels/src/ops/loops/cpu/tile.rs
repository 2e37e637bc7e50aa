//! How the axes of a nest are cut into tiles: what is computed at once, node by node.

use super::super::index::{AxisSet, Index};
use super::super::nest::{Nest, Node, axes_of};
use super::super::text::ordered;
use super::program::LONG;
use super::registers::LINE;
use crate::ops::elementwise::Function;

/// How much a tile has at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Places of a tile whose lines of a source are read again.
    pub(super) cached: usize,
    /// Places of a tile that are computed with, and of one that is reduced too.
    pub(super) block: usize,
    pub(super) reduced: usize,
    /// Places of a tile over which the values of a line are spread.
    pub(super) spread: usize,
    /// Places of a tile that are moved, or reduced, and not computed with.
    pub(super) moved: usize,
    /// Places of a tile of whole loops, so that what several of them need is computed once.
    pub(super) whole: usize,
    /// The most rows of a tile whose neighbours are rows, how many there are at least of long loops, and the fewest.
    pub(super) columns: [usize; 3],
    /// Places of a tile of a transpose along the last axis of the result, and along the one whose places are neighbours in a
    /// source.
    pub(super) turned: [usize; 2],
    /// Rows of a tile that lie behind each other in a source, where those of the result do not.
    pub(super) neighbours: usize,
    /// Operations of a pass that one thread does in the time that it takes to ask others.
    pub(super) work: usize,
}

impl Room {
    pub(super) const USUAL: Room = Room {
        cached: 8 * 1024,
        block: 3072,
        reduced: 8 * 1024,
        spread: 2048,
        moved: 64 * 1024,
        whole: 64 * 1024,
        columns: [4096, 64, 16],
        turned: [64, 16],
        neighbours: 8,
        work: 8 * 1024,
    };

    /// So little that small nests have many tiles, parts and passes.
    #[cfg(test)]
    pub(super) const SMALL: Room = Room {
        cached: 40,
        block: 6,
        reduced: 6,
        spread: 6,
        moved: 6,
        whole: 12,
        columns: [4, 3, 2],
        turned: [3, 2],
        neighbours: 2,
        work: 1,
    };
}

/// The axes of a nest with how many places of each a tile has.
#[derive(Debug, Clone)]
pub(super) struct Tiling {
    /// The axes of rows, outermost first.
    pub(super) rows: Vec<usize>,
    /// The axes of each loop; those along which results of a row are written come last.
    pub(super) loops: Vec<Vec<usize>>,
    /// Places of a tile along each axis.
    pub(super) sizes: Vec<usize>,
    /// Whether neighbours of a tile are places of other rows.
    pub(super) columns: bool,
    /// The axes of rows along which a tile has blocks of columns; the places of its loops lie within these.
    pub(super) blocks: Vec<usize>,
}

/// Whether it takes less to compute a function again than to keep its result.
const fn is_cheap(function: Function) -> bool {
    use Function::{Abs, Add, Div, Maximum, Minimum, Mul, Neg, Sqrt, Square, SquaredDifference, Sub};
    matches!(
        function,
        Abs | Add | Div | Maximum | Minimum | Mul | Neg | Sqrt | Square | SquaredDifference | Sub
    )
}

/// Whether several loops need the result of a function that takes long.
pub(super) fn computes_again(nest: &Nest) -> bool {
    let again = |(node, loops): (&Node, &u64)| match node {
        Node::Apply(function, _) => *loops > 1 && !is_cheap(*function),
        _ => false,
    };
    nest.nodes.iter().zip(&nest.loops()).any(again)
}

/// Whether tiles have whole loops, of as many columns as there are where neighbours are those, so that what several loops need
/// is computed once.
pub(super) fn keeps(nest: &Nest, room: &Room) -> bool {
    let row = nest.row_axes();
    let loops = nest.nodes.iter().filter_map(|node| match node {
        Node::Reduce { over, .. } => Some(nest.count(*over)),
        _ => None,
    });
    let longest = loops.max().unwrap_or(1).max(nest.count(nest.written_axes() & !row));
    let columns =
        if has_columns(nest) { ordered(nest, row).last().map_or(1, |&last| nest.extents[last]) } else { 1 };
    longest.saturating_mul(columns) <= room.whole
}

/// Whether more sources lie along rows than along what is reduced.
pub(super) fn has_columns(nest: &Nest) -> bool {
    let row = nest.row_axes();
    let (mut along, mut across) = (0usize, 0usize);
    for at in reads(nest) {
        if at.axes() & !row == 0 {
            continue;
        }
        let neighbours = |axes: AxisSet| {
            axes_of(axes).any(|axis| at.stride_inside(axis).is_some_and(|own| own.abs() == 1))
        };
        along += usize::from(neighbours(!row & at.axes()));
        across += usize::from(neighbours(row & at.axes()));
    }
    across > along
}

/// Gives axes as many places as `left` has room for, the first ones first and at most so many; what room is left.
fn grow(
    axes: impl Iterator<Item = (usize, usize)>,
    extents: &[usize],
    sizes: &mut [usize],
    left: usize,
) -> usize {
    let mut left = left;
    for (axis, most) in axes {
        let most = most.min(left).max(1);
        // Tiles are as large as each other, and begin where lines of a cache do.
        let size = extents[axis].div_ceil(extents[axis].div_ceil(most));
        let in_lines = size.next_multiple_of(LINE).min(extents[axis]);
        let size = if size >= 4 * LINE && in_lines <= most { in_lines } else { size };
        sizes[axis] = size;
        left = (left / size).max(1);
    }
    left
}

/// How many times as many places a tile has whose source is copied, so that what is copied lies together.
const COPIED: usize = 4;

/// Elements of a few lines of a cache, which are read for one of them.
const LINES: usize = 4 * LINE;

/// The index of each element that is read.
fn reads(nest: &Nest) -> impl Iterator<Item = &Index> {
    nest.nodes.iter().filter_map(|node| match node {
        Node::Read { at, .. } => Some(at),
        _ => None,
    })
}

/// Whether there are functions.
fn computes(nest: &Nest) -> bool {
    nest.nodes.iter().any(|node| matches!(node, Node::Apply(..)))
}

/// Places of a tile.
fn block(nest: &Nest, room: &Room) -> usize {
    if !computes(nest) {
        return room.moved;
    }
    if nest.reduces() { room.reduced } else { room.block }
}

impl Tiling {
    /// The tiles of `nest`, whose reductions are in loops over these axes.
    pub(super) fn of(nest: &Nest, over: &[AxisSet], room: &Room) -> Self {
        let row = nest.row_axes();
        let rows = ordered(nest, row);
        let along = ordered(nest, nest.written_axes() & !row);
        let mut loops: Vec<Vec<usize>> = over.iter().map(|&over| ordered(nest, over)).collect();
        loops.push(along);
        let sizes = vec![1; nest.extents.len()];
        let mut tiling = Tiling { rows, loops, sizes, columns: false, blocks: Vec::new() };
        if over.is_empty() {
            tiling.flat(nest, room);
        } else {
            tiling.columns = has_columns(nest);
            tiling.reduced(nest, room);
        }
        tiling
    }

    /// Sizes of a nest without reductions.
    fn flat(&mut self, nest: &Nest, sizes: &Room) {
        let Some((&inner, outer)) = nest.written.split_last() else { return };
        let mut room = block(nest, sizes);
        // What is the same for all lines is spread over all places of a tile: as few as there can be.
        let is_spread = |node: &Node| matches!(node, Node::Read { at, .. } if at.axes() == 1 << inner);
        if !outer.is_empty() && nest.extents[inner] < LONG && nest.nodes.iter().any(is_spread) {
            room = room.min(sizes.spread);
        }
        // The axis along which most sources lie that do not lie along the last one.
        let mut turned = vec![0usize; nest.extents.len()];
        for at in reads(nest) {
            if matches!(at.stride_inside(inner), Some(stride) if stride.abs() > 1) {
                for axis in axes_of(at.axes())
                    .filter(|&axis| at.stride_inside(axis).is_some_and(|own| own.abs() == 1))
                {
                    turned[axis] += 1;
                }
            }
        }
        let normal = [inner].into_iter().chain(outer.iter().rev().copied());
        let most = turned.iter().copied().max().unwrap_or_default();
        let neighbour = turned.iter().position(|&count| count == most && most > 0);
        match neighbour {
            Some(neighbour) => {
                let scale = if nest.is_move() { 4 } else { 1 };
                let most = sizes.turned.map(|most| most * scale);
                // Beside few places of one there are more of the other.
                let beside = |axis: usize, own: usize| {
                    (room / nest.extents[axis].min(room)).clamp(own.min(room), room)
                };
                let [columns, rows] =
                    [beside(neighbour, most[0]).min(room / most[1]), beside(inner, most[1])];
                let first = [(inner, columns), (neighbour, rows)];
                let rest = normal.filter(|&axis| axis != inner && axis != neighbour);
                let left = grow(first.into_iter(), &nest.extents, &mut self.sizes, room);
                // Other axes only beside whole ones, so that what is written lies together.
                let whole = [inner, neighbour].iter().all(|&axis| self.sizes[axis] == nest.extents[axis]);
                if whole {
                    grow(rest.map(|axis| (axis, usize::MAX)), &nest.extents, &mut self.sizes, left);
                }
            }
            None => {
                let behind =
                    reads(nest).find_map(|at| self.out_of_order(nest, at, inner)).unwrap_or_default();
                if !behind.is_empty() {
                    room = room.min(sizes.cached);
                }
                let first = behind.iter().copied();
                let rest = normal.filter(|axis| *axis != inner && !behind.contains(axis));
                let all = [inner].into_iter().chain(first).chain(rest);
                grow(all.map(|axis| (axis, usize::MAX)), &nest.extents, &mut self.sizes, room);
            }
        }
    }

    /// The axes along which elements of a few lines of a source lie behind those of the last axis, if that is not the order of
    /// the result.
    fn out_of_order(&self, nest: &Nest, at: &Index, inner: usize) -> Option<Vec<usize>> {
        let mut run = nest.extents[inner];
        let mut behind: Vec<usize> = Vec::new();
        if at.stride_inside(inner) != Some(1) {
            return None;
        }
        while run < LINES {
            let is_next =
                |axis: &usize| nest.extents[*axis] > 1 && at.stride_inside(*axis) == Some(run as i64);
            let Some(next) = nest.written.iter().copied().find(is_next) else { break };
            behind.push(next);
            run *= nest.extents[next];
        }
        let usual = nest.written.iter().rev().skip(1).copied().filter(|&axis| nest.extents[axis] > 1);
        let in_order = usual.zip(&behind).all(|(usual, own)| usual == *own);
        (!in_order).then_some(behind)
    }

    /// Sizes of a nest with reductions.
    fn reduced(&mut self, nest: &Nest, sizes: &Room) {
        let extents = &nest.extents;
        let count = |axes: &[usize]| axes.iter().map(|&axis| extents[axis]).product::<usize>();
        let longest = self.loops.iter().map(|axes| count(axes)).max().unwrap_or(1);
        let keeps = computes_again(nest);
        let every = |axes: &[usize]| axes.iter().rev().map(|&axis| (axis, usize::MAX)).collect::<Vec<_>>();
        let mut room = block(nest, sizes);
        let rows = if self.columns {
            let most = (sizes.whole / longest).min(sizes.columns[0]);
            if keeps && most >= sizes.columns[2] {
                // Whole rows of a source need not be copied.
                let all = self.rows.last().map_or(1, |&last| extents[last]);
                let rows = if all <= most { all } else { COPIED * room / longest };
                room = sizes.whole;
                rows.max(sizes.columns[1]).min(most)
            } else {
                sizes.columns[0]
            }
        } else {
            if keeps && longest <= sizes.whole && longest > room {
                room = sizes.whole;
            }
            room / longest
        };
        match self.rows.split_last() {
            // Columns stay as they lie, unless they are few and short: these are copied, each in one piece (below).
            Some((&last, others))
                if self.columns && (extents[last] >= sizes.columns[2] || extents[last] * longest >= LONG) =>
            {
                let left = grow([(last, rows)].into_iter(), extents, &mut self.sizes, rows);
                if self.sizes[last] == extents[last] {
                    let blocks = left.min(block(nest, sizes) / (longest * extents[last]).max(1));
                    grow(every(others).into_iter(), extents, &mut self.sizes, blocks.max(1));
                    self.blocks = others.to_vec();
                }
            }
            _ => {
                let mut order = every(&self.rows);
                // Some rows that lie behind each other in a source come first, where those of the result do not.
                let longest = longest as i64;
                let next = reads(nest).find_map(|at| {
                    self.rows.iter().copied().find(|&axis| at.stride_inside(axis) == Some(longest))
                });
                if let Some(next) = next.filter(|next| self.rows.last() != Some(next) && extents[*next] > 1) {
                    order.retain(|(axis, _)| *axis != next);
                    order.insert(0, (next, sizes.neighbours));
                }
                grow(order.into_iter(), extents, &mut self.sizes, rows.max(1));
            }
        }
        let taken: usize = self.rows.iter().map(|&axis| self.sizes[axis]).product();
        for axes in &self.loops {
            grow(every(axes).into_iter(), extents, &mut self.sizes, (room / taken).max(1));
        }
    }
}
