//! Nests with integers or bytes, or with elements where nodes say, on the CPU: element by element.
//!
//! Sessions of the CPU run the ops that such nests are made of, which have vectors of their own: this is what they are compared
//! with.

use super::cpu::joined;
use super::nest::{Guard, Nest, Node, NodeId, axes_of};
use super::{LoopsOp, OP, result_operand};
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::bytes::{bytes, bytes_mut};
use crate::ops::integer::{IntegerFunction, Number, wrapped};
use crate::ops::reduce::Reduction;
use crate::word;

/// A nest, one result behind the other.
#[derive(Debug, Clone)]
pub(super) struct WordsKernel(Vec<Nest>);

impl WordsKernel {
    pub(super) fn new(op: &LoopsOp) -> Self {
        WordsKernel((0..op.results()).map(|result| op.nest.only(result)).collect())
    }
}

impl CpuKernel for WordsKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        for (result, nest) in self.0.iter().enumerate() {
            let mut sources = Vec::with_capacity(nest.sources.len());
            for (place, (dims, &dtype)) in nest.sources.iter().zip(&nest.types).enumerate() {
                let operand = Operand::Arg(place as u8);
                let words = input(OP, inputs, operand)?;
                check_len(OP, operand.name(), words.len(), dims.elements())?;
                sources.push(numbers(dtype, words));
            }
            let operand = result_operand(result);
            let dst = output(OP, outputs, operand)?;
            check_len(OP, operand.name(), dst.len(), nest.target.elements())?;
            let mut elements =
                Elements { nest, sources, at: vec![0; nest.extents.len()], types: nest.node_types() };
            let dtype = nest.result_type(0);
            if dtype == DType::U8 {
                for (index, byte) in bytes_mut(dst).iter_mut().enumerate() {
                    *byte = elements.result(index).float as u8;
                }
                continue;
            }
            for (index, slot) in dst.iter_mut().enumerate() {
                let value = elements.result(index);
                *slot = match dtype {
                    DType::F32 => value.float,
                    integer => word::of_integers(integer, [value.integer].into_iter())
                        .first()
                        .copied()
                        .unwrap_or_default(),
                };
            }
        }
        Ok(())
    }
}

/// The numbers that words hold.
fn numbers(dtype: DType, words: &[f32]) -> Vec<Number> {
    match dtype {
        DType::F32 => words.iter().map(|&float| Number { integer: 0, float }).collect(),
        DType::U8 => bytes(words).iter().map(|&byte| Number { integer: 0, float: byte.into() }).collect(),
        integer => {
            let integers = word::integers(integer, words);
            integers.into_iter().map(|integer| Number { integer, float: 0.0 }).collect()
        }
    }
}

struct Elements<'a> {
    nest: &'a Nest,
    sources: Vec<Vec<Number>>,
    at: Vec<usize>,
    types: Vec<DType>,
}

