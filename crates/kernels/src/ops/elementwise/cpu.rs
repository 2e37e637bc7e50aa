//! The program on the CPU: step by step over blocks that the first-level cache holds, so that each step is
//! a loop over vectors.

use super::program::{Program, Source};
use super::{ElementwiseOp, MAX_INPUTS, OP};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{WORK_ASKED, parts, products, with_scratch};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use pulp::{Simd, WithSimd};

/// Elements of a block: a few of them, f32, fit a cache of 32 KiB.
const BLOCK: usize = 1024;

/// The innermost extent from which on a block does not reach over its end: what is read is then one slice.
const LONG: usize = 256;

/// An input, beside one that is read as it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Each element with the output's of the same place.
    Flat,
    /// Elements that come again in each block: a single one, or a row that blocks are a multiple of.
    Periodic,
    /// Gathered run by run.
    Runs,
}

/// A program for concrete shapes, to run as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    op: ElementwiseOp,
    readings: Vec<Reading>,
    /// Elements of a block.
    block: usize,
    /// For each step but the last the register that holds its result.
    registers: Vec<usize>,
    /// The number of registers.
    count: usize,
    arch: Arch,
}

/// A register for each step but the last, free again after its last use; and how many there are.
fn allocate(program: &Program) -> (Vec<usize>, usize) {
    let steps = program.steps();
    let reads = |reader: usize, step: usize| steps[reader].arguments.contains(&Source::Step(step as u8));
    let last_use =
        |step: usize| (step..steps.len()).rev().find(|&reader| reads(reader, step)).unwrap_or(step);
    let (mut registers, mut busy_until): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for step in 0..steps.len().saturating_sub(1) {
        let free = busy_until.iter().position(|&until| until < step);
        let register = free.unwrap_or(busy_until.len());
        if free.is_none() {
            busy_until.push(0);
        }
        busy_until[register] = last_use(step);
        registers.push(register);
    }
    (registers, busy_until.len())
}

impl Program {
    /// The program of inputs that are as long as `dst`.
    pub(in crate::ops) fn apply(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let numbers = self.numbers();
        let filled: Vec<Vec<f32>> = numbers.iter().map(|number| vec![number.0; dst.len()]).collect();
        let mut results: Vec<Vec<f32>> = Vec::with_capacity(self.steps().len());
        for step in self.steps() {
            let of = |source: &Source| match source {
                Source::Input(input) => inputs.get(usize::from(*input)).copied(),
                Source::Step(step) => results.get(usize::from(*step)).map(Vec::as_slice),
                Source::Number(number) => {
                    let place = numbers.iter().position(|known| known == number)?;
                    filled.get(place).map(Vec::as_slice)
                }
            };
            let mut arguments: [&[f32]; 3] = [&[]; 3];
            for (slot, source) in arguments.iter_mut().zip(&step.arguments) {
                *slot = of(source).unwrap_or_default();
            }
            let mut result = vec![0.0; dst.len()];
            step.function.each(arguments, &mut result);
            results.push(result);
        }
        if let Some(last) = results.last() {
            dst.copy_from_slice(last);
        }
    }
}

impl Blocks {
    pub(super) fn new(op: &ElementwiseOp) -> Self {
        let broadcast = &op.broadcast;
        let inner = broadcast.inner(0).0;
        let rows = (BLOCK / inner).max(1) * inner;
        let reading = |(input, strides): (usize, &Vec<usize>)| match &strides[..] {
            [1] => Reading::Flat,
            strides if strides.iter().all(|&stride| stride == 0) => Reading::Periodic,
            [outer @ .., _] if rows <= BLOCK && outer.iter().all(|&stride| stride == 0) => Reading::Periodic,
            _ if broadcast.is_whole(input) => Reading::Flat,
            _ => Reading::Runs,
        };
        let readings: Vec<Reading> = broadcast.strides.iter().enumerate().map(reading).collect();
        let (registers, count) = allocate(&op.program);
        let block = if rows <= BLOCK { rows } else { BLOCK };
        Blocks { op: op.clone(), readings, block, registers, count, arch: Arch::new() }
    }

    /// Elements of a worker's part, a multiple of the block's.
    fn share(&self) -> usize {
        /// Elements times steps below which handing a part to another worker does not pay.
        const MIN_WORK: usize = 8 * 1024;
        let elements = self.op.output.elements();
        let parts = parts(products([elements, self.op.program.steps().len()]) / MIN_WORK, WORK_ASKED);
        elements.div_ceil(parts).next_multiple_of(self.block)
    }

