//! About how long a nest takes on a GPU: a launch, and what takes longer of moving its elements and computing.
//!
//! It says whether two nests take longer than the one that they are together, and predicts no time. An element that is read
//! again comes from a cache; one that neighbours do not read in a line brings others along. What caches, lines and functions
//! cost are rough figures that serve any GPU, and were not fitted to one: most of what a composition saves is a launch.

use super::index::{Index, Term};
use super::nest::{Nest, Node, axes_of, elements_in};
use super::rows;
use crate::limits::machine::Machine;
use crate::ops::elementwise::Function;
use crate::ops::integer::IntegerFunction;

/// How much faster a cache gives an element that was read before.
const CACHED: f64 = 6.0;

/// How many elements come with one that neighbours do not read in a line.
const BROUGHT_ALONG: f64 = 3.0;

/// Operations of a quotient of whole numbers.
const QUOTIENT: f64 = 16.0;

/// Operations of each invocation of a row to put together what they found.
const JOINING: f64 = 64.0;

/// Operations of a function that is not one instruction.
fn operations(function: Function) -> f64 {
    use Function::{
        Abs, Add, Clamp, Equal, Greater, GreaterEqual, Less, LessEqual, Maximum, Minimum, Mul, Neg, NotEqual,
        Relu, Relu6, Select, Square, SquaredDifference, Sub,
    };
    match function {
        Abs | Add | Mul | Neg | Sub | Square | SquaredDifference | Select => 1.0,
        Clamp | Equal | Greater | GreaterEqual | Less | LessEqual | Maximum | Minimum | NotEqual | Relu
        | Relu6 => 4.0,
        _ => 20.0,
    }
}

/// Operations of a function of integers.
fn operations_of_integers(function: IntegerFunction) -> f64 {
    use IntegerFunction::{Div, FloorDiv, FloorMod, Pow, Rem};
    match function {
        Div | Rem | FloorDiv | FloorMod => QUOTIENT,
        Pow => 96.0,
        _ => 1.0,
    }
}

/// Quotients and remainders in an index.
fn quotients(index: &Index) -> usize {
    let mut count = 0;
    index.sums(&mut |sum| {
        let divides = |term: &&Term| matches!(term, Term::Quotient(..) | Term::Remainder(..));
        count += sum.terms().keys().filter(divides).count();
    });
    count
}

impl Nest {
    /// Clocks of a unit of `machine`, with elements of `bytes`.
    pub fn clocks(&self, machine: &Machine, bytes: usize) -> f64 {
        let (depends, row) = (self.dependences(), self.row_axes());
        // What registers keep is read and computed once.
        let loops: Vec<u64> = self
            .loops()
            .into_iter()
            .zip(self.once())
            .map(|(loops, once)| if once { 1 } else { loops })
            .collect();
        let elements = elements_in(self.target, self.result_type(0)) as f64;
        let written = self.written.last().copied();
        let (mut moved, mut computed) = (elements, elements * self.written.len() as f64 * QUOTIENT);
        for own in &self.further {
            let in_line = |axis: usize| matches!(own.at.stride(axis), Some(0 | 1));
            moved += elements * if written.is_none_or(in_line) { 1.0 } else { BROUGHT_ALONG };
        }
        for (id, node) in self.nodes.iter().enumerate() {
            let times = loops[id] as f64 * self.count(depends[id]) as f64;
            computed += match node {
                Node::Apply(function, _) => times * operations(*function),
                Node::ApplyIntegers { function, .. } => times * operations_of_integers(*function),
                Node::Gather { .. } => {
                    moved += times * BROUGHT_ALONG;
                    times
                }
                Node::Reduce { over, .. } => self.count(depends[id] | over) as f64,
                Node::Read { source, at, .. } => {
                    let elements = elements_in(self.sources[*source], self.types[*source]) as f64;
                    let read = times.min(self.count(at.axes()) as f64).min(elements);
                    let in_line = |axis: usize| matches!(at.stride(axis), Some(0 | 1));
                    let along = axes_of(depends[id] & !row).any(|axis| at.stride(axis) == Some(1));
                    let apart = if written.is_none_or(in_line) || along { 1.0 } else { BROUGHT_ALONG };
                    moved += read * apart + (times - read) / CACHED;
                    0.0
                }
                _ => 0.0,
            };
            let divided: usize = node.indices().into_iter().map(quotients).sum();
            computed += times * divided as f64 * QUOTIENT;
        }
        for ((_, over), _) in rows::loops(self) {
            let lanes = (self.count(over) / 2).clamp(1, rows::SIZE) as f64;
            computed += self.count(row) as f64 * lanes * JOINING;
        }
        // Few rows leave units without work.
        let busy = if self.reduces() {
            let rows = self.count(row) / rows::width_along(rows::lanes_of(self), row);
            (rows as f64 / f64::from(machine.units)).min(1.0)
        } else {
            (elements / (machine.lanes() * f64::from(machine.units))).min(1.0)
        };
        let moving = moved * bytes as f64 / machine.memory_bytes;
        let computing = computed / (machine.lanes() * f64::from(machine.units));
        machine.launch + moving.max(computing) / busy.max(1e-3)
    }
}
