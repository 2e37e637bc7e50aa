//! `direct`: output pixels of a row that are a stride apart, and slices, per invocation, on a grid of width x
//! height x slices. Such pixels are reached by the same taps, from input pixels side by side.
//!
//! Weights are packed as `[slice][kh][kw][input slice][lane][4]`: for each output slice, tap and input slice four
//! vec4s over the output channels, one for each input lane.

use super::TransposedConv2dOp;
use crate::emit::{Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{self, Params, extent, unsigned};

/// Tiles of a row: those of each phase, one phase after the other.
fn row_tiles(op: &TransposedConv2dOp, tile: [u32; 3]) -> usize {
    op.0.output.w.div_ceil(op.0.stride[1]).div_ceil(tile[0] as usize)
}

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<TransposedConv2dOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/transposed_conv2d/direct.wgsl"))
            .with_ordinary(Ordinary::Convolution)
    }

    fn offers(&self, _op: &TransposedConv2dOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[4, 1, 1], [4, 1, 2], [2, 1, 1], [2, 1, 2], [1, 1, 1]])
    }

    fn grid(&self, op: &TransposedConv2dOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.0.output;
        let slices = extent(output.slices()).div_ceil(tile[2]);
        [extent(row_tiles(op, tile) * op.0.stride[1]), extent(output.h), slices * extent(output.n)]
    }

    fn registers(&self, _op: &TransposedConv2dOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        Some(Registers::alone(registers::of_pixels(2 * choice.tile[0], choice.tile[2])))
    }

    fn params(&self, op: &TransposedConv2dOp, choice: &Choice) -> Params {
        let (x, y) = (op.0.input, op.0.output);
        vec![
            ("src_w", unsigned(x.w)),
            ("src_h", unsigned(x.h)),
            ("src_c4", unsigned(x.slices())),
            ("dst_w", unsigned(y.w)),
            ("dst_h", unsigned(y.h)),
            ("dst_c4", unsigned(y.slices())),
            ("dst_tiles", unsigned(y.slices().div_ceil(choice.tile[2] as usize))),
            ("row_tiles", unsigned(row_tiles(op, choice.tile))),
            ("batch", unsigned(y.n)),
            ("before_h", unsigned(op.0.before[0])),
            ("before_w", unsigned(op.0.before[1])),
        ]
    }

    fn constants(&self, op: &TransposedConv2dOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [kernel_h, kernel_w] = op.0.kernel.map(extent);
        let [stride_h, stride_w] = op.0.stride.map(extent);
        [
            ("KERNEL_H", kernel_h),
            ("KERNEL_W", kernel_w),
            ("STRIDE_H", stride_h),
            ("STRIDE_W", stride_w),
            ("TILE_X", choice.tile[0]),
            ("TILE_Z", choice.tile[2]),
        ]
        .map(|(name, value)| (name, Value::U32(value)))
        .to_vec()
    }

    fn pack(&self, op: &TransposedConv2dOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let problem = &op.0;
        let slices = problem.output.slices().next_multiple_of(choice.tile[2].max(1) as usize);
        if operand != Operand::Weights {
            return spec::pack_channels(data, slices);
        }
        let (taps, inputs) = (problem.kernel[0] * problem.kernel[1], problem.input.c);
        let sources = inputs.div_ceil(4);
        let mut out = vec![0.0; slices * taps * sources * 16];
        for (o, window) in data.chunks_exact(taps * inputs).enumerate() {
            for (tap, row) in window.chunks_exact(inputs).enumerate() {
                for (k, &weight) in row.iter().enumerate() {
                    let vec4 = ((o / 4 * taps + tap) * sources + k / 4) * 4 + k % 4;
                    out[4 * vec4 + o % 4] = weight;
                }
            }
        }
        out
    }
}
