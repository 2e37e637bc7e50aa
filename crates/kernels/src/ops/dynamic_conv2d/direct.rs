//! `direct`: `tile[1]` pixels of a row by `tile[0]` words of output channels per invocation.

use super::DynamicConv2dOp;
use crate::emit::{Binding, Operand, Value};
use crate::limits::Limits;
use crate::ops::bytes::{self, LANES, bytes};
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{self, Params, extent};

/// Words of output channels, and pixels of a row.
const TILES: [[u32; 3]; 5] = [[2, 4, 1], [1, 4, 1], [1, 2, 1], [2, 1, 1], [1, 1, 1]];

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<DynamicConv2dOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/dynamic_conv2d/direct.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([16, 4, 1]))
    }

    fn offers(&self, op: &DynamicConv2dOp, _limits: &Limits) -> Vec<Offer> {
        let output = op.windows.output;
        let fits = |[words, pixels, _]: &[u32; 3]| {
            (*words == 1 || *words <= extent(output.c)) && (*pixels == 1 || *pixels < 2 * extent(output.w))
        };
        offers(0, TILES.into_iter().filter(fits))
    }

    fn grid(&self, op: &DynamicConv2dOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.windows.output;
        let [words, pixels, _] = tile;
        [
            extent(output.c).div_ceil(words.max(1)),
            extent(output.w).div_ceil(pixels.max(1)),
            extent(output.n * output.h),
        ]
    }

    fn registers(&self, _op: &DynamicConv2dOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        Some(Registers::alone(registers::of_bytes(choice.tile[1], choice.tile[0])))
    }

    fn bindings(&self, op: &DynamicConv2dOp, _choice: &Choice) -> Vec<Binding> {
        op.bindings()
    }

    fn params(&self, op: &DynamicConv2dOp, _choice: &Choice) -> Params {
        op.params()
    }

    fn constants(&self, op: &DynamicConv2dOp, choice: &Choice, limits: &Limits) -> Constants {
        let of = |value: bool| Value::U32(value.into());
        let own = [
            ("TILE_X", Value::U32(choice.tile[0])),
            ("TILE_Y", Value::U32(choice.tile[1])),
            ("INTEGERS", of(op.sums)),
            ("WIDE_DST", of(op.width() == 4)),
        ];
        let unpacked = bytes::unpacked(limits);
        spec::window_constants(&op.windows).into_iter().chain(own).chain(unpacked).collect()
    }

    /// Weights as four words, of as many output channels, for each word of a window and word of output channels, and the sums of
    /// their bytes behind them; a vec4 of the other constants for each word of output channels.
    fn pack(&self, op: &DynamicConv2dOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let lanes = LANES * op.windows.output.c;
        if operand != Operand::Weights {
            return spec::pack_channels(data, op.windows.output.c);
        }
        let depth = op.windows.terms();
        let mut packed = vec![0.0; lanes * (depth + 1)];
        for (channel, row) in data.chunks_exact(depth).enumerate() {
            let sum: i32 = bytes(row).iter().map(|byte| i32::from(byte.cast_signed())).sum();
            let places = packed.iter_mut().skip(channel).step_by(lanes);
            let words = row.iter().copied().chain([f32::from_bits(sum.cast_unsigned())]);
            places.zip(words).for_each(|(place, word)| *place = word);
        }
        packed
    }
}
