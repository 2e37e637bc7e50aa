//! Weights of 8 bits, as ops of bytes take them.

use super::bytes::of_words;
use super::{Grid, Pass};
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Derived, Value};
use crate::host::{HostTensor, Scales};
use crate::ops::bytes::{LANES, words_of_rows};
use std::hash::{DefaultHasher, Hasher};

/// How the channels of a convolution's input meet its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channels {
    /// Each output has all channels.
    Mixed,
    /// Each output has the channel of its place.
    Apart,
    /// There is one channel, which all outputs have; the outputs are last.
    One,
}

/// The weights of a convolution or a matrix product of bytes.
#[derive(Debug, Clone)]
pub(super) struct ByteWeights {
    /// `o kh kw ceil(c / 4)`, or `1 kh kw ceil(c / 4)` for a depthwise convolution.
    words: HostTensor,
    /// Of each output's weights.
    sums: Vec<i32>,
    /// The extents of the bytes.
    extents: [usize; 4],
    /// One for all, or one for each output channel.
    scales: Vec<f32>,
    /// One for each output channel.
    bias: Option<Vec<i32>>,
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

/// How the integers of a constant become those of weights.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// The order of the constant.
    Same,
    /// From one row for each output to one column.
    Turned { outputs: usize, depth: usize },
}

/// The words of a constant's integers, in another order, and the sum of each output: made once for all graphs that share the
/// constant. Nothing if they have not 8 bits.
fn packed(
    derived: &Derived,
    tensor: &HostTensor,
    (extents, order, depthwise): ([usize; 4], Order, bool),
) -> Option<(HostTensor, Vec<i32>)> {
    let values = || -> Result<Vec<i8>> {
        let wrong = || Error::Internal("constants that are no integers of 8 bits".to_owned());
        let own = integers(tensor).ok_or_else(wrong)?;
        let at = |index: usize| own.get(index).and_then(|&value| i8::try_from(value).ok()).ok_or_else(wrong);
        match order {
            Order::Same => (0..own.len()).map(at).collect(),
            Order::Turned { outputs, depth } => {
                (0..outputs).flat_map(|o| (0..depth).map(move |k| k * outputs + o)).map(at).collect()
            }
        }
    };
    let [outer, height, width, channels] = extents;
    let mut hasher = DefaultHasher::new();
    for scale in tensor.scales()?.values.iter() {
        hasher.write_u32(scale.to_bits());
    }
    let how = format!("bytes {extents:?} {order:?} {depthwise} {:x}", hasher.finish());
    let words = |values: Vec<i8>| {
        let bytes: Vec<u8> = values.into_iter().map(i8::cast_unsigned).collect();
        HostTensor::of::<u32>(of_words(&extents)?, words_of_rows(&bytes, channels, 0))
    };
    let words = derived.joined(&how, &[tensor], |_, _| words(values()?)).ok()?;
    let count = if depthwise { channels } else { outer };
    let sums = |values: Vec<i8>| {
        let mut sums = vec![0i32; count];
        for (at, value) in values.into_iter().enumerate() {
            let output = if depthwise { at % channels } else { at / (height * width * channels) };
            if let Some(sum) = sums.get_mut(output) {
                *sum += i32::from(value);
            }
        }
        HostTensor::of::<i32>(Dims::new(&[count])?, sums)
    };
    let sums = derived.joined(&format!("{how} sums"), &[tensor], |_, _| sums(values()?)).ok()?;
    Some((words, sums.elements::<i32>()?.to_vec()))
}

impl ByteWeights {
    /// The weights of a convolution: `o kh kw c`; or, where each channel is by itself, `1 kh kw c`; or with outputs last for one
    /// input channel. Nothing if they or the bias are no such integers.
    pub(super) fn of(
        derived: &Derived,
        weights: &HostTensor,
        bias: Option<&HostTensor>,
        input: f32,
        kind: Channels,
    ) -> Option<ByteWeights> {
        let own: [usize; 4] = weights.dims().extents().try_into().ok()?;
        let [outer, height, width, inner] = own;
        let (axis, outputs) = if kind == Channels::Mixed { (0, outer) } else { (3, inner) };
        let (extents, order) = match kind {
            Channels::Mixed | Channels::Apart => (own, Order::Same),
            Channels::One => {
                ([inner, height, width, 1], Order::Turned { outputs: inner, depth: height * width })
            }
        };
        let shape = (extents, order, kind == Channels::Apart);
        Self::with_bias(derived, weights, bias, (input, axis, outputs), shape)
    }

