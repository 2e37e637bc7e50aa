//! What a product and a nest of its rows give: the oracle of the nest, of what the oracle of the product gives within its bound.

use super::GemmRowsOp;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;
use std::borrow::Cow;

impl GemmRowsOp {
    /// What the product and the nest give; the product's kernels sum in f32.
    pub(super) fn result(&self, operands: &Operands<'_>, product: &Reference) -> Reference {
        let is_read = |operand: &Operand| matches!(operand, Operand::Read(_));
        let reads = operands.iter().filter(|(operand, _)| is_read(operand));
        let mut own: Operands<'_> = reads.map(|(operand, values)| (*operand, values.clone())).collect();
        let value: Vec<f32> = product.value().iter().map(|&value| value as f32).collect();
        let by = |(index, (&near, &exact)): (usize, (&f32, &f64))| {
            // What rounding to halves adds is not stored.
            product.usual_tolerance(index, Precision::F32) + (f64::from(near) - exact).abs()
        };
        let bounds: Vec<f64> = value.iter().zip(product.value()).enumerate().map(by).collect();
        own.insert(Operand::C, Cow::Owned(value));
        self.nest.near(&own, self.source, &bounds)
    }

    /// The operands of the product.
    pub(super) fn product_of<'a>(&self, operands: &Operands<'a>) -> Operands<'a> {
        let own = operands.iter().filter(|(operand, _)| !matches!(operand, Operand::Read(_)));
        own.map(|(operand, values)| (*operand, values.clone())).collect()
    }
}
