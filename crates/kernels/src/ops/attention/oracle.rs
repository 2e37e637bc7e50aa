//! Query by query in f64.
//!
//! With `v = 2u` (see `ops/tolerance.rs`), `n` keys and `d` features: a score of `d` products, a factor and a bias is off by
//! `e_j = gamma(d + 2) scale sum abs(q k) + 2 v abs(s_j)`; a soft cap passes that on and adds `tanh`'s own error times the cap.
//! Let `a_j = m - s_j`, `m` the largest score. The share of a key is a product of exponentials, one of the difference to the
//! largest score so far and one for each time that this grows. Their exponents add up to `-a_j` and are none of them positive, so
//! that together they are off by `(4 t + 4 a_j) v` of themselves, with `t` steps, of at least eight keys. So a share is off by
//! `w_j = e_j + e_m + (4 t + 4 a_j) v` of itself before it is divided by the sum, which is off by the mean of `w_j`, and by `gamma(n)`.
//! The result is a sum of `n` terms, divided: `sum p_j abs(v_j) (w_j + mean w + gamma(2 n + 8))`. Powers that are flushed to
//! zero lose the smallest normal number each. Stored halves move a score by `2 v16 scale sum abs(q k)`, and a term and the result by
//! `v16` of themselves. Shares of halves (matrix units) move a term by `v16` once more; below `2^-24` of the largest share of
//! their step, a term may be lost. The logarithm of a part's sum is off by the mean of `w_j`, by `e_m`, by `gamma(n)` and by what
//! rounds the largest score and a logarithm, `1e-6` of one and of the logarithm (WGSL's `log` near 1 is off by `2^-21`).

use super::{AttentionOp, NO_KEY, Sizes};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::tolerance::smallest_normal;
use crate::word::numbers;

/// Keys of a step, at least.
const STEP: usize = 8;

