//! What `integer` is as an op of rows: one element per invocation.

use super::function::Number;
use super::{Argument, IntegerFunction, IntegerOp, OP};
use crate::dtype::DType;
use crate::emit::{Body, Operand, Scalar, Value};
use crate::ops::elementwise::STEPS;
use crate::ops::kernel::Constants;
use crate::ops::loops::Nest;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, extent, unsigned};
use crate::shape::Shape;
use crate::word;

/// Names of the output's extents, the innermost first.
const EXTENTS: [&str; 6] = ["extent0", "extent1", "extent2", "extent3", "extent4", "extent5"];

const NUMBERS: [&str; 3] = ["number0", "number1", "number2"];

impl RowsOp for IntegerOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/integer/rows.wgsl");

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

    fn params(&self) -> Params {
        let extents = &self.broadcast.extents;
        let mut params = vec![("elements", unsigned(self.output.elements()))];
        // The outermost extent is what is left.
        let inner = extents.iter().rev().take(extents.len() - 1).zip(EXTENTS);
        params.extend(inner.map(|(extent, name)| (name, unsigned(*extent))));
        for (strides, names) in self.broadcast.strides.iter().zip(STEPS) {
            params.extend(strides.iter().rev().zip(names).map(|(stride, name)| (name, unsigned(*stride))));
        }
        for (argument, name) in self.arguments.iter().zip(NUMBERS) {
            if let Argument::Number(number) = argument {
                let scalar = match self.word {
                    DType::U32 => Scalar::U32(*number as u32),
                    _ => Scalar::I32(*number as i32),
                };
                params.push((name, scalar));
            }
        }
        params
    }

    fn constants(&self) -> Constants {
        vec![
            ("INPUTS", Value::U32(extent(self.inputs.len()))),
            ("RANK", Value::U32(extent(self.broadcast.extents.len()))),
        ]
    }

    fn body(&self) -> Body {
        let mut statements = Vec::new();
        for (argument, place) in self.arguments.iter().zip(0..) {
            statements.push(match argument {
                Argument::Input(input) => format!("let x{place} = in{input};"),
                Argument::Number(_) => format!("let x{place} = params.number{place};"),
            });
        }
        statements.extend(self.function.statements(self.word, self.result));
        Body { statements, calls: Vec::new() }
    }

    fn nest(&self) -> Option<(Nest, Vec<Operand>)> {
        let nest = if self.has_nest() { self.as_nest()? } else { return None };
        Some((nest, (0..self.inputs.len()).map(|input| Operand::Arg(input as u8)).collect()))
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
