//! Indices in networks that store halves.
//!
//! `top_k` and `arg` give indices as floats, and halves hold whole numbers exactly up to 2048 alone. So a unit stores f32 that moves
//! indices, or computes functions of them, before another unit selects elements by them or makes them integers.

use super::quotients::passes_on;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::lower::network::Network;
use crate::lower::unit::Unit;
use crate::ops::gather::{Gather, GatherNd};
use crate::ops::one_hot::OneHot;
use std::any::Any;

/// Which units move indices, or compute functions of them.
pub(in crate::lower) fn indices(network: &Network<'_>) -> Vec<bool> {
    let units = network.units();
    let mut found = vec![false; units.len()];
    // From the last unit to the first: what reads a result comes before its writer.
    for (index, unit) in units.iter().enumerate().rev() {
        for (operand, input) in &unit.inputs {
            if !found[index] && !reads_indices(network, unit, *operand) {
                continue;
            }
            let writer = input.value().and_then(|value| network.writer(network.resolve(value).of));
            if let Some(writer) = writer.filter(|&writer| passes_on(network, &units[writer])) {
                found[writer] = true;
            }
        }
    }
    found
}

/// Whether `unit` selects elements by `operand`, or makes integers of it.
fn reads_indices(network: &Network<'_>, unit: &Unit, operand: Operand) -> bool {
    let Some(operator) = unit.operator().map(|operator| operator as &dyn Any) else { return false };
    let selects = operator.is::<Gather>() || operator.is::<GatherNd>();
    let whole = |dtype: DType| matches!(dtype, DType::I32 | DType::U32 | DType::I64);
    (selects && operand == Operand::Arg(0))
        || (operator.is::<OneHot>() && operand == Operand::Src)
        || unit.outputs.iter().any(|&value| whole(network.dtype(value)))
}
