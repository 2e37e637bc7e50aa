//! Statements that put together what the invocations of a row found.

use super::nest::NodeId;
use super::text::Text;
use crate::dtype::DType;
use crate::ops::reduce::Reduction;

/// A reduction with what it reduces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reduced {
    pub(super) id: NodeId,
    pub(super) reduction: Reduction,
    pub(super) of: NodeId,
    /// The node that gives places, if one is found.
    pub(super) place: Option<NodeId>,
}

/// What the invocations of a row found, put together, four at a time: each then has the whole. Every other time it lies in
/// the other half of the local memory, so that nobody waits for those that read it.
pub(super) fn join_lanes(
    text: &mut Text<'_>,
    (reduction, dtype): (Reduction, DType),
    own: &str,
    (lanes, other_half): (u32, bool),
) {
    let slot = if other_half { "slot + SLOTS" } else { "slot" };
    text.line(&format!("partial[{slot}] = {own};"));
    text.line("workgroupBarrier();");
    let mut left = lanes;
    while left > 1 {
        let part = if left.is_multiple_of(4) { left / 4 } else { left / 2 };
        text.block(&format!("if (lane < {part}u)"), &mut |text| {
            let found = |place: u32| format!("partial[{slot} + {}u * APART]", place * part);
            let mut all = text.joined(reduction, dtype, &format!("partial[{slot}]"), &found(1));
            if left / part == 4 {
                let others = text.joined(reduction, dtype, &found(2), &found(3));
                all = text.joined(reduction, dtype, &format!("({all})"), &format!("({others})"));
            }
            text.line(&format!("partial[{slot}] = {all};"));
        });
        text.line("workgroupBarrier();");
        left = part;
    }
    text.line(&format!("{own} = partial[{slot} - lane * APART];"));
}

/// The best values that the invocations of a row found, with their places, put together as [`join_lanes`] does.
pub(super) fn join_places(text: &mut Text<'_>, own: Reduced, (lanes, other_half): (u32, bool)) {
    let Reduced { id, reduction, of, .. } = own;
    let slot = if other_half { "slot + SLOTS" } else { "slot" };
    let store = |text: &mut Text<'_>| {
        text.line(&format!("partial[{slot}] = r{id};"));
        text.line(&format!("places[{slot}] = p{id};"));
    };
    store(text);
    text.line("workgroupBarrier();");
    let mut left = lanes;
    while left > 1 {
        let part = if left.is_multiple_of(4) { left / 4 } else { left / 2 };
        text.block(&format!("if (lane < {part}u)"), &mut |text| {
            for other in 1..left / part {
                let at = text.name('a');
                text.line(&format!("let {at}: u32 = {slot} + {}u * APART;", other * part));
                text.take(id, reduction, of, [&format!("partial[{at}]"), &format!("places[{at}]")]);
            }
            store(text);
        });
        text.line("workgroupBarrier();");
        left = part;
    }
    text.line(&format!("r{id} = partial[{slot} - lane * APART];"));
    text.line(&format!("p{id} = places[{slot} - lane * APART];"));
}
