//! `kept`: whole maps of four channels, whose pixels a work-group keeps in registers, `tile[1]` for each of its `tile[0]`
//! invocations, on a grid of maps x slices: they are read once, and all reads are under way together.

use super::NormalizeOp;
use super::arguments::{bindings, constants, params};
use crate::emit::{Binding, Operand, Value};
use crate::limits::{Family, Limits};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::reduce::groups::{FEWEST, group_sizes};
use crate::ops::reduce::pixels::{Pixels, obstacle};
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{self, Params, extent};

/// Pixels of an invocation: few numbers, because each is a text.
const KEPT: [u32; 10] = [1, 2, 3, 4, 6, 9, 12, 18, 24, 36];

/// Pixels of a work-group in registers, of which a multiprocessor has for about as many.
const MOST: u32 = 36 * 256;

#[derive(Debug)]
pub(super) struct Kept;

impl Kernel<NormalizeOp> for Kept {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("kept", crate::emit::text!("../../../shaders/normalize/kept.wgsl")).of_tile()
    }

    /// Before others, but for drivers that run a work-group's invocations one after the other.
    fn offers(&self, op: &NormalizeOp, limits: &Limits) -> Vec<Offer> {
        let pixels = Pixels::of(&op.dims, op.normalized);
        if self.obstacle(op, limits).is_some() || !pixels.whole() {
            return Vec::new();
        }
        let count: usize = pixels.reduced.iter().product();
        let tiles = group_sizes(count.max(FEWEST), limits).into_iter().filter_map(|[size, ..]| {
            let each = extent(count).div_ceil(size);
            let each = KEPT.into_iter().find(|&kept| kept >= each)?;
            (size * each <= MOST).then_some([size, each, 1])
        });
        offers(if limits.family == Family::CpuDriver { 2 } else { 0 }, tiles)
    }

    fn registers(&self, _op: &NormalizeOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        Some(Registers::with_barriers(registers::of_kept(choice.tile[1])))
    }

    fn grid(&self, op: &NormalizeOp, tile: [u32; 3]) -> [u32; 3] {
        let outputs = Pixels::of(&op.dims, op.normalized).outputs();
        [extent(outputs).saturating_mul(tile[0]), extent(op.dims.shape().slices()), 1]
    }

    fn obstacle(&self, op: &NormalizeOp, _limits: &Limits) -> Option<String> {
        obstacle(&op.dims, op.normalized)
    }

    fn bindings(&self, op: &NormalizeOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op)
    }

    fn params(&self, op: &NormalizeOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &NormalizeOp, choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = constants(op);
        constants.push(("SIZE", Value::U32(choice.tile[0])));
        constants.push(("KEPT", Value::U32(choice.tile[1])));
        constants
    }

    /// Zero in the lanes beyond the channels, where the difference is zero too.
    fn pack(&self, op: &NormalizeOp, _choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        spec::pack_channels(data, op.dims.shape().slices())
    }
}
