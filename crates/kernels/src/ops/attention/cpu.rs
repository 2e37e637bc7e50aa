//! The attention on the CPU: a block of queries of one head at a time, its scores in scratch memory.

use super::along::{largest_of, sum_of};
use super::{Added, AttentionOp, NO_KEY, OP, Rules, Sizes};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::with_scratch;
use crate::cpu::product::{Factors, Matrix, multiply};
use crate::cpu::workers::{each, try_each, workers};
use crate::cpu::{CpuKernel, check_len, given, output};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::vector::{exp, tanh};
use crate::word::integers;
use pulp::{Simd, WithSimd};

/// Scores of a block, at most.
const SCORES: usize = 1 << 16;

/// Queries of a block, at most.
const ROWS: usize = 128;

/// Where queries begin, at most: behind all keys.
const FARTHEST: i64 = 1 << 29;

/// Products from which on a block is worth a helper.
const WORTH: usize = 1 << 15;

/// An attention, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct AttentionKernel {
    op: AttentionOp,
    arch: Arch,
}

/// What a run is given.
struct Inputs<'a> {
    query: &'a [f32],
    key: &'a [f32],
    value: &'a [f32],
    bias: &'a [f32],
    mask: &'a [f32],
    begins: Vec<i64>,
    ends: Vec<i64>,
}

/// Queries of a head: of one head of queries, or one of each that share a head of keys.
struct Block<'a> {
    /// Batch, head of keys, head that shares it, and query of the first.
    first: [usize; 4],
    dst: &'a mut [f32],
    /// Of all keys, those that it takes: from the first to the one behind the last.
    keys: [usize; 2],
}

impl AttentionKernel {
    pub(super) fn new(op: &AttentionOp) -> Self {
        AttentionKernel { op: op.clone(), arch: Arch::new() }
    }

    /// Queries that are one behind the other, and whether they are of different heads.
    fn line(&self) -> (usize, bool) {
        let Sizes { group, rows, .. } = self.op.sizes;
        if rows == 1 { (group, true) } else { (rows, false) }
    }

    /// Queries of a block.
    fn block(&self) -> usize {
        let Sizes { batch, heads, group, keys, depth, width, .. } = self.op.sizes;
        let (line, across) = self.line();
        let lines = batch * heads * if across { 1 } else { group };
        let most = (SCORES / keys.max(1)).clamp(8, ROWS);
        let worth = (WORTH / (keys * (depth + width)).max(1)).max(1);
        let shared = line.div_ceil(workers().div_ceil(lines));
        shared.max(worth).min(most).min(line).max(1)
    }

    /// All results, head by head.
    fn results(&self, inputs: &Inputs<'_>, dst: &mut [f32]) -> Result<()> {
        let Sizes { heads, group, width, .. } = self.op.sizes;
        let ((line, across), block) = (self.line(), self.block());
        let mut blocks = Vec::new();
        for (index, dst) in dst.chunks_mut(line * width).enumerate() {
            let (g, index) = if across { (0, index) } else { (index % group, index / group) };
            for (number, dst) in dst.chunks_mut(block * width).enumerate() {
                let at = number * block;
                let (g, row) = if across { (at, 0) } else { (g, at) };
                let first = [index / heads, index % heads, g, row];
                blocks.push(Block { first, dst, keys: [0, self.op.sizes.keys] });
            }
        }
        try_each(blocks.into_iter(), |block| self.attend(inputs, block, &mut []))
    }

    /// The results of each part, query by query.
    fn parts(&self, inputs: &Inputs<'_>, dst: &mut [f32]) -> Result<()> {
        let Sizes { heads, group, rows, keys, width, batch, .. } = self.op.sizes;
        let count = batch * heads * group * rows;
        for (index, row) in dst.chunks_exact_mut(width + self.op.strided().tail()).enumerate() {
            let (part, index) = (index / count, index % count);
            let (query, index) = (index % rows, index / rows);
            let (g, index) = (index % group, index / group);
            let from = (part * self.op.span()).min(keys);
            let (dst, behind) = row.split_at_mut(width);
            behind.fill(0.0);
            let first = [index / heads, index % heads, g, query];
            let block = Block { first, dst, keys: [from, (from + self.op.span()).min(keys)] };
            self.attend(inputs, block, behind.get_mut(..1).unwrap_or_default())?;
        }
        Ok(())
    }

    /// The keys that some query of a block attends, from the first to the one behind the last; and its place.
    fn reach(&self, inputs: &Inputs<'_>, [b, _, _, row]: [usize; 4], count: usize) -> ([usize; 2], i64) {
        let Rules { before, behind, begin, .. } = self.op.rules;
        let of = |counts: &[i64], operand| counts.get(b * self.op.count_step(operand)).copied();
        let keys = self.op.sizes.keys as i64;
        let begin = of(&inputs.begins, Operand::Begins).unwrap_or(begin as i64).clamp(-FARTHEST, FARTHEST);
        let place = begin + row as i64;
        let (_, across) = self.line();
        let last = place + if across { 0 } else { count as i64 - 1 };
        let mut end = of(&inputs.ends, Operand::Ends).unwrap_or(keys).clamp(0, keys);
        if let Some(behind) = behind {
            end = end.min(last + behind as i64 + 1).max(0);
        }
        let first = before.map_or(0, |before| place - before as i64).clamp(0, end);
        ([first as usize, end as usize], place)
    }

