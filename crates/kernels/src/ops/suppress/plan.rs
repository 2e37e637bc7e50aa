//! What `suppress` is, and its kernel.

use super::{NONE, OP, SuppressOp, oracle, rows};
use crate::cpu::shelf::Shelf;
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::reference::Reference;

impl Definition for SuppressOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;
    const UNTUNABLE: Option<&'static str> = Some("a suppression has one kernel");

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Rows]
    }

    fn problem_key(&self) -> String {
        let options = &self.options;
        let numbers = [options.overlap, options.score, options.sigma].map(|number| number.0);
        let rule = if options.strict { "strict" } else { "plain" };
        let [overlap, score, sigma] = numbers;
        format!(
            "boxes{} scores{} count{} overlap{overlap} score{score} sigma{sigma} {rule}",
            self.boxes, self.scores, options.count
        )
    }

    /// Rows are f32 in every precision.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    /// About twenty for each box and each one that is chosen.
    fn flops(&self) -> u64 {
        20 * self.scores.elements() as u64 * self.options.count as u64
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Arg(0), self.boxes.shape(), Role::Input),
            OperandInfo::new(Operand::Arg(1), self.scores.shape(), Role::Input),
            OperandInfo::new(Operand::Dst, self.target.shape(), Role::Output),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let of = |operand| operands::get(operands, operand).unwrap_or_default();
        oracle::oracle(self, of(Operand::Arg(0)), of(Operand::Arg(1)))
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(*self))
    }
}

/// A box with its corners in order.
#[derive(Clone, Copy)]
struct Corners {
    low: [f32; 2],
    high: [f32; 2],
    area: f32,
}

impl Corners {
    fn of(corners: &[f32; 4]) -> Self {
        let [y0, x0, y1, x1] = *corners;
        let (low, high) = ([y0.min(y1), x0.min(x1)], [y0.max(y1), x0.max(x1)]);
        Corners { low, high, area: (high[0] - low[0]) * (high[1] - low[1]) }
    }

    fn overlap(&self, other: &Corners) -> f32 {
        if self.area <= 0.0 || other.area <= 0.0 {
            return 0.0;
        }
        let side = |axis: usize| {
            (self.high[axis].min(other.high[axis]) - self.low[axis].max(other.low[axis])).max(0.0)
        };
        let common = side(0) * side(1);
        common / (self.area + other.area - common)
    }
}

impl SuppressOp {
    fn row(&self, boxes: &[f32], scores: &[f32], dst: &mut [f32]) {
        let options = self.options;
        let boxes: Vec<Corners> = boxes.as_chunks::<4>().0.iter().map(Corners::of).collect();
        let (chosen, left) = dst.split_at_mut(2 * options.count);
        for (left, &score) in left.iter_mut().zip(scores) {
            let keeps = if options.strict { score > options.score.0 } else { score >= options.score.0 };
            *left = if keeps { score } else { NONE };
        }
        let decay = if options.sigma.0 > 0.0 { -0.5 / options.sigma.0 } else { 0.0 };
        for pair in chosen.chunks_exact_mut(2) {
            let (mut place, mut best) = (usize::MAX, NONE);
            for (index, &score) in left.iter().enumerate() {
                if score > best {
                    (place, best) = (index, score);
                }
            }
            let Some(own) = boxes.get(place) else {
                pair.copy_from_slice(&[-1.0, 0.0]);
                continue;
            };
            pair.copy_from_slice(&[place as f32, best]);
            for (index, (left, other)) in
                left.iter_mut().zip(&boxes).enumerate().filter(|(_, (l, _))| **l > NONE)
            {
                let overlap = own.overlap(other);
                let over = if options.strict {
                    overlap >= options.overlap.0
                } else {
                    overlap > options.overlap.0 || index == place
                };
                let changed = if decay < 0.0 { *left * (decay * overlap * overlap).exp() } else { *left };
                let below = changed != *left && changed <= options.score.0;
                *left = if over || below { NONE } else { changed };
            }
        }
    }
}

impl CpuKernel for SuppressOp {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (boxes, scores) = (input(OP, inputs, Operand::Arg(0))?, input(OP, inputs, Operand::Arg(1))?);
        let dst = output(OP, outputs, Operand::Dst)?;
        check_len(OP, "boxes", boxes.len(), self.boxes.elements())?;
        check_len(OP, "scores", scores.len(), self.scores.elements())?;
        check_len(OP, "dst", dst.len(), self.target.elements())?;
        let [_, n] = self.extents();
        let rows = dst.chunks_mut(2 * self.options.count + n).zip(scores.chunks(n)).enumerate();
        each(rows, |(row, (dst, scores))| self.row(self.boxes_of(boxes, row), scores, dst));
        Ok(())
    }
}
