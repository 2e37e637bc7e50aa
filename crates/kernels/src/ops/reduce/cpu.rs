//! Reductions on the CPU, in lanes: along the last axis where it is reduced, else column by column.

use super::{Axis, Merged, OP, ReduceOp, Reduction, place};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::{each, workers};
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use pulp::{Simd, WithSimd};
use std::marker::PhantomData;
use std::ops::Range;

/// Sums that are kept apart, for vectors of the CPU and for their error.
const LANES: usize = 32;

/// The most rows that are added up before their sum is added to others, for its error.
const RUN: usize = 1024;

/// Elements of short rows that are joined at a time.
const WIDE: usize = 64;

/// The fewest elements that are worth another worker.
const MIN_WORK: usize = 8 * 1024;

/// A reduction, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct ReduceKernel {
    reduction: Reduction,
    merged: Merged,
    elements: usize,
    arch: Arch,
}

/// How two elements become one.
trait Join: Copy + Sync {
    const BEGIN: f32;

    #[inline(always)]
    fn element(x: f32) -> f32 {
        x
    }

    fn join(a: f32, b: f32) -> f32;
}

#[derive(Clone, Copy)]
struct Add;

impl Join for Add {
    const BEGIN: f32 = 0.0;

    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        a + b
    }
}

#[derive(Clone, Copy)]
struct Multiply;

impl Join for Multiply {
    const BEGIN: f32 = 1.0;

    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        a * b
    }
}

/// The larger; a NaN is larger than anything.
#[derive(Clone, Copy)]
struct Larger;

impl Join for Larger {
    const BEGIN: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        if b > a || b.is_nan() { b } else { a }
    }
}

/// The smaller; a NaN is smaller than anything.
#[derive(Clone, Copy)]
struct Smaller;

impl Join for Smaller {
    const BEGIN: f32 = f32::INFINITY;

    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        if b < a || b.is_nan() { b } else { a }
    }
}

#[derive(Clone, Copy)]
struct Any;

impl Join for Any {
    const BEGIN: f32 = 0.0;

    #[inline(always)]
    fn element(x: f32) -> f32 {
        if x != 0.0 { 1.0 } else { 0.0 }
    }

    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        if b > a { b } else { a }
    }
}

#[derive(Clone, Copy)]
struct All;

impl Join for All {
    const BEGIN: f32 = 1.0;

    #[inline(always)]
    fn element(x: f32) -> f32 {
        Any::element(x)
    }

    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        if b < a { b } else { a }
    }
}