    /// The part of the output that begins with element `first`.
    #[inline(always)]
    fn part(&self, inputs: &[&[f32]], first: usize, dst: &mut [f32], scratch: &mut [f32]) {
        let numbers = self.op.program.numbers();
        let mut rest = scratch.chunks_mut(BLOCK);
        let mut constants: Vec<&mut [f32]> = rest.by_ref().take(numbers.len()).collect();
        for (constant, number) in constants.iter_mut().zip(&numbers) {
            constant.fill(number.0);
        }
        let mut gathered: Vec<&mut [f32]> = rest.by_ref().take(inputs.len()).collect();
        let mut registers: Vec<&mut [f32]> = rest.collect();
        let inner = self.op.broadcast.inner(0).0;
        let cuts = inner >= LONG && self.readings.contains(&Reading::Runs);
        for (input, gathered) in gathered.iter_mut().enumerate() {
            if self.readings[input] == Reading::Periodic {
                let len = self.block.min(self.op.output.elements());
                self.gather(input, inputs[input], 0, &mut gathered[..len]);
            }
        }
        let mut done = 0;
        while done < dst.len() {
            let start = first + done;
            let mut len = self.block.min(dst.len() - done);
            if cuts {
                len = len.min(inner - start % inner);
            }
            for (input, gathered) in gathered.iter_mut().enumerate() {
                let whole = cuts && self.op.broadcast.inner(input).1 == 1;
                if self.readings[input] == Reading::Runs && !whole {
                    self.gather(input, inputs[input], start, &mut gathered[..len]);
                }
            }
            let mut given: [&[f32]; MAX_INPUTS] = [&[]; MAX_INPUTS];
            for (input, given) in given.iter_mut().enumerate().take(inputs.len()) {
                let from = match self.readings[input] {
                    Reading::Flat => Some(start),
                    Reading::Runs if cuts && self.op.broadcast.inner(input).1 == 1 => {
                        Some(self.op.broadcast.place(input, start))
                    }
                    _ => None,
                };
                *given = match from {
                    Some(from) => inputs[input].get(from..from + len).unwrap_or_default(),
                    None => &gathered[input][..len],
                };
            }
            self.block(&numbers, &given, &constants, &mut registers, &mut dst[done..done + len]);
            done += len;
        }
    }

    /// The steps for the elements of one block.
    #[inline(always)]
    fn block(
        &self,
        numbers: &[crate::emit::Bits],
        given: &[&[f32]; MAX_INPUTS],
        constants: &[&mut [f32]],
        registers: &mut [&mut [f32]],
        dst: &mut [f32],
    ) {
        let len = dst.len();
        let steps = self.op.program.steps();
        for (index, step) in steps.iter().enumerate() {
            // Taken out, so that the step's arguments may be other registers.
            let own = self.registers.get(index).copied();
            let mut out = own.map(|own| std::mem::take(&mut registers[own]));
            let argument = |place: usize| match step.arguments.get(place) {
                Some(Source::Input(input)) => given[usize::from(*input)],
                Some(Source::Step(step)) => &registers[self.registers[usize::from(*step)]][..len],
                Some(Source::Number(number)) => {
                    let known = numbers.iter().position(|known| known == number).unwrap_or_default();
                    &constants[known][..len]
                }
                None => &[],
            };
            let arguments = [argument(0), argument(1), argument(2)];
            match &mut out {
                Some(out) => step.function.each(arguments, &mut out[..len]),
                None => step.function.each(arguments, dst),
            }
            if let (Some(own), Some(out)) = (own, out) {
                registers[own] = out;
            }
        }
    }

    /// The elements of `input` that belong to those of the output from `start` on.
    #[inline(always)]
    fn gather(&self, input: usize, values: &[f32], start: usize, out: &mut [f32]) {
        let broadcast = &self.op.broadcast;
        let (inner, stride) = broadcast.inner(input);
        let (mut done, mut at) = (0, start);
        while done < out.len() {
            let run = (inner - at % inner).min(out.len() - done);
            let place = broadcast.place(input, at);
            let target = &mut out[done..done + run];
            match stride {
                0 => target.fill(values[place]),
                _ => target.copy_from_slice(&values[place..place + run]),
            }
            (done, at) = (done + run, at + run);
        }
    }
}

/// A worker's part, compiled for each instruction set.
struct Part<'a> {
    blocks: &'a Blocks,
    inputs: &'a [&'a [f32]],
    first: usize,
    dst: &'a mut [f32],
    scratch: &'a mut [f32],
}

impl WithSimd for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.blocks.part(self.inputs, self.first, self.dst, self.scratch);
    }
}

impl CpuKernel for Blocks {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let mut given: [&[f32]; MAX_INPUTS] = [&[]; MAX_INPUTS];
        for (index, (slot, dims)) in given.iter_mut().zip(&self.op.inputs).enumerate() {
            let operand = Operand::Arg(index as u8);
            *slot = input(OP, inputs, operand)?;
            check_len(OP, operand.name(), slot.len(), dims.elements())?;
        }
        let given = &given[..self.op.inputs.len()];
        let dst = output(OP, outputs, Operand::Dst)?;
        check_len(OP, "dst", dst.len(), self.op.output.elements())?;
        let share = self.share();
        let held = (self.op.program.numbers().len() + given.len() + self.count) * BLOCK;
        let part = |(index, dst): (usize, &mut [f32])| {
            with_scratch(held, |scratch| {
                let first = index * share;
                self.arch.dispatch(Part { blocks: self, inputs: given, first, dst, scratch });
            });
        };
        if dst.len() <= share {
            part((0, dst));
        } else {
            each(dst.chunks_mut(share).enumerate(), part);
        }
        Ok(())
    }
}
