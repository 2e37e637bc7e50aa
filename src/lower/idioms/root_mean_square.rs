//! A normalisation by the root of a mean square, from its root on: without the mean, or of differences from it.

use super::normalisation::Under;
use super::{Finder, Replacement, Single, Term};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::lower::mistakes::planted;
use crate::lower::unit::{Input, Unit};
use crate::ops::elementwise::Function;
use crate::ops::normalize::Normalize;
use crate::ops::reduce::Reduction;
use crate::sorted;
use std::sync::Arc;

/// What is computed behind a root.
struct Form {
    old: Vec<usize>,
    result: Value,
    scale: Option<Term>,
}

impl Finder<'_, '_> {
    /// What ends as `x / sqrt(mean(x^2) + epsilon)`, times a scale, plus a bias, whose root is unit `index`.
    pub(super) fn root_mean_square(&self, index: usize) -> Result<Option<Replacement>> {
        let found = || {
            let root = self.single(index, Function::Rsqrt).or_else(|| self.single(index, Function::Sqrt))?;
            let Under { mean, epsilon, sum } = self.under(&root)?;
            let (squares, x) = self.squares(mean.input)?;
            let Form { old, result, scale } = self.divided(&root, x)?;
            let old = [mean.old, vec![squares, sum, index], old].concat();
            let centred = planted("root_mean_square_centred");
            let options = Normalize { axes: mean.axes, epsilon: Bits(epsilon), centred };
            (mean.reduction == Reduction::Mean).then_some((x, options, old, result, scale))
        };
        let Some((x, options, old, normal, scale)) = found() else { return Ok(None) };
        let (x, options, mut old) = self.with_mean(x, options, old, normal);
        let dims = self.network.dims(x)?;
        let channels = dims.shape().c;
        let mut given = vec![(Operand::Src, Input::Value(x), dims)];
        let mut result = normal;
        if let Some(scale) = scale {
            // A scale that was a part of the factor is a constant, or this is something else.
            let Some((input, of_scale)) = scale.vector(channels) else { return Ok(None) };
            if !planted("root_mean_square_scale") {
                given.push((Operand::Weights, input, of_scale));
            }
        }
        for (function, operand) in [(Function::Mul, Operand::Weights), (Function::Add, Operand::Bias)] {
            if given.iter().any(|(known, ..)| *known == operand) {
                continue;
            }
            if let Some((next, (input, of_vector))) = self.by_vector(function, result, channels) {
                given.push((operand, input, of_vector));
                old.push(next.index);
                result = next.output;
            }
        }
        if !self.closed(&old, result) || self.network.dims(result)?.extents() != dims.extents() {
            return Ok(None);
        }
        let name = self.network.units()[index].name.clone();
        let unit = Unit::of_node(name, Arc::new(options), given, vec![result]);
        // An epsilon of 0, say, is no option of the op.
        let fits = unit.op(self.network.graph, Precision::F32).is_ok();
        Ok(fits.then(|| Replacement { old, new: vec![unit] }))
    }

    /// What is normalised, how, and by which units: if `x` is the difference of something from its mean, and nothing else
    /// reads that, a normalisation with the mean.
    fn with_mean(
        &self,
        x: Value,
        options: Normalize,
        old: Vec<usize>,
        result: Value,
    ) -> (Value, Normalize, Vec<usize>) {
        let centring = || {
            let difference = self.written(x, Function::Sub)?;
            let &[Some(before), Some(mean)] =
                &[difference.terms.first()?.value(), difference.terms.get(1)?.value()]
            else {
                return None;
            };
            let mean = self.whole_reduction(self.network.writer(mean)?)?;
            let rank = self.network.dims(before).ok()?.rank().max(1) as isize;
            let places = |axes: &[isize]| {
                let mut places: Vec<isize> = axes.iter().map(|axis| axis.rem_euclid(rank)).collect();
                sorted::sort(&mut places, Ord::cmp);
                places
            };
            let over = places(&mean.axes) == places(&options.axes);
            let same = over && mean.reduction == Reduction::Mean && mean.input == before;
            let all = [&old[..], &mean.old, &[difference.index]].concat();
            (same && self.closed(&all, result)).then_some((before, all))
        };
        match centring() {
            Some((before, all)) => (before, Normalize { centred: true, ..options }, all),
            None => (x, options, old),
        }
    }

    /// The unit that writes `value` as the squares of another one, and that one.
    fn squares(&self, value: Value) -> Option<(usize, Value)> {
        if let Some(square) = self.written(value, Function::Square) {
            return Some((square.index, square.terms.first()?.value()?));
        }
        let product = self.written(value, Function::Mul)?;
        let &[Some(a), Some(b)] = &[product.terms.first()?.value(), product.terms.get(1)?.value()] else {
            return None;
        };
        (a == b).then_some((product.index, a))
    }

    /// `x` divided by `root`, or times it if it is `1 / sqrt`.
    fn divided(&self, root: &Single, x: Value) -> Option<Form> {
        let mut old = Vec::new();
        let mut factor = root.output;
        if self.single(root.index, Function::Sqrt).is_some() {
            let reader = self.only_reader(root.output)?;
            match self.single(reader, Function::Div) {
                Some(quotient) if quotient.terms.get(1)?.value() == Some(root.output) => {
                    let [first, _] = &quotient.terms[..] else { return None };
                    if first.value() == Some(x) {
                        return Some(Form {
                            old: vec![quotient.index],
                            result: quotient.output,
                            scale: None,
                        });
                    }
                    if first.number() != Some(1.0) {
                        return None;
                    }
                    factor = quotient.output;
                }
                _ => factor = self.single(reader, Function::Reciprocal)?.output,
            }
            old.push(reader);
        }
        let mut scale = None;
        loop {
            let product = self.single(self.only_reader(factor)?, Function::Mul)?;
            let other = product.terms.iter().find(|term| term.value() != Some(factor))?;
            old.push(product.index);
            if other.value() == Some(x) {
                return Some(Form { old, result: product.output, scale });
            }
            if scale.is_some() {
                return None;
            }
            scale = Some(other.clone());
            factor = product.output;
        }
    }

    /// What multiplies `value` by a constant for each channel, or adds it, if nothing else reads it.
    fn by_vector(
        &self,
        function: Function,
        value: Value,
        channels: usize,
    ) -> Option<(Single, (Input, Dims))> {
        let next = self.single(self.only_reader(value)?, function)?;
        let vector = next.terms.iter().find(|term| term.value() != Some(value))?.vector(channels)?;
        // A vector of more axes makes a result of more.
        let [own, wanted] = [next.output, value].map(|value| self.network.dims(value));
        (own.ok()?.extents() == wanted.ok()?.extents()).then_some((next, vector))
    }

    /// The one unit that reads `value`.
    fn only_reader(&self, value: Value) -> Option<usize> {
        match self.readers(value)?[..] {
            [reader] => Some(reader),
            _ => None,
        }
    }
}
