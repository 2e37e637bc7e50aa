//! `last`: a part of a slice's pixels per work-group, whose size is `tile[0]`, on a grid of parts of slices x images. The
//! work-group of an image that arrives last makes the means and the product: see `ops/arrival.rs`.

use super::SqueezeOp;
use super::arguments;
use crate::emit::{Binding, Operand, Value};
use crate::layout::Form;
use crate::limits::Limits;
use crate::ops::arrival::{self, Arrival};
use crate::ops::group_product::local_obstacle;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, extent, unsigned};

/// Pixels of a part, at least.
const PART: usize = 1024;

/// Vec4s of a map up to which one work-group for each image reads it in less time than several meet in.
const FEW: usize = 4096;

/// Images from which on a work-group for each keeps a device busy.
const MANY_IMAGES: usize = 64;

#[derive(Debug)]
pub(super) struct Last;

/// Whether several work-groups for each image read it in less time than one.
pub(super) fn pays(op: &SqueezeOp) -> bool {
    op.map.slices() * op.plane() > FEW && op.map.n < MANY_IMAGES
}

/// How an image's slices are shared.
fn arrival(op: &SqueezeOp) -> Option<Arrival> {
    Arrival::of(4 * op.map.slices(), op.plane(), PART)
}

/// Words of local memory for what the work-groups tell each other, and the means.
fn words(op: &SqueezeOp) -> usize {
    arrival(op).map_or(usize::MAX, |arrival| arrival.words().next_power_of_two().max(64))
}

impl Kernel<SqueezeOp> for Last {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("last", crate::emit::text!("../../../shaders/squeeze/last.wgsl")).of_tile()
    }

    fn offers(&self, op: &SqueezeOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        offers(0, [[256, 1, 1], [64, 1, 1]])
    }

    fn untuned(&self, op: &SqueezeOp, limits: &Limits) -> bool {
        pays(op) || super::group::Group.obstacle(op, limits).is_some()
    }

    fn grid(&self, op: &SqueezeOp, tile: [u32; 3]) -> [u32; 3] {
        let groups = arrival(op).map_or(1, |arrival| arrival.parts * op.map.slices());
        [extent(groups).saturating_mul(tile[0]), extent(op.map.n), 1]
    }

    fn obstacle(&self, op: &SqueezeOp, limits: &Limits) -> Option<String> {
        match arrival(op) {
            None => Some(arrival::too_many(4 * op.map.slices())),
            Some(_) => local_obstacle(256, words(op), limits.local_memory),
        }
    }

    fn form(&self, op: &SqueezeOp, operand: Operand, _choice: &Choice) -> Option<Form> {
        arguments::form(op, operand)
    }

    fn bindings(&self, op: &SqueezeOp, _choice: &Choice) -> Vec<Binding> {
        let mut bindings = arguments::bindings(op);
        bindings.extend(arrival(op).map(|arrival| arrival.binding(op.map.n)));
        bindings
    }

    fn params(&self, op: &SqueezeOp, _choice: &Choice) -> Params {
        let mut params = arguments::params(op);
        let [parts, part] = arrival(op).map_or([1, PART], |arrival| [arrival.parts, arrival.part]);
        params.extend([("parts", unsigned(parts)), ("part_pixels", unsigned(part))]);
        params
    }

    fn constants(&self, op: &SqueezeOp, choice: &Choice, limits: &Limits) -> Constants {
        let mut constants = arguments::constants(op, choice.tile[0], words(op));
        constants.push((arrival::SPINS, Value::U32(arrival::spins(limits))));
        constants
    }

    fn pack(&self, op: &SqueezeOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        arguments::pack(op, operand, data)
    }
}