/// What a share in halves may lack: kernels keep 1024 times a share, whose smallest normal number is 2^-14.
const SHARE_LOST: f64 = 1.0 / (1 << 24) as f64;

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
    let (store, stored_tiny, share_tiny) = match op.precision.storage() {
        DType::F16 => (2.0 * DType::F16.unit_roundoff(), smallest_normal(DType::F16), SHARE_LOST),
        _ => (0.0, 0.0, tiny),
    };
    let at = |values: &[f32], index: usize| values.get(index).copied().map_or(f64::NAN, f64::from);
    let (scale, cap) = (f64::from(op.rules.scale.0), f64::from(op.rules.softcap.0));
    let count = op.output.elements();
    let (mut value, mut bound) = (vec![f64::NAN; count], vec![0.0; count]);
    let each = (0..op.parts * batch * heads * group * rows).map(|index| {
        let (row, index) = (index % rows, index / rows);
        let (g, index) = (index % group, index / group);
        let (h, index) = (index % heads, index / heads);
        (index / batch, [index % batch, h, g, row])
    });
    for (part, [b, h, g, row]) in each {
        let first = (part * op.span()).min(keys);
        let keys = (keys - first).min(op.span());
        let query = op.query.at([b, h, g, row]);
        let begin =
            begins.get(b * op.count_step(Operand::Begins)).copied().unwrap_or(op.rules.begin as f64).trunc();
        let end = ends.get(b * op.count_step(Operand::Ends)).copied().unwrap_or(op.sizes.keys as f64).trunc();
        let place = begin + row as f64;
        let score = |j: usize| {
            let j = first + j;
            let key = op.key.at([b, h, 0, j]);
            let products = (0..depth).map(|d| at(q, query + d) * at(k, key + d));
            let (sum, magnitude) =
                products.fold((0.0, 0.0), |(sum, all), term: f64| (sum + term, all + term.abs()));
            let mut value = scale * sum;
            let mut error =
                (gamma(depth + 2) + 2.02 * store) * scale.abs() * magnitude + (depth + 2) as f64 * tiny;
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
        let whole = op.parts == 1;
        let none = most == f64::NEG_INFINITY;
        let nothing = none && !(whole && op.rules.nan_if_nothing);
        let to = op.dst.at([b, h, g, row]) + if whole { 0 } else { part * op.part_step() };
        if !whole {
            let all = if none { f64::from(NO_KEY) } else { most + sum.ln() };
            let rounded = 2.0 * unit * most.abs() + 1e-6 * (1.0 + sum.ln().abs());
            let off = if none { 0.0 } else { mean + most_error + gamma(keys + 8) + rounded };
            for (index, (found, off)) in [(all, off), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)]
                .into_iter()
                .take(op.strided().tail())
                .enumerate()
            {
                if let (Some(value), Some(bound)) =
                    (value.get_mut(to + width + index), bound.get_mut(to + width + index))
                {
                    (*value, *bound) = (found, off);
                }
            }
        }
        for e in 0..width {
            let (mut result, mut error) = (0.0, 0.0);
            for (j, (score, power)) in some() {
                let term = power * at(v, op.value.at([b, h, 0, first + j]) + e);
                result += term;
                error += term.abs() * (relative(score) + mean + gamma(2 * keys + 8) + 2.0 * store);
            }
            let lost =
                (0..keys).map(|j| at(v, op.value.at([b, h, 0, first + j]) + e).abs()).fold(0.0, f64::max);
            let lost = if lost.is_finite() { lost * keys as f64 * share_tiny } else { 0.0 };
            if let (Some(value), Some(bound)) = (value.get_mut(to + e), bound.get_mut(to + e)) {
                let (result, error) = (result / sum, 1.02 * error / sum + lost / sum + 8.0 * tiny);
                *value = if nothing { 0.0 } else { result };
                *bound = if nothing { 0.0 } else { error + store * (result.abs() + error) + stored_tiny };
            }
        }
    }
    Reference::Bounded { value, bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Bits;
    use crate::ops::attention::examples::of_node;
    use crate::ops::attention::{Attention, MaskRule};
    use crate::ops::expected::on_cpu;
    use crate::ops::operands::of;

    const F32: DType = DType::F32;

    /// The results of the oracle and of the CPU, which are close, for one head of `q` and `k` of depth 1 and `v` of width 1.
    fn attended(options: Attention, q: &[f32], k: &[f32], v: &[f32], more: &[(Operand, &[f32])]) -> Vec<f64> {
        let [queries, keys] = [q.len(), k.len()];
        let own = [[1, 1, queries, 1], [1, 1, keys, 1], [1, 1, keys, 1]];
        let names = [Operand::Query, Operand::Key, Operand::Value];
        let counts: Vec<[usize; 1]> = more.iter().map(|(_, values)| [values.len()]).collect();
        let mut given: Vec<(Operand, &[usize], DType)> =
            names.into_iter().zip(&own).map(|(operand, dims)| (operand, &dims[..], F32)).collect();
        given.extend(more.iter().zip(&counts).map(|((operand, _), count)| (*operand, &count[..], F32)));
        let op = of_node(&options, &given, Precision::F32).expect("an attention");
        let values = of(&[&[(names[0], q), (names[1], k), (names[2], v)], more].concat());
        let wanted = oracle(&op, &values);
        for (index, found) in on_cpu(&op, &values).expect("runs").into_iter().enumerate() {
            let value = wanted.value()[index];
            let off = (f64::from(found) - value).abs();
            let same = found.is_nan() && value.is_nan() || off <= wanted.tolerance(index, Precision::F32);
            assert!(same, "{index}: {found} for {value}");
        }
        wanted.value().to_vec()
    }

    #[test]
    fn results_are_those_worked_out_by_hand() {
        let ln3 = 3f32.ln();
        let plain = Attention { scale: Some(Bits(1.0)), ..Attention::default() };
        let close = |found: Vec<f64>, wanted: &[f64]| {
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(wanted) {
                assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
            }
        };
        let (k, v) = ([0.0, ln3], [8.0, 4.0]);
        // Shares of a quarter and three quarters; of a half each.
        close(attended(plain, &[1.0, 0.0], &k, &v, &[]), &[5.0, 6.0]);
        close(attended(plain, &[1.0], &k, &v, &[(Operand::Bias, &[ln3, 0.0])]), &[6.0]);
        let half = Attention { scale: Some(Bits(0.5)), ..plain };
        close(attended(half, &[2.0], &k, &v, &[]), &[5.0]);
        // Products of 0 and far beyond the cap: of which 1 and e are the powers.
        let capped = Attention { softcap: Bits(1.0), ..plain };
        let e = std::f64::consts::E;
        close(attended(capped, &[1.0], &[0.0, 1e4], &v, &[]), &[(8.0 + 4.0 * e) / (1.0 + e)]);
        let causal = Attention { behind: Some(0), ..plain };
        close(attended(causal, &[0.0, 0.0], &k, &v, &[]), &[8.0, 6.0]);
        close(attended(causal, &[0.0], &k, &v, &[(Operand::Begins, &[1.0])]), &[6.0]);
        let window = Attention { before: Some(0), ..causal };
        close(attended(window, &[0.0, 0.0], &k, &v, &[]), &[8.0, 4.0]);
        close(attended(plain, &[0.0], &k, &v, &[(Operand::Ends, &[1.0])]), &[8.0]);
        close(attended(plain, &[0.0], &k, &v, &[(Operand::Mask, &[0.0, 1.0])]), &[4.0]);
        let hides = Attention { mask: MaskRule { hides: true, fill: Bits(-ln3) }, ..plain };
        close(attended(hides, &[0.0], &k, &v, &[(Operand::Mask, &[0.0, 1.0])]), &[7.0]);
    }

    #[test]
    fn a_query_that_attends_nothing_is_zero_or_nan() {
        let none = [(Operand::Ends, &[0.0][..])];
        for (nan_if_nothing, nan) in [(false, false), (true, true)] {
            let options = Attention { nan_if_nothing, ..Attention::default() };
            let found = attended(options, &[1.0], &[1.0, 2.0], &[3.0, 4.0], &none);
            assert!(if nan { found[0].is_nan() } else { found[0] == 0.0 }, "{found:?}");
        }
    }

    #[test]
    fn what_is_no_number_among_values_stays_in_its_head() {
        let dims = [1, 2, 3, 4];
        let given = [Operand::Query, Operand::Key, Operand::Value].map(|operand| (operand, &dims[..], F32));
        let causal = Attention { behind: Some(0), ..Attention::default() };
        let op = of_node(&causal, &given, Precision::F32).expect("an attention");
        let (ones, mut v) = ([0.5; 24], [1.0; 24]);
        v[11] = f32::NAN;
        let values = of(&[(Operand::Query, &ones), (Operand::Key, &ones), (Operand::Value, &v)]);
        let found = on_cpu(&op, &values).expect("runs");
        assert!(
            found[11].is_nan() && found[12..].iter().all(|value| (value - 1.0).abs() < 1e-6),
            "{found:?}"
        );
    }
}
