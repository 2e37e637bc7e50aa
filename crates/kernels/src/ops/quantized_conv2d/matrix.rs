//! `matrix_ptx`: products of pixels and output channels by instructions that multiply small matrices of bytes.
//!
//! A warp of 32 invocations sums `tile[1]` times 16 pixels by `tile[0]` times 8 output channels, and `tile[2]` layers of the
//! work-group sum a part of the terms each. A work-group of `32 x` by `y` by layers is `x` by `y` warps in each layer.

use super::QuantizedConv2dOp;
use crate::dtype::DType;
use crate::emit::{Binding, Element, Operand, Value};
use crate::limits::{Limits, MatrixUnit};
use crate::ops::bytes::{self, LANES};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, extent, local_obstacle};

/// Invocations that work on one small matrix together.
const WARP: u32 = 32;

/// Pixels and output channels of a small matrix.
const PIXELS: u32 = 16;
const CHANNELS: u32 = 8;

/// Words of all taps that a warp takes at a step.
const STEP: usize = 16;

/// The most invocations of a work-group: what drivers compile kernels for.
const INVOCATIONS: u32 = 256;

/// Small matrices of a warp along channels and pixels, the largest reuse first, and layers.
const TILES: [[u32; 2]; 6] = [[8, 2], [4, 4], [4, 2], [4, 1], [2, 1], [1, 1]];
const LAYERS: [u32; 4] = [1, 2, 4, 8];

/// The most vec4s of sums of all layers that an invocation passes through local memory.
const PASSED: u32 = 64;

/// Cycles that a warp waits for a step of words, and more for each small matrix; and for the sums of the other layers. With them,
/// a 7x7 map of 512 channels by 3x3 windows takes 7.3 us on an H100 and is measured as 8.9, launch included.
const STEP_WAIT: f64 = 330.0;
const MATRIX_CYCLES: f64 = 25.0;
const LAYERS_WAIT: f64 = 400.0;

/// Warps of a multiprocessor that wait together, and multiprocessors where a driver does not say.
const WARPS_OF_UNIT: f64 = 16.0;
const USUAL_UNITS: u32 = 64;

#[derive(Debug)]
pub(super) struct MatrixPtx;

impl QuantizedConv2dOp {
    /// Words of a window.
    fn terms(&self) -> usize {
        self.windows.terms()
    }

    /// Pixels of all images of the output.
    fn pixels(&self) -> u32 {
        let output = self.windows.output;
        extent(output.n * output.h * output.w)
    }

    /// Words that a lane reads at once: those of a pixel begin at a multiple.
    fn unit(&self) -> usize {
        [4, 2].into_iter().find(|unit| self.windows.input.c.is_multiple_of(*unit)).unwrap_or(1)
    }
}

/// vec4s of sums that the layers of a work-group pass through local memory.
fn passed([columns, blocks, layers]: [u32; 3], [x, y, _]: [u32; 3]) -> u32 {
    if layers > 1 { x * y * columns * blocks * layers } else { 0 }
}

impl Kernel<QuantizedConv2dOp> for MatrixPtx {
    fn entry(&self) -> VariantEntry {
        let text = include_str!("../../../cl/quantized_conv2d/matrix_ptx.cl");
        VariantEntry::opencl("matrix_ptx", text, "WGSL has no inline assembly").in_rows().by_estimate()
    }

    /// None where most of a small matrix would be zeros.
    fn offers(&self, op: &QuantizedConv2dOp, limits: &Limits) -> Vec<Offer> {
        let few = LANES * op.terms() < 32 || op.channels < CHANNELS as usize;
        if few || self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        let steps = extent(op.terms().div_ceil(STEP));
        let layers = LAYERS.into_iter().filter(|&layers| layers == 1 || 2 * layers <= steps);
        let all = layers.flat_map(|layers| TILES.map(|[x, y]| [x, y, layers]));
        // No tile of which half would lie beyond the channels or pixels.
        let across = |x: u32| x == 1 || CHANNELS * x < 2 * extent(op.channels);
        let down = |y: u32| y == 1 || PIXELS * y < 2 * op.pixels();
        let small = |[x, y, layers]: &[u32; 3]| *layers == 1 || x * y * layers <= PASSED;
        offers(0, all.filter(|tile| across(tile[0]) && down(tile[1]) && small(tile)))
    }

