//! What the kernels of `attention` are given.

use super::{Added, AttentionOp, RowStrides, Rules};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Scalar, Value};
use crate::ops::kernel::Constants;
use crate::ops::rows::wide_obstacle;
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Names of the scalars that say where the rows of an operand lie.
const PLACES: [(Operand, [&str; 5]); 4] = [
    (Operand::Query, ["query_first", "query_batch", "query_head", "query_group", "query_row"]),
    (Operand::Key, ["key_first", "key_batch", "key_head", "", "key_row"]),
    (Operand::Value, ["value_first", "value_batch", "value_head", "", "value_row"]),
    (Operand::Dst, ["dst_first", "dst_batch", "dst_head", "dst_group", "dst_row"]),
];

const BIAS: [&str; 5] = ["bias_batch", "bias_head", "bias_group", "bias_row", "bias_key"];
const MASK: [&str; 5] = ["mask_batch", "mask_head", "mask_group", "mask_row", "mask_key"];

impl AttentionOp {
    /// Why a device cannot read the numbers of places and keys, if it cannot.
    pub(super) fn count_obstacle(&self) -> Option<String> {
        self.given.values().find_map(|(_, dtype)| wide_obstacle(*dtype))
    }

    /// Why a kernel that takes all keys cannot serve, if it cannot.
    pub(super) fn parts_obstacle(&self) -> Option<String> {
        (self.parts > 1).then(|| format!("keys in {} parts", self.parts))
    }

    /// Elements of a unit that an invocation reads at once.
    pub(super) fn lanes(&self) -> usize {
        if self.is_wide() { 4 } else { 1 }
    }

    /// With rows read in units of `lanes`.
    pub(super) fn bindings(&self, lanes: usize) -> Vec<Binding> {
        let stored = self.precision.storage();
        let wide = if lanes == 4 { Element::Vec4(stored) } else { Element::Scalar(stored) };
        let element = |operand: Operand, dtype: DType| match operand {
            Operand::Query | Operand::Key | Operand::Value => wide,
            _ => Element::Scalar(dtype),
        };
        let given = self.given.iter();
        let inputs =
            given.map(|(&operand, (_, dtype))| binding(operand, element(operand, *dtype), Access::Read));
        let result = match (self.parts, lanes) {
            (1, _) => wide,
            (_, 4) => Element::Vec4(DType::F32),
            _ => Element::Scalar(DType::F32),
        };
        inputs.chain([binding(Operand::Dst, result, Access::Write)]).collect()
    }

    /// Places in units of `lanes`; what the text does not ask for is left out.
    pub(super) fn params(&self, lanes: usize) -> Params {
        let Rules { scale, softcap, before, behind, begin, mask, .. } = self.rules;
        let mut params = vec![
            ("heads", unsigned(self.sizes.heads)),
            ("rows", unsigned(self.sizes.rows)),
            ("all_rows", unsigned(self.all_rows())),
            ("keys", unsigned(self.sizes.keys)),
            ("scale", Scalar::F32(scale.0)),
            ("none", Scalar::F32(f32::NEG_INFINITY)),
        ];
        for (operand, names) in PLACES {
            let RowStrides { first, steps: [batch, head, group, row] } = *self.place(operand);
            let numbers = names.into_iter().zip([first, batch, head, group, row]);
            let named = numbers.filter(|(name, _)| !name.is_empty());
            params.extend(named.map(|(name, number)| (name, unsigned(number / lanes))));
        }
        if self.parts > 1 {
            params.push(("span", unsigned(self.span())));
            params.push(("dst_part", unsigned(self.part_step() / lanes)));
        }
        for (names, added) in [(BIAS, self.bias), (MASK, self.mask)] {
            let Some(Added { steps }) = added else { continue };
            params.extend(names.into_iter().zip(steps).map(|(name, step)| (name, unsigned(step))));
        }
        let signed = |number: usize| Scalar::I32(i32::try_from(number).unwrap_or(i32::MAX));
        if softcap.0 > 0.0 {
            params.push(("softcap", Scalar::F32(softcap.0)));
        }
        if self.mask.is_some() && !self.rules.mask_adds {
            params.push(("fill", Scalar::F32(mask.fill.0)));
        }
        params.extend(before.map(|before| ("before", signed(before))));
        params.extend(behind.map(|behind| ("behind", signed(behind))));
        match self.has(Operand::Begins) {
            true => params.push(("begins_batch", unsigned(self.count_step(Operand::Begins)))),
            false if self.has_reach() => params.push(("begin", signed(begin))),
            false => {}
        }
        if self.has(Operand::Ends) {
            params.push(("ends_batch", unsigned(self.count_step(Operand::Ends))));
        }
        params
    }

    /// Whether the places of queries say which keys they attend.
    fn has_reach(&self) -> bool {
        self.rules.before.is_some() || self.rules.behind.is_some()
    }

    /// What every text asks, and `others`.
    pub(super) fn constants(&self, others: &[(&'static str, usize)]) -> Constants {
        let flags = [
            ("SOFTCAP", self.rules.softcap.0 > 0.0),
            ("BIAS", self.bias.is_some()),
            ("BEFORE", self.rules.before.is_some()),
            ("BEHIND", self.rules.behind.is_some()),
            ("BEGINS", self.has(Operand::Begins)),
            ("ENDS", self.has(Operand::Ends)),
            ("ZERO", !self.rules.nan_if_nothing || self.parts > 1),
            ("PARTS", self.parts > 1),
        ];
        let mask = match (self.mask, self.rules.mask_adds, self.rules.mask.hides) {
            (None, ..) => 0,
            (Some(_), true, _) => 3,
            (Some(_), false, false) => 1,
            (Some(_), false, true) => 2,
        };
        let flags = flags.into_iter().map(|(name, told)| (name, usize::from(told)));
        let all = flags.chain([("MASK", mask)]).chain(others.iter().copied());
        all.map(|(name, number)| (name, Value::U32(extent(number)))).collect()
    }
}
