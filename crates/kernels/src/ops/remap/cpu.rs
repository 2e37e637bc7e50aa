//! The moves on the CPU: one run along the innermost axis after the other.

use super::axes::{Part, Piece, ruled};
use super::{OP, RemapOp, Rule};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::try_each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::{Error, Result};

/// Runs of a transpose that are moved at once: as many as a cache line has elements.
const NEIGHBOURS: usize = 16;

/// Elements of what repeats that are copied at once: as many as a core's first-level cache holds.
const REPEATED: usize = 4096;

/// How the elements along the innermost axis are found.
#[derive(Debug, Clone)]
enum Inner {
    /// So many fill values, then neighbours from this element on, then fill values.
    Run { before: usize, skipped: usize, taken: usize },
    /// Each so many elements behind the one before.
    Strided(isize),
    /// Each where the rule says; what repeats is found once, in so many elements.
    Ruled(Part, usize),
}

/// A move, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct RemapKernel {
    source: usize,
    target: usize,
    first: usize,
    outer: Vec<Part>,
    /// Elements along the innermost axis.
    run: usize,
    inner: Inner,
    rule: Rule,
    /// The words of the fill value.
    fill: Vec<f32>,
}

impl CpuKernel for RemapKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.source)?;
        check_len(OP, "dst", dst.len(), self.target)?;
        let block = independent_rows(self.target / self.run, MOVED * self.run);
        try_each(dst.chunks_mut(block * self.run).enumerate(), |(index, dst)| {
            let moved = self.block(index * block, src, dst);
            moved.ok_or_else(|| Error::Internal(format!("{self:?} reads beyond its source")))
        })
    }
}

impl RemapKernel {
    pub(super) fn new(op: &RemapOp) -> Self {
        let one = Part { extent: 1, stride: 1, start: 0, step: 1, source: 1 };
        let words = op.dtype.words();
        let mut parts = op.parts.clone();
        if words > 1 {
            // The words of an element are one axis more.
            parts.iter_mut().for_each(|part| part.stride *= words as isize);
            parts.push(Part { extent: words, stride: 1, start: 0, step: 1, source: words });
        }
        let inner = parts.pop().unwrap_or(one);
        RemapKernel {
            source: op.source.elements() * words,
            target: op.target.elements() * words,
            first: op.first * words,
            outer: parts,
            run: inner.extent,
            inner: Inner::of(&inner, &op.rule),
            rule: op.rule,
            fill: op.fill_words(),
        }
    }

    /// The runs of `dst`, the first of which is run `first`.
    fn block(&self, first: usize, src: &[f32], dst: &mut [f32]) -> Option<()> {
        let mut place = vec![0; self.outer.len()];
        let mut rest = first;
        for (at, part) in place.iter_mut().zip(&self.outer).rev() {
            *at = rest % part.extent;
            rest /= part.extent;
        }
        let mut offsets: Vec<Option<isize>> =
            self.outer.iter().zip(&place).map(|(part, &at)| self.offset(part, at)).collect();
        let mut rest = dst;
        while !rest.is_empty() {
            let together = self.together(&place).min(rest.len() / self.run).max(1);
            let (own, behind) = rest.split_at_mut_checked(together * self.run)?;
            let begin = offsets.iter().try_fold(self.first as isize, |sum, offset| Some(sum + (*offset)?));
            match begin {
                Some(begin) => self.runs(begin, src, own)?,
                None => self.filled(own),
            }
            rest = behind;
            // The next place, the innermost axis first.
            let mut step = together;
            for axis in (0..place.len()).rev() {
                place[axis] += step;
                let beyond = place[axis] == self.outer[axis].extent;
                if beyond {
                    place[axis] = 0;
                }
                offsets[axis] = self.offset(&self.outer[axis], place[axis]);
                if !beyond {
                    break;
                }
                step = 1;
            }
        }
        Some(())
    }

