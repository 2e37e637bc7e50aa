//! The nest on the CPU: node by node over tiles of places, so that each node is a loop over vectors.
//!
//! | module | what |
//! |---|---|
//! | `estimate` | about how long a nest takes |
//! | `divided` | long loops in parts, for threads |
//! | `passes` | what is written in one go, and cut into parts for threads |
//! | `tile` | how many places of each axis are computed at once |
//! | `program`, `registers` | which nodes a loop computes, and where their values are |
//! | `evaluation` | a part, tile by tile |
//! | `region`, `offset`, `copy` | elements that are read, or moved without being computed with |
//! | `pairs` | simple functions that are computed together with what they give |
//! | `applied` | what functions are given |
//! | `functions`, `paired`, `reductions`, `sums`, `along`, `found` | loops over vectors |

mod along;
mod applied;
mod copy;
mod divided;
mod estimate;
mod evaluation;
mod found;
mod functions;
mod joined;
mod offset;
mod paired;
mod pairs;
mod passes;
mod program;
mod reductions;
mod region;
mod registers;
mod sums;
mod tile;

use super::nest::{MAX_OPERANDS, Nest};
use super::{OP, result_operand};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{WORK_ASKED, parts, with_scratch};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operands::{self, Operands};
pub use estimate::STEP;
use evaluation::Evaluation;
use passes::{Pass, Passes, Place};
use pulp::{Simd, WithSimd};
pub(super) use reductions::joined;
use region::Region;
use tile::Room;

/// Results of a pass that are cut into parts for threads: more than a nest has, as a pass also writes reductions for a later one.
const MOST_PARTED: usize = 8;

/// The kernel of `op`, which computes what `nest` says of these operands as `target`.
///
/// # Errors
/// If there is no nest of something.
pub(in crate::ops) fn kernel(
    op: &'static str,
    nest: Option<Nest>,
    operands: &[Operand],
    target: Dims,
) -> Result<Box<dyn CpuKernel>> {
    match nest {
        Some(nest) => Ok(Box::new(LoopsKernel::new(op, &nest, operands))),
        None if target.elements() == 0 => Ok(Box::new(Nothing)),
        None => Err(Error::unsupported(op, format!("a result of {target} that is no nest of loops"))),
    }
}

/// What computes no element.
#[derive(Debug)]
struct Nothing;

impl CpuKernel for Nothing {
    fn run(&self, _inputs: &[(Operand, &[f32])], _outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        Ok(())
    }
}

/// A nest, to run as often as wanted.
#[derive(Debug, Clone)]
pub(in crate::ops) struct LoopsKernel {
    op: &'static str,
    sources: Vec<(Operand, Dims)>,
    /// Sources that are the same at each run.
    constants: Vec<(Operand, Vec<f32>)>,
    targets: Vec<Dims>,
    passes: Passes,
    /// Operations of a pass that are worth another thread.
    work: usize,
    arch: Arch,
}

impl LoopsKernel {
    /// The kernel of `nest`, whose sources are these operands of `op`.
    pub(in crate::ops) fn new(op: &'static str, nest: &Nest, operands: &[Operand]) -> Self {
        LoopsKernel::with_room(op, nest, operands, Room::USUAL)
    }

    fn with_room(op: &'static str, nest: &Nest, operands: &[Operand], room: Room) -> Self {
        LoopsKernel {
            op,
            sources: operands.iter().copied().zip(nest.sources.iter().copied()).collect(),
            constants: Vec::new(),
            targets: nest.targets().collect(),
            passes: Passes::of(nest, &room),
            work: room.work,
            arch: Arch::new(),
        }
    }

    /// The kernel with the constants that the nest reads.
    ///
    /// # Errors
    /// If one is not as long as the nest says.
    pub(in crate::ops) fn with_constants(mut self, constants: &Operands<'_>) -> Result<Self> {
        for (operand, dims) in &self.sources {
            if let Some(values) = operands::get(constants, *operand) {
                check_len(self.op, operand.name(), values.len(), dims.elements())?;
                self.constants.push((*operand, values.to_vec()));
            }
        }
        Ok(self)
    }

    /// The kernel of a nest that is an op of its own.
    pub(super) fn of(nest: &Nest) -> Self {
        let operands: Vec<Operand> = (0..nest.sources.len()).map(|place| Operand::Arg(place as u8)).collect();
        LoopsKernel::new(OP, nest, &operands)
    }

    /// The kernel with tiles and parts as small as can be.
    #[cfg(test)]
    pub(super) fn of_small_tiles(nest: &Nest) -> Self {
        let operands: Vec<Operand> = (0..nest.sources.len()).map(|place| Operand::Arg(place as u8)).collect();
        LoopsKernel::with_room(OP, nest, &operands, Room::SMALL)
    }

