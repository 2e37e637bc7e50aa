//! A normalisation without the mean, from its root on.

use super::normalisation::Under;
use super::{Finder, Found, Single, Term};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::lower::unit::{Input, Unit};
use crate::ops::elementwise::Function;
use crate::ops::normalize::Normalize;
use crate::ops::reduce::Reduction;
use std::sync::Arc;

/// What is computed behind a root.
struct Form {
    old: Vec<usize>,
    result: Value,
    scale: Option<Term>,
}

impl Finder<'_, '_> {
    /// What ends as `x / sqrt(mean(x^2) + epsilon)`, and times a scale, whose root is unit `index`.
    pub(super) fn root_mean_square(&self, index: usize) -> Result<Option<Found>> {
        let found = || {
            let root = self.single(index, Function::Rsqrt).or_else(|| self.single(index, Function::Sqrt))?;
            let Under { mean, epsilon, sum } = self.under(&root)?;
            let (squares, x) = self.squares(mean.input)?;
            let Form { old, result, scale } = self.divided(&root, x)?;
            let old = [mean.old, vec![squares, sum, index], old].concat();
            let options = Normalize { axes: mean.axes, epsilon: Bits(epsilon), centred: false };
            (mean.reduction == Reduction::Mean).then_some((x, options, old, result, scale))
        };
        let Some((x, options, mut old, normal, scale)) = found() else { return Ok(None) };
        let dims = self.network.dims(x)?;
        let channels = dims.shape().c;
        let mut given = vec![(Operand::Src, Input::Value(x), dims)];
        let mut result = normal;
        if let Some(scale) = scale {
            // A scale that was a part of the factor is a constant, or this is something else.
            let Some((input, of_scale)) = scale.vector(channels) else { return Ok(None) };
            given.push((Operand::Weights, input, of_scale));
        } else if let Some((product, (input, of_scale))) = self.by_vector(normal, channels) {
            given.push((Operand::Weights, input, of_scale));
            old.push(product.index);
            result = product.output;
        }
        if !self.closed(&old, result) || self.network.dims(result)?.extents() != dims.extents() {
            return Ok(None);
        }
        let name = self.network.units()[index].name.clone();
        let unit = Unit::of_node(name, Arc::new(options), given, vec![result]);
        // An epsilon of 0, say, is no option of the op.
        let fits = unit.op(self.network.graph, Precision::F32).is_ok();
        Ok(fits.then(|| Found { old, new: vec![unit] }))
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

    /// What multiplies `value` by a constant for each channel, if nothing else reads it.
    fn by_vector(&self, value: Value, channels: usize) -> Option<(Single, (Input, Dims))> {
        let product = self.single(self.only_reader(value)?, Function::Mul)?;
        let scale = product.terms.iter().find(|term| term.value() != Some(value))?.vector(channels)?;
        // A scale of more axes would be a result of more.
        let same =
            self.network.dims(product.output).ok()?.extents() == self.network.dims(value).ok()?.extents();
        same.then_some((product, scale))
    }

    /// The one unit that reads `value`.
    fn only_reader(&self, value: Value) -> Option<usize> {
        match self.readers(value)?[..] {
            [reader] => Some(reader),
            _ => None,
        }
    }
}
