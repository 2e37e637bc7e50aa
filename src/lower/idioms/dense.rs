//! Products of a pixel's channels, or of a row, with constant weights: 1x1 convolutions and dense layers.

use super::Finder;
use crate::alloc;
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{Derived, Value};
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::lower::mistakes::planted;
use crate::lower::unit::Input;
use crate::ops::gemm::Gemm;
use crate::ops::pointwise::Pointwise;
use crate::parallel;
use crate::shape::Shape;
use half::f16;
use half::slice::HalfFloatSliceExt as _;
use std::any::Any;
use std::borrow::Cow;
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

/// Elements of a matrix in rows.
#[derive(Clone, Copy)]
enum Weights<'a> {
    Floats(&'a [f32]),
    Halves(&'a [f16]),
}

impl Weights<'_> {
    /// Elements from the one at `first` on, as many as `to` has.
    fn copy(self, first: usize, to: &mut [f32]) {
        let range = first..first + to.len();
        match self {
            Weights::Floats(all) => {
                if let Some(own) = all.get(range) {
                    to.copy_from_slice(own);
                }
            }
            Weights::Halves(all) => {
                if let Some(own) = all.get(range) {
                    own.convert_to_f32_slice(to);
                }
            }
        }
    }

    /// Columns from the one at `first` on, of a matrix of `columns`, as the rows of `to`.
    fn turn(self, first: usize, [columns, rows]: [usize; 2], to: &mut [f32]) {
        let count = to.len() / rows.max(1);
        let mut line = [0.0; TURNED];
        for row in 0..rows {
            let Some(line) = line.get_mut(..count) else { return };
            self.copy(row * columns + first, line);
            for (to, &element) in to.iter_mut().skip(row).step_by(rows).zip(&*line) {
                *to = element;
            }
        }
    }
}

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
        derived.made(&how, &parts, || {
            let factors =
                scale.filter(|_| !planted("dense_layers_scale")).map(HostTensor::try_nhwc).transpose()?;
            let mut turned: Arc<[f32]> =
                alloc::shared(std::iter::repeat_n(0.0, outputs * inputs), "weights")?;
            let all = Arc::get_mut(&mut turned).unwrap_or_default();
            let turns = !transposed && !planted("dense_axes");
            let whole: Cow<'_, [f32]>;
            let weights = match tensor.elements::<f16>() {
                Some(halves) if tensor.layout() == Layout::Nhwc => Weights::Halves(halves),
                _ => {
                    whole = tensor.try_nhwc()?;
                    Weights::Floats(&whole)
                }
            };
            let blocks: Vec<(usize, &mut [f32])> =
                all.chunks_mut((TURNED * inputs).max(1)).enumerate().collect();
            parallel::each(blocks, |(block, rows)| {
                let first = block * TURNED;
                match turns {
                    true => weights.turn(first, [outputs, inputs], rows),
                    false => weights.copy(first * inputs, rows),
                }
                for row in rows.chunks_exact_mut(inputs.max(1)) {
                    let factors = factors.iter().flat_map(|factors| factors.iter());
                    row.iter_mut().zip(factors).for_each(|(weight, factor)| *weight *= factor);
                }
            });
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
