//! Robust statistics of times.
//!
//! Times on a GPU are skewed and have outliers (another process, a clock that steps), so nothing
//! here is a mean. All comparisons are differences of logarithms: `ln(t / t_anchor)` is symmetric
//! in the two, and a drift of the clock multiplies both times and cancels.

use crate::sorted;

/// The median; the mean of the middle two for an even count.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted::sort(&mut sorted, f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(sorted.len() / 2 - 1).map(|lower| (lower + upper) / 2.0)
}

/// The value below which `share` (0 to 1) of the values lie, linear between neighbours.
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted::sort(&mut sorted, f64::total_cmp);
    let place = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted.get(place.floor() as usize)?, sorted.get(place.ceil() as usize)?);
    Some(low + (high - low) * place.fract())
}

/// `1.4826 median |x - median x|`: the median absolute deviation, scaled so that it is the standard
/// deviation of normal values.
pub fn spread(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&distances).map(|deviation| 1.4826 * deviation)
}

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub centre: f64,
    /// The value is below this with probability at most `alpha`.
    pub low: f64,
    /// The value is above this with probability at most `alpha`.
    pub high: f64,
}

/// The Hodges-Lehmann estimate and interval of the centre of paired differences, `alpha` on each
/// side.
///
/// The estimate is the median of the `m = n (n + 1) / 2` Walsh averages `(d_i + d_j) / 2`,
/// `i <= j`. With `c` the largest number for which `P(T <= c) <= alpha` in Wilcoxon's signed-rank
/// distribution of `n`, the interval goes from the `c + 1`-th to the `m - c`-th smallest average
/// (Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, 3rd ed., 3.1 to 3.3).
///
/// Why this one: two equal kernels timed in one round have differences that are symmetric about 0
/// whatever the noise is, which is all that the test assumes; it needs no variance, keeps 95 % of
/// the power of a t-test under normal noise, and up to 29 % of outliers do not move the estimate.
///
/// None where so few differences allow no interval at `alpha` (`2^-n > alpha`).
pub fn signed_rank_interval(differences: &[f64], alpha: f64) -> Option<Interval> {
    let cut = critical_rank_sum(differences.len(), alpha)?;
    let mut walsh = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (i, first) in differences.iter().enumerate() {
        walsh.extend(differences.iter().skip(i).map(|second| (first + second) / 2.0));
    }
    sorted::sort(&mut walsh, f64::total_cmp);
    let last = walsh.len().checked_sub(1 + cut)?;
    Some(Interval { centre: median_of_sorted(&walsh)?, low: *walsh.get(cut)?, high: *walsh.get(last)? })
}

/// The largest `c` with `P(T <= c) <= alpha`, `T` being the sum of the ranks `1..=n` that carry a
/// plus, each with probability one half. Exact, by counting subsets.
fn critical_rank_sum(n: usize, alpha: f64) -> Option<usize> {
    let mut probability = vec![1.0];
    for rank in 1..=n {
        let mut next = vec![0.0; probability.len() + rank];
        for (sum, p) in probability.iter().enumerate() {
            next[sum] += p / 2.0;
            next[sum + rank] += p / 2.0;
        }
        probability = next;
    }
    let mut below = 0.0;
    let mut cut = None;
    for (sum, p) in probability.iter().enumerate() {
        below += p;
        if below > alpha {
            break;
        }
        cut = Some(sum);
    }
    cut
}

/// Half the width of a race's interval around the median of `samples` log-times, from the pooled
/// scale `sigma` of one sample: `z 1.2533 sigma / sqrt(samples)`, 1.2533 being the efficiency of
/// the median under normal noise.
///
/// A race compares many candidates with two or three samples each, where no rank test says
/// anything; the scale is therefore pooled over all of them. It only decides which candidates are timed
/// again, never which wins.
pub fn race_half_width(sigma: f64, samples: usize, z: f64) -> f64 {
    z * 1.2533 * sigma / (samples.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads_ignore_an_outlier() {
        assert_eq!(median(&[3.0, 1.0, 1000.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, 1000.0]), Some(1.4826));
    }

    #[test]
    fn critical_sums_are_those_of_the_published_table() {
        // Hollander, Wolfe and Chicken, table A.4; one-sided.
        for (n, alpha, wanted) in [
            (5, 0.05, Some(0)),
            (4, 0.05, None),
            (10, 0.05, Some(10)),
            (10, 0.01, Some(5)),
            (15, 0.025, Some(25)),
            (20, 0.005, Some(37)),
            (25, 0.05, Some(100)),
        ] {
            assert_eq!(critical_rank_sum(n, alpha), wanted, "n {n} alpha {alpha}");
        }
    }

    #[test]
    fn the_interval_holds_the_walsh_averages_that_the_test_keeps() {
        // Five differences: at alpha 1/32 nothing is cut, so the interval is the range.
        let interval = signed_rank_interval(&[1.0, 2.0, 3.0, 4.0, 10.0], 0.04).expect("five are enough");
        assert_eq!(interval, Interval { centre: 3.0, low: 1.0, high: 10.0 });
        assert_eq!(signed_rank_interval(&[1.0, 2.0, 3.0], 0.04), None);
    }
}