    fn grid(&self, op: &QuantizedConv2dOp, tile: [u32; 3]) -> [u32; 3] {
        let across = extent(op.channels).div_ceil(CHANNELS * tile[0]);
        [WARP * across, op.pixels().div_ceil(PIXELS * tile[1]), tile[2]]
    }

    /// The most warps that a work-group may have first, never more than there is work for.
    fn work_groups(&self, op: &QuantizedConv2dOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        let [across, down, layers] = self.grid(op, tile);
        let most = INVOCATIONS / WARP / layers.max(1);
        let sizes = [[2, 2], [1, 4], [4, 1], [2, 1], [1, 2], [1, 1]];
        let fit = |[x, y]: &[u32; 2]| x * y <= most && *x <= across / WARP && *y <= down;
        sizes.into_iter().filter(fit).map(|[x, y]| [WARP * x, y, layers]).collect()
    }

    fn obstacle(&self, _op: &QuantizedConv2dOp, limits: &Limits) -> Option<String> {
        match limits.matrix_unit {
            Some(MatrixUnit::Ptx { .. }) => None,
            _ => Some("the device does not offer matrix instructions to this API".to_owned()),
        }
    }

    fn choice_obstacle(&self, _op: &QuantizedConv2dOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let ([x, y, z], layers) = (choice.work_group, choice.tile[2]);
        if !x.is_multiple_of(WARP) || z != layers {
            return Some(format!("{x} x {y} x {z} invocations are not warps of {WARP} in {layers} layers"));
        }
        let bytes = 16 * u64::from(passed(choice.tile, choice.work_group));
        local_obstacle(bytes, limits)
    }

    /// A matrix unit is kept busy by fewer invocations.
    fn counted(&self, op: &QuantizedConv2dOp, choice: &Choice) -> u64 {
        4 * self.grid(op, choice.tile).iter().map(|&extent| u64::from(extent)).product::<u64>()
    }

    /// Cycles: steps of a layer, as often as there are warps more than the device has at once.
    fn estimate(&self, op: &QuantizedConv2dOp, choice: &Choice, limits: &Limits) -> Option<f64> {
        let [columns, blocks, layers] = choice.tile;
        let [x, y, z] = self.grid(op, choice.tile);
        let whole = |extent: u32, of: u32| f64::from(extent.div_ceil(of.max(1)) * of.max(1));
        let [group_x, group_y, _] = choice.work_group;
        let warps = whole(x, group_x) / f64::from(WARP) * whole(y, group_y) * f64::from(z);
        let at_once = f64::from(limits.compute_units.unwrap_or(USUAL_UNITS)) * WARPS_OF_UNIT;
        let steps = op.terms().div_ceil(STEP).div_ceil(layers.max(1) as usize) as f64;
        let step = STEP_WAIT + MATRIX_CYCLES * f64::from(columns * blocks);
        let joined = if layers > 1 { LAYERS_WAIT } else { 0.0 };
        Some((warps / at_once).max(1.0) * (steps * step + joined))
    }

    fn bindings(&self, op: &QuantizedConv2dOp, _choice: &Choice) -> Vec<Binding> {
        bytes::bindings(op, Element::Vec4(DType::U32))
    }

    fn params(&self, op: &QuantizedConv2dOp, _choice: &Choice) -> Params {
        let words = [("dst_words", spec::unsigned(op.windows.output.c))];
        bytes::params(&op.windows, op.outside, &op.range).into_iter().chain(words).collect()
    }

    fn constants(&self, op: &QuantizedConv2dOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [columns, blocks, layers] = choice.tile;
        let own = [
            ("TILE_X", columns),
            ("TILE_Y", blocks),
            ("LAYERS", layers),
            ("TERMS", extent(op.terms())),
            ("SOURCES", extent(op.windows.input.c)),
            ("UNIT", extent(op.unit())),
            ("RAGGED", u32::from(!op.terms().is_multiple_of(STEP))),
        ];
        let [x, y, _] = choice.work_group;
        let layered = [("THREADS", x * y), ("PARTS", passed(choice.tile, choice.work_group))];
        let own = own.into_iter().chain(layered.into_iter().filter(|_| layers > 1));
        let own = own.map(|(name, value)| (name, Value::U32(value)));
        spec::window_constants(&op.windows).into_iter().chain(own).collect()
    }

