//! The elements one by one, along the axes as the operator gave them.

use super::{RemapOp, Rule, axes};
use crate::emit::Bits;
use crate::ops::reference::Reference;
use crate::word::numbers;

/// The result of `src`, with its bound.
pub(super) fn oracle(op: &RemapOp, src: &[f32]) -> Reference {
    let src = numbers(op.dtype, src);
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
        value.push(from.map_or(f64::from(fill), |from| src.get(from).copied().unwrap_or(f64::NAN)));
    }
    Reference::moved(value, op.precision)
}
