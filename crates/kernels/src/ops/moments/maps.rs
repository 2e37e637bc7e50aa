//! `maps`: one part of four channels per work-group, whose size is `tile[0]`, on a grid of parts x slices of all images.

use super::{MomentsOp, PART};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::layout::Form;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, binding, extent, unsigned};

#[derive(Debug)]
pub(super) struct Maps;

impl Kernel<MomentsOp> for Maps {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps", crate::emit::text!("../../../shaders/moments/maps.wgsl")).of_tile()
    }

    fn offers(&self, _op: &MomentsOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[256, 1, 1]])
    }

    fn grid(&self, op: &MomentsOp, tile: [u32; 3]) -> [u32; 3] {
        let parts = extent(op.moments().parts());
        [parts.saturating_mul(tile[0]), extent(op.map.slices() * op.map.n), 1]
    }

    fn form(&self, _op: &MomentsOp, operand: Operand, _choice: &Choice) -> Option<Form> {
        Some(if operand == Operand::Src { Form::C4 } else { Form::Rows })
    }

    fn bindings(&self, op: &MomentsOp, _choice: &Choice) -> Vec<Binding> {
        vec![
            binding(Operand::Src, Element::Vec4(op.precision.storage()), Access::Read),
            binding(Operand::Dst, Element::Vec4(DType::F32), Access::Write),
        ]
    }

    fn params(&self, op: &MomentsOp, _choice: &Choice) -> Params {
        vec![
            ("plane", unsigned(op.map.h * op.map.w)),
            ("slices", unsigned(op.map.slices())),
            ("parts", unsigned(op.moments().parts())),
        ]
    }

    fn constants(&self, op: &MomentsOp, choice: &Choice, _limits: &Limits) -> Constants {
        let centred = Value::U32(u32::from(op.centred));
        vec![("CENTRED", centred), ("SIZE", Value::U32(choice.tile[0])), ("PART", Value::U32(extent(PART)))]
    }
}
