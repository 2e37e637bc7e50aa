//! `diptych bench --compare A.jsonl B.jsonl`: which changes are larger than noise.
//!
//! **The ratio** of a row is B over A: `exp` of the Hodges-Lehmann estimate, the median of all
//! differences `ln b_j - ln a_i`. **Its interval** is the one that the rank-sum test keeps
//! (Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, 3rd ed., 4.1 to 4.3): it asks
//! nothing of the noise but that it is the same in both files.
//!
//! **Samples that follow each other are alike** (a clock that is slow to rise), so that thirty say
//! less than thirty independent ones. With `r` their correlation with their successors, the variance
//! of a mean is `(1 + r) / (1 - r)` times larger; the interval is widened by the root of that, with
//! `r` two standard errors larger than it was found.
//!
//! **Many rows**: with 5 % for each of a hundred, five would be called real by chance. The 5 % are
//! shared by all rows (Bonferroni), so that with probability 95 % no row at all is called real that
//! is not, as far as the files' noise goes. What it cannot see is a machine that was in another
//! state for all of one file; a change of the baselines, which no kernel of ours explains, shows it.

use super::row::{Record, Row};
use crate::charts::short;
use crate::output::print;
use crate::table::Rows;
use anyhow::{Result, bail, ensure};
use diptych::internals::tune::statistics::{Interval, median};
use std::path::Path;

/// The probability that any row is called real by noise.
const ALPHA: f64 = 0.05;

/// The verdict on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// B takes longer.
    Slower,
    /// B takes less.
    Faster,
    /// No difference that is certain, or none that matters.
    Noise,
    /// Too few samples.
    TooFew,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Noise => "noise",
            Verdict::TooFew => "too few samples",
        }
    }
}

/// A row of both files.
pub(super) struct Change<'r> {
    pub(super) before: &'r Row,
    pub(super) after: &'r Row,
    /// The interval of `ln(b / a)`, where `a` is before and `b` after.
    pub(super) interval: Option<Interval>,
    pub(super) verdict: Verdict,
}

/// Rows of both files, and how many only one has.
pub(super) struct Comparison<'r> {
    pub(super) changes: Vec<Change<'r>>,
    alone: [usize; 2],
}

/// Compares, prints, and fails if that is wanted and a row is slower.
///
/// # Errors
/// If a file cannot be read, no row is in both, or a row is slower and `fail` is set.
pub(super) fn files(before: &Path, after: &Path, percent: f64, fail: bool) -> Result<()> {
    ensure!((0.0..100.0).contains(&percent), "--minimum-effect {percent}: wanted 0 to 100");
    let (a, b) = (Record::load(before)?, Record::load(after)?);
    let comparison = compare(&a.rows, &b.rows, percent / 100.0);
    ensure!(!comparison.changes.is_empty(), "no row is in both files");
    print(comparison.text())?;
    let slower = comparison.count(Verdict::Slower);
    if fail && slower > 0 {
        bail!("{slower} of {} rows are slower", comparison.changes.len());
    }
    Ok(())
}

/// Compares every row that is in both.
pub(super) fn compare<'r>(before: &'r [Row], after: &'r [Row], minimum: f64) -> Comparison<'r> {
    let twin = |row: &Row, rows: &'r [Row]| -> Option<&'r Row> {
        let key = row.key();
        rows.iter().find(|other| other.key() == key)
    };
    let pairs: Vec<(&Row, &Row)> = before.iter().filter_map(|row| Some((row, twin(row, after)?))).collect();
    let alpha = ALPHA / pairs.len().max(1) as f64;
    let alone = [before.len() - pairs.len(), after.iter().filter(|row| twin(row, before).is_none()).count()];
    let changes = pairs.into_iter().map(|(before, after)| {
        let interval = log_ratio(&before.samples, &per_work(before, after), alpha);
        let verdict = match interval {
            None => Verdict::TooFew,
            Some(found) if found.low > 0.0 && found.centre >= (1.0 + minimum).ln() => Verdict::Slower,
            Some(found) if found.high < 0.0 && found.centre <= -(1.0 + minimum).ln() => Verdict::Faster,
            Some(_) => Verdict::Noise,
        };
        Change { before, after, interval, verdict }
    });
    Comparison { changes: changes.collect(), alone }
}

