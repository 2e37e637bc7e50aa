//! Sums that are divided by sums, in networks that store halves.
//!
//! Linear attention (Katharopoulos et al., *Transformers are RNNs*, 2020) divides sums over all keys by the sum of their
//! weights. Over some hundred keys either is beyond halves, or below them where a tiny number is added, and the quotient is an
//! ordinary number. Models in PyTorch compute this in f32 in the midst of halves (`LiteMLA` of EfficientViT in timm). So it is
//! stored in f32 here too: from the products of two computed matrices and the reductions to the quotient.

use crate::dtype::Precision;
use crate::emit::Operand;
use crate::lower::network::Network;
use crate::lower::unit::Unit;
use crate::ops::elementwise::{Function, Source, Step};
use crate::ops::gemm::Gemm;
use crate::ops::reduce::Reduce;
use std::any::Any;

/// Which units these are.
pub(in crate::lower) fn quotients_of_sums(network: &Network<'_>) -> Vec<bool> {
    let units = network.units();
    let writers = |unit: &Unit| -> Vec<usize> {
        unit.reads().filter_map(|value| network.writer(network.resolve(value).of)).collect()
    };
    // Units are in order: of each it is known before its readers whether it has a sum, changed by functions of its
    // elements and by moves alone.
    let mut sum = vec![false; units.len()];
    for (index, unit) in units.iter().enumerate() {
        sum[index] = adds_up(unit) || (passes_on(network, unit) && writers(unit).iter().any(|&own| sum[own]));
    }
    let mut wide = vec![false; units.len()];
    for (index, unit) in units.iter().enumerate().rev() {
        let sums: Vec<usize> = writers(unit).into_iter().filter(|&own| sum[own]).collect();
        if wide[index] || (divides(unit) && !sums.is_empty()) {
            wide[index] = true;
            sums.into_iter().for_each(|own| wide[own] = true);
        }
    }
    wide
}

/// Whether a unit divides by what is computed.
fn divides(unit: &Unit) -> bool {
    let is_computed = |source: &Source| match source {
        Source::Number(_) => false,
        Source::Step(_) => true,
        Source::Input(input) => unit.input(Operand::Arg(*input)).is_ok_and(|input| input.value().is_some()),
    };
    let by_computed = |step: &Step| {
        let divisor = match step.function {
            Function::Div => step.arguments.get(1),
            Function::Reciprocal => step.arguments.first(),
            _ => None,
        };
        divisor.is_some_and(is_computed)
    };
    let program = unit.operator().and_then(|operator| operator.program());
    program.is_some_and(|program| program.steps().iter().any(by_computed))
}

/// Whether a unit adds up what is computed, with no constant factors that bound it.
fn adds_up(unit: &Unit) -> bool {
    let Some(operator) = unit.operator().map(|operator| operator as &dyn Any) else { return false };
    let is_computed = unit.inputs.iter().all(|(_, input)| input.value().is_some());
    is_computed && (operator.is::<Gemm>() || operator.is::<Reduce>())
}

/// Whether a unit moves elements, or is a function of each.
pub(super) fn passes_on(network: &Network<'_>, unit: &Unit) -> bool {
    unit.operator().is_some_and(|operator| operator.program().is_some())
        || unit.op(network.graph, Precision::F32).is_ok_and(|op| op.flops() == 0)
}