    /// A matrix `k n`, or `n k`.
    pub(super) fn of_matrix(
        derived: &Derived,
        matrix: &HostTensor,
        transposed: bool,
        bias: Option<&HostTensor>,
        input: f32,
    ) -> Option<ByteWeights> {
        let dims = matrix.dims();
        let &[.., rows, columns] = dims.extents() else { return None };
        let (outputs, depth) = if transposed { (rows, columns) } else { (columns, rows) };
        let axis = dims.rank() - if transposed { 2 } else { 1 };
        let order = if transposed { Order::Same } else { Order::Turned { outputs, depth } };
        let shape = ([outputs, 1, 1, depth], order, false);
        Self::with_bias(derived, matrix, bias, (input, axis, outputs), shape)
    }

    fn with_bias(
        derived: &Derived,
        weights: &HostTensor,
        bias: Option<&HostTensor>,
        (input, axis, outputs): (f32, usize, usize),
        shape: ([usize; 4], Order, bool),
    ) -> Option<ByteWeights> {
        let scales = weights.scales().filter(|own| own.values.len() == 1 || own.axis == axis)?;
        let bias = whole_bias(bias, &scales.values, input)?;
        if bias.as_ref().is_some_and(|bias| bias.len() != outputs) {
            return None;
        }
        let (words, sums) = packed(derived, weights, shape)?;
        Some(ByteWeights { words, sums, extents: shape.0, scales: scales.values.to_vec(), bias })
    }

    pub(super) fn outputs(&self) -> usize {
        self.sums.len()
    }

    pub(super) fn depth(&self) -> usize {
        self.extents[3]
    }

    /// What a convolution of bytes takes beside them: sums of `x - 128` want what the input's zero point adds in their bias.
    pub(super) fn operands(
        &self,
        pass: &mut Pass<'_, '_>,
        [x, y]: [Grid; 2],
        depthwise: bool,
    ) -> Result<[(Operand, Value); 3]> {
        // A depthwise convolution has numbers for the bytes of the last word, too.
        let padded = if depthwise { self.outputs().next_multiple_of(LANES) } else { self.outputs() };
        let at_128 = 128 - i32::from(x.zero);
        let bias = (0..padded).map(|output| {
            let own = self.bias.as_ref().and_then(|bias| bias.get(output)).copied().unwrap_or(0);
            own.wrapping_add(self.sums.get(output).map_or(0, |sum| sum.wrapping_mul(at_128)))
        });
        let scale = (0..padded).map(|output| {
            let own = if self.scales.len() == 1 { self.scales.first() } else { self.scales.get(output) };
            own.map_or(0.0, |own| x.scale * own / y.scale)
        });
        let (bias, scale): (Vec<i32>, Vec<f32>) = (bias.collect(), scale.collect());
        let bias = HostTensor::of::<i32>(Dims::new(&[padded])?, bias)?;
        Ok([
            (Operand::Weights, pass.constant(self.words.clone())),
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
        let derived = Derived::default();
        let of = |weights: &HostTensor, kind| ByteWeights::of(&derived, weights, None, 1.0, kind);
        assert!(of(&weights, Channels::Mixed).is_none());
        let along = |axis| weights.clone().with_scales(vec![0.5, 0.25], axis);
        let found = of(&along(0), Channels::Mixed).expect("integers");
        assert_eq!((found.sums, found.scales), (vec![3, 6], vec![0.5, 0.25]));
        let words = found.words.elements::<u32>().expect("words").to_vec();
        assert_eq!(words, [[1, 2, 0, 0], [254, 8, 0, 0]].map(u32::from_le_bytes));
        assert!(of(&along(3), Channels::Mixed).is_none());
    }

    #[test]
    fn words_are_made_once_for_graphs_that_share_a_constant() {
        let derived = Derived::default();
        let dims = Dims::new(&[2, 3]).expect("small");
        let matrix = HostTensor::new(dims, vec![1.0, 2.0, 3.0, -1.0, -2.0, -3.0]).expect("six");
        let matrix = matrix.with_scales(vec![1.0], 0);
        let of = |transposed| ByteWeights::of_matrix(&derived, &matrix, transposed, None, 1.0);
        let (one, two) = (of(false).expect("integers"), of(false).expect("integers"));
        assert_eq!(one.words.place(), two.words.place());
        assert_eq!((one.sums, of(true).expect("integers").sums), (vec![0, 0, 0], vec![6, -6]));
    }
}
