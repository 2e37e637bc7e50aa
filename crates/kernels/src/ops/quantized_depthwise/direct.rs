//! `direct`: `tile[1]` pixels of a row and a word of channels per invocation.

use super::QuantizedDepthwiseOp;
use crate::dtype::DType;
use crate::emit::{Binding, Element, Value};
use crate::limits::Limits;
use crate::ops::bytes;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, extent, unsigned};

/// Pixels of a row.
const TILES: [[u32; 3]; 3] = [[1, 1, 1], [1, 2, 1], [1, 4, 1]];

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<QuantizedDepthwiseOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/quantized_depthwise/direct.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([16, 4, 1]))
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

    fn bindings(&self, op: &QuantizedDepthwiseOp, _choice: &Choice) -> Vec<Binding> {
        bytes::bindings(op, Element::Scalar(DType::U32))
    }

    fn params(&self, op: &QuantizedDepthwiseOp, _choice: &Choice) -> Params {
        let windows = &op.windows;
        let words = [("words", unsigned(windows.input.c))];
        bytes::params(windows, op.outside, &op.range).into_iter().chain(words).collect()
    }

    fn constants(&self, op: &QuantizedDepthwiseOp, choice: &Choice, _limits: &Limits) -> Constants {
        let tile = [("TILE_Y", Value::U32(choice.tile[1]))];
        spec::window_constants(&op.windows).into_iter().chain(tile).collect()
    }
}
