//! Normalisations and softmax that a converter wrote out as a dozen nodes, as the op that they are.
//!
//! With `m = mean(x)`, `v = mean((x - m)^2)` over the same axes and `r = 1 / sqrt(v + epsilon)`:
//!
//! | written out, `g = r` or `r * scale` | becomes |
//! |---|---|
//! | `(x - m) * r` | a normalisation |
//! | `x * g - m * g`, `x * g + (bias - m * g)`, `x * g + (-m) * g` | a normalisation, times the scale, plus the bias |
//!
//! A scale and a bias that are constants are the normalisation's own; others are multiplied and added by a
//! function of each element, which may join what follows. `e / sum(e)` with `e = exp(x - max(x))` is a softmax.
//! Nothing else may read what lies between.

use super::unit::{Input, Network, Unit};
use crate::dims::Dims;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::ops::elementwise::{Elementwise, Function, Program, Source, Step};
use crate::ops::normalize::Normalize;
use crate::ops::operator::Operator;
use crate::ops::reduce::{Reduce, Reduction};
use crate::ops::softmax::Softmax;
use std::any::Any;
use std::sync::Arc;

/// Replaces what is recognised; units that `alone` names stay as they are.
pub(super) fn recognise(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut index = 0;
    while index < network.units.len() {
        let finder = Finder { network, alone };
        let found = match finder.normalisation(index)? {
            Some(found) => Some(found),
            None => finder.softmax(index)?,
        };
        match found {
            Some(found) => index = found.replace(network),
            None => index += 1,
        }
    }
    Ok(())
}

/// What takes the place of several units: of the last of `old`.
struct Found {
    old: Vec<usize>,
    new: Vec<Unit>,
}

impl Found {
    /// Puts the new units in; the place of the first that is no more.
    fn replace(mut self, network: &mut Network<'_>) -> usize {
        self.old.sort_unstable();
        self.old.dedup();
        let last = self.old.last().copied().unwrap_or(0);
        let first = self.old.first().copied().unwrap_or(0);
        let units = std::mem::take(&mut network.units).into_iter().enumerate();
        let mut new = Some(self.new);
        for (index, unit) in units {
            if !self.old.contains(&index) {
                network.units.push(unit);
            }
            if index == last {
                network.units.extend(new.take().unwrap_or_default());
            }
        }
        first
    }
}

/// An argument of a function of each element.
#[derive(Debug, Clone)]
enum Term {
    Given(Input, Dims),
    Number(f32),
}

impl Term {
    fn value(&self) -> Option<Value> {
        match self {
            Term::Given(input, _) => input.value(),
            Term::Number(_) => None,
        }
    }

    /// The number, of a constant of one element too.
    fn number(&self) -> Option<f32> {
        match self {
            Term::Number(number) => Some(*number),
            Term::Given(Input::Constant(tensor, _), dims) if dims.elements() == 1 => {
                tensor.to_nhwc().first().copied()
            }
            Term::Given(..) => None,
        }
    }
}

/// A unit of one function.
struct Single {
    index: usize,
    output: Value,
    terms: Vec<Term>,
}

struct Finder<'n, 'g> {
    network: &'n Network<'g>,
    alone: &'n dyn Fn(&str) -> bool,
}

impl Finder<'_, '_> {
    fn writer(&self, value: Value) -> Option<usize> {
        self.network.units.iter().position(|unit| unit.outputs.contains(&value))
    }

    /// Unit `index`, if it is `function` alone.
    fn single(&self, index: usize, function: Function) -> Option<Single> {
        let unit = self.network.units.get(index)?;
        let [step] = unit.operator()?.program()?.steps() else { return None };
        let &[output] = &unit.outputs[..] else { return None };
        if step.function != function {
            return None;
        }
        let given = unit.given();
        let term = |source: &Source| match *source {
            Source::Number(number) => Some(Term::Number(number.0)),
            Source::Input(input) => {
                let found = given.iter().find(|(operand, ..)| *operand == Operand::Arg(input));
                found.map(|(_, input, dims)| Term::Given(input.clone(), *dims))
            }
            Source::Step(_) => None,
        };
        let terms = step.arguments.iter().map(term).collect::<Option<Vec<_>>>()?;
        Some(Single { index, output, terms })
    }

    /// The unit that writes `value`, if it is `function` alone.
    fn written(&self, value: Value, function: Function) -> Option<Single> {
        self.single(self.writer(value)?, function)
    }

    /// The reduction that unit `index` is, what it reads and what it writes.
    fn reduction(&self, index: usize) -> Option<(&Reduce, Value, Value)> {
        let unit = self.network.units.get(index)?;
        let reduce = (unit.operator()? as &dyn Any).downcast_ref::<Reduce>()?;
        let (&[output], Input::Value(input)) = (&unit.outputs[..], unit.input(Operand::Src).ok()?) else {
            return None;
        };
        reduce.keep_dims.then_some((reduce, *input, output))
    }

    /// The units that read `value`, if it stays in the network and is read as it is.
    fn readers(&self, value: Value) -> Option<Vec<usize>> {
        let readers: Vec<usize> = self.network.readers(value).collect();
        let as_it_is = readers.iter().all(|&reader| self.network.units[reader].reads().any(|it| it == value));
        (as_it_is && !self.network.leaves(value)).then_some(readers)
    }

