//! The elements one by one, along the axes as the operator gave them.
//!
//! The result is exact in f32. Where halves are stored an element is rounded once, when it becomes one.

use super::{RemapOp, Rule, axes};
use crate::dtype::DType;
use crate::emit::Bits;
use crate::ops::reference::Reference;

/// The smallest normal half.
const SMALLEST: f64 = 6.103515625e-5;

/// The result of `src`, with its bound.
pub(super) fn oracle(op: &RemapOp, src: &[f32]) -> Reference {
    let elements = op.target.elements();
    let mut value = Vec::with_capacity(elements);
    for index in 0..elements {
        let (mut rest, mut from) = (index, Some(0));
        for axis in op.axes.iter().rev() {
            let at = axes::Axis::coordinate(axis, rest % axis.extent, &op.rule);
            rest /= axis.extent;
            from = from.zip(at).map(|(from, at)| from + axis.stride * at);
        }
        let fill = match op.rule {
            Rule::Fill(Bits(fill)) => fill,
            _ => f32::NAN,
        };
        value.push(f64::from(from.map_or(fill, |from| src.get(from).copied().unwrap_or(f32::NAN))));
    }
    let bound = value.iter().map(|value| rounding(op, *value)).collect();
    Reference::Bounded { value, bound }
}

/// What storing `value` costs at most. A fill value beyond the largest half becomes that.
fn rounding(op: &RemapOp, value: f64) -> f64 {
    match op.precision.storage() {
        DType::F16 => {
            let rounded = DType::F16.unit_roundoff() * value.abs().max(SMALLEST);
            rounded.max(value.abs() - f64::from(half::f16::MAX))
        }
        _ => 0.0,
    }
}
