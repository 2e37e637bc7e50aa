//! About how long a nest takes on the CPU.
//!
//! It says whether two nests take longer than the one that they are together, and predicts no time: nanoseconds of one thread
//! whose vectors have eight numbers or more.

use super::super::nest::{Nest, Node, axes_of};
use super::tile::{self, Room};
use crate::ops::elementwise::Function;

/// What it takes to begin a step.
pub const STEP: f64 = 500.0;

/// A number that is moved between memory and registers in its order, and one that is not.
const MOVED: f64 = 0.15;
const MOVED_APART: f64 = 0.5;

/// A function of a number that is one instruction, and another one.
const SIMPLE: f64 = 0.06;
const LONG: f64 = 0.7;

/// The part of a nest's time that the kernel of an op takes which reduces: .6 to 1.2 in rows of 32 to 784 numbers on an AMD
/// EPYC with AVX-512.
const OF_OP: f64 = 0.8;

const fn operation(function: Function) -> f64 {
    use Function::{Abs, Add, Maximum, Minimum, Mul, Neg, Relu, Square, SquaredDifference, Sub};
    match function {
        Abs | Add | Maximum | Minimum | Mul | Neg | Relu | Square | SquaredDifference | Sub => SIMPLE,
        _ => LONG,
    }
}

impl Nest {
    /// Nanoseconds of a thread on the CPU for the op of which it says what it computes.
    ///
    /// The op's own kernel computes no function twice, and has loops of its own for what it reduces.
    pub fn nanoseconds_of_op(&self) -> f64 {
        let time = self.estimate(&vec![1; self.nodes.len()]);
        if self.reduces() { OF_OP * time } else { time }
    }

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
        self.estimate(&loops)
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
                Node::Reduce { over, .. } => self.count(depends[id] | over) as f64 * SIMPLE,
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
