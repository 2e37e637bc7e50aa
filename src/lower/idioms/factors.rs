//! Factors of what a matrix product reads, perhaps behind moves, as the product's own: `(s A) B` and `A (s B)` become `s (A B)`.
//!
//! Nothing else may read what lies between.

use super::{Finder, Term};
use crate::dtype::Precision;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::elementwise::Function;
use crate::ops::gemm::Gemm;
use crate::ops::remap::RemapOp;
use std::any::Any;
use std::sync::Arc;

/// What `unit` moves, if that is all it does.
pub(super) fn remap(network: &Network<'_>, unit: &Unit) -> Option<RemapOp> {
    let op = unit.operator().and_then(|_| unit.op(network.graph, Precision::F32).ok())?;
    op.as_any().downcast_ref::<RemapOp>().cloned()
}

/// The only reader of what unit `index` writes, if it stays in the network.
fn only_reader(network: &Network<'_>, index: usize) -> Option<usize> {
    let &[output] = &network.units()[index].outputs[..] else { return None };
    let mut readers = network.readers(output);
    match (readers.next(), readers.next()) {
        (Some(reader), None) if !network.leaves(output) => Some(reader),
        _ => None,
    }
}

/// Gives products the factors of their operands; units that `alone` names stay as they are.
pub(in crate::lower) fn take_factors(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    for index in 0..network.units().len() {
        for operand in [Operand::A, Operand::B] {
            let Some(factor) = (Finder { network, alone }).factor(index, operand) else { continue };
            let unit = &network.units()[index];
            let Some(gemm) = unit.operator().and_then(|own| (own as &dyn Any).downcast_ref::<Gemm>()) else {
                continue;
            };
            let number = if planted("factor") { 1.0 } else { factor.number };
            let alpha = Bits(gemm.alpha.0 * number);
            if !alpha.0.is_normal() {
                continue;
            }
            let operator = Arc::new(Gemm { alpha, ..*gemm });
            let (name, outputs) = (unit.name.clone(), unit.outputs.clone());
            let whole = Unit::of_node(name, operator, unit.given(), outputs);
            network.merge(factor.unit, index, whole);
            network.show(factor.product, factor.value);
        }
    }
    network.close_gaps();
    Ok(())
}

/// A unit that multiplies `value` by a number.
pub(super) struct Factor {
    unit: usize,
    product: Value,
    pub(super) value: Value,
    pub(super) number: f32,
}

impl Finder<'_, '_> {
    /// The unit that multiplies what the product of unit `index` reads as `operand`, perhaps moved in between.
    fn factor(&self, index: usize, operand: Operand) -> Option<Factor> {
        let unit = self.network.units().get(index)?;
        (unit.operator()? as &dyn Any).downcast_ref::<Gemm>()?;
        if (self.alone)(&unit.name) {
            return None;
        }
        let (mut reader, mut read) = (index, unit.input(operand).ok()?.value()?);
        loop {
            let written = self.network.resolve(read).of;
            let writer = self.network.writer(written)?;
            let before = &self.network.units()[writer];
            if only_reader(self.network, writer)? != reader || (self.alone)(&before.name) {
                return None;
            }
            // The product may read it as both operands.
            let unit = &self.network.units()[reader];
            if unit.reads().filter(|&other| self.network.resolve(other).of == written).count() != 1 {
                return None;
            }
            if let Some(found) =
                self.multiplied(writer, Function::Mul).or(self.multiplied(writer, Function::Div))
            {
                return Some(found);
            }
            let op = remap(self.network, before)?;
            if op.fills() {
                return None;
            }
            (reader, read) = (writer, before.reads().next()?);
        }
    }

    /// Unit `index`, if it multiplies or divides a value of the same dimensions by a number.
    pub(super) fn multiplied(&self, index: usize, function: Function) -> Option<Factor> {
        let single = self.single(index, function)?;
        let (value, number) = match (&single.terms[..], function) {
            ([Term::Given(Input::Value(value), _), by], Function::Div) => (*value, 1.0 / by.number()?),
            (
                [Term::Given(Input::Value(value), _), by] | [by, Term::Given(Input::Value(value), _)],
                Function::Mul,
            ) => (*value, by.number()?),
            // A number divided by a value, too, is no factor of it.
            _ => return None,
        };
        let dims = |value: Value| self.network.dims(value).ok();
        let same = dims(value)?.elements() == dims(single.output)?.elements();
        let usual = number.is_finite() && number != 0.0;
        (same && usual).then_some(Factor { unit: index, product: single.output, value, number })
    }
}
