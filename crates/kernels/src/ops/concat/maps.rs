//! `maps`: one vec4 of channels per invocation, on a grid of width x height x slices.

use super::rows::ENDS;
use super::{ConcatOp, operand};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, binding, extent, unsigned};

#[derive(Debug)]
pub(super) struct Maps;

/// The axis of channels.
const CHANNELS: usize = 3;

impl ConcatOp {
    /// Whether a slice of the result is a slice of one input.
    fn keeps_slices(&self) -> bool {
        self.map_axis() != Some(CHANNELS) || self.fills_slices()
    }
}

impl Kernel<ConcatOp> for Maps {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps", crate::emit::text!("../../../shaders/concat/maps.wgsl"))
    }

    fn offers(&self, op: &ConcatOp, _limits: &Limits) -> Vec<Offer> {
        if op.map_axis().is_some() && op.dtype == DType::F32 { offers(0, [[1, 1, 1]]) } else { Vec::new() }
    }

    fn grid(&self, op: &ConcatOp, _tile: [u32; 3]) -> [u32; 3] {
        let shape = op.target.shape();
        [extent(shape.w), extent(shape.h), extent(shape.slices() * shape.n)]
    }

    fn bindings(&self, op: &ConcatOp, _choice: &Choice) -> Vec<Binding> {
        let element = Element::Vec4(op.precision.storage());
        let inputs = (0..op.inputs.len()).map(|index| binding(operand(index), element, Access::Read));
        inputs.chain([binding(Operand::Dst, element, Access::Write)]).collect()
    }

    /// Ends along the axis, in slices where these are kept.
    fn params(&self, op: &ConcatOp, _choice: &Choice) -> Params {
        let shape = op.target.shape();
        let mut params = vec![
            ("dst_w", unsigned(shape.w)),
            ("dst_h", unsigned(shape.h)),
            ("dst_c4", unsigned(shape.slices())),
            ("batch", unsigned(shape.n)),
        ];
        let axis = op.map_axis().unwrap_or_default();
        let mut end = 0;
        for (name, input) in ENDS.into_iter().zip(&op.inputs) {
            let input = input.shape();
            end += match axis {
                CHANNELS if op.keeps_slices() => input.slices(),
                axis => [input.n, input.h, input.w, input.c][axis],
            };
            params.push((name, unsigned(end)));
        }
        params
    }

    fn constants(&self, op: &ConcatOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("INPUTS", Value::U32(extent(op.inputs.len()))),
            ("AXIS", Value::U32(extent(op.map_axis().unwrap_or_default()))),
            ("SLICES", Value::U32(u32::from(op.keeps_slices()))),
        ]
    }
}
