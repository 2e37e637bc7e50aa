//! Values none of whose elements is negative, `-0` or minus infinity.

use super::value::Origin;
use super::{Graph, Value};
use crate::emit::{Bits, Operand};
use crate::ops::elementwise::{Elementwise, Function, Program, Source};
use crate::ops::reduce::{Reduce, Reduction};
use crate::ops::remap::Transpose;
use crate::ops::view::Reshape;
use std::any::Any;

/// How many nodes behind each other are looked at.
const MAX_DEPTH: usize = 8;

impl Graph {
    /// Whether elements of `value` are known to have no sign, by the nodes that compute it: sums, means and roots of
    /// squares, of sizes and of exponentials, and what adds a positive number to them.
    pub(super) fn has_no_sign(&self, value: Value) -> bool {
        self.has_no_sign_within(value, MAX_DEPTH)
    }

    fn has_no_sign_within(&self, value: Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let node = match self.values.get(value.index).map(|own| &own.origin) {
            Some(Origin::Node(index)) => self.nodes.get(*index),
            _ => None,
        };
        let Some(node) = node else { return false };
        let input = |wanted: Operand| {
            let own = node.inputs.iter().find(|(operand, _)| *operand == wanted);
            own.is_some_and(|(_, value)| self.has_no_sign_within(*value, depth))
        };
        let operator: &dyn Any = &*node.operator;
        match (operator.downcast_ref::<Elementwise>(), operator.downcast_ref::<Reduce>()) {
            (Some(own), _) => of_program(own.program(), input),
            (_, Some(Reduce { reduction: Reduction::Sum | Reduction::Mean | Reduction::Max, .. })) => {
                input(Operand::Src)
            }
            _ => (operator.is::<Reshape>() || operator.is::<Transpose>()) && input(Operand::Src),
        }
    }
}

/// Whether a program's result has no sign; `input` says whether an operand has none.
fn of_program(program: &Program, input: impl Fn(Operand) -> bool) -> bool {
    let mut known: Vec<bool> = Vec::with_capacity(program.steps().len());
    for step in program.steps() {
        let of = |source: &Source| match *source {
            Source::Input(index) => input(Operand::Arg(index)),
            Source::Number(Bits(number)) => number.is_sign_positive(),
            Source::Step(step) => known.get(usize::from(step)).copied().unwrap_or(false),
        };
        let above = |source: &Source| matches!(*source, Source::Number(Bits(number)) if number > 0.0);
        let own = match (step.function, &step.arguments[..]) {
            (
                Function::Square
                | Function::SquaredDifference
                | Function::Abs
                | Function::Exp
                | Function::Sigmoid
                | Function::Softplus,
                _,
            ) => true,
            (Function::Mul, [a, b]) => a == b || of(a) && of(b),
            (Function::Maximum, [a, b]) => above(a) || above(b) || of(a) && of(b),
            (Function::Add | Function::Div | Function::Minimum, [a, b]) => of(a) && of(b),
            (Function::Sqrt | Function::Rsqrt | Function::Reciprocal, [a]) => of(a),
            _ => false,
        };
        known.push(own);
    }
    known.last().copied().unwrap_or(false)
}