    /// Whether what the units of `old` write is read by others of them alone, but for `result`.
    fn closed(&self, old: &[usize], result: Value) -> bool {
        old.iter().all(|&index| {
            let unit = &self.network.units[index];
            let inside = |value: &Value| {
                *value == result
                    || self.readers(*value).is_some_and(|all| all.iter().all(|reader| old.contains(reader)))
            };
            !(self.alone)(&unit.name) && unit.outputs.iter().all(inside)
        })
    }

    /// What ends as a normalisation whose `1 / sqrt` is unit `index`.
    fn normalisation(&self, index: usize) -> Result<Option<Found>> {
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
        let operator = Arc::new(Normalize { axes: moments.axes.clone(), epsilon: Bits(moments.epsilon) });
        let mut given = vec![(Operand::Src, Input::Value(moments.x), dims)];
        let channels = dims.shape().c;
        let own = |term: &Term| match term {
            Term::Given(Input::Constant(tensor, _), dims) => {
                let per_channel = dims.elements() == channels && dims.shape().c == channels;
                let vector = tensor.clone().reshaped(crate::shape::Shape::nhwc(1, 1, 1, channels)).ok()?;
                per_channel.then(|| (Input::Constant(vector.clone(), None), vector.dims()))
            }
            _ => None,
        };
        let scale_own = scale.as_ref().map(own);
        let bias_own = bias.as_ref().map(own);
        let name = self.network.units[index].name.clone();
        let mut new = Vec::new();
        if scale_own.as_ref().is_none_or(Option::is_some) && bias_own.as_ref().is_none_or(Option::is_some) {
            for (operand, found) in [(Operand::Weights, scale_own), (Operand::Bias, bias_own)] {
                given.extend(found.flatten().map(|(input, dims)| (operand, input, dims)));
            }
            new.push(Unit::of_node(name, operator, given, vec![result]));
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
        Ok(Some(Found { old: all, new }))
    }

    /// Mean and variance behind `1 / sqrt(variance + epsilon)`.
    fn moments(&self, root: &Single) -> Option<Moments> {
        let sum = self.written(root.terms.first()?.value()?, Function::Add)?;
        let (variance, epsilon) = match &sum.terms[..] {
            [a, b] if b.number().is_some() => (a.value()?, b.number()?),
            [a, b] => (b.value()?, a.number()?),
            _ => return None,
        };
        let variance_at = self.writer(variance)?;
        let (over, squares, _) = self.reduction(variance_at)?;
        let difference = self.written(squares, Function::SquaredDifference)?;
        let &[Some(a), Some(b)] = &[difference.terms.first()?.value(), difference.terms.get(1)?.value()]
        else {
            return None;
        };
        for (x, mean) in [(a, b), (b, a)] {
            let Some(mean_at) = self.writer(mean) else { continue };
            let Some((own, read, _)) = self.reduction(mean_at) else { continue };
            if own == over && read == x && over.reduction == Reduction::Mean {
                let old = vec![mean_at, difference.index, variance_at, sum.index];
                return Some(Moments { x, mean, axes: over.axes.clone(), epsilon, old });
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
    #[expect(clippy::type_complexity, reason = "three parts of one answer, taken apart at once")]
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
        parts.sort_unstable();
        let mut wanted = [Some(a), Some(b)];
        wanted.sort_unstable();
        (parts == wanted).then_some(end)
    }

    /// What ends as the softmax whose quotient is unit `index`.
    fn softmax(&self, index: usize) -> Result<Option<Found>> {
        let found = || {
            let quotient = self.single(index, Function::Div)?;
            let &[Some(exponential), Some(sum)] =
                &[quotient.terms.first()?.value(), quotient.terms.get(1)?.value()]
            else {
                return None;
            };
            let sum_at = self.writer(sum)?;
            let (summed, read, _) = self.reduction(sum_at)?;
            let power = self.written(exponential, Function::Exp)?;
            let difference = self.written(power.terms.first()?.value()?, Function::Sub)?;
            let &[Some(x), Some(largest)] =
                &[difference.terms.first()?.value(), difference.terms.get(1)?.value()]
            else {
                return None;
            };
            let largest_at = self.writer(largest)?;
            let (over, from, _) = self.reduction(largest_at)?;
            let &[axis] = &summed.axes[..] else { return None };
            let same = summed.axes == over.axes && read == exponential && from == x;
            let kinds = [summed.reduction, over.reduction] == [Reduction::Sum, Reduction::Max];
            let old = vec![largest_at, difference.index, power.index, sum_at, index];
            (same && kinds && self.closed(&old, quotient.output)).then_some((x, axis, old, quotient.output))
        };
        let Some((x, axis, old, result)) = found() else { return Ok(None) };
        let given = vec![(Operand::Src, Input::Value(x), self.network.dims(x)?)];
        let operator = Arc::new(Softmax { axis, ..Softmax::default() });
        let name = self.network.units[index].name.clone();
        Ok(Some(Found { old, new: vec![Unit::of_node(name, operator, given, vec![result])] }))
    }
}

/// What a normalisation is over.
struct Moments {
    x: Value,
    mean: Value,
    axes: Vec<isize>,
    epsilon: f32,
    /// The units that compute them.
    old: Vec<usize>,
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
