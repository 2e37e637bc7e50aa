//! A global mean and the product that alone reads it as one unit, where one work-group reads the product's weights in
//! less time than a dispatch is started in: the head of a small classifier.

use super::gate::Sum;
use super::{Finder, Found};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::lower::unit::{Input, Network, Unit};
use crate::ops::gemm::Gemm;
use crate::ops::pointwise::Pointwise;
use crate::ops::pool::{Pool, Pooling};
use crate::ops::reduce::{Reduce, Reduction};
use crate::ops::squeeze::Squeeze;
use crate::shape::Shape;
use std::any::Any;
use std::sync::Arc;

/// The most bytes of weights of the product: a multiprocessor reads about 64 in a clock from a second-level cache, so
/// these in about 3 microseconds.
const MOST_WEIGHTS: usize = 320 << 10;

/// Joins what can be; units that `alone` names stay as they are.
pub(in crate::lower) fn squeezes(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut index = 0;
    while index < network.units().len() {
        let finder = Finder { network, alone };
        match finder.head(index)? {
            Some(found) => index = found.replace(network),
            None => index += 1,
        }
    }
    Ok(())
}

/// A mean over height and width.
pub(super) struct Mean {
    /// What it is of.
    src: (Value, Dims),
    /// Its units.
    pub(super) old: Vec<usize>,
}

impl Finder<'_, '_> {
    /// The global mean that `value` is, perhaps in other dimensions.
    pub(super) fn mean(&self, value: Value) -> Option<Mean> {
        let alias = self.network.resolve(value);
        let index = self.network.writer(alias.of)?;
        let unit = &self.network.units()[index];
        let (input, old) = if let Some(pool) = (unit.operator()? as &dyn Any).downcast_ref::<Pool>() {
            let Ok(Input::Value(input)) = unit.input(Operand::Src) else { return None };
            let shape = self.network.dims(*input).ok()?.shape();
            let op = unit.op(self.network.graph, Precision::F32).ok()?;
            // Of the whole map it is a reduction.
            let whole = op.name() == "reduce" && pool.window == [shape.h, shape.w];
            (pool.pooling == Pooling::Average && whole).then_some((*input, vec![index]))?
        } else {
            let reduce = (unit.operator()? as &dyn Any).downcast_ref::<Reduce>()?;
            let Ok(Input::Value(input)) = unit.input(Operand::Src) else { return None };
            let over = |axis: isize| reduce.axes.iter().any(|&other| other.rem_euclid(4) == axis);
            let pixels = over(1) && over(2) && !over(0) && !over(3);
            (reduce.reduction == Reduction::Mean && pixels).then_some((*input, vec![index]))?
        };
        let dims = self.network.dims(input).ok()?;
        let of = self.network.dims(alias.of).ok()?;
        let shape = dims.shape();
        let all = alias.offset == 0 && of.elements() == shape.n * shape.c;
        (all && dims.rank() == 4 && shape.h * shape.w > 1).then_some(Mean { src: (input, dims), old })
    }

    /// The unit of a mean and the product `of` it, which writes `output`, if it pays.
    pub(super) fn squeezed(&self, mean: &Mean, of: &Sum, output: Value) -> Option<Unit> {
        let (weights, bias) = (of.weights.clone(), of.bias.clone());
        let operator = Squeeze { dense: of.options, rows: false };
        self.squeezing(mean, of.index, operator, weights, bias, output)
    }

    fn squeezing(
        &self,
        mean: &Mean,
        of: usize,
        operator: Squeeze,
        weights: (Input, Dims),
        bias: Option<(Input, Dims)>,
        output: Value,
    ) -> Option<Unit> {
        if 4 * weights.1.elements() > MOST_WEIGHTS {
            return None;
        }
        let name = |at: &usize| self.network.units()[*at].name.as_str();
        let names: Vec<&str> = mean.old.iter().chain([&of]).map(name).collect();
        let mut inputs = vec![
            (Operand::Src, Input::Value(mean.src.0), mean.src.1),
            (Operand::Weights, weights.0, weights.1),
        ];
        inputs.extend(bias.map(|(input, dims)| (Operand::Bias, input, dims)));
        let unit = Unit::of_node(names.join(" + "), Arc::new(operator), inputs, vec![output]);
        unit.op(self.network.graph, Precision::F32).is_ok().then_some(unit)
    }