    /// The results of a block, and where asked for the logarithm of each query's sum of exponentials.
    fn attend(
        &self,
        inputs: &Inputs<'_>,
        Block { first, dst, keys: within }: Block<'_>,
        logarithms: &mut [f32],
    ) -> Result<()> {
        let op = &self.op;
        let Sizes { depth, width, .. } = op.sizes;
        let (_, across) = self.line();
        let count = dst.len() / width;
        let ([from, to], place) = self.reach(inputs, first, count);
        let (from, to) = (from.max(within[0]), to.min(within[1]));
        let [b, h, g, row] = first;
        let keys = to.saturating_sub(from);
        let nothing = if op.rules.nan_if_nothing && op.parts == 1 { f32::NAN } else { 0.0 };
        if keys == 0 {
            dst.fill(nothing);
            logarithms.fill(NO_KEY);
            return Ok(());
        }
        let step = |steps: [usize; 4]| if across { steps[2] } else { steps[3] };
        let matrix = |data: &'_ [f32], at: usize, strides: [usize; 2]| -> Result<(usize, [usize; 2])> {
            if at < data.len() {
                Ok((at, strides))
            } else {
                Err(Error::Internal(format!("{OP} beyond its rows")))
            }
        };
        let (q_at, q_strides) = matrix(inputs.query, op.query.at(first), [step(op.query.steps), 1])?;
        let (k_at, k_strides) = matrix(inputs.key, op.key.at([b, h, 0, from]), [1, op.key.steps[3]])?;
        let (v_at, v_strides) = matrix(inputs.value, op.value.at([b, h, 0, from]), [op.value.steps[3], 1])?;
        let once = Factors { alpha: 1.0, beta: 0.0 };
        with_scratch(count * keys + count, |scratch| {
            let Some((scores, sums)) = scratch.split_at_mut_checked(count * keys) else { return Ok(()) };
            multiply(
                [count, keys, depth],
                scores,
                keys,
                Matrix { data: &inputs.query[q_at..], strides: q_strides },
                Matrix { data: &inputs.key[k_at..], strides: k_strides },
                Factors { alpha: op.rules.scale.0, beta: 0.0 },
            )?;
            for (index, scores) in scores.chunks_exact_mut(keys).enumerate() {
                let (g, row) = if across { (g + index, row) } else { (g, row + index) };
                let place = place + if across { 0 } else { index as i64 };
                self.finish(inputs, [b, h, g, row, from], place, scores);
            }
            self.arch.dispatch(Shares { scores, keys, sums, logarithms });
            multiply(
                [count, width, keys],
                dst,
                width,
                Matrix { data: scores, strides: [keys, 1] },
                Matrix { data: &inputs.value[v_at..], strides: v_strides },
                once,
            )?;
            for (row, &sum) in dst.chunks_exact_mut(width).zip(&*sums) {
                if sum == 0.0 {
                    row.fill(nothing);
                } else {
                    let share = 1.0 / sum;
                    row.iter_mut().for_each(|value| *value *= share);
                }
            }
            Ok(())
        })
    }

    /// What scores of a query become before their exponentials. `at` is the query's place, and the first key.
    fn finish(&self, inputs: &Inputs<'_>, at: [usize; 5], place: i64, scores: &mut [f32]) {
        let Rules { softcap, before, behind, mask, mask_adds, .. } = self.op.rules;
        if softcap.0 > 0.0 {
            scores.iter_mut().for_each(|score| *score = softcap.0 * tanh(*score / softcap.0));
        }
        let adds = |added: Option<Added>, values: &[f32], scores: &mut [f32]| {
            let Some(added) = added else { return };
            let values = values.get(added.at(at)..).unwrap_or_default();
            match added.steps[4] {
                0 => scores.iter_mut().for_each(|score| *score += values.first().copied().unwrap_or(0.0)),
                1 => scores.iter_mut().zip(values).for_each(|(score, value)| *score += value),
                step => scores.iter_mut().zip(values.iter().step_by(step)).for_each(|(s, value)| *s += value),
            }
        };
        adds(self.op.bias, inputs.bias, scores);
        adds(self.op.mask.filter(|_| mask_adds), inputs.mask, scores);
        if let Some(added) = self.op.mask.filter(|_| !mask_adds) {
            let values = inputs.mask.get(added.at(at)..).unwrap_or_default();
            for (index, score) in scores.iter_mut().enumerate() {
                let told = values.get(index * added.steps[4]).is_some_and(|&told| told != 0.0);
                if told == mask.hides {
                    *score = mask.fill.0;
                }
            }
        }
        let first = at[4] as i64;
        if let Some(behind) = behind {
            let attended = (place + behind as i64 + 1 - first).clamp(0, scores.len() as i64);
            scores[attended as usize..].fill(f32::NEG_INFINITY);
        }
        if let Some(before) = before {
            let hidden = (place - before as i64 - first).clamp(0, scores.len() as i64);
            scores[..hidden as usize].fill(f32::NEG_INFINITY);
        }
    }
}

