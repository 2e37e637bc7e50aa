//! Dense layers of few rows that one kernel computes in less time than several are started in.
//!
//! | where | becomes |
//! |---|---|
//! | two products of which the second alone reads the first, and whose weights few work-groups read in time; the first of them perhaps of normalised rows | `mlp` of two layers |
//! | a product that alone reads a normalisation of at most [`FEW_ROWS`] rows | `mlp` of one layer |
//!
//! Constant scales and biases of the normalisation go into the weights and the bias behind it.

use super::dense::Dense;
use super::{Finder, Replacement};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{Derived, Value};
use crate::host::HostTensor;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::LARGEST_HALF;
use crate::ops::mlp::{MOST_WORDS, Mlp, RowNorm, words_of};
use crate::ops::normalize::Normalize;
use std::any::Any;
use std::sync::Arc;

/// Rows up to which each work-group of a product normalises them all again.
const FEW_ROWS: usize = 4;

/// The most bytes of weights that one work-group reads: a multiprocessor reads about 64 in a clock from a second-level
/// cache, so these in about 3 microseconds.
const MOST_WEIGHTS: usize = 320 << 10;

/// The most bytes of weights of the first of two layers that one work-group for each row reads; more are read by many.
const MOST_OF_FIRST: usize = 128 << 10;

/// The most bytes that the work-groups of all rows together read.
const MOST_READ: usize = 8 << 20;

/// The most values between two layers that many work-groups make.
const MOST_HIDDEN: usize = 2048;

/// Joins what can be; units that `alone` names stay as they are.
pub(in crate::lower) fn dense_layers(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    // Two layers first, so that a normalisation before them goes with both.
    for two in [true, false] {
        let mut index = 0;
        while index < network.units().len() {
            let finder = Finder { network, alone };
            let found = if two { finder.two_layers(index)? } else { finder.one_layer(index)? };
            match found {
                Some(found) => index = found.replace(network),
                None => index += 1,
            }
        }
    }
    Ok(())
}

/// A normalisation of rows.
struct Rows {
    index: usize,
    norm: RowNorm,
    src: Value,
    scale: Option<HostTensor>,
    bias: Option<HostTensor>,
}

impl Finder<'_, '_> {
    /// The normalisation of rows of `count` values that `value` is, perhaps in other dimensions.
    fn normalised_rows(&self, value: Value, count: usize) -> Option<Rows> {
        let alias = self.network.resolve(value);
        let index = self.network.writer(alias.of)?;
        let unit = &self.network.units()[index];
        let normalize = (unit.operator()? as &dyn Any).downcast_ref::<Normalize>()?;
        let [dims, whole] = [alias.of, value].map(|value| self.network.dims(value).ok());
        let (dims, whole) = (dims?, whole?);
        let last = dims.rank() as isize - 1;
        let of_rows = matches!(normalize.axes[..], [axis] if axis == -1 || axis == last);
        if !of_rows || dims.shape().c != count || alias.offset != 0 || whole.elements() != dims.elements() {
            return None;
        }
        let mut rows = Rows {
            index,
            norm: RowNorm { epsilon: normalize.epsilon, centred: normalize.centred },
            src: value,
            scale: None,
            bias: None,
        };
        for (operand, input, _) in unit.given() {
            match (operand, input) {
                (Operand::Src, Input::Value(src)) => rows.src = src,
                (Operand::Weights, Input::Constant(scale, _)) => rows.scale = Some(scale.clone()),
                (Operand::Bias, Input::Constant(bias, _)) => rows.bias = Some(bias.clone()),
                _ => return None,
            }
        }
        Some(rows)
    }

    /// The dense layer that unit `index` is, and its rows.
    fn layer(&self, index: usize) -> Option<(Value, Dense, usize)> {
        let &[output] = &self.network.units()[index].outputs[..] else { return None };
        let dense = self.dense(output).filter(|dense| dense.is_matrix() && dense.index == index)?;
        let rows = *dense.src.1.extents().first()?;
        Some((output, dense, rows))
    }

