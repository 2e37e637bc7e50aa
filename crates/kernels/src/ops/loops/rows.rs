//! `rows`: what a reduction depends on is a row, which `tile[0]` invocations compute together: each takes every so-manieth
//! place of a loop, and what they found is put together in local memory. `tile[1]` rows share a work-group, whose neighbours
//! are places of a row where `tile[2]` is 1, and rows where it is 2, so that either read memory in lines.

use super::LoopsOp;
use super::flat::{bindings, has_lanes, results, sources};
use super::index::{AxisSet, Index};
use super::joins::Reduced;
use super::kept::Kept;
use super::nest::{Nest, Node};
use super::row_text;
use super::text::{Stored, Text, ordered};
use super::written::Written;
use crate::dtype::{DType, Precision};
use crate::emit::{Binding, Body, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry};
use crate::ops::plan::Choice;
use crate::ops::reduce::groups::group_sizes;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{Params, extent};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Work-groups of a line: fewer than the 65535 that WebGPU launches along an axis.
const GROUPS: usize = 32768;

/// Invocations of a work-group.
pub(super) const SIZE: usize = 128;

/// Invocations of a row, but for one of very many places.
const LANES: usize = 256;

/// Fewer rows, or fours of rows, have more invocations each.
const FEW_ROWS: usize = 256;

/// Invocations that keep any device busy.
const BUSY: usize = 65536;

#[derive(Debug)]
pub(super) struct Rows;

/// Axes of rows, and those along which each row's results are written.
pub(super) struct Shape {
    pub(super) row: AxisSet,
    pub(super) along: AxisSet,
    pub(super) rows: usize,
    /// The most places of a loop.
    pub(super) longest: usize,
}

impl Shape {
    pub(super) fn of(nest: &Nest) -> Self {
        let row = nest.row_axes();
        let written = nest.written_axes();
        let along = written & !row;
        let over = nest.nodes.iter().map(|node| match node {
            Node::Reduce { over, .. } => nest.count(*over),
            _ => 1,
        });
        let longest = over.chain([nest.count(along)]).max().unwrap_or(1);
        Shape { row, along, rows: nest.count(row), longest }
    }
}

/// The axis along which an invocation has four elements at once, if it has: the last one of all loops, along which an operand
/// lies, or the last one of the result, so that four rows are computed together.
pub(super) fn lanes_of(nest: &Nest) -> Option<usize> {
    let shape = Shape::of(nest);
    lanes_along(nest, &shape).filter(|&axis| nest.has_words_along(axis)).or_else(|| {
        let &axis = nest.written.last()?;
        (shape.row & (1 << axis) != 0 && has_lanes(nest, axis)).then_some(axis)
    })
}

/// The axis of all loops along which an invocation has four elements at once.
fn lanes_along(nest: &Nest, shape: &Shape) -> Option<usize> {
    let all: Vec<AxisSet> = loops(nest).into_keys().map(|(_, over)| over).collect();
    let axes = if shape.along == 0 { *all.first()? } else { shape.along };
    let &axis = ordered(nest, axes).last()?;
    // A loop along other axes gives one number for all four elements.
    let fits = |&over: &AxisSet| over == axes || shape.along != 0 && over & axes == 0;
    (all.iter().all(fits) && has_lanes(nest, axis)).then_some(axis)
}

/// Whether what the next invocation along a row reads lies behind what the first one reads more often than what the
/// invocation of the next row reads.
fn is_along_rows(nest: &Nest, lanes: Option<usize>) -> bool {
    let row = nest.row_axes();
    let width = if lanes.is_some() { 4 } else { 1 };
    // From one place to the next along the last of these axes that has several.
    let next = |at: &Index, axes: AxisSet| {
        let places = |axis: usize| nest.extents[axis] / if lanes == Some(axis) { 4 } else { 1 };
        let axis = ordered(nest, axes).into_iter().rev().find(|&axis| places(axis) > 1)?;
        let step = at.stride(axis)? * if lanes == Some(axis) { 4 } else { 1 };
        Some(step != 0 && step.abs() <= width)
    };
    let (mut along, mut across) = (0usize, 0usize);
    for node in &nest.nodes {
        let Node::Read { at, .. } = node else { continue };
        if at.axes() & !row != 0 {
            along += usize::from(next(at, at.axes() & !row).unwrap_or_default());
            across += usize::from(next(at, row).unwrap_or_default());
        }
    }
    along >= across
}

