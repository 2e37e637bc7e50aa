//! A global mean and the product that alone reads it as one unit, where one work-group reads the product's weights in
//! less time than a dispatch is started in: the head of a small classifier, and the first half of a gate (`gate`).

use super::dense::Dense;
use super::{Finder, Replacement};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::pool::{Pool, Pooling};
use crate::ops::reduce::{Reduce, Reduction};
use crate::ops::squeeze::Squeeze;
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
    /// Its unit.
    pub(super) index: usize,
}

impl Finder<'_, '_> {
    /// The global mean that `value` is, perhaps in other dimensions.
    pub(super) fn mean(&self, value: Value) -> Option<Mean> {
        let alias = self.network.resolve(value);
        let index = self.network.writer(alias.of)?;
        let unit = &self.network.units()[index];
        let any = unit.operator()? as &dyn Any;
        let Ok(Input::Value(input)) = unit.input(Operand::Src) else { return None };
        let (dims, of) = (self.network.dims(*input).ok()?, self.network.dims(alias.of).ok()?);
        let shape = dims.shape();
        let is_mean = if let Some(pool) = any.downcast_ref::<Pool>() {
            let op = unit.op(self.network.graph, Precision::F32).ok()?;
            // Of the whole map it is a reduction.
            let whole = op.name() == "reduce" && pool.window == [shape.h, shape.w];
            pool.pooling == Pooling::Average && whole
        } else {
            let reduce = any.downcast_ref::<Reduce>()?;
            let over = |axis: isize| reduce.axes.iter().any(|&other| other.rem_euclid(4) == axis);
            let is_mean = reduce.reduction == Reduction::Mean || planted("squeeze_reduction");
            is_mean && over(1) && over(2) && !over(0) && !over(3)
        };
        let all = alias.offset == 0 && of.elements() == shape.n * shape.c && shape.h * shape.w > 1;
        (is_mean && all && dims.rank() == 4).then_some(Mean { src: (*input, dims), index })
    }

    /// The unit of a mean and the product `of` it, which writes `output` as `rows` or as a pixel, if it pays.
    pub(super) fn squeezed(
        &self,
        mean: &Mean,
        of: &Dense,
        output: Value,
        rows: bool,
    ) -> Result<Option<Unit>> {
        if 4 * of.count() > MOST_WEIGHTS {
            return Ok(None);
        }
        let weights = of.weights(self.network.graph.derived())?;
        let name = |at: usize| self.network.units()[at].name.as_str();
        let name = format!("{} + {}", name(mean.index), name(of.index));
        let mut inputs = vec![
            (Operand::Src, Input::Value(mean.src.0), mean.src.1),
            (Operand::Weights, weights.0, weights.1),
        ];
        let bias = of.bias.clone().filter(|_| !planted("squeeze_bias"));
        inputs.extend(bias.map(|(input, dims)| (Operand::Bias, input, dims)));
        let operator = Squeeze { dense: of.options, rows };
        let unit = Unit::of_node(name, Arc::new(operator), inputs, vec![output]);
        Ok(unit.op(self.network.graph, Precision::F32).is_ok().then_some(unit))
    }

    /// A mean and what ends as the product in unit `index`.
    fn head(&self, index: usize) -> Result<Option<Replacement>> {
        let &[output] = &self.network.units()[index].outputs[..] else { return Ok(None) };
        let Some(dense) = self.dense(output) else { return Ok(None) };
        let Some(mean) = self.mean(dense.src.0) else { return Ok(None) };
        let old = vec![mean.index, index];
        if !self.closed_but_views(&old, output) {
            return Ok(None);
        }
        let unit = self.squeezed(&mean, &dense, output, dense.is_matrix())?;
        Ok(unit.map(|unit| Replacement { old, new: vec![unit] }))
    }

    /// Whether what the units of `old` write is read by others of them alone, as it is or through views; all may read `result`.
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