/// Rows of scores, which become their exponentials; `sums` become those of the rows, and `logarithms`, as many as there are, those
/// of the sums of what is not divided by the largest.
struct Shares<'a> {
    scores: &'a mut [f32],
    keys: usize,
    sums: &'a mut [f32],
    logarithms: &'a mut [f32],
}

impl WithSimd for Shares<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let mut logarithms = self.logarithms.iter_mut();
        for (row, sum) in self.scores.chunks_exact_mut(self.keys).zip(self.sums) {
            let largest = largest_of(row);
            let mut logarithm = logarithms.next();
            if largest == f32::NEG_INFINITY && row.iter().all(|score| *score == largest) {
                row.fill(0.0);
                *sum = 0.0;
                logarithm.iter_mut().for_each(|logarithm| **logarithm = NO_KEY);
                continue;
            }
            for score in row.iter_mut() {
                *score = exp(*score - largest);
            }
            *sum = sum_of(row);
            logarithm.iter_mut().for_each(|logarithm| **logarithm = largest + sum.ln());
        }
    }
}

impl CpuKernel for AttentionKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let op = &self.op;
        for (operand, (dims, dtype)) in &op.given {
            let found = given(inputs, *operand).map_or(0, <[f32]>::len);
            check_len(OP, operand.name(), found, dims.elements() * dtype.words())?;
        }
        let of = |operand| given(inputs, operand).unwrap_or_default();
        let counts = |operand: Operand| match op.given.get(&operand) {
            Some((_, DType::F32)) => of(operand).iter().map(|&count| count as i64).collect(),
            Some((_, dtype)) => integers(*dtype, of(operand)),
            None => Vec::new(),
        };
        let inputs = Inputs {
            query: of(Operand::Query),
            key: of(Operand::Key),
            value: of(Operand::Value),
            bias: of(Operand::Bias),
            mask: of(Operand::Mask),
            begins: counts(Operand::Begins),
            ends: counts(Operand::Ends),
        };
        let dst = output(OP, outputs, Operand::Dst)?;
        check_len(OP, "dst", dst.len(), op.output.elements())?;
        if op.parts > 1 {
            return self.parts(&inputs, dst);
        }
        let Sizes { heads, group, rows, width, .. } = op.sizes;
        let of_head = op.dst.at([0, 0, 0, 1]) == width || rows == 1;
        let in_order = [
            (op.sizes.batch, op.dst.steps[0], heads * group * rows * width),
            (heads, op.dst.steps[1], group * rows * width),
            (group, op.dst.steps[2], rows * width),
        ];
        if of_head && in_order.iter().all(|(extent, step, wanted)| *extent == 1 || step == wanted) {
            return self.results(&inputs, dst);
        }
        with_scratch(dst.len(), |results| {
            self.results(&inputs, results)?;
            let results = &*results;
            // Rows that lie otherwise, some places along the outermost axis of the result at a time.
            let Outermost { axis, extent, step } = outermost(op);
            let block = extent.div_ceil(4 * workers()).max(1);
            each(dst.chunks_mut(block * dst_count(op, extent)).enumerate(), |(index, part)| {
                let first = index * block;
                let mut ends = [op.sizes.batch, heads, group, rows];
                let mut begins = [0; 4];
                (begins[axis], ends[axis]) = (first, (first + block).min(extent));
                for b in begins[0]..ends[0] {
                    for h in begins[1]..ends[1] {
                        for g in begins[2]..ends[2] {
                            for m in begins[3]..ends[3] {
                                let from = (((b * heads + h) * group + g) * rows + m) * width;
                                let to = op.dst.at([b, h, g, m]) - first * step;
                                if let (Some(to), Some(from)) =
                                    (part.get_mut(to..to + width), results.get(from..from + width))
                                {
                                    to.copy_from_slice(from);
                                }
                            }
                        }
                    }
                }
            });
            Ok(())
        })
    }
}

/// The axis of a result with the largest step.
struct Outermost {
    axis: usize,
    extent: usize,
    step: usize,
}

fn outermost(op: &AttentionOp) -> Outermost {
    let extents = op.sizes.of(Operand::Dst);
    let axes = op.dst.steps.into_iter().zip(extents).enumerate().filter(|(_, (_, extent))| *extent > 1);
    let (axis, (step, extent)) = axes.max_by_key(|(_, (step, _))| *step).unwrap_or((0, (0, 1)));
    Outermost { axis, extent, step }
}

/// Elements of a result from one place along its outermost axis, of `extent` places, to the next.
fn dst_count(op: &AttentionOp, extent: usize) -> usize {
    op.output.elements() / extent
}
