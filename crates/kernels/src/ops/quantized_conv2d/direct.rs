//! `direct`: `tile[1]` pixels of a row by `tile[0]` words of output channels per invocation, of which `tile[2]` share the words of
//! each tap.

use super::QuantizedConv2dOp;
use crate::dtype::DType;
use crate::emit::{Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::bytes::{self, LANES};
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, extent, local_obstacle, unsigned};

/// Words of output channels, pixels of a row, and invocations that share a sum.
const TILES: [[u32; 3]; 11] = [
    [2, 4, 1],
    [1, 4, 1],
    [1, 4, 4],
    [1, 4, 8],
    [1, 2, 1],
    [1, 2, 8],
    [1, 1, 1],
    [1, 1, 8],
    [1, 4, 16],
    [1, 2, 16],
    [1, 1, 16],
];

/// Invocations of a work-group along x and y where they share sums.
const SHARING: [[u32; 2]; 4] = [[8, 2], [16, 1], [16, 2], [8, 4]];

/// vec4s of sums that a work-group adds up at the end.
fn sums(tile: [u32; 3], [x, y, _]: [u32; 3]) -> u32 {
    x * y * tile[0] * tile[1] * (tile[2] - 1)
}

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<QuantizedConv2dOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/quantized_conv2d/direct.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([16, 4, 1]))
    }

    fn offers(&self, op: &QuantizedConv2dOp, _limits: &Limits) -> Vec<Offer> {
        let output = op.windows.output;
        let fits = |[words, pixels, splits]: &[u32; 3]| {
            (*words == 1 || *words <= extent(output.c))
                && (*pixels == 1 || *pixels < 2 * extent(output.w))
                && (*splits == 1 || *splits <= extent(op.windows.input.c))
        };
        let offer = |(at, tile)| Offer { preference: 1 + extent(at), tile };
        TILES.into_iter().filter(fits).enumerate().map(offer).collect()
    }

    fn grid(&self, op: &QuantizedConv2dOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.windows.output;
        let rows = extent(output.n * output.h);
        [extent(output.c).div_ceil(tile[0]), extent(output.w).div_ceil(tile[1]), tile[2] * rows]
    }

    fn work_groups(&self, _op: &QuantizedConv2dOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        let sharing = SHARING.into_iter().filter(|_| tile[2] > 1);
        sharing.map(|[x, y]| [x, y, tile[2]]).collect()
    }

    fn choice_obstacle(&self, _op: &QuantizedConv2dOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let ([_, _, splits], [_, _, z]) = (choice.tile, choice.work_group);
        if splits > 1 && splits != z {
            return Some(format!("a work-group of {z} along z, the tile has {splits}"));
        }
        let bytes = 16 * u64::from(sums(choice.tile, choice.work_group));
        local_obstacle(bytes, limits)
    }

    fn bindings(&self, op: &QuantizedConv2dOp, _choice: &Choice) -> Vec<Binding> {
        bytes::bindings(op, Element::Vec4(DType::U32))
    }

    fn params(&self, op: &QuantizedConv2dOp, _choice: &Choice) -> Params {
        let windows = &op.windows;
        let words = [("src_words", unsigned(windows.input.c)), ("dst_words", unsigned(windows.output.c))];
        bytes::params(windows, op.outside, &op.range).into_iter().chain(words).collect()
    }

    fn constants(&self, op: &QuantizedConv2dOp, choice: &Choice, limits: &Limits) -> Constants {
        let [x, y, splits] = choice.tile;
        let mut tile =
            vec![("TILE_X", Value::U32(x)), ("TILE_Y", Value::U32(y)), ("SPLITS", Value::U32(splits))];
        if splits > 1 {
            tile.push(("SUMS", Value::U32(sums(choice.tile, choice.work_group))));
        }
        tile.extend(bytes::unpacked(limits));
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
