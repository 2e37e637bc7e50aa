//! `maps`: what has one mean, of four channels at a time, per work-group, whose size is `tile[0]`, on a grid of
//! pixels x slices.

use super::NormalizeOp;
use super::arguments::{bindings, constants, epsilon};
use crate::emit::{Binding, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::reduce::groups::{FEWEST, group_sizes};
use crate::ops::reduce::maps::{Pixels, obstacle};
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{self, Params, extent, unsigned};

fn pixels(op: &NormalizeOp) -> Pixels {
    Pixels::of(&op.dims, op.normalized)
}

#[derive(Debug)]
pub(super) struct Maps;

impl Kernel<NormalizeOp> for Maps {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps", crate::emit::text!("../../../shaders/normalize/maps.wgsl")).of_tile()
    }

    fn offers(&self, op: &NormalizeOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        offers(1, group_sizes(op.merged().count().max(FEWEST), limits))
    }

    fn registers(&self, _op: &NormalizeOp, _choice: &Choice, _limits: &Limits) -> Option<Registers> {
        Some(Registers::with_barriers(registers::of_kept(1)))
    }

    fn grid(&self, op: &NormalizeOp, tile: [u32; 3]) -> [u32; 3] {
        [extent(pixels(op).outputs()).saturating_mul(tile[0]), extent(op.dims.shape().slices()), 1]
    }

    fn obstacle(&self, op: &NormalizeOp, _limits: &Limits) -> Option<String> {
        if op.parts {
            return Some("moments of parts that are given".to_owned());
        }
        obstacle(&op.dims, op.normalized)
    }

    fn bindings(&self, op: &NormalizeOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op)
    }

    fn params(&self, op: &NormalizeOp, _choice: &Choice) -> Params {
        let (Pixels { kept, reduced }, x) = (pixels(op), op.dims.shape());
        vec![
            ("width", unsigned(x.w)),
            ("plane", unsigned(x.h * x.w)),
            ("slices", unsigned(x.slices())),
            ("kept_h", unsigned(kept[1])),
            ("kept_w", unsigned(kept[2])),
            ("reduced_n", unsigned(reduced[0])),
            ("reduced_h", unsigned(reduced[1])),
            ("reduced_w", unsigned(reduced[2])),
            epsilon(op),
        ]
    }

    fn constants(&self, op: &NormalizeOp, choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = constants(op);
        let whole = pixels(op).whole();
        constants.extend(
            [("SIZE", choice.tile[0]), ("WHOLE", whole.into())]
                .map(|(name, value)| (name, Value::U32(value))),
        );
        constants
    }

    /// Zero in the lanes beyond the channels, where the difference is zero too.
    fn pack(&self, op: &NormalizeOp, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        spec::pack_channels(data, op.dims.shape().slices())
    }
}
