//! `maps`: one vec4 of channels per invocation, on a grid of width x height x slices, for moves along each axis
//! of a feature map by itself.

use super::axes::Axis;
use super::texts::{number, signed};
use super::{RemapOp, Rule};
use crate::emit::{Access, Binding, Bits, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, binding, extent, unsigned};

#[derive(Debug)]
pub(super) struct Maps;

/// Start, step and source of batch, height, width and channels.
const NAMES: [[&str; 3]; 4] = [
    ["start_n", "step_n", "source_n"],
    ["start_h", "step_h", "source_h"],
    ["start_w", "step_w", "source_w"],
    ["start_c", "step_c", "source_c"],
];

/// Whether a slice of the result is one of the source, or has the fill value.
fn keeps_slices(channels: &Axis, rule: &Rule) -> bool {
    let filled = channels.source.is_multiple_of(4);
    let fits = match rule {
        // Lanes beyond the channels are zero.
        Rule::Fill(Bits(value)) => filled || *value == 0.0,
        Rule::Wrap => filled,
        _ => false,
    };
    channels.step == 1 && channels.start % 4 == 0 && (channels.is_within() || fits)
}

impl Kernel<RemapOp> for Maps {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps", crate::emit::text!("../../../shaders/remap/maps.wgsl"))
    }

    fn offers(&self, op: &RemapOp, _limits: &Limits) -> Vec<Offer> {
        if op.maps().is_some() { offers(0, [[1, 1, 1]]) } else { Vec::new() }
    }

    fn grid(&self, op: &RemapOp, _tile: [u32; 3]) -> [u32; 3] {
        let shape = op.target.shape();
        [extent(shape.w), extent(shape.h), extent(shape.slices() * shape.n)]
    }

    fn bindings(&self, op: &RemapOp, _choice: &Choice) -> Vec<Binding> {
        let element = Element::Vec4(op.precision.storage());
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    /// Channels are counted in slices where they are kept.
    fn params(&self, op: &RemapOp, _choice: &Choice) -> Params {
        let (src, dst) = (op.source.shape(), op.target.shape());
        let mut params = vec![
            ("dst_w", unsigned(dst.w)),
            ("dst_h", unsigned(dst.h)),
            ("dst_c4", unsigned(dst.slices())),
            ("dst_c", unsigned(dst.c)),
            ("batch", unsigned(dst.n)),
            ("src_c4", unsigned(src.slices())),
        ];
        let Some(mut axes) = op.maps() else { return params };
        let channels = &mut axes[3];
        if keeps_slices(channels, &op.rule) {
            let Axis { start, source, .. } = *channels;
            *channels = Axis { start: start / 4, source: source.div_ceil(4), ..*channels };
        }
        for (axis, [start, step, source]) in axes.iter().zip(NAMES) {
            params.push((start, signed(axis.start)));
            params.push((step, signed(axis.step)));
            params.push((source, signed(axis.source as isize)));
        }
        params.extend(op.fill_param(op.precision.storage(), map_rule(op)));
        params
    }

    fn constants(&self, op: &RemapOp, _choice: &Choice, _limits: &Limits) -> Constants {
        let slices = op.maps().is_some_and(|axes| keeps_slices(&axes[3], &op.rule));
        vec![("RULE", Value::U32(map_rule(op))), ("SLICES", Value::U32(u32::from(slices)))]
    }
}

/// The rule, if an axis needs one.
fn map_rule(op: &RemapOp) -> u32 {
    if op.axes.iter().all(Axis::is_within) { 0 } else { number(&op.rule) }
}