    /// Gives whole elements the fill value.
    fn filled(&self, dst: &mut [f32]) {
        match self.fill[..] {
            [word] => dst.fill(word),
            _ => dst.chunks_mut(self.fill.len()).for_each(|own| own.copy_from_slice(&self.fill)),
        }
    }

    /// Runs that are moved at once: those whose elements are neighbours in the source.
    fn together(&self, place: &[usize]) -> usize {
        match (&self.inner, self.outer.last(), place.last()) {
            (Inner::Strided(_), Some(part), Some(at)) if part.is_linear() && part.stride == 1 => {
                NEIGHBOURS.min(part.extent - at)
            }
            (Inner::Run { .. }, Some(part), Some(at)) if part.is_linear() => part.extent - at,
            _ => 1,
        }
    }

    /// Runs of elements `stride` apart, each run one element behind the other. The first element is `begin`.
    fn columns(&self, begin: isize, stride: isize, src: &[f32], dst: &mut [f32]) -> Option<()> {
        let runs = dst.len() / self.run;
        for column in 0..self.run {
            let first = usize::try_from(begin + stride * column as isize).ok()?;
            let values = src.get(first..first + runs)?;
            let slots = dst.get_mut(column..)?.iter_mut().step_by(self.run);
            slots.zip(values).for_each(|(slot, value)| *slot = *value);
        }
        Some(())
    }

    /// How far element `at` of an axis is from the first one in the source.
    fn offset(&self, part: &Part, at: usize) -> Option<isize> {
        if part.is_linear() {
            return Some(part.stride * at as isize);
        }
        let at = ruled(part.start + part.step * at as isize, part.source, &self.rule)?;
        Some(part.stride * at as isize)
    }

    /// One run, or several of neighbours, whose coordinate 0 is element `begin` of the source.
    fn runs(&self, begin: isize, src: &[f32], dst: &mut [f32]) -> Option<()> {
        match &self.inner {
            &Inner::Run { skipped, taken, .. } if taken == self.run => {
                let begin = begin + isize::try_from(skipped).ok()?;
                let stride = self.outer.last().map_or(0, |part| part.stride);
                match taken {
                    1 => short::<1>(begin, stride, src, dst)?,
                    2 => short::<2>(begin, stride, src, dst)?,
                    3 => short::<3>(begin, stride, src, dst)?,
                    4 => short::<4>(begin, stride, src, dst)?,
                    _ => {
                        for (index, dst) in dst.chunks_exact_mut(taken).enumerate() {
                            let first = usize::try_from(begin + stride * index as isize).ok()?;
                            dst.copy_from_slice(src.get(first..first + taken)?);
                        }
                    }
                }
            }
            &Inner::Run { before, skipped, taken } => {
                let begin = begin + isize::try_from(skipped).ok()?;
                let stride = self.outer.last().map_or(0, |part| part.stride);
                for (index, dst) in dst.chunks_exact_mut(self.run).enumerate() {
                    let first = usize::try_from(begin + stride * index as isize).ok()?;
                    let (head, rest) = dst.split_at_mut_checked(before)?;
                    let (body, tail) = rest.split_at_mut_checked(taken)?;
                    self.filled(head);
                    body.copy_from_slice(src.get(first..first + taken)?);
                    self.filled(tail);
                }
            }
            &Inner::Strided(stride) => self.columns(begin, stride, src, dst)?,
            Inner::Ruled(part, period) => {
                let mut rest = dst.get_mut(..*period)?;
                for Piece { count, first, step } in part.pieces(*period, &self.rule) {
                    let (own, behind) = rest.split_at_mut_checked(count)?;
                    match first {
                        Some(first) => {
                            spread(begin + part.stride * first as isize, part.stride * step, src, own)?;
                        }
                        None => self.filled(own),
                    }
                    rest = behind;
                }
                repeat(*period, dst);
            }
        }
        Some(())
    }
}