    /// A mean and what ends as the product in unit `index`.
    fn head(&self, index: usize) -> Result<Option<Found>> {
        let unit = &self.network.units()[index];
        let &[output] = &unit.outputs[..] else { return Ok(None) };
        let found = match self.sum(output) {
            Some(sum) => self.mean(sum.src.0).and_then(|mean| {
                let unit = self.squeezed(&mean, &sum, output)?;
                Some((mean, unit))
            }),
            None => self.matrix_head(index, output)?,
        };
        Ok(found.and_then(|(mean, unit)| {
            let mut old = mean.old;
            old.push(index);
            self.closed_but_views(&old, output).then(|| Found { old, new: vec![unit] })
        }))
    }

    /// The same of a matrix product.
    fn matrix_head(&self, index: usize, output: Value) -> Result<Option<(Mean, Unit)>> {
        let unit = &self.network.units()[index];
        let Some(gemm) = unit.operator().and_then(|operator| (operator as &dyn Any).downcast_ref::<Gemm>())
        else {
            return Ok(None);
        };
        let plain = Gemm { transpose_b: gemm.transpose_b, activation: gemm.activation, ..Gemm::default() };
        let given = unit.given();
        let find = |wanted: Operand| {
            let found = given.iter().find(|(operand, ..)| *operand == wanted);
            found.map(|(_, input, dims)| (input.clone(), *dims))
        };
        let known = |operand: &Operand| matches!(operand, Operand::A | Operand::B | Operand::Bias);
        let (Some((Input::Value(a), rows)), Some((Input::Constant(b, _), dims))) =
            (find(Operand::A), find(Operand::B))
        else {
            return Ok(None);
        };
        let (bias, extents) = (find(Operand::Bias), dims.extents());
        let constant = bias.as_ref().is_none_or(|(input, _)| input.value().is_none());
        let all = given.iter().all(|(operand, ..)| known(operand));
        if *gemm != plain || !constant || !all || rows.rank() != 2 || extents.len() != 2 {
            return Ok(None);
        }
        let Some(mean) = self.mean(a) else { return Ok(None) };
        let shape = mean.src.1.shape();
        if rows.extents() != [shape.n, shape.c] {
            return Ok(None);
        }
        let [outputs, stored] = if gemm.transpose_b { [0, 1] } else { [1, 0] }.map(|axis| extents[axis]);
        if stored != shape.c {
            return Ok(None);
        }
        let weights = Shape::nhwc(outputs, 1, 1, shape.c);
        let values = b.to_nhwc();
        let of = |at: usize| if gemm.transpose_b { at } else { at % shape.c * outputs + at / shape.c };
        let turned: Vec<f32> = (0..weights.elements()).filter_map(|at| values.get(of(at)).copied()).collect();
        let weights = HostTensor::new(weights, turned)?;
        let dims = weights.dims();
        let operator = Squeeze { dense: Pointwise { activation: gemm.activation }, rows: true };
        let weights = (Input::Constant(weights, None), dims);
        let found = self.squeezing(&mean, index, operator, weights, bias, output);
        Ok(found.map(|unit| (mean, unit)))
    }

    /// As [`Finder::closed`], where others of `old` may read views of all that one writes.
    pub(super) fn closed_but_views(&self, old: &[usize], result: Value) -> bool {
        old.iter().all(|&index| {
            let unit = &self.network.units()[index];
            let inside = |value: &Value| {
                let mut readers = self.network.readers(*value);
                *value == result
                    || (!self.network.leaves(*value) && readers.all(|reader| old.contains(&reader)))
            };
            !(self.alone)(&unit.name) && unit.outputs.iter().all(inside)
        })
    }
}
