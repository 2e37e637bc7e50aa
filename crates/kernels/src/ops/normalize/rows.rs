//! `group`: what has one mean per work-group, whose size is `tile[0]`, in lines of [`GROUPS`] work-groups;
//! `serial`: per invocation, in lines of [`LINE`](crate::ops::rows::LINE) invocations.

use super::arguments::{constants, epsilon};
use super::{NormalizeOp, Vector};
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::reduce::rows::{FEWEST, GROUPS, group_sizes, groups};
use crate::ops::rows::{line_width, lines};
use crate::ops::spec::{Params, binding, extent, unsigned};

fn bindings(op: &NormalizeOp) -> Vec<Binding> {
    let (element, factor) = (Element::Scalar(op.precision.storage()), Element::Scalar(DType::F32));
    let constants = [(Operand::Weights, op.scale), (Operand::Bias, op.bias)];
    let constants =
        constants.into_iter().filter(|(_, vector)| *vector == Vector::Constant).map(|(operand, _)| operand);
    let mut bindings = vec![binding(Operand::Src, element, Access::Read)];
    bindings.extend(constants.map(|operand| binding(operand, factor, Access::Read)));
    bindings.push(binding(Operand::Dst, element, Access::Write));
    bindings
}

fn params(op: &NormalizeOp) -> Params {
    let merged = op.merged();
    let [kept, reduced] = [merged.kept, merged.reduced];
    vec![
        ("outputs", unsigned(merged.outputs())),
        ("count", unsigned(merged.count())),
        ("channels", unsigned(op.channels())),
        ("kept1", unsigned(kept[1].extent)),
        ("kept2", unsigned(kept[2].extent)),
        ("kept_step0", unsigned(kept[0].step)),
        ("kept_step1", unsigned(kept[1].step)),
        ("kept_step2", unsigned(kept[2].step)),
        ("reduced1", unsigned(reduced[1].extent)),
        ("reduced2", unsigned(reduced[2].extent)),
        ("reduced_step0", unsigned(reduced[0].step)),
        ("reduced_step1", unsigned(reduced[1].step)),
        ("reduced_step2", unsigned(reduced[2].step)),
        epsilon(op),
    ]
}

#[derive(Debug)]
pub(super) struct Group;

impl Kernel<NormalizeOp> for Group {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("group", crate::emit::text!("../../../shaders/normalize/group.wgsl"))
            .in_rows()
            .of_tile()
    }

    fn offers(&self, op: &NormalizeOp, limits: &Limits) -> Vec<Offer> {
        if op.is_finished() {
            return Vec::new();
        }
        offers(1, group_sizes(op.merged().count().max(FEWEST), limits))
    }

    fn grid(&self, op: &NormalizeOp, tile: [u32; 3]) -> [u32; 3] {
        groups(op.merged().outputs(), tile[0])
    }

    fn bindings(&self, op: &NormalizeOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op)
    }

    fn params(&self, op: &NormalizeOp, _choice: &Choice) -> Params {
        params(op)
    }

    /// LINES: what is normalised together are elements at equal distances.
    fn constants(&self, op: &NormalizeOp, choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = constants(op);
        constants.push(("SIZE", Value::U32(choice.tile[0])));
        constants.push(("WIDTH", Value::U32(extent(GROUPS))));
        let [outer, middle, _] = op.merged().reduced.map(|axis| axis.extent);
        constants.push(("LINES", Value::U32(u32::from(outer * middle == 1))));
        constants
    }

    fn precision(&self, op: &NormalizeOp) -> Option<Precision> {
        Some(op.precision)
    }
}

#[derive(Debug)]
pub(super) struct Serial;

impl Kernel<NormalizeOp> for Serial {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("serial", crate::emit::text!("../../../shaders/normalize/serial.wgsl"))
            .in_rows()
            .with_ordinary(Ordinary::Size([64, 1, 1]))
    }

    /// Before work-groups where elements are few.
    fn offers(&self, op: &NormalizeOp, _limits: &Limits) -> Vec<Offer> {
        if op.is_finished() {
            return Vec::new();
        }
        offers(if op.merged().count() < FEWEST { 0 } else { 2 }, [[1, 1, 1]])
    }

    fn grid(&self, op: &NormalizeOp, _tile: [u32; 3]) -> [u32; 3] {
        lines(op.merged().outputs())
    }

    fn bindings(&self, op: &NormalizeOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op)
    }

    fn params(&self, op: &NormalizeOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &NormalizeOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = constants(op);
        constants.push(line_width());
        constants
    }

    fn precision(&self, op: &NormalizeOp) -> Option<Precision> {
        Some(op.precision)
    }
}
