//! What is done to the scores of an attention between its product and its softmax.

use super::Product;
use crate::dims::Dims;
use crate::emit::Bits;
use crate::graph::Value;
use crate::lower::idioms::{Finder, Term};
use crate::lower::mistakes::planted;
use crate::lower::unit::Input;
use crate::ops::attention::{MaskRule, Rules};
use crate::ops::elementwise::Function;

/// What is done to scores, from the last on.
pub(super) struct Scores {
    pub(super) product: Product,
    pub(super) rules: Rules,
    pub(super) bias: Option<(Term, Dims)>,
    pub(super) mask: Option<(Term, Dims)>,
    pub(super) old: Vec<usize>,
}

impl Finder<'_, '_> {
    /// How scores came about, from the product on.
    pub(super) fn scores(&self, last: Value) -> Option<Scores> {
        let mut rules = Rules::plain(1.0);
        let (mut bias, mut mask, mut old) = (None, None, Vec::new());
        // The product of the numbers below the last step that was taken, and whether there was one.
        let (mut factor, mut scaled) = (1.0f32, false);
        let mut value = last;
        loop {
            let alias = self.network.resolve(value);
            let at = self.network.writer(alias.of)?;
            if alias.offset != 0 {
                return None;
            }
            if let Some(product) = self.product(at) {
                let scale = factor * product.op.alpha.0;
                let scale = if rules.softcap.0 > 0.0 { scale * rules.softcap.0 } else { scale };
                rules.scale = Bits(scale);
                return scale.is_finite().then_some(Scores { product, rules, bias, mask, old });
            }
            let elements = self.network.dims(alias.of).ok()?.elements();
            let whole = |term: &Term| match term {
                Term::Given(Input::Value(value), dims) if dims.elements() == elements => Some(*value),
                _ => None,
            };
            let dims = self.network.dims(alias.of).ok()?;
            if let Some(single) = self.single(at, Function::Add) {
                let [one, other] = &single.terms[..] else { return None };
                // What is multiplied later would have to be in the bias.
                if scaled || rules.softcap.0 > 0.0 || (bias.is_some() && mask.is_some()) {
                    return None;
                }
                let (next, added) = match (whole(one), whole(other)) {
                    (Some(first), Some(second))
                        if self.leads_to_product(second) && !self.leads_to_product(first) =>
                    {
                        (second, one.clone())
                    }
                    (Some(next), _) => (next, other.clone()),
                    (None, Some(next)) => (next, one.clone()),
                    (None, None) => return None,
                };
                match (&bias, &mask) {
                    (None, _) => bias = Some((added, dims)),
                    (Some(_), None) => {
                        rules.mask_adds = true;
                        mask = Some((added, dims));
                    }
                    _ => return None,
                }
                value = next;
                old.push(at);
                continue;
            }
            if let Some(single) = self.single(at, Function::Select) {
                let [told, one, other] = &single.terms[..] else { return None };
                if scaled || bias.is_some() || mask.is_some() || rules.softcap.0 > 0.0 {
                    return None;
                }
                let (next, fill, hides) = match (whole(one), one.number(), whole(other), other.number()) {
                    (Some(next), _, _, Some(fill)) => (next, fill, false),
                    (_, Some(fill), Some(next), _) => (next, fill, true),
                    _ => return None,
                };
                let hides = hides != planted("attention_mask");
                rules.mask = MaskRule { hides, fill: Bits(fill) };
                mask = Some((told.clone(), dims));
                value = next;
                old.push(at);
                continue;
            }
            if let Some(single) = self.single(at, Function::Tanh) {
                if rules.softcap.0 > 0.0 || factor <= 0.0 || !factor.is_finite() {
                    return None;
                }
                (rules.softcap, factor, scaled) = (Bits(factor), 1.0, true);
                value = whole(single.terms.first()?)?;
                old.push(at);
                continue;
            }
            let multiplied = self.multiplied(at, Function::Mul).or(self.multiplied(at, Function::Div))?;
            factor *= if planted("attention_scale") { 1.0 } else { multiplied.number };
            scaled = true;
            value = multiplied.value;
            old.push(at);
        }
    }

    /// Whether `value` is a product, or what single functions make of one.
    fn leads_to_product(&self, value: Value) -> bool {
        let mut value = self.network.resolve(value).of;
        for _ in 0..8 {
            let Some(at) = self.network.writer(value) else { return false };
            if self.product(at).is_some() {
                return true;
            }
            let unit = &self.network.units()[at];
            let one = unit
                .operator()
                .and_then(|own| own.program())
                .is_some_and(|program| program.steps().len() == 1);
            match unit.reads().next() {
                Some(next) if one => value = self.network.resolve(next).of,
                _ => return false,
            }
        }
        false
    }
}
