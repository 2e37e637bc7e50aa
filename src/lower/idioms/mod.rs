//! Normalisations and softmax that a converter wrote out as a dozen nodes, as the op that they are.
//!
//! With `m = mean(x)`, `v = mean((x - m)^2)` over the same axes and `r = 1 / sqrt(v + epsilon)`:
//!
//! | written out, `g = r` or `r * scale` | becomes |
//! |---|---|
//! | `(x - m) * r` | a normalisation |
//! | `x * g - m * g`, `x * g + (bias - m * g)`, `x * g + (-m) * g` | a normalisation, times the scale, plus the bias |
//!
//! A scale and a bias that are constants are the normalisation's own, and so are those of each image and channel where it
//! is over height and width; others are multiplied and added by a function of each element, which may join what follows.
//! With `q = mean(x^2)`, `x / sqrt(q + epsilon)` is a normalisation without the mean, and with `d = x - m` in the place of `x`
//! one with it. A constant scale, of the factor too, and a constant bias are its own.
//!
//! `e / sum(e)` with `e = exp(x - max(x))` is a softmax. Nothing else may read what lies between.

mod attention;
mod compose;
mod dense;
mod factors;
mod followed;
mod gate;
mod glu;
mod indices;
mod joined;
mod large;
mod mlp;
mod normalisation;
mod one_row;
mod patches;
mod quotients;
mod read_rows;
mod root_mean_square;
mod rounded;
mod softmax;
mod some_rows;
mod squeeze;
mod strided;

pub(super) use attention::{attention, join_products};
pub(crate) use compose::{compose, compose_on_cpu, precede, reduce_rows};
pub(super) use factors::take_factors;
pub(crate) use followed::follow;
pub(super) use gate::gates;
pub(super) use glu::gated_products;
pub(super) use indices::indices;
pub(super) use large::share_large;
pub(super) use mlp::dense_layers;
pub(super) use one_row::join_rows;
pub(super) use patches::split_patches;
pub(super) use quotients::quotients_of_sums;
pub(super) use read_rows::read_rows;
pub(crate) use rounded::round_activations;
pub(super) use squeeze::squeezes;

use super::network::Network;
use super::rewrites::Rewrites;
use super::unit::{Input, Unit};
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::ops::elementwise::{Function, Source};
use crate::ops::reduce::{Reduce, Reduction};
use crate::options::Rewrite;
use crate::shape::Shape;
use crate::sorted;
use std::any::Any;

/// Replaces normalisations and softmax that are written out.
pub(super) fn recognise(network: &mut Network<'_>, rewrites: &Rewrites<'_>) -> Result<()> {
    let [normalisations, root_mean_squares, softmax] =
        [Rewrite::Normalisations, Rewrite::RootMeanSquares, Rewrite::Softmax].map(|one| rewrites.has(one));
    let mut index = 0;
    while index < network.units().len() {
        let finder = Finder { network, alone: rewrites.alone };
        let mut found = if normalisations { finder.normalisation(index)? } else { None };
        if found.is_none() && root_mean_squares {
            found = finder.root_mean_square(index)?;
        }
        if found.is_none() && softmax {
            found = finder.softmax(index)?;
        }
        match found {
            Some(found) => index = found.replace(network),
            None => index += 1,
        }
    }
    Ok(())
}

/// What takes the place of several units: of the last of `old`.
struct Replacement {
    old: Vec<usize>,
    new: Vec<Unit>,
}

impl Replacement {
    /// Puts the new units in; the place of the first that is no more.
    fn replace(mut self, network: &mut Network<'_>) -> usize {
        sorted::sort(&mut self.old, Ord::cmp);
        self.old.dedup();
        let last = self.old.last().copied().unwrap_or(0);
        let first = self.old.first().copied().unwrap_or(0);
        let (units, mut all) = (network.take_units().into_iter().enumerate(), Vec::new());
        let mut new = Some(self.new);
        for (index, unit) in units {
            if !self.old.contains(&index) {
                all.push(unit);
            }
            if index == last {
                all.extend(new.take().unwrap_or_default());
            }
        }
        network.set_units(all);
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

    /// The constant, if it has one element for each of `channels`, the places along the last axis.
    fn vector(&self, channels: usize) -> Option<(Input, Dims)> {
        let Term::Given(Input::Constant(tensor, _), dims) = self else { return None };
        if dims.elements() != channels || dims.shape().c != channels {
            return None;
        }
        let vector = tensor.clone().reshaped(Shape::nhwc(1, 1, 1, channels)).ok()?;
        let dims = vector.dims();
        Some((Input::Constant(vector, None), dims))
    }
}

/// A unit of one function.
struct Single {
    index: usize,
    output: Value,
    terms: Vec<Term>,
}

/// A reduction of `input`, by the units of `old`.
struct ReductionUnits {
    reduction: Reduction,
    axes: Vec<isize>,
    input: Value,
    old: Vec<usize>,
}

struct Finder<'n, 'g> {
    network: &'n Network<'g>,
    alone: &'n dyn Fn(&str) -> bool,
}

impl Finder<'_, '_> {
    /// Unit `index`, if it is `function` alone.
    fn single(&self, index: usize, function: Function) -> Option<Single> {
        let unit = self.network.units().get(index)?;
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
        self.single(self.network.writer(value)?, function)
    }

    /// The reduction that unit `index` is, what it reads and what it writes.
    fn reduction(&self, index: usize) -> Option<(&Reduce, Value, Value)> {
        let unit = self.network.units().get(index)?;
        let reduce = (unit.operator()? as &dyn Any).downcast_ref::<Reduce>()?;
        let (&[output], Input::Value(input)) = (&unit.outputs[..], unit.input(Operand::Src).ok()?) else {
            return None;
        };
        reduce.keep_dims.then_some((reduce, *input, output))
    }

    /// The reduction that unit `index` is.
    fn whole_reduction(&self, index: usize) -> Option<ReductionUnits> {
        let (reduce, input, _) = self.reduction(index)?;
        let Reduce { reduction, axes, .. } = reduce.clone();
        Some(ReductionUnits { reduction, axes, input, old: vec![index] })
    }

    /// The units that read `value`, if it stays in the network and is read as it is.
    fn readers(&self, value: Value) -> Option<Vec<usize>> {
        let readers: Vec<usize> = self.network.readers(value).collect();
        let as_it_is =
            readers.iter().all(|&reader| self.network.units()[reader].reads().any(|it| it == value));
        (as_it_is && !self.network.leaves(value)).then_some(readers)
    }

    /// Whether what the units of `old` write is read by others of them alone, but for `result`.
    fn closed(&self, old: &[usize], result: Value) -> bool {
        old.iter().all(|&index| {
            let unit = &self.network.units()[index];
            let inside = |value: &Value| {
                *value == result
                    || self.readers(*value).is_some_and(|all| all.iter().all(|reader| old.contains(reader)))
            };
            !(self.alone)(&unit.name) && unit.outputs.iter().all(inside)
        })
    }
}