/// One value of a run of neighbours.
#[inline(always)]
fn along<J: Join>(run: &[f32]) -> f32 {
    if run.len() < LANES {
        let mut joined = J::BEGIN;
        for &x in run {
            joined = J::join(joined, J::element(x));
        }
        return joined;
    }
    let mut lanes = [J::BEGIN; LANES];
    let (chunks, rest) = run.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = J::join(lanes[lane], J::element(chunk[lane]));
        }
    }
    for lane in 0..rest.len() {
        lanes[lane] = J::join(lanes[lane], J::element(rest[lane]));
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = J::join(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Joins the elements of `row` to those of `dst`.
#[inline(always)]
fn join_row<J: Join>(dst: &mut [f32], row: &[f32]) {
    let len = dst.len().min(row.len());
    let (dst, row) = (&mut dst[..len], &row[..len]);
    for index in 0..len {
        dst[index] = J::join(dst[index], J::element(row[index]));
    }
}

impl ReduceKernel {
    pub(super) fn new(op: &ReduceOp) -> Self {
        ReduceKernel {
            reduction: op.reduction,
            merged: op.merged(),
            elements: op.input.elements(),
            arch: Arch::new(),
        }
    }

    fn reduce<J: Join>(&self, src: &[f32], dst: &mut [f32]) {
        let kept = self.merged.kept;
        if kept[2].step == 1 {
            self.columns::<J>(src, dst, kept[2].extent);
            return;
        }
        let block = independent_rows(dst.len(), MOVED * self.merged.count());
        each(dst.chunks_mut(block).enumerate(), |(index, dst)| {
            self.arch.dispatch(Along::<J> { of: self, first: index * block, src, dst, join: PhantomData });
        });
    }

    /// Rows of `columns` outputs, of each of which the elements lie below each other.
    fn columns<J: Join>(&self, src: &[f32], dst: &mut [f32], columns: usize) {
        let (rows, count) = (dst.len() / columns, self.merged.count());
        let workers = workers();
        if rows >= workers || count * columns < 2 * MIN_WORK || workers == 1 {
            let block = independent_rows(rows, MOVED * count * columns);
            each(dst.chunks_mut(block * columns).enumerate(), |(index, dst)| {
                for (row, dst) in dst.chunks_exact_mut(columns).enumerate() {
                    dst.fill(J::BEGIN);
                    self.rows::<J>(src, dst, index * block + row, 0..count);
                }
            });
            return;
        }
        // Few rows of many elements: each worker takes some of them.
        let part = (count / (2 * workers)).max(MIN_WORK / columns).max(1);
        for (row, dst) in dst.chunks_exact_mut(columns).enumerate() {
            let mut parts = vec![J::BEGIN; count.div_ceil(part) * columns];
            each(parts.chunks_mut(columns).enumerate(), |(index, dst)| {
                self.rows::<J>(src, dst, row, index * part..count.min((index + 1) * part));
            });
            dst.fill(J::BEGIN);
            for part in parts.chunks(columns) {
                dst.iter_mut().zip(part).for_each(|(dst, x)| *dst = J::join(*dst, *x));
            }
        }
    }

    /// Joins to `dst` the elements `range` of output row `row`.
    fn rows<J: Join>(&self, src: &[f32], dst: &mut [f32], row: usize, range: Range<usize>) {
        self.arch.dispatch(Below::<J> { of: self, src, dst, row, range, join: PhantomData });
    }
}

/// Outputs from `first` on, each of runs of neighbours.
struct Along<'a, J> {
    of: &'a ReduceKernel,
    first: usize,
    src: &'a [f32],
    dst: &'a mut [f32],
    join: PhantomData<J>,
}

impl<J: Join> WithSimd for Along<'_, J> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Merged { kept, reduced: [outer, middle, Axis { extent, .. }] } = self.of.merged;
        for (offset, dst) in self.dst.iter_mut().enumerate() {
            let first = place(&kept, self.first + offset);
            let mut result = J::BEGIN;
            for run in 0..outer.extent * middle.extent {
                let (i, j) = (run / middle.extent, run % middle.extent);
                let start = first + i * outer.step + j * middle.step;
                let run = self.src.get(start..start + extent).unwrap_or_default();
                result = J::join(result, along::<J>(run));
            }
            *dst = result;
        }
    }
}

/// A row of outputs, each of elements that lie below each other.
struct Below<'a, J> {
    of: &'a ReduceKernel,
    src: &'a [f32],
    dst: &'a mut [f32],
    row: usize,
    range: Range<usize>,
    join: PhantomData<J>,
}

impl<J: Join> WithSimd for Below<'_, J> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Below { of: &ReduceKernel { merged: Merged { kept, reduced }, .. }, src, dst, range, .. } = self;
        let (first, columns) = (place(&kept, self.row * dst.len()), dst.len());
        let Axis { extent, step } = reduced[2];
        let apart = step != columns;
        let mut run = vec![J::BEGIN; columns * if apart { 1 } else { (WIDE / columns).max(1) }];
        let mut begin = range.start;
        while begin < range.end {
            run.fill(J::BEGIN);
            let end = range.end.min(begin + RUN);
            let mut index = begin;
            while index < end {
                // Rows that lie one behind the other are one run of values.
                let rows = if apart { 1 } else { (end - index).min(extent - index % extent) };
                let start = first + place(&reduced, index);
                let values = src.get(start..start + rows * columns).unwrap_or_default();
                for values in values.chunks(run.len()) {
                    join_row::<J>(&mut run, values);
                }
                index += rows;
            }
            for run in run.chunks_exact(columns) {
                join_row::<J>(dst, run);
            }
            begin = end;
        }
    }
}

impl CpuKernel for ReduceKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.elements)?;
        check_len(OP, "dst", dst.len(), self.merged.outputs())?;
        match self.reduction {
            Reduction::Sum | Reduction::Mean => self.reduce::<Add>(src, dst),
            Reduction::Max => self.reduce::<Larger>(src, dst),
            Reduction::Min => self.reduce::<Smaller>(src, dst),
            Reduction::Product => self.reduce::<Multiply>(src, dst),
            Reduction::Any => self.reduce::<Any>(src, dst),
            Reduction::All => self.reduce::<All>(src, dst),
        }
        if self.reduction == Reduction::Mean {
            let count = self.merged.count() as f32;
            dst.iter_mut().for_each(|sum| *sum /= count);
        }
        Ok(())
    }
}
