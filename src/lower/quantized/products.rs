//! Weights of 8 bits, as ops of bytes take them.

use super::bytes::of_words;
use super::{Grid, Pass};
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::host::{HostTensor, Scales};
use crate::ops::bytes::{LANES, words_of_rows};

/// The weights of a convolution or a matrix product of bytes.
#[derive(Debug, Clone)]
pub(super) struct ByteWeights {
    /// `o kh kw c`, or `1 kh kw c` for a depthwise convolution.
    values: Vec<i8>,
    extents: [usize; 4],
    /// One for all, or one for each output channel.
    scales: Vec<f32>,
    /// One for each output channel.
    bias: Option<Vec<i32>>,
    outputs: usize,
}

/// How far a number may be from a whole one, in proportion, because it was multiplied by a scale in f32.
const ROUNDED: f64 = 1.0 / 262_144.0;

/// The integers that elements are times their scales; nothing if they are none.
pub(super) fn integers(tensor: &HostTensor) -> Option<Vec<i32>> {
    let Scales { values: scales, axis } = tensor.scales()?;
    let extents = tensor.dims();
    let behind: usize = extents.extents().iter().skip(axis + 1).product::<usize>().max(1);
    let count = scales.len();
    if count > 1 && extents.extents().get(*axis) != Some(&count) {
        return None;
    }
    let elements = tensor.to_nhwc();
    let whole = |(at, &element): (usize, &f32)| {
        let scale = if count == 1 { scales.first() } else { scales.get(at / behind % count) };
        whole(element, *scale?)
    };
    elements.iter().enumerate().map(whole).collect()
}

/// The integer that an element is times a scale. Quantizers give channels without weights a scale of next to nothing, and so the
/// largest integer as a bias. Of integers beyond 2^24 f32 has the upper bits; the others are less than a thousandth of a step.
fn whole(element: f32, scale: f32) -> Option<i32> {
    let steps = f64::from(element) / f64::from(scale);
    let nearest = steps.round();
    let near = (steps - nearest).abs() <= ROUNDED * nearest.abs().max(1.0);
    // What f32 rounded up from the largest one becomes that again.
    (near && nearest.abs() <= (1.0 + ROUNDED) * f64::from(i32::MAX)).then_some(nearest as i32)
}

/// The bias of each output as integers times the scale of the input and that of the weights.
pub(super) fn whole_bias(bias: Option<&HostTensor>, scales: &[f32], input: f32) -> Option<Option<Vec<i32>>> {
    let Some(bias) = bias else { return Some(None) };
    let values = bias.to_nhwc();
    let whole = |(output, &value): (usize, &f32)| {
        let scale = if scales.len() == 1 { scales.first() } else { scales.get(output) };
        whole(value, *scale? * input)
    };
    values.iter().enumerate().map(whole).collect::<Option<Vec<i32>>>().map(Some)
}

impl ByteWeights {
    /// The weights of a convolution: `o kh kw c`, or with outputs last. Nothing if they or the bias are no such integers.
    pub(super) fn of(
        weights: &HostTensor,
        bias: Option<&HostTensor>,
        input: f32,
        outputs_last: bool,
    ) -> Option<ByteWeights> {
        let extents: [usize; 4] = weights.dims().extents().try_into().ok()?;
        let axis = if outputs_last { 3 } else { 0 };
        let scales = weights.scales().filter(|own| own.values.len() == 1 || own.axis == axis)?;
        let outputs = extents[axis];
        let values = integers(weights)?.into_iter().map(|value| i8::try_from(value).ok());
        let values = values.collect::<Option<Vec<i8>>>()?;
        let bias = whole_bias(bias, &scales.values, input)?;
        if bias.as_ref().is_some_and(|bias| bias.len() != outputs) {
            return None;
        }
        Some(ByteWeights { values, extents, scales: scales.values.to_vec(), bias, outputs })
    }

