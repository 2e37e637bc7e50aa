//! `rows`: one row of scores per work-group, whose size is `tile[0]`, in lines of `GROUPS` work-groups.

use super::{NONE, SuppressOp};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Bits, Element, Operand, Scalar, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::reduce::groups::{GROUPS, groups};
use crate::ops::spec::{Params, binding, extent, unsigned};

#[derive(Debug)]
pub(super) struct Rows;

impl Kernel<SuppressOp> for Rows {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("rows", crate::emit::text!("../../../shaders/suppress/rows.wgsl"))
            .in_rows()
            .of_tile()
    }

    fn offers(&self, _op: &SuppressOp, _limits: &Limits) -> Vec<Offer> {
        offers(0, [[256, 1, 1]])
    }

    fn grid(&self, op: &SuppressOp, tile: [u32; 3]) -> [u32; 3] {
        let [rows, _] = op.extents();
        groups(rows, tile[0])
    }

    fn bindings(&self, _op: &SuppressOp, _choice: &Choice) -> Vec<Binding> {
        let element = Element::Scalar(DType::F32);
        vec![
            binding(Operand::Arg(0), element, Access::Read),
            binding(Operand::Arg(1), element, Access::Read),
            binding(Operand::Dst, element, Access::ReadWrite),
        ]
    }

    fn params(&self, op: &SuppressOp, _choice: &Choice) -> Params {
        let ([rows, boxes], options) = (op.extents(), op.options);
        let shared = op.boxes.extents()[0] == 1;
        let sigma = options.sigma.0;
        vec![
            ("rows", unsigned(rows)),
            ("boxes", unsigned(boxes)),
            ("box_step", unsigned(if shared { 0 } else { boxes })),
            ("count", unsigned(options.count)),
            ("overlap", Scalar::F32(options.overlap.0)),
            ("score", Scalar::F32(options.score.0)),
            ("decay", Scalar::F32(if sigma > 0.0 { -0.5 / sigma } else { 0.0 })),
        ]
    }

    fn constants(&self, op: &SuppressOp, choice: &Choice, _limits: &Limits) -> Constants {
        vec![
            ("STRICT", Value::U32(u32::from(op.options.strict))),
            ("SIZE", Value::U32(choice.tile[0])),
            ("WIDTH", Value::U32(extent(GROUPS))),
            ("NONE", Value::F32(Bits(NONE))),
        ]
    }
}
