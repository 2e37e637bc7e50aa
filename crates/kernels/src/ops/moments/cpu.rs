//! Moments of parts on the CPU, part by part.

use super::{MomentsOp, OP, PART};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;

/// The op, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct MomentsKernel {
    pub(super) op: MomentsOp,
}

impl CpuKernel for MomentsKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        let (map, moments) = (self.op.map, self.op.moments());
        check_len(OP, "src", src.len(), map.elements())?;
        check_len(OP, "dst", dst.len(), moments.shape().elements())?;
        let zeros = vec![0.0; map.c];
        let mut parts: Vec<(&[f32], &[f32])> = Vec::new();
        for image in src.chunks_exact(map.h * map.w * map.c) {
            let first = image.get(..map.c).filter(|_| self.op.centred);
            let origin = first.unwrap_or(&zeros);
            parts.extend(image.chunks(PART * map.c).map(|part| (origin, part)));
        }
        let channels = 4 * map.slices();
        each(dst.chunks_exact_mut(2 * channels).zip(parts), |(dst, (origin, part))| {
            let count = (part.len() / map.c) as f32;
            let (means, squares) = dst.split_at_mut(channels);
            means.fill(0.0);
            squares.fill(0.0);
            for row in part.chunks_exact(map.c) {
                means.iter_mut().zip(row).zip(origin).for_each(|((mean, x), origin)| *mean += x - origin);
            }
            means.iter_mut().for_each(|mean| *mean /= count);
            for row in part.chunks_exact(map.c) {
                let sums = squares.iter_mut().zip(&*means).zip(row).zip(origin);
                sums.for_each(|(((sum, mean), x), origin)| {
                    let apart = x - origin - mean;
                    *sum += apart * apart;
                });
            }
        });
        Ok(())
    }
}
