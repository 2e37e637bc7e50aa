//! About how long a nest takes on the CPU.
//!
//! It says whether two nests take longer than the one that they are together, and predicts no time: nanoseconds of one thread
//! whose vectors have eight numbers or more.

use super::super::nest::{Nest, Node, axes_of};
use super::passes::{LEAST_COLUMNS, operations};
use super::tile::{self, Room};
use crate::ops::elementwise::Function;

/// From this time on threads share what an op computes.
const SHARED: f64 = 10_000.0;

/// What it takes to begin a step.
pub const STEP: f64 = 500.0;

/// A number that is moved between memory and registers in its order, and one that is not.
const MOVED: f64 = 0.15;
const MOVED_APART: f64 = 0.5;

/// A function of a number that is one instruction, and another one.
const SIMPLE: f64 = 0.06;
const LONG: f64 = 0.7;

fn operation(function: Function) -> f64 {
    if operations(function) == 1 { SIMPLE } else { LONG }
}

impl Nest {
    /// Nanoseconds of a thread on the CPU.
    pub fn nanoseconds(&self) -> f64 {
        let mut loops = self.loops();
        if self.reduces() && tile::keeps(self, &Room::USUAL) {
            for (node, loops) in self.nodes.iter().zip(&mut loops) {
                if matches!(node, Node::Apply(..)) {
                    *loops = 1;
                }
            }
        }
        let time = self.estimate(&loops);
        // Rows of which there are few are not shared by threads, but where they are all that is written.
        let rows = self.count(self.row_axes());
        let least = if tile::has_columns(self) { 2 * LEAST_COLUMNS } else { 2 };
        let few = rows < least && self.written_axes() != self.row_axes();
        if self.reduces() && few && time > SHARED { 2.0 * time } else { time }
    }

    /// Nanoseconds where nodes are computed in so many loops.
    fn estimate(&self, loops: &[u64]) -> f64 {
        let (depends, written) = (self.dependences(), self.written.last().copied());
        let row = self.row_axes();
        let mut time = STEP;
        for (at, target) in self.results() {
            let in_line = written.is_none_or(|axis| matches!(at.stride_inside(axis), Some(0 | 1)));
            time += target.elements() as f64 * if in_line { MOVED } else { MOVED_APART };
        }
        for (id, node) in self.nodes.iter().enumerate() {
            let times = loops[id] as f64 * self.count(depends[id]) as f64;
            time += match node {
                Node::Apply(function, _) => times * operation(*function),
                Node::Reduce { over, place, .. } => {
                    let operation = if place.is_some() { LONG } else { SIMPLE };
                    self.count(depends[id] | over) as f64 * operation
                }
                // Where guards of several axes hold changes from line to line.
                Node::Read { guards, .. } | Node::Choose { guards, .. }
                    if guards.iter().any(|guard| guard.index.axes().count_ones() > 1) =>
                {
                    times * MOVED_APART
                }
                Node::Read { at, guards, .. } => {
                    let in_line = |axis: usize| matches!(at.stride_inside(axis), Some(0 | 1));
                    let along = axes_of(depends[id] & !row).any(|axis| at.stride_inside(axis) == Some(1));
                    let follows = (written.is_none_or(in_line) || along) && guards.is_empty();
                    let elements = self.count(at.axes()) as f64;
                    let first = elements.min(times) * MOVED;
                    first + times * if follows { 0.0 } else { MOVED_APART - MOVED }
                }
                Node::Choose { .. } => times * MOVED,
                _ => 0.0,
            };
        }
        time
    }
}