/// How sources and results are bound.
pub(super) fn operands(op: &LoopsOp) -> [Vec<Stored>; 2] {
    let lanes = lanes_of(&op.stored);
    [sources(op, lanes), results(op, lanes)]
}

/// How the text numbers the type of what local memory has: 0 is f32, 1 and 2 are signed and unsigned integers.
pub(super) fn word_of(op: &LoopsOp) -> u32 {
    let types = op.stored.node_types();
    let reduced = op.stored.nodes.iter().find_map(|node| match node {
        Node::Reduce { of, .. } => types.get(*of),
        _ => None,
    });
    match reduced {
        Some(DType::I32) => 1,
        Some(DType::U32) => 2,
        _ => 0,
    }
}

/// Whether local memory has places too.
pub(super) fn has_places(op: &LoopsOp) -> bool {
    op.stored.nodes.iter().any(|node| matches!(node, Node::Reduce { place: Some(_), .. }))
}

/// Elements that an invocation has at a place.
pub(super) fn width(op: &LoopsOp) -> u32 {
    if lanes_of(&op.stored).is_some() { 4 } else { 1 }
}

/// Elements of an invocation along `axes` at a place.
pub(super) fn width_along(lanes: Option<usize>, axes: AxisSet) -> usize {
    if lanes.is_some_and(|axis| axes & (1 << axis) != 0) { 4 } else { 1 }
}

/// Reductions by stage and axes.
pub(super) type Loops = BTreeMap<(usize, AxisSet), Vec<Reduced>>;

/// The reductions of each stage, those over the same axes together.
pub(super) fn loops(nest: &Nest) -> Loops {
    let stages = nest.stages();
    let mut loops = Loops::new();
    for (id, node) in nest.nodes.iter().enumerate() {
        if let Node::Reduce { reduction, of, over, place } = node {
            let own = Reduced { id, reduction: *reduction, of: *of, place: *place };
            loops.entry((stages[id], *over)).or_default().push(own);
        }
    }
    loops
}

fn text(op: &LoopsOp, invocations: u32) -> Arc<Written> {
    op.text.of(invocations, || written(op, invocations))
}

fn written(op: &LoopsOp, invocations: u32) -> Written {
    let (nest, lanes) = (&*op.stored, lanes_of(&op.stored));
    let [stored, results] = operands(op);
    let mut text = Text::new(nest, lanes, &stored);
    let shape = Shape::of(nest);
    let order = ordered(nest, shape.row);
    row_text::write(&mut text, &shape, &order, &results, invocations);
    text.written()
}

/// Whether a kernel takes all scalars that the text names: they are the same for all tiles.
pub(super) fn has_scalars_for_all(op: &LoopsOp) -> bool {
    text(op, 2).has_all
}