    /// Two layers, the second of which is unit `index`.
    fn two_layers(&self, index: usize) -> Result<Option<Replacement>> {
        let Some((output, last, rows)) = self.layer(index) else { return Ok(None) };
        let Some(first) = self.dense(last.src.0).filter(Dense::is_matrix) else { return Ok(None) };
        let [bytes_of_first, bytes] = [&first, &last].map(|layer| 4 * layer.count());
        let [inputs, hidden] = [&first, &last].map(|layer| layer.src.1.shape().c);
        let fits = words_of(inputs) + words_of(hidden) <= MOST_WORDS;
        let alone = bytes_of_first <= MOST_OF_FIRST && rows * (bytes_of_first + bytes) <= MOST_READ;
        let many = bytes_of_first > MOST_OF_FIRST && rows <= FEW_ROWS && hidden <= MOST_HIDDEN;
        if first.src.1.extents().first() != Some(&rows) || bytes > MOST_WEIGHTS || !fits || !(alone || many) {
            return Ok(None);
        }
        if let Some(norm) = self.normalised_rows(first.src.0, inputs) {
            let found = self.joined_layers(Some(norm), Some(&first), &last, output)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.joined_layers(None, Some(&first), &last, output)
    }

    /// A normalisation and the layer that unit `index` is.
    fn one_layer(&self, index: usize) -> Result<Option<Replacement>> {
        let Some((output, last, rows)) = self.layer(index) else { return Ok(None) };
        let inputs = last.src.1.shape().c;
        if rows > FEW_ROWS || rows.next_power_of_two() * words_of(inputs) > MOST_WORDS {
            return Ok(None);
        }
        let Some(norm) = self.normalised_rows(last.src.0, inputs) else { return Ok(None) };
        self.joined_layers(Some(norm), None, &last, output)
    }

    /// All of them as one unit, if nothing else reads what lies between and the op takes them.
    fn joined_layers(
        &self,
        norm: Option<Rows>,
        first: Option<&Dense>,
        last: &Dense,
        output: Value,
    ) -> Result<Option<Replacement>> {
        let old: Vec<usize> = norm
            .iter()
            .map(|norm| norm.index)
            .chain(first.map(|first| first.index))
            .chain([last.index])
            .collect();
        if !self.closed_but_views(&old, output) {
            return Ok(None);
        }
        let derived = self.network.graph.derived();
        let operator = Mlp {
            norm: norm.as_ref().map(|norm| norm.norm),
            first: first.map(|first| first.options),
            last: last.options,
        };
        let reads = first.unwrap_or(last);
        let src = norm.as_ref().map_or(reads.src.0, |norm| norm.src);
        let mut inputs = vec![(Operand::Src, Input::Value(src), reads.src.1)];
        let names_of_last = [Operand::Weights, Operand::Bias];
        let layers = match first {
            Some(first) => {
                let names_of_first = [Operand::Window, Operand::WindowBias];
                vec![(first, norm.as_ref(), names_of_first), (last, None, names_of_last)]
            }
            None => vec![(last, norm.as_ref(), names_of_last)],
        };
        for (layer, norm, [weights, bias]) in layers {
            let (matrix, vector) = match norm {
                Some(norm) => {
                    let Some(folded) = norm.folded(layer, derived)? else { return Ok(None) };
                    folded
                }
                None => (layer.weights(derived)?, layer.bias.clone()),
            };
            inputs.push((weights, matrix.0, matrix.1));
            inputs.extend(vector.map(|(input, dims)| (bias, input, dims)));
        }
        let names = old.iter().map(|&at| self.network.units()[at].name.as_str());
        let name = names.collect::<Vec<_>>().join(" + ");
        let unit = Unit::of_node(name, Arc::new(operator), inputs, vec![output]);
        let taken = unit.op(self.network.graph, Precision::F32).is_ok();
        Ok(taken.then(|| Replacement { old, new: vec![unit] }))
    }
}

/// A constant and its dimensions.
type Constant = (Input, Dims);

impl Rows {
    /// The weights and the bias of `layer` for rows without this normalisation's scale and bias: with scale `s` and bias
    /// `t`, `W (s x + t) + b` is `(W s) x + (W t + b)`. None if they are not constant, or if halves do not hold a product,
    /// which could be stored in them where its factors can.
    fn folded(&self, layer: &Dense, derived: &Derived) -> Result<Option<(Constant, Option<Constant>)>> {
        let Some(matrix) = layer.matrix() else { return Ok(None) };
        let moved = self.bias.as_ref().filter(|_| !planted("dense_layers_bias"));
        let bias = match (moved, &layer.bias) {
            (None, bias) => bias.clone(),
            (Some(moved), bias) => {
                let own = match bias {
                    Some((Input::Constant(bias, _), _)) => bias.to_nhwc().to_vec(),
                    Some(_) => return Ok(None),
                    None => vec![0.0; matrix.outputs],
                };
                let sums = matrix.sums(&moved.to_nhwc()).into_iter().zip(own);
                let sums: Vec<f32> = sums.map(|(sum, own)| (f64::from(own) + sum) as f32).collect();
                let bias = HostTensor::vector(sums)?;
                let dims = bias.dims();
                Some((Input::Constant(bias, None), dims))
            }
        };
        let Some(scale) = &self.scale else { return Ok(Some((layer.weights(derived)?, bias))) };
        let scaled = matrix.scaled(derived, Some(scale))?;
        // All are compared, without a stop at the first one, so that the loop is of vectors.
        let most = LARGEST_HALF as f32;
        if scaled.to_nhwc().iter().fold(false, |any, weight| any | (weight.abs() > most)) {
            return Ok(None);
        }
        let dims = scaled.dims();
        Ok(Some(((Input::Constant(scaled, None), dims), bias)))
    }
}
