//! Query by query in f64.
//!
//! With `u` the rounding unit, a share `exp(l_p - m)` is off by `4 u (1 + abs(l_p - m))` of itself, the sum of `P` shares by `P u`
//! more, and so is the sum of products, which is divided: `sum_p w_p abs(y_p) (16 u + 5 u abs(l_p - m) + 2 P u)`, with the mean of
//! the same over the shares. Shares that are flushed to zero lose the smallest normal number each. A result that is stored as
//! a half is off by `2 u` of itself for the `u` of halves, or by the smallest normal half.

use super::AttentionJoinOp;
use crate::dtype::DType;
use crate::ops::attention::NO_KEY;
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::tolerance::smallest_normal;

pub(super) fn oracle(op: &AttentionJoinOp, src: &[f32]) -> Reference {
    let (row, width, parts) = (op.row(), op.whole.sizes.width, op.parts);
    let count = op.whole.output.elements();
    let (mut value, mut bound) = (vec![f64::NAN; count], vec![0.0; count]);
    let unit = DType::F32.unit_roundoff();
    let tiny = smallest_normal(DType::F32);
    let (store, stored_tiny) = match RowsOp::precision(op).storage() {
        DType::F16 => (2.0 * DType::F16.unit_roundoff(), smallest_normal(DType::F16)),
        _ => (0.0, 0.0),
    };
    let at = |part: usize, query: usize, e: usize| {
        src.get((part * op.queries() + query) * row + e).copied().map_or(f64::NAN, f64::from)
    };
    for query in 0..op.queries() {
        let logarithms: Vec<f64> = (0..parts).map(|part| at(part, query, width)).collect();
        let most = logarithms.iter().fold(f64::NEG_INFINITY, |most, l| most.max(*l));
        let shares: Vec<f64> = logarithms.iter().map(|l| (l - most).exp()).collect();
        let off = |l: f64| 16.0 * unit + 5.0 * unit * (l - most).abs() + 2.0 * parts as f64 * unit;
        let all: f64 = shares.iter().sum();
        let some = || logarithms.iter().zip(&shares).enumerate().filter(|(_, (_, share))| **share != 0.0);
        let mean: f64 = some().map(|(_, (l, share))| off(*l) * share).sum::<f64>() / all;
        let nothing = most == f64::from(NO_KEY);
        for e in 0..width {
            let (mut sum, mut error, mut largest) = (0.0, 0.0, 0.0_f64);
            for (part, (l, share)) in some() {
                let term = share * at(part, query, e);
                sum += term;
                error += term.abs() * (off(*l) + mean);
            }
            for part in 0..parts {
                largest = largest.max(at(part, query, e).abs());
            }
            let lost = if largest.is_finite() { largest * parts as f64 * tiny } else { 0.0 };
            let to = op.place(query) + e;
            if let (Some(value), Some(bound)) = (value.get_mut(to), bound.get_mut(to)) {
                let nan = nothing && op.whole.rules.nan_if_nothing;
                *value = if nan { f64::NAN } else { sum / all };
                *bound = 1.02 * error / all + lost / all + 8.0 * tiny + store * value.abs() + stored_tiny;
            }
        }
    }
    Reference::Bounded { value, bound }
}

#[cfg(test)]
mod tests {
    use crate::dtype::Precision;
    use crate::emit::Operand;
    use crate::ops::attention::NO_KEY;
    use crate::ops::attention_join::examples::of_extents;
    use crate::ops::expected::on_cpu;
    use crate::ops::operands::of;

    #[test]
    fn parts_have_shares_by_their_sums() {
        // Two parts of one query with sums of 1 and 3; then one without a key; then none with one.
        let ln3 = 3f32.ln();
        for (logarithms, wanted) in
            [([0.0, ln3], [7.0, 1.0]), ([NO_KEY, 5.0], [8.0, 0.0]), ([NO_KEY, NO_KEY], [6.0, 2.0])]
        {
            let op = of_extents([1, 1, 2, 2, 2], false, Precision::F32).expect("an op");
            let src = [4.0, 4.0, logarithms[0], 8.0, 0.0, logarithms[1]];
            let found = on_cpu(&op, &of(&[(Operand::Src, &src)])).expect("runs");
            let close =
                found.iter().zip(wanted).all(|(found, wanted): (&f32, f32)| (found - wanted).abs() < 1e-5);
            assert!(close, "{logarithms:?}: {found:?}");
        }
        let op = of_extents([1, 1, 2, 2, 2], true, Precision::F32).expect("an op");
        let src = [0.0, 0.0, NO_KEY, 0.0, 0.0, NO_KEY];
        let found = on_cpu(&op, &of(&[(Operand::Src, &src)])).expect("runs");
        assert!(found.iter().all(|value| value.is_nan()), "{found:?}");
    }
}
