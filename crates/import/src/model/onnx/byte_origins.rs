//! What is known of bytes in a network: which values stand for them, and which operators made floats of them.

use crate::graph::Value;
use crate::model::build::{ByteWeights, Bytes, Windows};
use crate::ops::elementwise::Function;
use std::collections::HashMap;
use std::sync::Arc;

/// What made a value of floats.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// Bytes stand for it.
    Bytes(Bytes),
    /// A convolution, and whether it is a depthwise one.
    Convolution(Bytes, Arc<ByteWeights>, bool, Windows),
    /// Rows times a matrix.
    Product(Bytes, Arc<ByteWeights>),
    /// A sum or a product.
    Combined([Bytes; 2], Function),
    /// The largest of windows.
    Largest(Bytes, Windows),
    /// The mean over height and width.
    Mean(Bytes),
    /// Values one behind the other along a stored axis.
    Joined(Vec<Bytes>, usize),
    /// A function of each number.
    Function(Bytes, fn(f32) -> f32),
    /// `x` where `x >= 0`, else a slope times `x`.
    Leaky(Bytes, f32),
}

/// A value of floats with what made it.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) origin: Origin,
    /// The bounds behind it.
    pub(super) after: Option<Function>,
    /// The order in which its axes are stored. A tensor of the same value and another order is a transpose of it.
    pub(super) order: Vec<usize>,
}

/// A constant of integers with what they stand for.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) values: Arc<[i64]>,
    pub(super) extents: Vec<usize>,
    pub(super) scales: Vec<f32>,
}

/// What `DynamicQuantizeLinear` rounded.
#[derive(Debug, Clone)]
pub(super) struct Rounded {
    /// The floats, stored as the integers are.
    pub(super) x: Value,
    pub(super) ranges: Value,
    /// The zero point's value.
    pub(super) zero: Value,
}

/// What is known of bytes in a network.
#[derive(Debug, Default)]
pub(super) struct Origins<'a> {
    /// Values of integers, as bytes.
    pub(super) bytes: HashMap<Value, Bytes>,
    pub(super) made: HashMap<Value, Made>,
    pub(super) known: HashMap<&'a str, Arc<Known>>,
    /// Values of integers that floats were rounded to by their own range, and bytes of values with their ranges.
    pub(super) rounded: HashMap<Value, Rounded>,
    pub(super) at_run: HashMap<(Value, Value), Value>,
}

/// Weights `o c kh kw` as those of bytes.
pub(super) fn convolution_weights(
    known: &Known,
    channels: usize,
    bias: Option<Vec<i32>>,
) -> Option<(ByteWeights, bool)> {
    let &[outputs, inner, kernel_h, kernel_w] = &known.extents[..] else { return None };
    let depthwise = inner == 1 && outputs == channels && channels > 1;
    if !depthwise && inner != channels || ![1, outputs].contains(&known.scales.len()) {
        return None;
    }
    let values: Option<Vec<i8>> = known.values.iter().map(|&value| i8::try_from(value).ok()).collect();
    let values = values?;
    let at =
        |o: usize, k: usize, tap: usize| values.get((o * inner + k) * kernel_h * kernel_w + tap).copied();
    let taps = kernel_h * kernel_w;
    let (values, extents): (Option<Vec<i8>>, _) = if depthwise {
        let all = (0..taps).flat_map(|tap| (0..outputs).map(move |o| at(o, 0, tap)));
        (all.collect(), [1, kernel_h, kernel_w, outputs])
    } else {
        let all =
            (0..outputs).flat_map(|o| (0..taps).flat_map(move |tap| (0..inner).map(move |k| at(o, k, tap))));
        (all.collect(), [outputs, kernel_h, kernel_w, inner])
    };
    if bias.as_ref().is_some_and(|bias| bias.len() != outputs) {
        return None;
    }
    Some((ByteWeights { values: values?, extents, scales: known.scales.clone(), bias }, depthwise))
}

/// A matrix `k n`, or `n k` as it is stored, as weights of bytes.
pub(super) fn matrix(known: &Known, transposed: bool, bias: Option<Vec<i32>>) -> Option<ByteWeights> {
    let &[rows, columns] = &known.extents[..] else { return None };
    let (outputs, depth) = if transposed { (rows, columns) } else { (columns, rows) };
    if ![1, outputs].contains(&known.scales.len()) || bias.as_ref().is_some_and(|bias| bias.len() != outputs)
    {
        return None;
    }
    let at = |o: usize, k: usize| if transposed { o * depth + k } else { k * outputs + o };
    let values = (0..outputs).flat_map(|o| (0..depth).map(move |k| at(o, k)));
    let values = values.map(|at| known.values.get(at).and_then(|&value| i8::try_from(value).ok()));
    let extents = [outputs, 1, 1, depth];
    Some(ByteWeights { values: values.collect::<Option<_>>()?, extents, scales: known.scales.clone(), bias })
}

/// Integers that have 32 bits.
pub(super) fn of_32_bits(known: Option<&Known>) -> Option<Vec<i32>> {
    known?.values.iter().map(|&value| i32::try_from(value).ok()).collect()
}
