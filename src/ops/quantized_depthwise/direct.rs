//! `direct`: `tile[1]` pixels of a row and a word of channels per invocation.

use super::QuantizedDepthwiseOp;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Scalar, Value};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::bytes::LANES;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, binding, extent, unsigned};

/// Pixels of a row.
const TILES: [[u32; 3]; 3] = [[1, 1, 1], [1, 2, 1], [1, 4, 1]];

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<QuantizedDepthwiseOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/quantized_depthwise/direct.wgsl"))
    }

    fn offers(&self, op: &QuantizedDepthwiseOp, _limits: &Limits) -> Vec<Offer> {
        let fits = |tile: &[u32; 3]| tile[1] == 1 || tile[1] < 2 * extent(op.windows.output.w);
        let offer = |(at, tile)| Offer { preference: extent(at), tile };
        TILES.into_iter().filter(fits).enumerate().map(offer).collect()
    }

    fn grid(&self, op: &QuantizedDepthwiseOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.windows.output;
        [extent(output.c), extent(output.w).div_ceil(tile[1]), extent(output.n * output.h)]
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

    fn bindings(&self, _op: &QuantizedDepthwiseOp, _choice: &Choice) -> Vec<Binding> {
        let words = Element::Scalar(DType::U32);
        vec![
            binding(Operand::Src, words, Access::Read),
            binding(Operand::Weights, words, Access::Read),
            binding(Operand::Bias, Element::Vec4(DType::I32), Access::Read),
            binding(Operand::Scale, Element::Vec4(DType::F32), Access::Read),
            binding(Operand::Dst, words, Access::Write),
        ]
    }

    fn params(&self, op: &QuantizedDepthwiseOp, _choice: &Choice) -> Params {
        let windows = &op.windows;
        let mut params = vec![
            ("src_w", unsigned(windows.input.w)),
            ("src_h", unsigned(windows.input.h)),
            ("words", unsigned(windows.input.c)),
            ("dst_w", unsigned(windows.output.w)),
            ("dst_h", unsigned(windows.output.h)),
            ("batch", unsigned(windows.output.n)),
            ("before_h", unsigned(windows.before[0])),
            ("before_w", unsigned(windows.before[1])),
            ("outside", Scalar::U32(u32::from_le_bytes([op.outside; LANES]))),
        ];
        params.extend(op.range.params());
        params
    }

    fn constants(&self, op: &QuantizedDepthwiseOp, choice: &Choice, _limits: &Limits) -> Constants {
        let tile = [("TILE_Y", Value::U32(choice.tile[1]))];
        spec::window_constants(&op.windows).into_iter().chain(tile).collect()
    }
}