/// The samples of `after`, for as much work as `before` does: a baseline does as much as takes a
/// while on its device.
fn per_work(before: &Row, after: &Row) -> Vec<f64> {
    let work = |row: &Row| if row.flops > 0 { row.flops } else { row.bytes.max(1) } as f64;
    let factor = if before.suite == "baseline" { work(before) / work(after) } else { 1.0 };
    after.samples.iter().map(|sample| sample * factor).collect()
}

/// The estimate of `ln(b / a)` and its interval of confidence `1 - alpha`; none where so few samples
/// allow none.
fn log_ratio(a: &[f64], b: &[f64], alpha: f64) -> Option<Interval> {
    let logs = |samples: &[f64]| -> Vec<f64> {
        samples.iter().filter(|sample| **sample > 0.0).map(|sample| sample.ln()).collect()
    };
    let (a, b) = (logs(a), logs(b));
    let cut = critical(a.len(), b.len(), alpha / 2.0)?;
    let mut differences: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    differences.sort_by(f64::total_cmp);
    let centre = median(&differences)?;
    let last = differences.len().checked_sub(1 + cut)?;
    let wider = inflation(&a, &b).sqrt();
    Some(Interval {
        centre,
        low: centre + (differences.get(cut)? - centre) * wider,
        high: centre + (differences.get(last)? - centre) * wider,
    })
}

/// How much larger the variance is than that of independent samples: `(1 + r) / (1 - r)`, at least 1.
fn inflation(a: &[f64], b: &[f64]) -> f64 {
    let (mut products, mut squares) = (0.0, 0.0);
    for samples in [a, b] {
        let centre = median(samples).unwrap_or_default();
        let mut sizes: Vec<f64> = samples.iter().map(|sample| (sample - centre).abs()).collect();
        sizes.sort_by(f64::total_cmp);
        // An outlier would hide what its neighbours have in common.
        let bound = 4.0 * median(&sizes).unwrap_or_default();
        let cut: Vec<f64> = samples.iter().map(|sample| (sample - centre).clamp(-bound, bound)).collect();
        products += cut.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        squares += cut.iter().map(|sample| sample * sample).sum::<f64>();
    }
    // An estimate from few samples is too small as often as too large: two standard errors
    // more.
    let doubt = 2.0 / ((a.len() + b.len()).max(1) as f64).sqrt();
    let correlation = if squares > 0.0 { (products / squares + doubt).clamp(0.0, 0.95) } else { 0.0 };
    (1.0 + correlation) / (1.0 - correlation)
}

/// The largest `c` with `P(U <= c) <= alpha`, `U` counting the pairs of `n` and `m` equal samples of
/// which the first is larger. Exact for few, else by the normal distribution. None if there is none.
fn critical(n: usize, m: usize, alpha: f64) -> Option<usize> {
    if n == 0 || m == 0 {
        return None;
    }
    if n * m > 400 {
        let deviation = ((n * m * (n + m + 1)) as f64 / 12.0).sqrt();
        let cut = ((n * m) as f64 / 2.0 + normal_quantile(alpha) * deviation - 0.5).floor();
        return (cut >= 0.0).then_some(cut as usize);
    }
    // ways[k][u]: choices of k of the ranks so far whose U is u.
    let mut ways = vec![vec![0.0f64; n * m + 1]; n + 1];
    ways[0][0] = 1.0;
    for rank in 0..n + m {
        for k in (1..=n.min(rank + 1)).rev() {
            // The rank-th smallest as the k-th chosen is above `rank - (k - 1)` of the others.
            let above = rank + 1 - k;
            for u in (above..=n * m).rev() {
                let fewer = ways[k - 1][u - above];
                ways[k][u] += fewer;
            }
        }
    }
    let all: f64 = ways[n].iter().sum();
    let (mut below, mut cut) = (0.0, None);
    for (u, count) in ways[n].iter().enumerate() {
        below += count / all;
        if below > alpha {
            break;
        }
        cut = Some(u);
    }
    cut
}