/// Runs of `N` elements, each `stride` elements behind the one before.
fn short<const N: usize>(begin: isize, stride: isize, src: &[f32], dst: &mut [f32]) -> Option<()> {
    for (index, dst) in dst.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        let first = usize::try_from(begin + stride * index as isize).ok()?;
        *dst = *src.get(first..)?.first_chunk::<N>()?;
    }
    Some(())
}

/// Elements `stride` apart from `begin` on, one behind the other.
fn spread(begin: isize, stride: isize, src: &[f32], dst: &mut [f32]) -> Option<()> {
    let first = usize::try_from(begin).ok()?;
    match stride {
        0 => dst.fill(*src.get(first)?),
        1 => dst.copy_from_slice(src.get(first..first.checked_add(dst.len())?)?),
        2.. => {
            let values = src.get(first..)?.iter().step_by(stride.unsigned_abs());
            (values.len() >= dst.len()).then_some(())?;
            dst.iter_mut().zip(values).for_each(|(slot, value)| *slot = *value);
        }
        _ => {
            let values = src.get(..=first)?.iter().rev().step_by(stride.unsigned_abs());
            (values.len() >= dst.len()).then_some(())?;
            dst.iter_mut().zip(values).for_each(|(slot, value)| *slot = *value);
        }
    }
    Some(())
}

/// Repeats the first `period` elements to the end.
fn repeat(period: usize, dst: &mut [f32]) {
    let (mut done, mut block) = (period, period);
    while done < dst.len() {
        let next = block.min(dst.len() - done);
        dst.copy_within(..next, done);
        done += next;
        // Whole periods, as long as they stay in the cache.
        if block < REPEATED {
            block = done;
        }
    }
}

impl Inner {
    fn of(part: &Part, rule: &Rule) -> Self {
        if part.is_linear() {
            return match part.stride {
                1 => Inner::Run { before: 0, skipped: 0, taken: part.extent },
                stride => Inner::Strided(stride),
            };
        }
        if let (Rule::Fill(_), 1, 1) = (rule, part.stride, part.step) {
            let before = part.start.min(0).unsigned_abs().min(part.extent);
            let skipped = part.start.max(0).unsigned_abs().min(part.source);
            let taken = (part.extent - before).min(part.source - skipped);
            return Inner::Run { before, skipped, taken };
        }
        Inner::Ruled(*part, part.period(rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_is_repeated_to_the_end_and_no_further() {
        for period in [1, 2, 3, 1000, 5000] {
            for len in [period, period + 1, 3 * period, 4 * REPEATED + 7] {
                let mut found: Vec<f32> = (0..len.max(period)).map(|at| at as f32).collect();
                let wanted: Vec<f32> = (0..found.len()).map(|at| (at % period) as f32).collect();
                repeat(period, &mut found);
                assert!(found == wanted, "{period} in {len}");
            }
        }
    }

    #[test]
    fn elements_apart_are_read_within_the_source_alone() {
        let src: Vec<f32> = (0..10).map(|at| at as f32).collect();
        let of = |begin, stride, count| {
            let mut dst = vec![-1.0; count];
            spread(begin, stride, &src, &mut dst).map(|()| dst)
        };
        assert_eq!(of(1, 3, 3), Some(vec![1.0, 4.0, 7.0]));
        assert_eq!(of(9, -4, 3), Some(vec![9.0, 5.0, 1.0]));
        assert_eq!(of(4, 0, 2), Some(vec![4.0, 4.0]));
        assert_eq!(of(7, 1, 3), Some(vec![7.0, 8.0, 9.0]));
        for (begin, stride, count) in [(1, 3, 4), (9, -4, 4), (10, 0, 1), (8, 1, 3), (-1, 1, 1), (11, 2, 1)] {
            assert_eq!(of(begin, stride, count), None, "{begin} {stride} {count}");
        }
    }
}
