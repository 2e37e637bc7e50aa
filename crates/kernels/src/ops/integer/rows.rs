//! What `integer` is as an op of rows.

use super::function::Number;
use super::{Argument, IntegerFunction, IntegerOp, OP};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::kernel::Kernel;
use crate::ops::loops::{AsNest, OpNest, OperandSet};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::shape::Shape;
use crate::word;

impl RowsOp for IntegerOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::ELEMENTS]
    }

    fn problem_key(&self) -> String {
        let mut text = format!("{} to {}", self.function.name(), self.result);
        for (argument, place) in self.arguments.iter().zip(0..) {
            match argument {
                Argument::Input(input) => {
                    let input = usize::from(*input);
                    text.push_str(&format!(" {} {}", self.words[input], self.inputs[input]));
                }
                Argument::Number(number) => text.push_str(&format!(" arg{place}={number}")),
            }
        }
        text
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        self.inputs.iter().zip(0..).map(|(dims, input)| (Operand::Arg(input), dims.shape())).collect()
    }

    fn output(&self) -> Shape {
        self.output.shape()
    }

    fn dtype(&self, operand: Operand) -> DType {
        match operand {
            Operand::Arg(input) => self.words.get(usize::from(input)).copied().unwrap_or_default(),
            _ => self.result,
        }
    }

    fn nest(&self) -> Option<OpNest> {
        if !self.has_nest() {
            return None;
        }
        Some(OpNest::of_arguments(self.as_nest()?).with_halves(OperandSet::NONE))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let inputs: Vec<(Vec<i64>, &[f32])> = self
            .words
            .iter()
            .zip(0..)
            .map(|(&word, input)| {
                let words = get(operands, Operand::Arg(input)).unwrap_or_default();
                (word::integers(word, words), words)
            })
            .collect();
        let value = (0..self.output.elements()).map(|index| {
            let given =
                inputs.iter().zip(&self.words).enumerate().map(|(input, ((integers, words), &word))| {
                    let at = self.broadcast.place(input, index);
                    let float = if word == DType::F32 { words[at] } else { integers[at] as f32 };
                    Number { integer: integers[at], float }
                });
            self.value(&given.collect::<Vec<_>>()).integer as f64
        });
        let value: Vec<f64> = value.collect();
        // An integer as a float is rounded, up or down.
        let rounds = self.function == IntegerFunction::Convert && self.result == DType::F32;
        let unit = if rounds { 2.0 * DType::F32.unit_roundoff() } else { 0.0 };
        let exact = f64::from(1u32 << 24);
        let bound = value.iter().map(|value| if value.abs() > exact { unit * value.abs() } else { 0.0 });
        Reference::Bounded { bound: bound.collect(), value }
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        self.compute_all(inputs, dst);
    }
}
