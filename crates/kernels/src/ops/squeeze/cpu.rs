//! The global mean and the product on the CPU.

use super::{OP, SqueezeOp};
use crate::cpu::shelf::Shelf;
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::operands::Operands;
use crate::ops::pointwise::PointwiseOp;
use crate::ops::pointwise::cpu::{self, RowProduct};

/// Pixels whose sum is one of the parts of an image's.
const PART: usize = 256;

/// The op with its constants, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct SqueezeKernel {
    op: SqueezeOp,
    dense: RowProduct,
}

impl SqueezeKernel {
    pub(super) fn new(op: &SqueezeOp, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Self> {
        Ok(SqueezeKernel { op: *op, dense: cpu::kernel(&PointwiseOp::of(op.dense), constants, shelf)? })
    }
}

impl CpuKernel for SqueezeKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        let (map, plane) = (self.op.map, self.op.plane());
        check_len(OP, "src", src.len(), map.elements())?;
        let parts = plane.div_ceil(PART);
        let pieces: Vec<&[f32]> =
            src.chunks_exact(plane * map.c).flat_map(|image| image.chunks(PART * map.c)).collect();
        let mut sums = vec![0.0f32; pieces.len() * map.c];
        each(sums.chunks_exact_mut(map.c).zip(pieces), |(sums, piece)| {
            for pixel in piece.chunks_exact(map.c) {
                sums.iter_mut().zip(pixel).for_each(|(sum, x)| *sum += x);
            }
        });
        let mut means = vec![0.0f32; map.n * map.c];
        for (means, sums) in means.chunks_exact_mut(map.c).zip(sums.chunks_exact(parts * map.c)) {
            for part in sums.chunks_exact(map.c) {
                means.iter_mut().zip(part).for_each(|(mean, sum)| *mean += sum);
            }
            means.iter_mut().for_each(|mean| *mean /= plane as f32);
        }
        self.dense.product(&means, None, dst)
    }
}