/// The value below which a standard normal one lies with probability `p`; P. J. Acklam's rational
/// approximation, off by at most 1.2e-9 of itself.
fn normal_quantile(p: f64) -> f64 {
    let polynomial = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        polynomial(
            &[
                -0.007784894002430293,
                -0.3223964580411365,
                -2.400758277161838,
                -2.549732539343734,
                4.374664141464968,
                2.938163982698783,
            ],
            q,
        ) / polynomial(
            &[0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0],
            q,
        )
    };
    match p {
        p if p < 0.02425 => tail(p),
        p if p > 1.0 - 0.02425 => -tail(1.0 - p),
        p => {
            let (q, r) = (p - 0.5, (p - 0.5) * (p - 0.5));
            q * polynomial(
                &[
                    -39.69683028665376,
                    220.9460984245205,
                    -275.9285104469687,
                    138.357751867269,
                    -30.66479806614716,
                    2.506628277459239,
                ],
                r,
            ) / polynomial(
                &[
                    -54.47609879822406,
                    161.5858368580409,
                    -155.6989798598866,
                    66.80131188771972,
                    -13.28068155288572,
                    1.0,
                ],
                r,
            )
        }
    }
}

impl Comparison<'_> {
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.changes.iter().filter(|change| change.verdict == verdict).count()
    }

    fn text(&self) -> String {
        let mut order: Vec<&Change<'_>> = self.changes.iter().collect();
        let size = |change: &Change<'_>| change.interval.map_or(0.0, |interval| -interval.centre.abs());
        order.sort_by(|a, b| a.verdict.cmp(&b.verdict).then(size(a).total_cmp(&size(b))));
        let heads = ["row", "backend", "A us", "B us", "B / A", "verdict"];
        let mut table = Rows::new(heads).numbers(&[2, 3, 4]);
        for change in order {
            let row = change.before;
            let node = row.node.as_ref().map(|node| format!(", {node}")).unwrap_or_default();
            let ratio = change.interval.map_or_else(
                || "-".to_owned(),
                |found| {
                    let [centre, low, high] = [found.centre, found.low, found.high].map(f64::exp);
                    format!("{centre:.3} ({low:.3}-{high:.3})")
                },
            );
            table.add([
                format!("{} {}{node}", row.case, row.metric),
                format!("{} {}", row.engine, row.device.backend),
                short(row.median),
                short(change.after.median),
                ratio,
                change.verdict.name().to_owned(),
            ]);
        }
        let table = table.text();
        let mut text = format!("{table}\n");
        for verdict in [Verdict::Slower, Verdict::Faster, Verdict::Noise, Verdict::TooFew] {
            text.push_str(&format!("{} {}, ", self.count(verdict), verdict.name()));
        }
        text.push_str(&format!(
            "of {} rows; {} only in A, {} only in B.\nAll intervals hold together with {} % confidence \
             (Bonferroni over the rows).",
            self.changes.len(),
            self.alone[0],
            self.alone[1],
            100.0 * (1.0 - ALPHA)
        ));
        for line in self.launches() {
            text.push_str(&format!("\n{line}"));
        }
        if let Some(warning) = self.warning() {
            text.push_str(&format!("\n{warning}"));
        }
        text
    }

    /// How many kernels each network starts in both files.
    fn launches(&self) -> Vec<String> {
        let told = self.changes.iter().filter(|change| change.before.metric == "host");
        told.filter_map(|Change { before, after, .. }| {
            let (first, second) = (before.launches?, after.launches?);
            Some(format!("{} {}: {first} launches, then {second}", before.case, before.device.backend))
        })
        .collect()
    }

    /// What makes the files hard to compare.
    fn warning(&self) -> Option<String> {
        let differs = |of: fn(&Row) -> &str| {
            let pair = self.changes.iter().map(|change| (of(change.before), of(change.after)));
            pair.into_iter().find(|(a, b)| a != b)
        };
        for of in [(|row| &row.device.name[..]) as fn(&Row) -> &str, |row| &row.device.driver[..]] {
            if let Some((a, b)) = differs(of) {
                return Some(format!("These are not the same device and driver: {a:?}, then {b:?}."));
            }
        }
        let moved = |change: &&Change<'_>| {
            change.before.suite == "baseline" && matches!(change.verdict, Verdict::Slower | Verdict::Faster)
        };
        let change = self.changes.iter().find(moved)?;
        let backend = &change.before.device.backend;
        Some(format!(
            "The baseline \"{}\" of {backend} is {}: the device itself ran at another speed, and \
             differences of that size are its, not the kernels'.",
            change.before.case,
            change.verdict.name()
        ))
    }
}

#[cfg(test)]
mod tests;
