//! A map weighted by what two 1x1 convolutions make of a pixel, which is the map's mean in most networks, as two units.
//!
//! `x * f(w g(v p + d) + b)`, and `+ z`: with the mean five dispatches of which three compute next to nothing.
//!
//! | where | becomes |
//! |---|---|
//! | `p` is a mean that the first convolution alone reads, whose weights one work-group reads in time | `squeeze`, which makes `g(..)` of the map, and `gate` without its first convolution |
//! | all work-groups together may read the first convolution's weights | `gate` |
//! | any other | the first convolution, and `gate` without it |

use super::dense::Dense;
use super::{Finder, Replacement};
use crate::dims::Dims;
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::graph::{Derived, Value};
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::elementwise::{Function, Program, Source};
use crate::ops::gate::Gate;
use crate::ops::pointwise::Pointwise;
use std::sync::Arc;

/// The most bytes of weights that all work-groups together may read: what a second-level cache gives while two
/// dispatches are started.
const MOST_READ: usize = 8 << 20;

/// Pixels of a work-group, at least.
const PIXELS: usize = 256;

/// Joins what can be; units that `alone` names stay as they are.
pub(in crate::lower) fn gates(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut index = 0;
    while index < network.units().len() {
        let finder = Finder { network, alone };
        match finder.gate(index)? {
            Some(found) => index = found.replace(network),
            None => index += 1,
        }
    }
    Ok(())
}

/// A weighted map: inputs of a program that is nothing else.
#[derive(Debug, PartialEq)]
struct Product {
    /// The two factors.
    factors: [u8; 2],
    /// What is made of the second one first, if the program does it.
    activation: Activation,
    /// What is added.
    added: Option<u8>,
}

