//! `staged`: what lies between the two convolutions is staged in local memory. On a grid of strips x slices x
//! (layers * batch): a strip is `tile[0]` outputs of one column, one below the other; the tile's second
//! extent is slices, its third the layers that share the sum over the input channels, and the work-group is
//! as deep.
//!
//! The window's weights are packed as `[slice][kh][kw][4]`, as `depthwise` has them; the weights as the rows
//! of a matrix, `[input slice][lane][slice][4]`, as `pointwise`'s `split` has them, with the rows of one
//! slice of zeros behind the last, which stand for all slices beyond it.

use super::SeparableOp;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, offers};
use crate::ops::plan::Choice;
use crate::ops::registry::VariantEntry;
use crate::ops::spec::{self, Params, extent, unsigned};

/// The most taps of a window, and the most rows that a strip of outputs reads: they are registers.
const MAX_TAPS: usize = 25;
const MAX_ROWS: usize = 16;

/// Rows of a strip and output slices per invocation, the most useful first.
const TILES: [[u32; 2]; 7] = [[3, 2], [2, 2], [3, 1], [2, 1], [4, 1], [1, 2], [1, 1]];

/// Layers that share a sum.
const LAYERS: [u32; 5] = [1, 2, 4, 8, 16];

#[derive(Debug)]
pub(super) struct Staged;

/// Vec4s of local memory: a strip of one slice for each invocation, or as many partial sums.
fn staged(choice: &Choice) -> u32 {
    choice.tile[0] * choice.work_group.iter().product::<u32>()
}

impl Kernel<SeparableOp> for Staged {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("staged", crate::emit::text!("../../../shaders/separable/staged.wgsl"))
    }

    /// As few layers as fill the device come first.
    fn offers(&self, op: &SeparableOp, _limits: &Limits) -> Vec<Offer> {
        let problem = &op.depthwise;
        let span = |rows: u32| {
            (rows as usize - 1) * problem.stride[0] + (problem.kernel[0] - 1) * problem.dilation[0] + 1
        };
        if problem.kernel[0] * problem.kernel[1] > MAX_TAPS {
            return Vec::new();
        }
        let tiles = TILES.into_iter().filter(|[rows, _]| span(*rows) <= MAX_ROWS);
        let slices = op.pointwise.input.slices();
        let layers = || LAYERS.into_iter().filter(|&layers| layers as usize <= slices);
        offers(0, tiles.flat_map(|[x, y]| layers().map(move |layers| [x, y, layers])))
    }

    fn grid(&self, op: &SeparableOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.pointwise.output;
        let strips = extent(output.w) * extent(output.h).div_ceil(tile[0]);
        [strips, extent(output.slices()).div_ceil(tile[1]), tile[2] * extent(output.n)]
    }

    fn choice_obstacle(&self, op: &SeparableOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let (depth, layers) = (choice.work_group[2], choice.tile[2]);
        if depth != layers {
            return Some(format!("the work-group is {depth} deep, {layers} layers need {layers}"));
        }
        let bytes = 4 * op.pointwise.precision.accumulator().bytes() * staged(choice) as usize;
        let most = limits.local_memory;
        (bytes > most as usize).then(|| format!("{bytes} bytes of local memory, the device has {most}"))
    }

    fn work_groups(&self, _op: &SeparableOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        [[8, 8], [16, 4], [8, 4], [16, 8], [16, 16], [32, 4], [4, 8], [4, 4], [8, 2], [4, 2], [2, 2]]
            .into_iter()
            .filter(|[x, y]| x * y * tile[2] <= 256)
            .map(|[x, y]| [x, y, tile[2]])
            .collect()
    }

    fn bindings(&self, op: &SeparableOp, choice: &Choice) -> Vec<Binding> {
        let mut bindings = spec::convolution_bindings(&op.pointwise, choice);
        let packed = Element::Vec4(op.pointwise.precision.storage());
        bindings.insert(1, spec::binding(Operand::Window, packed, Access::Read));
        if op.depthwise.epilogue.bias {
            let channel = Element::Vec4(DType::F32);
            bindings.insert(2, spec::binding(Operand::WindowBias, channel, Access::Read));
        }
        bindings
    }

    fn params(&self, op: &SeparableOp, _choice: &Choice) -> Params {
        let (window, output) = (&op.depthwise, op.pointwise.output);
        vec![
            ("src_w", unsigned(window.input.w)),
            ("src_h", unsigned(window.input.h)),
            ("src_c4", unsigned(window.input.slices())),
            ("dst_w", unsigned(output.w)),
            ("dst_h", unsigned(output.h)),
            ("dst_c4", unsigned(output.slices())),
            ("before_h", unsigned(window.before[0])),
            ("before_w", unsigned(window.before[1])),
        ]
    }

    fn constants(&self, op: &SeparableOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [x, y, layers] = choice.tile;
        let unroll = if choice.work_group[1].is_multiple_of(2) { 2 } else { 1 };
        let own = [
            ("TILE_X", x),
            ("TILE_Y", y),
            ("SPLITS", layers),
            ("UNROLL", unroll),
            ("CHUNK", choice.work_group[1] * layers),
            ("STAGED", staged(choice)),
        ];
        let own = own.map(|(name, value)| (name, Value::U32(value)));
        [spec::window_constants(&op.depthwise), own.to_vec()].concat()
    }

    fn pack(&self, op: &SeparableOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let (input, output) = (op.pointwise.input, op.pointwise.output);
        match operand {
            Operand::WindowBias => spec::pack_channels(data, input.slices()),
            Operand::Window => {
                spec::pack_window(data, op.depthwise.kernel[0] * op.depthwise.kernel[1], input.c)
            }
            Operand::Weights => spec::pack_rows(data, input.c, output.slices(), input.slices() + 1),
            _ => spec::pack_channels(data, output.slices()),
        }
    }
}
