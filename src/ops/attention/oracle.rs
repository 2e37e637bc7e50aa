//! Query by query in f64.
//!
//! With `v = 2u` (see `ops/tolerance.rs`), `n` keys and `d` features: a score of `d` products, a factor and a bias is off by
//! `e_j = gamma(d + 2) scale sum abs(q k) + 2 v abs(s_j)`; a soft cap passes that on and adds `tanh`'s own error times the cap.
//! Let `a_j = m - s_j`, `m` the largest score. The share of a key is a product of exponentials, one of the difference to the
//! largest score so far and one for each time that this grows. Their exponents add up to `-a_j` and are none of them positive, so
//! that together they are off by `(4 t + 4 a_j) v` of themselves, with `t` steps, of at least eight keys. So a share is off by
//! `w_j = e_j + e_m + (4 t + 4 a_j) v` of itself before it is divided by the sum, which is off by the mean of `w_j`, and by `gamma(n)`.
//! The result is a sum of `n` terms, divided: `sum p_j abs(v_j) (w_j + mean w + gamma(2 n + 8))`. Powers that are flushed to
//! zero lose the smallest normal number each.

use super::{AttentionOp, Sizes};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::tolerance::smallest_normal;
use crate::word::numbers;

/// Keys of a step, at least.
const STEP: usize = 8;

/// A score with the bound of its error.
#[derive(Clone, Copy)]
struct Score {
    value: f64,
    error: f64,
}

/// The result, in the order of the rows.
pub(super) fn oracle(op: &AttentionOp, operands: &Operands<'_>) -> Reference {
    let of = |operand| get(operands, operand).unwrap_or_default();
    let [q, k, v, bias, mask] =
        [Operand::Query, Operand::Key, Operand::Value, Operand::Bias, Operand::Mask].map(of);
    let counts = |operand: Operand| {
        let dtype = op.given.get(&operand).map_or(DType::F32, |(_, dtype)| *dtype);
        numbers(dtype, of(operand))
    };
    let (begins, ends) = (counts(Operand::Begins), counts(Operand::Ends));
    let Sizes { batch, heads, group, rows, keys, depth, width } = op.sizes;
    let unit = 2.0 * DType::F32.unit_roundoff();
    let gamma = |count: usize| count as f64 * unit * 1.01;
    let tiny = smallest_normal(DType::F32);
    let at = |values: &[f32], index: usize| values.get(index).copied().map_or(f64::NAN, f64::from);
    let (scale, cap) = (f64::from(op.rules.scale.0), f64::from(op.rules.softcap.0));
    let count = op.output.elements();
    let (mut value, mut bound) = (vec![f64::NAN; count], vec![0.0; count]);
    let each = (0..batch * heads * group * rows).map(|index| {
        let (row, index) = (index % rows, index / rows);
        let (g, index) = (index % group, index / group);
        [index / heads, index % heads, g, row]
    });
    for [b, h, g, row] in each {
        let query = op.query.at([b, h, g, row]);
        let begin =
            begins.get(b * op.count_step(Operand::Begins)).copied().unwrap_or(op.rules.begin as f64).trunc();
        let end = ends.get(b * op.count_step(Operand::Ends)).copied().unwrap_or(keys as f64).trunc();
        let place = begin + row as f64;
        let score = |j: usize| {
            let key = op.key.at([b, h, 0, j]);
            let products = (0..depth).map(|d| at(q, query + d) * at(k, key + d));
            let (sum, magnitude) =
                products.fold((0.0, 0.0), |(sum, all), term: f64| (sum + term, all + term.abs()));
            let mut value = scale * sum;
            let mut error = gamma(depth + 2) * scale.abs() * magnitude + (depth + 2) as f64 * tiny;
            if cap > 0.0 {
                value = cap * (value / cap).tanh();
                error += cap * (f64::max(1e-5, 52.0 * unit) + 4.0 * unit);
            }
            if let Some(added) = op.bias {
                value += at(bias, added.at([b, h, g, row, j]));
                error += unit * if value.is_finite() { value.abs() } else { 0.0 };
            }
            if let Some(added) = op.mask.filter(|_| op.rules.mask_adds) {
                value += at(mask, added.at([b, h, g, row, j]));
                error += unit * if value.is_finite() { value.abs() } else { 0.0 };
            } else if let Some(added) = op.mask {
                let told = at(mask, added.at([b, h, g, row, j])) != 0.0;
                if told == op.rules.mask.hides {
                    (value, error) = (f64::from(op.rules.mask.fill.0), 0.0);
                }
            }
            let j = j as f64;
            let beyond = op.rules.behind.is_some_and(|behind| j > place + behind as f64)
                || op.rules.before.is_some_and(|before| j < place - before as f64);
            if beyond || j >= end {
                (value, error) = (f64::NEG_INFINITY, 0.0);
            }
            Score { value, error }
        };
        let scores: Vec<Score> = (0..keys).map(score).collect();
        let nan = scores.iter().any(|score| score.value.is_nan());
        let most = scores.iter().fold(f64::NEG_INFINITY, |most, score| most.max(score.value));
        let most = if nan { f64::NAN } else { most };
        let most_error = scores.iter().fold(0.0, |most: f64, score| most.max(score.error));
        let powers: Vec<f64> = scores.iter().map(|score| (score.value - most).exp()).collect();
        let steps = 4.0 * (keys.div_ceil(STEP) + 1) as f64;
        let relative = |score: &Score| {
            let way = (most - score.value).abs();
            score.error + most_error + unit * (steps + 5.0 * way)
        };
        let sum: f64 = powers.iter().sum();
        let some = || scores.iter().zip(&powers).enumerate().filter(|(_, (_, power))| **power != 0.0);
        let mean: f64 = some().map(|(_, (score, power))| relative(score) * power).sum::<f64>() / sum;
        let nothing = most == f64::NEG_INFINITY && !op.rules.nan_if_nothing;
        let to = op.dst.at([b, h, g, row]);
        for e in 0..width {
            let (mut result, mut error) = (0.0, 0.0);
            for (j, (score, power)) in some() {
                let term = power * at(v, op.value.at([b, h, 0, j]) + e);
                result += term;
                error += term.abs() * (relative(score) + mean + gamma(2 * keys + 8));
            }
            let lost = (0..keys).map(|j| at(v, op.value.at([b, h, 0, j]) + e).abs()).fold(0.0, f64::max);
            let lost = if lost.is_finite() { lost * keys as f64 * tiny } else { 0.0 };
            if let (Some(value), Some(bound)) = (value.get_mut(to + e), bound.get_mut(to + e)) {
                *value = if nothing { 0.0 } else { result / sum };
                *bound = if nothing { 0.0 } else { 1.02 * error / sum + lost / sum + 8.0 * tiny };
            }
        }
    }
    Reference::Bounded { value, bound }
}