    /// A matrix `k n`, or `n k`.
    pub(super) fn of_matrix(
        matrix: &HostTensor,
        transposed: bool,
        bias: Option<&HostTensor>,
        input: f32,
    ) -> Option<ByteWeights> {
        let extents = matrix.dims();
        let &[.., rows, columns] = extents.extents() else { return None };
        let (outputs, depth) = if transposed { (rows, columns) } else { (columns, rows) };
        let axis = extents.rank() - if transposed { 2 } else { 1 };
        let scales = matrix.scales().filter(|own| own.values.len() == 1 || own.axis == axis)?;
        let own = integers(matrix)?;
        let at = |o: usize, k: usize| if transposed { o * depth + k } else { k * outputs + o };
        let values = (0..outputs).flat_map(|o| (0..depth).map(move |k| at(o, k)));
        let values = values.map(|at| own.get(at).and_then(|&value| i8::try_from(value).ok()));
        let values = values.collect::<Option<Vec<i8>>>()?;
        let bias = whole_bias(bias, &scales.values, input)?;
        if bias.as_ref().is_some_and(|bias| bias.len() != outputs) {
            return None;
        }
        let scales = scales.values.to_vec();
        Some(ByteWeights { values, extents: [outputs, 1, 1, depth], scales, bias, outputs })
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    pub(super) fn depth(&self) -> usize {
        self.extents[3]
    }

    /// Weights `1 kh kw o` of one input channel as `o kh kw 1`.
    pub(super) fn with_outputs_first(self) -> ByteWeights {
        let ByteWeights { values, extents: [_, kernel_h, kernel_w, outputs], .. } = &self;
        let turned = (0..*outputs).flat_map(|o| values.iter().skip(o).step_by(*outputs)).copied();
        ByteWeights { values: turned.collect(), extents: [*outputs, *kernel_h, *kernel_w, 1], ..self }
    }

    /// What a convolution of bytes takes beside them: sums of `x - 128` want what the input's zero point adds in their bias.
    pub(super) fn operands(
        &self,
        pass: &mut Pass<'_, '_>,
        [x, y]: [Grid; 2],
        depthwise: bool,
    ) -> Result<[(Operand, Value); 3]> {
        let [_, kernel_h, kernel_w, channels] = self.extents;
        let taps = kernel_h * kernel_w;
        let mut sums = vec![0i32; self.outputs];
        for (at, &value) in self.values.iter().enumerate() {
            let output = if depthwise { at % channels } else { at / (taps * channels) };
            if let Some(sum) = sums.get_mut(output) {
                *sum += i32::from(value);
            }
        }
        // A depthwise convolution has numbers for the bytes of the last word, too.
        let padded = if depthwise { channels.next_multiple_of(LANES) } else { self.outputs };
        let at_128 = 128 - i32::from(x.zero);
        let bias = (0..padded).map(|output| {
            let own = self.bias.as_ref().and_then(|bias| bias.get(output)).copied().unwrap_or(0);
            own.wrapping_add(sums.get(output).map_or(0, |sum| sum.wrapping_mul(at_128)))
        });
        let scale = (0..padded).map(|output| {
            let own = if self.scales.len() == 1 { self.scales.first() } else { self.scales.get(output) };
            own.map_or(0.0, |own| x.scale * own / y.scale)
        });
        let (bias, scale): (Vec<i32>, Vec<f32>) = (bias.collect(), scale.collect());
        let values: Vec<u8> = self.values.iter().map(|value| value.cast_unsigned()).collect();
        let weights = HostTensor::of::<u32>(of_words(&self.extents)?, words_of_rows(&values, channels, 0))?;
        let bias = HostTensor::of::<i32>(Dims::new(&[padded])?, bias)?;
        Ok([
            (Operand::Weights, pass.constant(weights)),
            (Operand::Bias, pass.constant(bias)),
            (Operand::Scale, pass.constant(HostTensor::vector(scale)?)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back_from_numbers_up_to_the_largest() {
        for scale in [0.037f32, 7.87e-12, 1.5] {
            for integer in [0, 1, -7, 127, 65_535, -123_456, i32::MAX, i32::MIN + 1] {
                let found = whole(integer as f32 * scale, scale).expect("an integer");
                let off = (i64::from(found) - i64::from(integer)).abs();
                assert!(off <= i64::from(integer).abs() >> 22, "{found} for {integer} times {scale}");
            }
            assert_eq!(whole(3.5 * scale, scale), None);
        }
        assert_eq!(whole(i32::MAX as f32, 1.0), Some(i32::MAX));
        assert_eq!(whole(f32::NAN, 1.0), None);
        assert_eq!(whole(1e30, 1.0), None);
    }

    #[test]
    fn a_bias_of_other_steps_is_none_of_integers() {
        let bias = HostTensor::vector(vec![0.5, 0.3]).expect("two");
        assert_eq!(whole_bias(Some(&bias), &[0.25], 1.0), None);
        let bias = HostTensor::vector(vec![0.5, 0.75]).expect("two");
        assert_eq!(whole_bias(Some(&bias), &[0.25], 0.5), Some(Some(vec![4, 6])));
        assert_eq!(whole_bias(None, &[0.25], 0.5), Some(None));
    }

    #[test]
    fn scales_of_another_axis_are_not_those_of_outputs() {
        let dims = Dims::new(&[2, 1, 1, 2]).expect("small");
        let weights = HostTensor::new(dims, vec![0.5, 1.0, -0.5, 2.0]).expect("four");
        assert!(ByteWeights::of(&weights, None, 1.0, false).is_none());
        let along = |axis| weights.clone().with_scales(vec![0.5, 0.25], axis);
        let found = ByteWeights::of(&along(0), None, 1.0, false).expect("integers");
        assert_eq!((found.values, found.outputs), (vec![1, 2, -2, 8], 2));
        assert!(ByteWeights::of(&along(3), None, 1.0, false).is_none());
    }
}
