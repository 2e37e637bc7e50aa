//! Whole numbers that say where others read, in networks that store halves.
//!
//! Places of elements are floats where an op gives them so (`top_k`, `arg`), and halves hold whole numbers up to 2048 alone. So
//! whatever moves them, or is a function of them, on the way to where they are read stores f32.

use super::quotients::passes_on;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::lower::network::Network;
use crate::lower::unit::Unit;
use crate::ops::gather::{Gather, GatherNd};
use crate::ops::one_hot::OneHot;
use std::any::Any;

/// Which units move places, or are functions of them.
pub(in crate::lower) fn places(network: &Network<'_>) -> Vec<bool> {
    let units = network.units();
    let mut found = vec![false; units.len()];
    // Units are in order: of each it is known behind its readers whether these read places.
    for (index, unit) in units.iter().enumerate().rev() {
        for (operand, input) in &unit.inputs {
            if !found[index] && !reads_places(network, unit, *operand) {
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

/// Whether what `unit` reads as `operand` are whole numbers: places of elements, or what becomes integers.
fn reads_places(network: &Network<'_>, unit: &Unit, operand: Operand) -> bool {
    let Some(operator) = unit.operator().map(|operator| operator as &dyn Any) else { return false };
    let selects = operator.is::<Gather>() || operator.is::<GatherNd>();
    let whole = |dtype: DType| matches!(dtype, DType::I32 | DType::U32 | DType::I64);
    (selects && operand == Operand::Arg(0))
        || (operator.is::<OneHot>() && operand == Operand::Src)
        || unit.outputs.iter().any(|&value| whole(network.dtype(value)))
}
