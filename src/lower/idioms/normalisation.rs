//! A normalisation, from its `1 / sqrt(variance + epsilon)` on.

use super::{Finder, ReductionUnits, Replacement, Single, Term};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::lower::mistakes::planted;
use crate::lower::unit::{Input, Unit};
use crate::ops::elementwise::{Elementwise, Function, Program, Source, Step};
use crate::ops::normalize::{Finished, Normalize};
use crate::ops::operator::Operator;
use crate::ops::reduce::Reduction;
use crate::sorted;
use std::sync::Arc;

/// What a normalisation is over.
struct Moments {
    x: Value,
    mean: Value,
    axes: Vec<isize>,
    epsilon: f32,
    /// The units that compute them.
    old: Vec<usize>,
}

/// A mean and a number under a root.
pub(super) struct Under {
    pub(super) mean: ReductionUnits,
    pub(super) epsilon: f32,
    /// The unit that adds them.
    pub(super) sum: usize,
}

/// How a normalisation is written out behind its root.
struct Form {
    old: Vec<usize>,
    result: Value,
    scale: Option<Term>,
    bias: Option<Term>,
    /// A value of the result's extents that is no longer computed.
    between: Option<Value>,
}

impl Finder<'_, '_> {
    /// What ends as a normalisation whose `1 / sqrt` is unit `index`.
    pub(super) fn normalisation(&self, index: usize) -> Result<Option<Replacement>> {
        let found = || {
            let root = self.single(index, Function::Rsqrt)?;
            let moments = self.moments(&root)?;
            self.centred(&root, &moments).or_else(|| self.spread(&root, &moments))
        };
        let Some(Form { old, result, scale, bias, between }) = found() else { return Ok(None) };
        let Some(moments) = self.single(index, Function::Rsqrt).and_then(|root| self.moments(&root)) else {
            return Ok(None);
        };
        let mut all = moments.old.clone();
        all.push(index);
        all.extend(old);
        if !self.closed(&all, result) {
            return Ok(None);
        }
        let dims = self.network.dims(moments.x)?;
        if self.network.dims(result)?.extents() != dims.extents() {
            return Ok(None);
        }
        let operator = Arc::new(Normalize {
            axes: if planted("normalisation_axes") { vec![0] } else { moments.axes.clone() },
            epsilon: Bits(moments.epsilon),
            ..Normalize::default()
        });
        let mut given = vec![(Operand::Src, Input::Value(moments.x), dims)];
        let channels = dims.shape().c;
        let own = |term: &Term| term.vector(channels);
        let bias = bias.filter(|_| !planted("normalisation_bias"));
        let scale_own = scale.as_ref().map(own);
        let bias_own = bias.as_ref().map(own);
        let name = self.network.units()[index].name.clone();
        let mut new = Vec::new();
        if scale_own.as_ref().is_none_or(Option::is_some) && bias_own.as_ref().is_none_or(Option::is_some) {
            for (operand, found) in [(Operand::Weights, scale_own), (Operand::Bias, bias_own)] {
                given.extend(found.flatten().map(|(input, dims)| (operand, input, dims)));
            }
            new.push(Unit::of_node(name, operator, given, vec![result]));
        } else if let Some(unit) = self.given(&name, &operator, &given, [&scale, &bias], result, &own) {
            new.push(unit);
        } else {
            // The normalised values take the place of a value of these extents that is no more.
            let Some(between) = between.filter(|_| scale.is_some() || bias.is_some()) else {
                return Ok(None);
            };
            if self.network.dims(between)?.extents() != dims.extents() {
                return Ok(None);
            }
            new.push(Unit::of_node(name.clone(), operator, given, vec![between]));
            let Some(rest) = affine(format!("{name} (scale)"), (between, dims), scale, bias, result) else {
                return Ok(None);
            };
            new.push(rest);
        }
        // An epsilon of 0, say, is no option of the op.
        let fits = new.iter().all(|unit| unit.op(self.network.graph, Precision::F32).is_ok());
        Ok(fits.then_some(Replacement { old: all, new }))
    }