impl Kernel<LoopsOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/loops/rows.wgsl")).in_rows()
    }

    /// First as many invocations for a row as have two places each.
    fn offers(&self, op: &LoopsOp, limits: &Limits) -> Vec<Offer> {
        if !op.stored.reduces() {
            return Vec::new();
        }
        let shape = Shape::of(&op.stored);
        let lanes = lanes_of(&op.stored);
        let along = is_along_rows(&op.stored, lanes);
        let of_row = width_along(lanes, shape.row);
        let longest = if lanes.is_some() && of_row == 1 { shape.longest / 4 } else { shape.longest };
        let rows = shape.rows / of_row;
        let largest = group_sizes(longest, limits).first().map_or(SIZE, |&[size, ..]| size as usize);
        let most = limits.max_invocations.max(1) as usize;
        let size = if rows < FEW_ROWS { largest.max(SIZE) } else { SIZE };
        let size = size.min(most).next_power_of_two();
        let best = (longest / 2).clamp(1, size).next_power_of_two().min(size);
        // What rows read in lines needs many of them side by side, or fewer fours, but for rows that keep a device busy.
        let enough = (BUSY / rows.max(1)).max(1).next_power_of_two();
        let wanted = if along { best } else { best.min(8 * of_row).min(enough) };
        let mut found = Vec::new();
        for lanes in [1usize, 4, 8, 16, 32, 64, 128, 256, 1024] {
            if lanes > most || lanes / 2 > longest || lanes > largest.max(LANES) {
                continue;
            }
            let rows = (size / lanes).clamp(1, rows.next_power_of_two());
            for order in [1, 2] {
                // With one row, or one invocation for each, there is one order.
                if order == 2 && (rows == 1 || lanes == 1) {
                    continue;
                }
                let usual = (order == 1) == (along || lanes == 1);
                let apart = (lanes.max(wanted) / lanes.min(wanted)).ilog2();
                let preference = apart + if usual || rows == 1 { 0 } else { 8 };
                found.push(Offer { preference, tile: [extent(lanes), extent(rows), order] });
            }
        }
        found
    }

    fn grid(&self, op: &LoopsOp, [lanes, rows, order]: [u32; 3]) -> [u32; 3] {
        let shape = Shape::of(&op.stored);
        let groups = (shape.rows / width_along(lanes_of(&op.stored), shape.row)).div_ceil(rows as usize);
        let [x, y] = [groups.min(GROUPS), groups.div_ceil(GROUPS)].map(extent);
        let [width, height] = if order == 2 { [rows, lanes] } else { [lanes, rows] };
        [x * width, y * height, 1]
    }

    fn work_groups(&self, _op: &LoopsOp, [lanes, rows, order]: [u32; 3]) -> Vec<[u32; 3]> {
        vec![if order == 2 { [rows, lanes, 1] } else { [lanes, rows, 1] }]
    }

    fn choice_obstacle(&self, op: &LoopsOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let wanted = self.work_groups(op, choice.tile);
        if !wanted.contains(&choice.work_group) {
            return Some(format!("a work-group of {:?}, its tile wants {wanted:?}", choice.work_group));
        }
        let bytes = 8 * width(op) * choice.tile[0] * choice.tile[1] * (1 + u32::from(has_places(op)));
        (choice.tile[0] > 1 && bytes > limits.local_memory)
            .then(|| format!("{bytes} bytes of local memory, the device has {}", limits.local_memory))
    }

    fn registers(&self, op: &LoopsOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        // Where nobody knows how many there are, they are not counted.
        limits.registers(choice.work_group.iter().product(), choice.tile[0] > 1)?;
        let lanes = lanes_of(&op.stored);
        let kept = Kept::of(&op.stored, choice.tile[0] as usize, lanes).numbers(lanes);
        let wanted = registers::of_kept(extent(kept).div_ceil(4));
        (kept > 0).then(|| match choice.tile[0] {
            1 => Registers::alone(wanted),
            _ => Registers::with_barriers(wanted),
        })
    }

    fn precision(&self, op: &LoopsOp) -> Option<Precision> {
        Some(op.precision_of_rows())
    }

    fn bindings(&self, op: &LoopsOp, _choice: &Choice) -> Vec<Binding> {
        let [sources, results] = operands(op);
        bindings(&sources, &results)
    }

    fn params(&self, op: &LoopsOp, choice: &Choice) -> Params {
        text(op, choice.tile[0]).params.clone()
    }

    fn body(&self, op: &LoopsOp, choice: &Choice) -> Body {
        text(op, choice.tile[0]).body.clone()
    }

    fn constants(&self, op: &LoopsOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [lanes, rows, order] = choice.tile;
        let apart = if order == 2 { rows } else { 1 };
        // A row's terms are added in an order that `lanes` decides alone.
        [
            ("LANES", lanes),
            ("SPLITS", lanes),
            ("ROWS", rows),
            ("ORDER", order),
            ("APART", apart),
            ("SLOTS", lanes * rows),
        ]
        .into_iter()
        .chain([("WIDTH", extent(GROUPS)), ("WIDE", u32::from(width(op) == 4)), ("WORD", word_of(op))])
        .map(|(name, value)| (name, Value::U32(value)))
        .collect()
    }
}
