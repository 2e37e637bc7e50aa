//! `maps`: a slice of the map, `tile[1]` pixels in each of the `tile[0]` invocations of a work-group, on a grid of
//! pixels x slices.
//!
//! Both weights are packed as `[output slice][input slice][input lane][4]`.

use super::GateOp;
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, binding, extent, unsigned};

/// Slices between the convolutions up to which each invocation adds all of them up.
const FEW_HIDDEN: usize = 32;

/// Slices between the convolutions that local memory is laid out for at least: one text serves those below.
const HIDDEN: usize = 16;

/// Parts that a sum of the first convolution is split into at most.
const MOST_SPLITS: usize = 8;

/// Pixels that an invocation computes where maps are large, and the pixels from which on they are.
const PIXELS: u32 = 4;
const LARGE: usize = 4096;

#[derive(Debug)]
pub(super) struct Maps;

/// Vec4s of local memory for sums, and the parts of each.
fn splits(op: &GateOp, size: u32) -> [usize; 2] {
    if op.first.is_none() {
        // What is added up lies in what each invocation has.
        let hidden = op.hidden().next_power_of_two().max(HIDDEN);
        return [if hidden > FEW_HIDDEN { size as usize } else { hidden }, 0];
    }
    let hidden = op.hidden().next_power_of_two().max(HIDDEN);
    let most = (size as usize / hidden).clamp(1, MOST_SPLITS);
    [hidden, most]
}

fn plane(op: &GateOp) -> usize {
    op.map.h * op.map.w
}

fn blocks(op: &GateOp, [size, pixels, _]: [u32; 3]) -> usize {
    plane(op).div_ceil((size * pixels) as usize)
}

impl Kernel<GateOp> for Maps {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps", crate::emit::text!("../../../shaders/gate/maps.wgsl")).of_tile()
    }

    fn offers(&self, op: &GateOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        let pixels = if plane(op) < LARGE { [1, PIXELS] } else { [PIXELS, 1] };
        let tiles = pixels.map(|pixels| [[256, pixels, 1], [64, pixels, 1]]);
        offers(0, tiles.into_iter().flatten())
    }

    fn grid(&self, op: &GateOp, tile: [u32; 3]) -> [u32; 3] {
        let groups = extent(blocks(op, tile)).saturating_mul(tile[0]);
        [groups, extent(op.map.slices() * op.map.n), 1]
    }

    fn obstacle(&self, op: &GateOp, limits: &Limits) -> Option<String> {
        let [hidden, splits] = splits(op, 256);
        let (bytes, most) = (16 * hidden * (splits + 1), limits.local_memory);
        (bytes > most as usize).then(|| format!("{bytes} bytes of local memory, the device has {most}"))
    }

    fn bindings(&self, op: &GateOp, _choice: &Choice) -> Vec<Binding> {
        let map = Element::Vec4(op.second.precision.storage());
        let vector = Element::Vec4(DType::F32);
        let mut bindings = vec![binding(Operand::Src, map, Access::Read)];
        if let Some(first) = &op.first {
            bindings.push(binding(Operand::Window, map, Access::Read));
            let bias = binding(Operand::WindowBias, vector, Access::Read);
            bindings.extend(first.epilogue.bias.then_some(bias));
        }
        bindings.push(binding(Operand::Weights, map, Access::Read));
        let bias = binding(Operand::Bias, vector, Access::Read);
        bindings.extend(op.second.epilogue.bias.then_some(bias));
        bindings.push(binding(Operand::Arg(0), map, Access::Read));
        bindings.extend(op.residual.then_some(binding(Operand::Residual, map, Access::Read)));
        bindings.push(binding(Operand::Dst, map, Access::Write));
        bindings
    }

    fn params(&self, op: &GateOp, _choice: &Choice) -> Params {
        let mut params = vec![
            ("plane", unsigned(plane(op))),
            ("slices", unsigned(op.map.slices())),
            ("hidden_slices", unsigned(op.hidden())),
        ];
        params.extend(op.first.map(|first| ("pooled_slices", unsigned(first.input.slices()))));
        params
    }

    fn constants(&self, op: &GateOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [size, pixels, _] = choice.tile;
        let [hidden, splits] = splits(op, size);
        let many = op.first.is_none() && op.hidden() > FEW_HIDDEN;
        // What each of all invocations has added up is a part of the sum.
        let splits = if many { size as usize } else { splits };
        [
            ("SIZE", size),
            ("PIXELS", pixels),
            ("SPLITS", extent(splits)),
            ("PARTS", extent(hidden.saturating_mul(splits))),
            ("MOST_HIDDEN", extent(hidden)),
            ("RESIDUAL", op.residual.into()),
            ("FIRST", op.first.is_some().into()),
            ("MANY", many.into()),
        ]
        .map(|(name, value)| (name, Value::U32(value)))
        .to_vec()
    }

    fn pack(&self, op: &GateOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let problem = match operand {
            Operand::Window => op.first.as_ref().unwrap_or(&op.second),
            Operand::Weights => &op.second,
            Operand::WindowBias => return spec::pack_channels(data, op.hidden()),
            _ => return spec::pack_channels(data, op.map.slices()),
        };
        let (inputs, sources) = (problem.input.c, problem.input.slices());
        let mut out = vec![0.0; 16 * problem.output.slices() * sources];
        for (o, row) in data.chunks(inputs).enumerate() {
            for (k, &weight) in row.iter().enumerate() {
                out[4 * (4 * (o / 4 * sources + k / 4) + k % 4) + o % 4] = weight;
            }
        }
        out
    }
}