    /// Weights as lanes read them, `[16 words][8 channels][lane][4]`: lane `l` has channel `l / 4` of four words from word
    /// `4 (l % 4)` of a step on. Beyond the words and channels they are zeros.
    fn pack(&self, op: &QuantizedConv2dOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        if operand != Operand::Weights {
            let mut packed = data.to_vec();
            packed.resize(packed.len().max(LANES * op.windows.output.c), 0.0);
            return packed;
        }
        let depth = op.terms();
        let columns = op.windows.output.c.div_ceil(2);
        let mut packed = Vec::with_capacity(depth.div_ceil(STEP) * columns * 128);
        for step in 0..depth.div_ceil(STEP) {
            for column in 0..columns {
                for lane in 0..WARP as usize {
                    let channel = CHANNELS as usize * column + lane / 4;
                    for i in 0..4 {
                        let term = STEP * step + 4 * (lane % 4) + i;
                        let inside = term < depth && channel < op.channels;
                        let word = data.get(depth * channel + term).filter(|_| inside);
                        packed.push(word.copied().unwrap_or_default());
                    }
                }
            }
        }
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::bytes::ByteRange;
    use crate::ops::op::Op;
    use crate::ops::quantized_conv2d::QuantizedConv2d;
    use crate::shape::{Padding, Shape};

    fn op(input: Shape, weights: Shape) -> QuantizedConv2dOp {
        let range = ByteRange::all(128);
        let options = QuantizedConv2d { padding: Padding::Same, ..QuantizedConv2d::new(128, range) };
        QuantizedConv2dOp::new(input, weights, &options).expect("an op")
    }

    #[test]
    fn lanes_have_four_words_of_their_channel() {
        // Nineteen words of ten channels: word = 1000 * channel + term.
        let op = op(Shape::nhwc(1, 4, 4, 19), Shape::nhwc(10, 1, 1, 19));
        let data: Vec<f32> = (0..10).flat_map(|o| (0..19).map(move |t| (1000 * o + t) as f32)).collect();
        let choice = Choice::new("matrix_ptx", [1, 1, 1], [32, 1, 1]);
        let packed = MatrixPtx.pack(&op, &choice, Operand::Weights, &data);
        // Two steps by two eights of channels.
        assert_eq!(packed.len(), 2 * 2 * 128);
        let of = |step: usize, column: usize, lane: usize| {
            packed[128 * (2 * step + column) + 4 * lane..][..4].to_vec()
        };
        assert_eq!(of(0, 0, 6), [1008., 1009., 1010., 1011.]);
        // Term 19 is beyond the last, and so are channels from ten on.
        assert_eq!(of(1, 1, 4), [9016., 9017., 9018., 0.]);
        assert_eq!(of(0, 1, 8), [0.0; 4]);
    }

    #[test]
    fn few_pixels_share_their_sums() {
        let limits = Limits {
            matrix_unit: Some(MatrixUnit::Ptx { capability: 90, warp_groups: false }),
            compute_units: Some(132),
            local_memory: 49152,
            ..Limits::opencl()
        };
        for (input, weights, layers) in [
            (Shape::nhwc(1, 7, 7, 128), Shape::nhwc(512, 3, 3, 128), 8),
            (Shape::nhwc(1, 224, 224, 8), Shape::nhwc(32, 1, 1, 8), 1),
        ] {
            let op = op(input, weights);
            let kernels = op.kernels();
            let mut best: Option<(f64, Choice)> = None;
            for (kernel, tile) in kernels.space(&limits) {
                for size in kernel.work_groups(tile) {
                    let choice = kernel.choice(tile, size);
                    let Some(time) = kernel.estimate(&choice, &limits) else { continue };
                    if kernel.fits(&choice, &limits).is_ok() && best.as_ref().is_none_or(|best| time < best.0)
                    {
                        best = Some((time, choice));
                    }
                }
            }
            let (_, best) = best.expect("a choice");
            assert_eq!((best.variant, best.tile[2]), ("matrix_ptx", layers), "{best}");
        }
    }
}