    fn pass(&self, pass: &Pass, sources: &[&[f32]], results: &mut [&mut [f32]]) {
        let (program, scratch) = (&pass.program, pass.program.scratch());
        let on = |(bounds, results): (&Region, &mut [&mut [f32]])| {
            with_scratch(scratch, |scratch| {
                self.arch.dispatch(OnArch { program, sources, bounds, results, scratch });
            });
        };
        let wanted = parts(pass.work / self.work, WORK_ASKED);
        if wanted == 1 || pass.shared.is_empty() || results.len() > MOST_PARTED {
            return on((&pass.whole, results));
        }
        let parts = pass.parts(wanted);
        let count = results.len();
        let mut left: [&mut [f32]; MOST_PARTED] = Default::default();
        left.iter_mut().zip(results).for_each(|(left, result)| *left = &mut **result);
        let mut own = Vec::with_capacity(parts.len());
        for (bounds, len) in &parts {
            let mut part: [&mut [f32]; MOST_PARTED] = Default::default();
            for (part, left) in part.iter_mut().zip(&mut left) {
                let whole = std::mem::take(left);
                (*part, *left) = whole.split_at_mut((*len).min(whole.len()));
            }
            own.push((bounds, part));
        }
        each(own.into_iter(), |(bounds, mut results)| on((bounds, &mut results[..count])));
    }
}

struct OnArch<'a, 'r> {
    program: &'a program::Program,
    sources: &'a [&'a [f32]],
    bounds: &'a Region,
    results: &'a mut [&'r mut [f32]],
    scratch: &'a mut [f32],
}

impl WithSimd for OnArch<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let OnArch { program, sources, bounds, results, scratch } = self;
        Evaluation::new(simd, program, sources, bounds, scratch).run(results);
    }
}

impl CpuKernel for LoopsKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let mut operands: [&[f32]; MAX_OPERANDS] = [&[]; MAX_OPERANDS];
        for (slot, (operand, dims)) in operands.iter_mut().zip(&self.sources) {
            *slot = match self.constants.iter().find(|(own, _)| own == operand) {
                Some((_, values)) => values,
                None => input(self.op, inputs, *operand)?,
            };
            check_len(self.op, operand.name(), slot.len(), dims.elements())?;
        }
        for (result, dims) in self.targets.iter().enumerate() {
            let operand = result_operand(result);
            check_len(self.op, operand.name(), output(self.op, outputs, operand)?.len(), dims.elements())?;
        }
        let operands = &operands[..self.sources.len()];
        let mut between: Vec<Vec<f32>> = self.passes.between.iter().map(|&len| vec![0.0; len]).collect();
        for pass in &self.passes.passes {
            // Taken out, so that others are read meanwhile.
            let written: Vec<usize> = pass.results.iter().filter_map(|place| place.between()).collect();
            let mut own: Vec<Vec<f32>> =
                written.iter().map(|&place| std::mem::take(&mut between[place])).collect();
            let source = |place: &Place| match *place {
                Place::Operand(place) => operands.get(place).copied(),
                Place::Between(place) => between.get(place).map(Vec::as_slice),
            };
            let sources: Vec<&[f32]>;
            let sources = match between.is_empty() {
                true => operands,
                false => {
                    sources = pass.sources.iter().filter_map(source).collect();
                    &sources[..]
                }
            };
            if !written.is_empty() {
                let mut results: Vec<&mut [f32]> = own.iter_mut().map(Vec::as_mut_slice).collect();
                self.pass(pass, sources, &mut results);
            } else if let &[Place::Operand(result)] = &pass.results[..] {
                let dst = output(self.op, outputs, result_operand(result))?;
                self.pass(pass, sources, &mut [dst]);
            } else {
                self.pass(pass, sources, &mut self.results(pass, outputs));
            }
            for (place, values) in written.into_iter().zip(own) {
                between[place] = values;
            }
        }
        Ok(())
    }
}

impl LoopsKernel {
    /// The results of a pass, in its order.
    fn results<'o>(&self, pass: &Pass, outputs: &'o mut [(Operand, &mut [f32])]) -> Vec<&'o mut [f32]> {
        let mut all: Vec<Option<&mut [f32]>> = self.targets.iter().map(|_| None).collect();
        for (operand, values) in outputs.iter_mut() {
            let place = (0..all.len()).find(|&result| result_operand(result) == *operand);
            if let Some(slot) = place.and_then(|place| all.get_mut(place)) {
                *slot = Some(&mut **values);
            }
        }
        let result = |place: &Place| match *place {
            Place::Operand(place) => all.get_mut(place).and_then(Option::take),
            Place::Between(_) => None,
        };
        pass.results.iter().filter_map(result).collect()
    }
}
