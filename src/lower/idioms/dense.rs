//! Products of a pixel's channels, or of a row, with constant weights: 1x1 convolutions and dense layers.

use super::Finder;
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::lower::mistakes::planted;
use crate::lower::unit::Input;
use crate::ops::gemm::Gemm;
use crate::ops::pointwise::Pointwise;
use crate::shape::Shape;
use std::any::Any;

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
    pub(super) fn weights(&self) -> Result<(Input, Dims)> {
        let (Some(gemm), (Input::Constant(tensor, _), dims)) = (self.matrix, &self.weights) else {
            return Ok(self.weights.clone());
        };
        let &[first, second] = dims.extents() else { return Ok(self.weights.clone()) };
        let [outputs, inputs] = if gemm.transpose_b { [first, second] } else { [second, first] };
        let shape = Shape::nhwc(outputs, 1, 1, inputs);
        let whole = if gemm.transpose_b {
            tensor.clone().reshaped(shape)?
        } else {
            let values = tensor.to_nhwc();
            let place =
                |at: usize| if planted("dense_axes") { at } else { at % inputs * outputs + at / inputs };
            let of = |at: usize| values.get(place(at)).copied();
            HostTensor::new(shape, (0..shape.elements()).filter_map(of).collect::<Vec<_>>())?
        };
        let dims = whole.dims();
        Ok((Input::Constant(whole, None), dims))
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