/// What `program` is, if it is a weighted map and nothing else.
fn product(program: &Program) -> Option<Product> {
    let (activation, rest) = match program.steps() {
        [first, rest @ ..] if first.function == Function::HardSigmoid => {
            (Some(first.arguments.first()?), rest)
        }
        all => (None, all),
    };
    // The step of the product.
    let step = u8::from(activation.is_some());
    let (first, rest) = rest.split_first()?;
    if first.function != Function::Mul {
        return None;
    }
    let (factors, activation) = match (activation, &first.arguments[..]) {
        (None, &[Source::Input(a), Source::Input(b)]) => ([a, b], Activation::None),
        (
            Some(&Source::Input(b)),
            &[Source::Input(a), Source::Step(0)] | &[Source::Step(0), Source::Input(a)],
        ) => ([a, b], Activation::HardSigmoid),
        _ => return None,
    };
    let added = match rest {
        [] => None,
        [sum] if sum.function == Function::Add => match sum.arguments[..] {
            [Source::Step(found), Source::Input(z)] | [Source::Input(z), Source::Step(found)]
                if found == step =>
            {
                Some(z)
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(Product { factors, activation, added })
}

impl Finder<'_, '_> {
    /// What ends as a weighted map in unit `index`.
    fn gate(&self, index: usize) -> Result<Option<Replacement>> {
        for weighted in self.weighted(index).unwrap_or_default() {
            if let Some(found) = self.joined_gate(&weighted)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The weighted maps that unit `index` may be: either factor may be the map.
    fn weighted(&self, index: usize) -> Option<Vec<Weighted>> {
        let unit = self.network.units().get(index)?;
        let &[output] = &unit.outputs[..] else { return None };
        let Product { factors: [a, b], activation, added } = product(unit.operator()?.program()?)?;
        let given = unit.given();
        let input = |place: u8| {
            let found = given.iter().find(|(operand, ..)| *operand == Operand::Arg(place));
            found.map(|(_, input, dims)| (input.clone(), *dims))
        };
        let dims = self.network.dims(output).ok()?;
        let added = added.map(input);
        let whole = |dims_of: &Dims| dims_of.rank() == 4 && dims_of.extents() == dims.extents();
        let added = match added {
            Some(found) => Some(found.filter(|(_, dims)| whole(dims))?),
            None => None,
        };
        if dims.shape().h * dims.shape().w == 1 {
            return None;
        }
        let orders: &[(u8, u8)] = if activation == Activation::None { &[(a, b), (b, a)] } else { &[(a, b)] };
        let of = |&(map, factor): &(u8, u8)| {
            let map = input(map).filter(|(_, dims)| whole(dims))?;
            let second = self.dense(input(factor)?.0.value()?)?;
            let options = match activation {
                Activation::None => second.options,
                _ if second.options.activation != Activation::None => return None,
                activation => Pointwise { activation },
            };
            let added = added.clone().filter(|_| !planted("gate_sum"));
            let options = if planted("gate_activation") { Pointwise::default() } else { options };
            Some(Weighted { index, output, dims, options, second, map, added })
        };
        Some(orders.iter().filter_map(of).collect())
    }

    /// What becomes of a weighted map.
    fn joined_gate(&self, weighted: &Weighted) -> Result<Option<Replacement>> {
        let Weighted { index, output, ref second, dims, .. } = *weighted;
        let (name, shape) = (|at: usize| self.network.units()[at].name.as_str(), dims.shape());
        let derived = self.network.graph.derived();
        let names = |all: &[usize]| all.iter().map(|&at| name(at)).collect::<Vec<_>>().join(" + ");
        // A pixel for each image; the rows of a matrix are pixels of one.
        let pixels = |dims: &Dims| {
            let pixel = dims.shape();
            pixel.n == shape.n && pixel.h * pixel.w == 1
        };
        if !pixels(&second.src.1) {
            return Ok(None);
        }
        if let Some(first) = self.dense(second.src.0).filter(|first| pixels(&first.src.1)) {
            if let Some(mean) = self.mean(first.src.0) {
                let old = vec![mean.index, first.index, second.index, index];
                let hidden = self.network.resolve(second.src.0).of;
                if self.closed_but_views(&old, output)
                    && let Some(squeeze) = self.squeezed(&mean, &first, hidden, false)?
                {
                    let gate = weighted.unit(names(&[second.index, index]), None, derived)?;
                    return Ok(Some(Replacement { old, new: vec![squeeze, gate] }));
                }
            }
            let old = vec![first.index, second.index, index];
            let groups = shape.n * shape.slices() * (shape.h * shape.w).div_ceil(PIXELS);
            let weights = first.count() + 4 * second.src.1.shape().c;
            let few = groups.saturating_mul(4 * weights) <= MOST_READ;
            if few && self.closed_but_views(&old, output) {
                let gate = weighted.unit(names(&old), Some(&first), derived)?;
                return Ok(Some(Replacement { old, new: vec![gate] }));
            }
        }
        let old = vec![second.index, index];
        if !self.closed_but_views(&old, output) {
            return Ok(None);
        }
        let gate = weighted.unit(names(&old), None, derived)?;
        Ok(Some(Replacement { old, new: vec![gate] }))
    }
}

/// A weighted map, in unit `index`.
struct Weighted {
    index: usize,
    output: Value,
    dims: Dims,
    /// The options of the second convolution, with the activation that the product had.
    options: Pointwise,
    second: Dense,
    map: (Input, Dims),
    added: Option<(Input, Dims)>,
}

impl Weighted {
    /// The unit, with the first convolution or without.
    fn unit(&self, name: String, first: Option<&Dense>, derived: &Derived) -> Result<Unit> {
        let Weighted { output, options, ref second, ref map, ref added, .. } = *self;
        let operator = Gate { first: first.map(|first| first.options), second: options };
        let (src, dims) = first.map_or(second.src, |first| first.src);
        let weights = second.weights(derived)?;
        let mut inputs = vec![
            (Operand::Src, Input::Value(src), Dims::from(dims.shape())),
            (Operand::Weights, weights.0, weights.1),
            (Operand::Arg(0), map.0.clone(), map.1),
        ];
        let more = [
            (Operand::Window, first.map(|first| first.weights(derived)).transpose()?),
            (Operand::WindowBias, first.and_then(|first| first.bias.clone())),
            (Operand::Bias, second.bias.clone()),
            (Operand::Residual, added.clone()),
        ];
        inputs.extend(
            more.into_iter().filter_map(|(operand, given)| given.map(|(input, dims)| (operand, input, dims))),
        );
        Ok(Unit::of_node(name, Arc::new(operator), inputs, vec![output]))
    }
}
