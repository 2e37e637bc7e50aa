//! What a Winograd kernel's error is measured by: the sum that it really forms.

use super::Conv2dOp;
use super::transforms::{both_sides, transformed};
use crate::emit::winograd::Minimal;
use crate::ops::convolution::Inputs;
use crate::ops::operands::Operands;
use crate::ops::reference::Sum;
use crate::ops::tolerance::smallest_normal;

/// `exact` with the magnitudes and terms of the Winograd kernel of tiles of `results` by `results` outputs,
/// which sums other terms than the convolution's own.
///
/// The bound is derived in `ops/tolerance.rs`: the magnitude of an output is
/// `|A^T| [sum_k |U_k| * (|B^T| |x_k| |B|)] |A|` and the bias, and each non-zero factor in a row of
/// `B^T` and `A^T` rounds once, twice over. Underflow is counted as a relative error of something
/// larger by the smallest normal number over the rounding unit.
/// `operands` were checked.
pub(super) fn reference(op: &Conv2dOp, results: u32, operands: &Operands<'_>, exact: &Sum) -> Option<Sum> {
    let inputs = Inputs::of(operands);
    let results = results as usize;
    let minimal = Minimal::of(results)?;
    let absolute = |rows: &[&[i32]]| -> Vec<Vec<f64>> {
        rows.iter().map(|row| row.iter().map(|&factor| f64::from(factor.abs())).collect()).collect()
    };
    let (before, after) = (absolute(minimal.input), absolute(minimal.output));
    let conv = &op.0;
    let (x, y, patch) = (conv.input, conv.output, results + 2);
    let accumulator = conv.precision.accumulator();
    let floor = smallest_normal(accumulator) / (2.0 * accumulator.unit_roundoff());

    let mut weights = transformed(conv, minimal, inputs.weights);
    weights.iter_mut().for_each(|weight| *weight = weight.abs());
    let mut magnitude = vec![0.0; y.elements()];
    let mut square = vec![0.0; patch * patch];
    let mut patches = vec![0.0; patch * patch * x.c];
    let mut sums = vec![0.0; patch * patch * y.c];
    let [rows, columns] = [y.h, y.w].map(|extent| extent.div_ceil(results));
    for tile in 0..y.n * rows * columns {
        let (n, row, column) =
            (tile / (rows * columns), tile / columns % rows * results, tile % columns * results);
        for k in 0..x.c {
            for (place, value) in square.iter_mut().enumerate() {
                let (h, w) = (conv.source(0, row, place / patch), conv.source(1, column, place % patch));
                *value = match (h, w) {
                    (Some(h), Some(w)) => f64::from(inputs.src[((n * x.h + h) * x.w + w) * x.c + k].abs()),
                    _ => 0.0,
                };
            }
            for (position, value) in both_sides(&before, &square).into_iter().enumerate() {
                patches[position * x.c + k] = value + floor;
            }
        }
        for (sums, (patches, weights)) in
            sums.chunks_exact_mut(y.c).zip(patches.chunks_exact(x.c).zip(weights.chunks_exact(x.c * y.c)))
        {
            sums.fill(floor * x.c as f64);
            for (&patch, weights) in patches.iter().zip(weights.chunks_exact(y.c)) {
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += patch * weight);
            }
        }
        for (i, factors_h) in after.iter().enumerate().filter(|(i, _)| row + i < y.h) {
            for (j, factors_w) in after.iter().enumerate().filter(|(j, _)| column + j < y.w) {
                let first = ((n * y.h + row + i) * y.w + column + j) * y.c;
                let factors = factors_h.iter().flat_map(|a| factors_w.iter().map(move |b| a * b));
                for (factor, sums) in factors.zip(sums.chunks_exact(y.c)) {
                    let slots = magnitude[first..].iter_mut().zip(sums);
                    slots.for_each(|(slot, sum)| *slot += factor * sum);
                }
            }
        }
    }
    if let Some(bias) = inputs.bias {
        let each = magnitude.iter_mut().zip(bias.iter().cycle());
        each.for_each(|(magnitude, bias)| *magnitude += f64::from(bias.abs()));
    }
    let longest = |rows: &[&[i32]]| {
        rows.iter().map(|row| row.iter().filter(|factor| **factor != 0).count()).max().unwrap_or(0)
    };
    let transforms = 2 * (longest(minimal.input) + longest(minimal.output));
    let terms = x.c + transforms + usize::from(inputs.bias.is_some());
    Some(Sum { magnitude, terms, carried: Vec::new(), ..exact.clone() })
}
