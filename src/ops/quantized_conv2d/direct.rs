//! `direct`: `tile[1]` pixels of a row by `tile[0]` words of output channels per invocation.

use super::QuantizedConv2dOp;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Scalar, Value};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::bytes::LANES;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, binding, extent, unsigned};

/// Words of output channels, and pixels of a row.
const TILES: [[u32; 3]; 6] = [[1, 4, 1], [1, 2, 1], [1, 1, 1], [2, 4, 1], [2, 2, 1], [1, 8, 1]];

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<QuantizedConv2dOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/quantized_conv2d/direct.wgsl"))
    }

    fn offers(&self, op: &QuantizedConv2dOp, _limits: &Limits) -> Vec<Offer> {
        let output = op.windows.output;
        let fits = |tile: &[u32; 3]| {
            (tile[0] == 1 || tile[0] <= extent(output.c)) && (tile[1] == 1 || tile[1] < 2 * extent(output.w))
        };
        let offer = |(at, tile)| Offer { preference: extent(at), tile };
        TILES.into_iter().filter(fits).enumerate().map(offer).collect()
    }

    fn grid(&self, op: &QuantizedConv2dOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.windows.output;
        let rows = extent(output.n * output.h);
        [extent(output.c).div_ceil(tile[0]), extent(output.w).div_ceil(tile[1]), rows]
    }

    fn ordinary(&self) -> Ordinary {
        Ordinary::Size([16, 4, 1])
    }

    fn layouts(&self) -> &'static [Layout] {
        &[Layout::Nhwc]
    }

    fn place(&self) -> Layout {
        Layout::Nhwc
    }

    fn bindings(&self, _op: &QuantizedConv2dOp, _choice: &Choice) -> Vec<Binding> {
        let words = Element::Scalar(DType::U32);
        vec![
            binding(Operand::Src, words, Access::Read),
            binding(Operand::Weights, Element::Vec4(DType::U32), Access::Read),
            binding(Operand::Bias, Element::Vec4(DType::I32), Access::Read),
            binding(Operand::Scale, Element::Vec4(DType::F32), Access::Read),
            binding(Operand::Dst, words, Access::Write),
        ]
    }

    fn params(&self, op: &QuantizedConv2dOp, _choice: &Choice) -> Params {
        let windows = &op.windows;
        let mut params = vec![
            ("src_w", unsigned(windows.input.w)),
            ("src_h", unsigned(windows.input.h)),
            ("src_words", unsigned(windows.input.c)),
            ("dst_w", unsigned(windows.output.w)),
            ("dst_h", unsigned(windows.output.h)),
            ("dst_words", unsigned(windows.output.c)),
            ("batch", unsigned(windows.output.n)),
            ("before_h", unsigned(windows.before[0])),
            ("before_w", unsigned(windows.before[1])),
            ("outside", Scalar::U32(u32::from_le_bytes([op.outside; LANES]))),
        ];
        params.extend(op.range.params());
        params
    }

    fn constants(&self, op: &QuantizedConv2dOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [x, y, _] = choice.tile;
        let tile = [("TILE_X", Value::U32(x)), ("TILE_Y", Value::U32(y))];
        spec::window_constants(&op.windows).into_iter().chain(tile).collect()
    }

    /// Weights as four words, of as many output channels, for each word of a window and word of output channels; and a
    /// vec4 of bias and scale for each word of output channels.
    fn pack(&self, op: &QuantizedConv2dOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let lanes = LANES * op.windows.output.c;
        let mut packed = data.to_vec();
        if operand == Operand::Weights {
            let depth = op.windows.terms();
            packed = vec![0.0; lanes * depth];
            for (channel, row) in data.chunks_exact(depth).enumerate() {
                let places = packed.iter_mut().skip(channel).step_by(lanes);
                places.zip(row).for_each(|(place, word)| *place = *word);
            }
        }
        packed.resize(packed.len().max(lanes), 0.0);
        packed
    }
}
