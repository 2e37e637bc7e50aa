//! The nest on the CPU: node by node over blocks of places along one axis, so that each node is a loop over vectors.

use super::evaluation::Evaluation;
use super::index::AxisSet;
use super::nest::{Nest, Node, NodeId};
use super::text::ordered;
use super::{LoopsOp, OP, result_operand};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{WORK_ASKED, parts, products};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::reduce::Reduction;
use pulp::{Simd, WithSimd};

/// Places of a block: a few of their values fit a cache of 32 KiB.
pub(super) const BLOCK: usize = 512;

/// Reductions of one stage over the same axes.
#[derive(Debug, Clone)]
pub(super) struct Loop {
    pub(super) axes: Vec<usize>,
    pub(super) reductions: Vec<(NodeId, Reduction, NodeId)>,
}

/// A nest to run as often as wanted: one result behind the other.
#[derive(Debug, Clone)]
pub(super) struct LoopsKernels(Vec<LoopsKernel>);

impl LoopsKernels {
    pub(super) fn new(op: &LoopsOp) -> Self {
        LoopsKernels((0..op.results()).map(|result| LoopsKernel::new(op.nest.only(result))).collect())
    }
}

/// A nest with one result.
#[derive(Debug, Clone)]
pub(super) struct LoopsKernel {
    pub(super) nest: Nest,
    pub(super) depends: Vec<AxisSet>,
    pub(super) row: AxisSet,
    /// The axes of rows, and those along which the results of a row are written.
    rows: Vec<usize>,
    pub(super) along: Vec<usize>,
    pub(super) loops: Vec<Loop>,
    /// Elements of the result from one place to the next along each axis.
    pub(super) strides: Vec<usize>,
    operations: usize,
    arch: Arch,
}

/// The part of the result that one worker computes.
enum Part<'a> {
    /// All of some rows, or of a nest without reductions some lines: the elements from the first one on.
    Lines(usize, &'a mut [f32]),
    /// All of it, row by row, wherever their elements are.
    Whole(&'a mut [f32]),
}

impl LoopsKernel {
    pub(super) fn new(nest: Nest) -> Self {
        let (depends, row, stages) = (nest.dependences(), nest.row_axes(), nest.stages());
        let written = nest.written_axes();
        let mut loops: Vec<(usize, AxisSet, Loop)> = Vec::new();
        for (id, node) in nest.nodes.iter().enumerate() {
            let Node::Reduce { reduction, of, over } = node else { continue };
            let key = (stages[id], *over);
            let own = (id, *reduction, *of);
            match loops.iter_mut().find(|(stage, over, _)| (*stage, *over) == key) {
                Some((_, _, known)) => known.reductions.push(own),
                None => {
                    loops.push((key.0, key.1, Loop { axes: ordered(&nest, *over), reductions: vec![own] }))
                }
            }
        }
        crate::sorted::sort(&mut loops, |a, b| a.0.cmp(&b.0));
        let [rows, along] = [row, written & !row].map(|axes| ordered(&nest, axes));
        let operations = usize::try_from(nest.operations()).unwrap_or(usize::MAX);
        let loops = loops.into_iter().map(|(_, _, own)| own).collect();
        let strides = nest.strides();
        LoopsKernel { depends, row, rows, along, loops, strides, operations, nest, arch: Arch::new() }
    }

    pub(super) fn count(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&axis| self.nest.extents[axis]).product()
    }

    /// Elements of the smallest part that a worker may compute by itself; none if rows do not lie behind each other.
    fn line(&self) -> Option<usize> {
        if self.loops.is_empty() {
            return Some(self.nest.written.last().map_or(1, |&axis| self.nest.extents[axis]));
        }
        self.nest.written.starts_with(&self.rows).then(|| self.count(&self.along))
    }
}

struct OnArch<'a> {
    kernel: &'a LoopsKernel,
    sources: &'a [&'a [f32]],
    part: Part<'a>,
}

impl WithSimd for OnArch<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let OnArch { kernel, sources, part } = self;
        let mut evaluation = Evaluation::new(kernel, sources);
        match part {
            Part::Lines(first, dst) if kernel.loops.is_empty() => evaluation.lines(first, dst),
            Part::Lines(first, dst) => {
                let each = kernel.count(&kernel.along);
                for (row, dst) in dst.chunks_mut(each.max(1)).enumerate() {
                    evaluation.go_to(&kernel.rows, first / each.max(1) + row);
                    evaluation.reduce();
                    evaluation.write(dst, true);
                }
            }
            Part::Whole(dst) => {
                for row in 0..kernel.count(&kernel.rows) {
                    evaluation.go_to(&kernel.rows, row);
                    evaluation.reduce();
                    evaluation.write(dst, false);
                }
            }
        }
    }
}

impl CpuKernel for LoopsKernels {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        for (result, kernel) in self.0.iter().enumerate() {
            let operand = result_operand(result);
            let dst = output(OP, outputs, operand)?;
            check_len(OP, operand.name(), dst.len(), kernel.nest.target.elements())?;
            kernel.run(inputs, dst)?;
        }
        Ok(())
    }
}

impl LoopsKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], dst: &mut [f32]) -> Result<()> {
        /// Operations below which handing a part to another worker does not pay.
        const MIN_WORK: usize = 8 * 1024;
        let mut sources = Vec::with_capacity(self.nest.sources.len());
        for (place, dims) in self.nest.sources.iter().enumerate() {
            let operand = Operand::Arg(place as u8);
            let source = input(OP, inputs, operand)?;
            check_len(OP, operand.name(), source.len(), dims.elements())?;
            sources.push(source);
        }
        let (sources, elements) = (&sources[..], self.nest.target.elements());
        let on = |part: Part<'_>| self.arch.dispatch(OnArch { kernel: self, sources, part });
        let Some(line) = self.line() else {
            on(Part::Whole(dst));
            return Ok(());
        };
        let work = products([self.operations.max(elements)]);
        let parts = parts(work / MIN_WORK, WORK_ASKED);
        let share = elements.div_ceil(parts).next_multiple_of(line.max(1));
        if elements <= share {
            on(Part::Lines(0, dst));
        } else {
            each(dst.chunks_mut(share).enumerate(), |(index, dst)| on(Part::Lines(index * share, dst)));
        }
        Ok(())
    }
}