    /// The normalisation of a map with a scale and a bias of which `own` does not make constants.
    fn given(
        &self,
        name: &str,
        operator: &Normalize,
        src: &[(Operand, Input, Dims)],
        vectors: [&Option<Term>; 2],
        result: Value,
        own: &dyn Fn(&Term) -> Option<(Input, Dims)>,
    ) -> Option<Unit> {
        let mut given = src.to_vec();
        let names = [(Operand::Weights, Operand::Arg(0)), (Operand::Bias, Operand::Arg(1))];
        for ((constant, computed), term) in names.into_iter().zip(vectors) {
            let Some(term) = term else { continue };
            given.push(match (own(term), term) {
                (Some((input, dims)), _) => (constant, input, dims),
                (None, Term::Given(input @ Input::Value(_), dims)) => (computed, input.clone(), *dims),
                _ => return None,
            });
        }
        let operator = Arc::new(Finished::new(operator.clone()));
        let unit = Unit::of_node(name.to_owned(), operator, given, vec![result]);
        // Of another shape they are no vectors of this op.
        unit.op(self.network.graph, Precision::F32).is_ok().then_some(unit)
    }

    /// The mean and the number that `root` is the root of the sum of.
    pub(super) fn under(&self, root: &Single) -> Option<Under> {
        let sum = self.written(root.terms.first()?.value()?, Function::Add)?;
        let (mean, epsilon) = match &sum.terms[..] {
            [a, b] if b.number().is_some() => (a.value()?, b.number()?),
            [a, b] => (b.value()?, a.number()?),
            _ => return None,
        };
        let mean = self.whole_reduction(self.network.writer(mean)?)?;
        Some(Under { mean, epsilon, sum: sum.index })
    }

    /// Mean and variance behind `1 / sqrt(variance + epsilon)`.
    fn moments(&self, root: &Single) -> Option<Moments> {
        let Under { mean: over, epsilon, sum } = self.under(root)?;
        let difference = self.written(over.input, Function::SquaredDifference)?;
        let &[Some(a), Some(b)] = &[difference.terms.first()?.value(), difference.terms.get(1)?.value()]
        else {
            return None;
        };
        for (x, mean) in [(a, b), (b, a)] {
            let Some(mean_at) = self.network.writer(mean) else { continue };
            let Some(own) = self.whole_reduction(mean_at) else { continue };
            let same = own.axes == over.axes && own.reduction == over.reduction;
            if same && own.input == x && over.reduction == Reduction::Mean {
                let old = [own.old, vec![difference.index, sum], over.old].concat();
                return Some(Moments { x, mean, axes: own.axes, epsilon, old });
            }
        }
        None
    }

    /// `(x - m) * r`.
    fn centred(&self, root: &Single, moments: &Moments) -> Option<Form> {
        let &[reader] = &self.readers(root.output)?[..] else { return None };
        let product = self.single(reader, Function::Mul)?;
        let other = product.terms.iter().filter_map(Term::value).find(|&value| value != root.output)?;
        let difference = self.written(other, Function::Sub)?;
        let parts: Vec<Option<Value>> = difference.terms.iter().map(Term::value).collect();
        (parts == [Some(moments.x), Some(moments.mean)]).then(|| Form {
            old: vec![difference.index, product.index],
            result: product.output,
            scale: None,
            bias: None,
            between: None,
        })
    }

