//! `parts`: `tile[1]` pixels of a slice for each of the `tile[0]` invocations of a work-group, which adds up the moments
//! of the map's parts first, on a grid of pixels x slices of all images.

use super::NormalizeOp;
use super::arguments::{bindings, constants, params};
use crate::emit::{Binding, Operand, Value};
use crate::layout::Form;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::moments::PART;
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, extent, unsigned};

#[derive(Debug)]
pub(super) struct Parts;

impl Kernel<NormalizeOp> for Parts {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("parts", crate::emit::text!("../../../shaders/normalize/parts.wgsl")).of_tile()
    }

    fn offers(&self, op: &NormalizeOp, _limits: &Limits) -> Vec<Offer> {
        let tiles = op.parts.then_some([[256, 4, 1], [64, 4, 1]]);
        offers(0, tiles.into_iter().flatten())
    }

    fn grid(&self, op: &NormalizeOp, tile: [u32; 3]) -> [u32; 3] {
        let x = op.dims.shape();
        let groups = extent(x.h * x.w).div_ceil(tile[0].saturating_mul(tile[1]).max(1));
        [groups.saturating_mul(tile[0]), extent(x.slices() * x.n), 1]
    }

    fn form(&self, _op: &NormalizeOp, operand: Operand, _choice: &Choice) -> Option<Form> {
        (operand == Operand::Arg(2)).then_some(Form::Rows)
    }

    fn bindings(&self, op: &NormalizeOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op)
    }

    fn params(&self, op: &NormalizeOp, _choice: &Choice) -> Params {
        let mut params = params(op);
        params.push(("parts", unsigned(op.moments().parts())));
        params
    }

    fn constants(&self, op: &NormalizeOp, choice: &Choice, _limits: &Limits) -> Constants {
        let own = [("SIZE", choice.tile[0]), ("EACH", choice.tile[1]), ("PART", extent(PART))];
        let own = own.map(|(name, value)| (name, Value::U32(value)));
        constants(op).into_iter().chain(own).collect()
    }

    /// Zero in the lanes beyond the channels, where the difference is zero too.
    fn pack(&self, op: &NormalizeOp, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        spec::pack_channels(data, op.dims.shape().slices())
    }
}