impl Elements<'_> {
    fn holds(&self, guards: &[Guard]) -> bool {
        guards.iter().all(|guard| (0..guard.below).contains(&guard.index.value(&self.at)))
    }

    /// Element `index` of the result.
    fn result(&mut self, index: usize) -> Number {
        self.nest.place(index, &mut self.at);
        self.value(self.nest.value, &mut vec![None; self.nest.nodes.len()])
    }

    /// An element of a source, zero beyond it.
    fn element(&self, source: usize, at: i64) -> Number {
        let values = self.sources.get(source);
        let found = values.zip(usize::try_from(at).ok()).and_then(|(values, at)| values.get(at));
        found.copied().unwrap_or_default()
    }

    /// What node `id` gives at these places.
    fn value(&mut self, id: NodeId, known: &mut [Option<Number>]) -> Number {
        if let Some(known) = known[id] {
            return known;
        }
        let nest = self.nest;
        let of = |dtype: DType, number: f32| match dtype {
            DType::F32 => Number { integer: 0, float: number },
            _ => Number { integer: number as i64, float: 0.0 },
        };
        let value = match &nest.nodes[id] {
            Node::Number(number) => of(DType::F32, number.0),
            Node::Place(at) => of(DType::F32, at.value(&self.at) as f32),
            Node::Byte(of) => self.value(*of, known),
            Node::Integer { value, word } => Number { integer: wrapped(*word, *value), float: 0.0 },
            Node::Read { source, at, guards, otherwise } => match self.holds(guards) {
                true => self.element(*source, at.value(&self.at)),
                false => of(self.types[id], otherwise.0),
            },
            Node::Gather { source, at, guards, by } => {
                let mut place = at.value(&self.at);
                let mut inside = self.holds(guards);
                for own in by {
                    let index = self.value(own.index, known);
                    let index = match self.types[own.index] {
                        DType::F32 if index.float >= 0.0 => index.float as i64,
                        DType::F32 => -1,
                        _ => index.integer,
                    };
                    inside &= (0..own.extent as i64).contains(&index);
                    place = place.wrapping_add(index.wrapping_mul(own.stride as i64));
                }
                if inside { self.element(*source, place) } else { Number::default() }
            }
            Node::Apply(function, arguments) => {
                let mut given = [[0.0f32; 1]; 3];
                for (slot, &argument) in given.iter_mut().zip(arguments) {
                    *slot = [self.value(argument, known).float];
                }
                let mut out = [0.0];
                function.each([&given[0][..], &given[1][..], &given[2][..]], &mut out);
                of(DType::F32, out[0])
            }
            Node::ApplyIntegers { function, arguments, word, result } => {
                let mut given = [Number::default(); 3];
                for (slot, &argument) in given.iter_mut().zip(arguments) {
                    *slot = self.value(argument, known);
                }
                applied(*function, given, *word, *result)
            }
            Node::Choose { guards, then, otherwise } => {
                let chosen = if self.holds(guards) { *then } else { *otherwise };
                self.value(chosen, known)
            }
            Node::Reduce { reduction, of: term, over, place: Some(place) } => {
                of(DType::F32, self.found(*reduction, [*term, *place], axes_of(*over).collect()))
            }
            Node::Reduce { reduction, of: term, over, .. } if self.types[id] != DType::F32 => {
                let integer = self.reduced_integers(*reduction, *term, axes_of(*over).collect());
                Number { integer, float: 0.0 }
            }
            Node::Reduce { reduction, of: term, over, .. } => {
                let float = self.reduced(*reduction, *term, axes_of(*over).collect());
                of(DType::F32, float)
            }
        };
        known[id] = Some(value);
        value
    }

    /// Calls `each` with what nodes give for each place along `axes`.
    fn each_term<const N: usize>(
        &mut self,
        of: [NodeId; N],
        axes: &[usize],
        each: &mut dyn FnMut([Number; N]),
    ) {
        let before = self.at.clone();
        let count: usize = axes.iter().map(|&axis| self.nest.extents[axis]).product();
        for index in 0..count {
            let mut rest = index;
            for &axis in axes.iter().rev() {
                self.at[axis] = rest % self.nest.extents[axis];
                rest /= self.nest.extents[axis];
            }
            let mut known = vec![None; self.nest.nodes.len()];
            each(of.map(|id| self.value(id, &mut known)));
        }
        self.at = before;
    }

    fn reduced_integers(&mut self, reduction: Reduction, of: NodeId, axes: Vec<usize>) -> i64 {
        let word = self.types[of];
        let mut all = reduction.first_of_integers(word);
        self.each_term([of], &axes, &mut |[term]| {
            all = wrapped(word, reduction.joined_integers(all, term.integer));
        });
        all
    }

    /// What the second node gives where the first one is the largest or the smallest.
    fn found(&mut self, reduction: Reduction, of: [NodeId; 2], axes: Vec<usize>) -> f32 {
        let is_float = self.types[of[0]] == DType::F32;
        let takes = |x: Number, other: Number| match is_float {
            true => reduction.takes(x.float, other.float),
            false => reduction.takes(x.integer, other.integer),
        };
        let mut best: Option<(Number, f32)> = None;
        self.each_term(of, &axes, &mut |[x, place]| {
            let stays = |(own, at): &(Number, f32)| takes(*own, x) || !takes(x, *own) && *at <= place.float;
            best = best.filter(stays).or(Some((x, place.float)));
        });
        best.map_or(f32::NAN, |(_, place)| place)
    }

    fn reduced(&mut self, reduction: Reduction, of: NodeId, axes: Vec<usize>) -> f32 {
        let count: usize = axes.iter().map(|&axis| self.nest.extents[axis]).product();
        let mut all = f64::from(reduction.first());
        self.each_term([of], &axes, &mut |[term]| all = joined(reduction, all, f64::from(term.float)));
        (if reduction == Reduction::Mean { all / count as f64 } else { all }) as f32
    }
}

/// What `function` makes of these numbers, in words of `word`, as one of type `result`.
pub(super) fn applied(function: IntegerFunction, given: [Number; 3], word: DType, result: DType) -> Number {
    let integer = match (function, word) {
        (IntegerFunction::Convert, DType::F32) => IntegerFunction::cut_off(result, given[0].float),
        (IntegerFunction::Convert, _) if result != DType::F32 => wrapped(result, given[0].integer),
        _ => function.value(word, given),
    };
    let float = if result == DType::F32 { integer as f32 } else { 0.0 };
    Number { integer, float }
}
