//! `maps_last`: a part of the pixels of four channels per work-group, whose size is `tile[0]`, on a grid of parts x slices
//! of all images. The last one of a slice to arrive joins the parts: see `ops/arrival.rs`.

use super::ReduceOp;
use super::arguments::constants;
use super::pixels::{Pixels, obstacle};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::arrival::{self, Arrival};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Pixels of a part, at least.
const PART: usize = 2048;

/// Pixels of a map from which on its parts are shared, unless measured, and slices of all images of which a work-group
/// each keeps a device busy.
const MANY_PIXELS: usize = 1 << 14;
const MANY_SLICES: usize = 512;

#[derive(Debug)]
pub(super) struct MapsLast;

fn plane(op: &ReduceOp) -> usize {
    let shape = op.input.shape();
    shape.h * shape.w
}

fn slices(op: &ReduceOp) -> usize {
    let shape = op.input.shape();
    shape.n * shape.slices()
}

/// How the pixels of a slice are shared.
fn arrival(op: &ReduceOp) -> Option<Arrival> {
    Arrival::of(4, plane(op), PART)
}

impl Kernel<ReduceOp> for MapsLast {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps_last", crate::emit::text!("../../../shaders/reduce/maps_last.wgsl"))
            .of_tile()
    }

    fn offers(&self, op: &ReduceOp, limits: &Limits) -> Vec<Offer> {
        let parts = arrival(op).map_or(0, |arrival| arrival.parts);
        if op.dtype != DType::F32 || parts < 2 || self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        offers(0, [[256, 1, 1], [64, 1, 1]])
    }

    fn untuned(&self, op: &ReduceOp, _limits: &Limits) -> bool {
        plane(op) >= MANY_PIXELS && slices(op) < MANY_SLICES
    }

    fn grid(&self, op: &ReduceOp, tile: [u32; 3]) -> [u32; 3] {
        let parts = arrival(op).map_or(1, |arrival| arrival.parts);
        [extent(parts).saturating_mul(tile[0]), extent(slices(op)), 1]
    }

    fn obstacle(&self, op: &ReduceOp, _limits: &Limits) -> Option<String> {
        let pixels = Pixels::of(&op.input, op.reduced);
        let whole = pixels.whole() && pixels.outputs() == op.input.shape().n;
        obstacle(&op.input, op.reduced)
            .or_else(|| (!whole).then(|| "other axes than height and width".to_owned()))
    }

    fn bindings(&self, op: &ReduceOp, _choice: &Choice) -> Vec<Binding> {
        let map = Element::Vec4(op.precision.storage());
        let mut bindings =
            vec![binding(Operand::Src, map, Access::Read), binding(Operand::Dst, map, Access::Write)];
        bindings.extend(arrival(op).map(|arrival| arrival.binding(slices(op))));
        bindings
    }

    fn params(&self, op: &ReduceOp, _choice: &Choice) -> Params {
        let [parts, part] = arrival(op).map_or([1, PART], |arrival| [arrival.parts, arrival.part]);
        vec![("plane", unsigned(plane(op))), ("parts", unsigned(parts)), ("part_pixels", unsigned(part))]
    }

    fn constants(&self, op: &ReduceOp, choice: &Choice, limits: &Limits) -> Constants {
        let words = arrival(op).map_or(4, |arrival| arrival.words().next_power_of_two());
        let mut constants = constants(op.reduction);
        constants.extend(
            [("SIZE", choice.tile[0]), ("FOUND", extent(words)), (arrival::SPINS, arrival::spins(limits))]
                .map(|(name, value)| (name, Value::U32(value))),
        );
        constants
    }
}