    /// `x * g` and what is added to it.
    fn spread(&self, root: &Single, moments: &Moments) -> Option<Form> {
        let mut old = Vec::new();
        let (mut factor, mut scale) = (root.output, None);
        let readers = self.readers(factor)?;
        if let &[reader] = &readers[..] {
            let product = self.single(reader, Function::Mul)?;
            scale = product.terms.iter().find(|term| term.value() != Some(root.output)).cloned();
            old.push(product.index);
            factor = product.output;
        }
        let &[a, b] = &self.readers(factor)?[..] else { return None };
        for (first, second) in [(a, b), (b, a)] {
            let (main, shift) = (self.single(first, Function::Mul)?, self.single(second, Function::Mul)?);
            let other =
                |single: &Single| single.terms.iter().filter_map(Term::value).find(|&it| it != factor);
            if other(&main) != Some(moments.x) {
                continue;
            }
            // The mean, or its negative.
            let shifted = other(&shift)?;
            let negative = self.written(shifted, Function::Neg);
            let negated = negative.as_ref().is_some_and(|neg| neg.terms[0].value() == Some(moments.mean));
            if !negated && shifted != moments.mean {
                continue;
            }
            old.extend([main.index, shift.index]);
            old.extend(negative.filter(|_| negated).map(|negative| negative.index));
            let (last, bias, summed) = self.added(&shift, negated)?;
            old.extend(summed);
            let end = match last {
                Some(value) => self.end(main.output, value)?,
                // `x * g - m * g`.
                None => {
                    let &[reader] = &self.readers(main.output)?[..] else { return None };
                    let end = self.single(reader, Function::Sub)?;
                    let parts: Vec<Option<Value>> = end.terms.iter().map(Term::value).collect();
                    if parts != [Some(main.output), Some(shift.output)] {
                        return None;
                    }
                    end
                }
            };
            old.push(end.index);
            return Some(Form { old, result: end.output, scale, bias, between: Some(main.output) });
        }
        None
    }

    /// What is added to `x * g` for the mean's part, if it is added: with the bias and the unit that adds it.
    fn added(&self, shift: &Single, negated: bool) -> Option<(Option<Value>, Option<Term>, Option<usize>)> {
        let &[reader] = &self.readers(shift.output)?[..] else { return None };
        let bias_of = |single: &Single| {
            let two = single.terms.len() == 2;
            two.then(|| single.terms.iter().find(|term| term.value() != Some(shift.output)).cloned())
                .flatten()
        };
        if !negated && let Some(sum) = self.single(reader, Function::Sub) {
            // The bias without the mean's part; or the end itself.
            return match sum.terms.get(1)?.value() == Some(shift.output) && !self.is_product(&sum.terms[0]) {
                true => Some((Some(sum.output), bias_of(&sum), Some(sum.index))),
                false => Some((None, None, None)),
            };
        }
        if !negated {
            return None;
        }
        let sum = self.single(reader, Function::Add)?;
        let bias = bias_of(&sum)?;
        // Added to the product, or to the bias first.
        if self.is_product(&bias) {
            return Some((Some(shift.output), None, None));
        }
        Some((Some(sum.output), Some(bias), Some(sum.index)))
    }

    /// Whether `term` is a product that is computed.
    fn is_product(&self, term: &Term) -> bool {
        term.value().is_some_and(|value| self.written(value, Function::Mul).is_some())
    }

    /// The sum of two values.
    fn end(&self, a: Value, b: Value) -> Option<Single> {
        let &[reader] = &self.readers(a)?[..] else { return None };
        let end = self.single(reader, Function::Add)?;
        let mut parts: Vec<Option<Value>> = end.terms.iter().map(Term::value).collect();
        sorted::sort(&mut parts, Ord::cmp);
        let mut wanted = [Some(a), Some(b)];
        sorted::sort(&mut wanted, Ord::cmp);
        (parts == wanted).then_some(end)
    }
}

/// `x * scale + bias` as one function of each element.
fn affine(
    name: String,
    (x, dims): (Value, Dims),
    scale: Option<Term>,
    bias: Option<Term>,
    result: Value,
) -> Option<Unit> {
    let mut given = vec![(Operand::Arg(0), Input::Value(x), dims)];
    let mut steps: Vec<Step> = Vec::new();
    for (function, term) in [(Function::Mul, scale), (Function::Add, bias)] {
        let Some(term) = term else { continue };
        let last = steps.len().checked_sub(1).map_or(Source::Input(0), |last| Source::Step(last as u8));
        let second = match term {
            Term::Number(number) => Source::Number(Bits(number)),
            Term::Given(input, dims) => {
                given.push((Operand::Arg(given.len() as u8), input, dims));
                Source::Input(given.len() as u8 - 1)
            }
        };
        steps.push(Step { function, arguments: vec![last, second] });
    }
    let operator: Arc<dyn Operator> = Arc::new(Elementwise::new(Program::new(steps).ok()?));
    Some(Unit::of_node(name, operator, given, vec![result]))
}
