//! Products of a pixel's channels, or of a row, with constant weights: 1x1 convolutions and dense layers.

use super::Finder;
use crate::alloc;
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{Derived, Value};
use crate::host::HostTensor;
use crate::lower::mistakes::planted;
use crate::lower::unit::Input;
use crate::ops::gemm::Gemm;
use crate::ops::pointwise::Pointwise;
use crate::shape::Shape;
use std::any::Any;
use std::sync::Arc;

/// A product, and what it is given.
pub(super) struct Dense {
    pub(super) index: usize,
    pub(super) options: Pointwise,
    /// What it reads: a map, or a matrix.
    pub(super) src: (Value, Dims),
    /// The weights as the unit has them: `oc 1 1 c` for a convolution, a matrix for a dense layer.
    weights: (Input, Dims),
    /// How a dense layer has them; none of a convolution.
    matrix: Option<Gemm>,
    pub(super) bias: Option<(Input, Dims)>,
}

impl Dense {
    /// Whether it is a dense layer, which reads a matrix.
    pub(super) fn is_matrix(&self) -> bool {
        self.matrix.is_some()
    }

    /// How many weights it has.
    pub(super) fn count(&self) -> usize {
        self.weights.1.elements()
    }

    /// The weights as a 1x1 convolution has them: `oc 1 1 c`.
    pub(super) fn weights(&self, derived: &Derived) -> Result<(Input, Dims)> {
        let Some(matrix) = self.matrix() else { return Ok(self.weights.clone()) };
        let whole = match matrix.transposed {
            true => matrix.tensor.clone().reshaped(matrix.shape())?,
            false => matrix.scaled(derived, None)?,
        };
        let dims = whole.dims();
        Ok((Input::Constant(whole, None), dims))
    }

    /// The constant weights of a dense layer.
    pub(super) fn matrix(&self) -> Option<Matrix<'_>> {
        let (Some(gemm), (Input::Constant(tensor, _), dims)) = (self.matrix, &self.weights) else {
            return None;
        };
        let &[first, second] = dims.extents() else { return None };
        let transposed = gemm.transpose_b;
        let [outputs, inputs] = if transposed { [first, second] } else { [second, first] };
        Some(Matrix { tensor, outputs, inputs, transposed })
    }
}

/// The weights of a dense layer: `inputs x outputs`, or the other way round where they are transposed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) tensor: &'a HostTensor,
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    transposed: bool,
}

/// Outputs whose weights are turned together: those of one input lie in a line of the cache.
const TURNED: usize = 16;

impl Matrix<'_> {
    /// The shape of the weights of a 1x1 convolution.
    fn shape(&self) -> Shape {
        Shape::nhwc(self.outputs, 1, 1, self.inputs)
    }

    /// The weights as a 1x1 convolution has them, each times the factor of its input, made once for all graphs of one file.
    pub(super) fn scaled(&self, derived: &Derived, scale: Option<&HostTensor>) -> Result<HostTensor> {
        let &Matrix { tensor, outputs, inputs, transposed } = self;
        // Integers have no words beside those of floats.
        let floats: HostTensor;
        let tensor = if tensor.dtype().is_float() {
            tensor
        } else {
            floats = HostTensor::new(tensor.dims(), tensor.to_nhwc().into_owned())?;
            &floats
        };
        let parts: Vec<&HostTensor> = [tensor].into_iter().chain(scale).collect();
        let how =
            format!("{outputs} outputs of {inputs}, transposed: {transposed}, scaled: {}", scale.is_some());
        derived.joined(&how, &parts, |_, parts| {
            let factors = parts.get(1).copied().filter(|_| !planted("dense_layers_scale"));
            let factor = |input: usize| factors.and_then(|own| own.get(input)).map_or(1.0, |factor| *factor);
            let weights = parts.first().copied().unwrap_or_default();
            let mut turned: Arc<[f32]> =
                alloc::shared(std::iter::repeat_n(0.0, outputs * inputs), "weights")?;
            let all = Arc::get_mut(&mut turned).unwrap_or_default();
            let turns = !transposed && !planted("dense_axes");
            for (block, rows) in all.chunks_mut((TURNED * inputs).max(1)).enumerate() {
                let (first, count) = (block * TURNED, rows.len() / inputs.max(1));
                for input in 0..inputs {
                    let factor = factor(input);
                    for output in 0..count {
                        let (row, place) = (first + output, output * inputs + input);
                        let from = if turns { input * outputs + row } else { row * inputs + input };
                        if let (Some(to), Some(weight)) = (rows.get_mut(place), weights.get(from)) {
                            *to = weight * factor;
                        }
                    }
                }
            }
            HostTensor::new(self.shape(), turned)
        })
    }

    /// The products of the weights with one row of inputs.
    pub(super) fn sums(&self, inputs: &[f32]) -> Vec<f64> {
        let weights = self.tensor.to_nhwc();
        let mut sums = vec![0.0; self.outputs];
        if self.transposed {
            for (sum, row) in sums.iter_mut().zip(weights.chunks(self.inputs.max(1))) {
                *sum = row.iter().zip(inputs).map(|(&w, &t)| f64::from(w) * f64::from(t)).sum();
            }
            return sums;
        }
        for (row, &input) in weights.chunks(self.outputs.max(1)).zip(inputs) {
            sums.iter_mut().zip(row).for_each(|(sum, &weight)| *sum += f64::from(weight) * f64::from(input));
        }
        sums
    }
}

impl Finder<'_, '_> {
    /// The product that writes all elements of `value`, if it has constant weights and is no more than that.
    pub(super) fn dense(&self, value: Value) -> Option<Dense> {
        let alias = self.network.resolve(value);
        let whole = self.network.dims(alias.of).ok()?.elements() == self.network.dims(value).ok()?.elements();
        let index = self.network.writer(alias.of).filter(|_| whole && alias.offset == 0)?;
        let unit = &self.network.units()[index];
        let given = unit.given();
        let find = |wanted: Operand| {
            let found = given.iter().find(|(operand, ..)| *operand == wanted);
            found.map(|(_, input, dims)| (input.clone(), *dims))
        };
        let constant = |(input, _): &(Input, Dims)| input.value().is_none();
        let any = unit.operator()? as &dyn Any;
        let (options, matrix, [src, weights]) = if let Some(options) = any.downcast_ref::<Pointwise>() {
            (*options, None, [Operand::Src, Operand::Weights])
        } else {
            let gemm = *any.downcast_ref::<Gemm>()?;
            let Gemm { activation, transpose_b, .. } = gemm;
            let plain = gemm == Gemm { activation, transpose_b, ..Gemm::default() };
            let two = [Operand::A, Operand::B]
                .iter()
                .all(|&side| find(side).is_some_and(|(_, dims)| dims.rank() == 2));
            (plain && two).then_some((Pointwise { activation }, Some(gemm), [Operand::A, Operand::B]))?
        };
        if given.iter().any(|(operand, ..)| ![src, weights, Operand::Bias].contains(operand)) {
            return None;
        }
        let (source, dims) = find(src)?;
        let weights = find(weights).filter(constant)?;
        let bias = find(Operand::Bias);
        if bias.as_ref().is_some_and(|bias| !constant(bias)) {
            return None;
        }
        Some(Dense { index, options, src: (source.value()?, dims), weights, matrix, bias })
    }
}
