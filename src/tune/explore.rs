//! The budgeted search: which candidate to try next, given the times so far.
//!
//! Neighbouring candidates behave alike: doubling one side of a work-group, or moving a factor of
//! two from one side to another, mostly changes a time by a few per cent. So each time says
//! something about the untried candidates around it. The search keeps a Gaussian process over the
//! logarithms of the relative times, its covariance falling with the distance of two candidates in
//! octaves (log2 of the work-group's and the tile's sides; another variant is a fixed distance
//! away), and tries the candidate with the greatest expected improvement over the best so far
//! (Jones, Schonlau and Welch, *Efficient Global Optimization of Expensive Black-Box Functions*,
//! 1998). So it follows the slope near what it has measured, and also tries what is far from that, such as
//! other tiles.
//!
//! Before that: the default, the warm candidates, and every (variant, tile) with the table's
//! work-group. Where problems like this one were tuned before, their times take the place of the
//! latter: the process then models what this problem's times differ by from a smoothed mean of
//! theirs.
//!
//! Candidates are proposed before the times of those proposed earlier are known, because they are
//! compiled ahead: until its time is there, a candidate counts with the time that is expected of it
//! (the kriging believer of Ginsbourger, Le Riche and Carraro, 2010), so that proposals spread. One
//! that cannot be used counts as a bad one.
//!
//! One step costs about `candidates x tried` multiplications: the Cholesky factor grows by a row
//! per candidate tried, and nothing is solved anew.

use crate::ops::Choice;

/// Correlation length of work-group and tile sides, in octaves.
const CORRELATION_OCTAVES: f64 = 2.0;
/// Distance of two variants, in octaves.
const VARIANT_DISTANCE_OCTAVES: f64 = 3.0;
/// Variance of one log-time around the surface: noise and roughness.
const NOISE_VARIANCE: f64 = 0.03 * 0.03;
/// Standard deviation of the surface: log-times differ by tens of per cent.
const SURFACE_DEVIATION: f64 = 0.4;
/// Log-times this far above the best count as this far: how bad a bad candidate is does not matter.
const MAX_LOG_TIME_ABOVE_BEST: f64 = 1.2;
/// The search ends when no candidate's expected improvement, of a log-time, is above this.
const MIN_EXPECTED_IMPROVEMENT: f64 = 2e-4;
/// Weight of a hint that all candidates share: where no hint is near, the middle one is expected.
const SHARED_HINT_WEIGHT: f64 = 0.05;
/// Times that the model looks at.
const MAX_TIMES: usize = 512;

/// What is known of the candidates, and what to try next.
#[derive(Debug)]
pub(super) struct Explorer {
    places: Vec<SearchPoint>,
    /// The first candidates, in reverse.
    first: Vec<usize>,
    tried: Vec<bool>,
    /// What is expected of each candidate, up to a common level: from problems like this one.
    prior: Vec<f64>,
    /// Candidates with a time, in order, and those that are being tried.
    known: Vec<Observation>,
    /// Rows of the Cholesky factor of the known candidates' covariance.
    factor: Vec<Vec<f64>>,
    /// For each candidate, its covariances with the known ones, solved by the factor.
    solved: Vec<Vec<f64>>,
    /// The squares of those, summed: how much of its variance the known ones explain.
    explained: Vec<f64>,
}

/// A log-time, or while there is none the one that is expected.
#[derive(Debug)]
struct Observation {
    index: usize,
    height: f64,
    told: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct SearchPoint {
    variant: &'static str,
    octaves: [f64; 6],
}

impl SearchPoint {
    fn of(choice: &Choice) -> Self {
        let octave = |side: u32| f64::from(side.max(1)).log2();
        let [x, y, z] = choice.work_group.map(octave);
        let [tx, ty, tz] = choice.tile.map(octave);
        SearchPoint { variant: choice.variant, octaves: [x, y, z, tx, ty, tz] }
    }

    /// Matern's covariance with smoothness 5/2.
    fn covariance(&self, other: &SearchPoint) -> f64 {
        let mut square: f64 = self.octaves.iter().zip(&other.octaves).map(|(a, b)| (a - b).powi(2)).sum();
        if self.variant != other.variant {
            square += VARIANT_DISTANCE_OCTAVES * VARIANT_DISTANCE_OCTAVES;
        }
        let r = (5.0 * square).sqrt() / CORRELATION_OCTAVES;
        SURFACE_DEVIATION * SURFACE_DEVIATION * (1.0 + r + r * r / 3.0) * (-r).exp()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (mut sum, len) = (0.0, a.len().min(b.len()));
    let (a, b, mut index) = (&a[..len], &b[..len], 0);
    // What the tuner's own time goes to: without optimisation, iterators would take five times as long.
    while index < len {
        sum += a[index] * b[index];
        index += 1;
    }
    sum
}

impl Explorer {
    /// `first` are the indices of the candidates to begin with.
    pub(super) fn new(candidates: &[Choice], mut first: Vec<usize>) -> Self {
        first.reverse();
        Explorer {
            places: candidates.iter().map(SearchPoint::of).collect(),
            first,
            tried: vec![false; candidates.len()],
            prior: vec![0.0; candidates.len()],
            known: Vec::new(),
            factor: Vec::new(),
            solved: vec![Vec::new(); candidates.len()],
            explained: vec![0.0; candidates.len()],
        }
    }

    /// Expects of this problem what problems like it had: a choice, `ln` of its time over that
    /// problem's best, and a weight.
    pub(super) fn expect(&mut self, hints: &[(Choice, f64, f64)]) {
        if hints.is_empty() {
            return;
        }
        let hints: Vec<(SearchPoint, f64, f64)> = hints
            .iter()
            .map(|(choice, score, weight)| {
                (SearchPoint::of(choice), score.min(MAX_LOG_TIME_ABOVE_BEST), *weight)
            })
            .collect();
        let scores: Vec<f64> = hints.iter().map(|(_, score, _)| *score).collect();
        let middle = super::statistics::median(&scores).unwrap_or_default();
        for (place, prior) in self.places.iter().zip(&mut self.prior) {
            let (mut sum, mut weights) = (SHARED_HINT_WEIGHT * middle, SHARED_HINT_WEIGHT);
            for (hint, score, weight) in &hints {
                // Twice the power: sharper, or hollows would be filled in.
                let near =
                    weight * (place.covariance(hint) / (SURFACE_DEVIATION * SURFACE_DEVIATION)).powi(2);
                sum += near * score;
                weights += near;
            }
            *prior = sum / weights;
        }
    }

    /// Candidate `index` needs no trial.
    pub(super) fn skip(&mut self, index: usize) {
        if let Some(tried) = self.tried.get_mut(index) {
            *tried = true;
        }
    }

    /// Candidate `index` has the log-time `score`, relative to the default's.
    pub(super) fn observe(&mut self, index: usize, score: f64) {
        self.skip(index);
        if score.is_finite() {
            self.know(index, score, true);
        }
    }

    /// Candidate `index` cannot be used.
    pub(super) fn fail(&mut self, index: usize) {
        self.skip(index);
        self.know(index, f64::INFINITY, true);
    }

    fn know(&mut self, index: usize, height: f64, told: bool) {
        if let Some(known) = self.known.iter_mut().find(|known| known.index == index) {
            (known.height, known.told) = (height, told);
            return;
        }
        let (Some(place), true) = (self.places.get(index), self.known.len() < MAX_TIMES) else {
            return;
        };
        let row = self.solved.get(index).cloned().unwrap_or_default();
        let explained = self.explained.get(index).copied().unwrap_or_default();
        let pivot = (place.covariance(place) + NOISE_VARIANCE - explained).max(1e-12).sqrt();
        let solved = self.solved.iter_mut().zip(&mut self.explained);
        for (other, (solved, explained)) in self.places.iter().zip(solved) {
            let next = (place.covariance(other) - dot(&row, solved)) / pivot;
            solved.push(next);
            *explained += next * next;
        }
        let mut row = row;
        row.push(pivot);
        self.factor.push(row);
        self.known.push(Observation { index, height, told });
    }

    /// The candidate to try next, if one is worth it.
    pub(super) fn next(&mut self) -> Option<usize> {
        while let Some(index) = self.first.pop() {
            if !self.tried.get(index).copied().unwrap_or(true) {
                self.skip(index);
                return Some(index);
            }
        }
        let (chosen, expected) = self.most_promising()?;
        self.skip(chosen);
        if let Some(expected) = expected {
            self.know(chosen, expected, false);
        }
        Some(chosen)
    }

    /// The lowest time told.
    fn best(&self) -> Option<f64> {
        let told = self.known.iter().filter(|known| known.told && known.height.is_finite());
        told.map(|known| known.height).min_by(f64::total_cmp)
    }

    /// The candidate with the greatest expected improvement, and its expected log-time.
    fn most_promising(&self) -> Option<(usize, Option<f64>)> {
        let Some(best) = self.best() else {
            return self.tried.iter().position(|tried| !tried).map(|index| (index, None));
        };
        // Above what was expected before.
        let surplus: Vec<f64> = self
            .known
            .iter()
            .map(|known| {
                known.height.min(best + MAX_LOG_TIME_ABOVE_BEST)
                    - self.prior.get(known.index).copied().unwrap_or(0.0)
            })
            .collect();
        let level = super::statistics::median(&surplus).unwrap_or(best);
        // Forward substitution: the factor's inverse times the heights above the level.
        let mut weights: Vec<f64> = Vec::with_capacity(surplus.len());
        for (row, height) in self.factor.iter().zip(&surplus) {
            let Some((pivot, before)) = row.split_last() else { continue };
            let weight = (height - level - dot(before, &weights)) / pivot;
            weights.push(weight);
        }
        // The best of the smoothed times, not the luckiest sample.
        let mean = |index: usize| level + self.prior[index] + dot(&self.solved[index], &weights);
        let told = self.known.iter().filter(|known| known.told);
        let target = told.map(|known| mean(known.index)).min_by(f64::total_cmp).unwrap_or(best);
        let mut chosen: Option<(f64, usize)> = None;
        for index in (0..self.places.len()).filter(|&index| !self.tried[index]) {
            let variance = SURFACE_DEVIATION * SURFACE_DEVIATION - self.explained[index];
            let gain = expected_improvement(target - mean(index), variance.max(1e-12).sqrt());
            if chosen.is_none_or(|(most, _)| gain > most) {
                chosen = Some((gain, index));
            }
        }
        chosen
            .filter(|(gain, _)| *gain > MIN_EXPECTED_IMPROVEMENT)
            .map(|(_, index)| (index, Some(mean(index))))
    }
}

/// `E max(0, X)` for a normal `X` of this mean and deviation.
fn expected_improvement(mean: f64, deviation: f64) -> f64 {
    let z = mean / deviation;
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    mean * below(z) + deviation * density
}

/// The normal distribution function, to 1e-7 (Abramowitz and Stegun, 26.2.17).
fn below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let polynomial = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial;
    if z > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(octaves: u32) -> Vec<Choice> {
        (0..=octaves)
            .flat_map(|x| (0..=octaves - x).map(move |y| [1 << x, 1 << y, 1]))
            .map(|work_group| Choice::new("direct", [1, 1, 1], work_group))
            .collect()
    }

    #[test]
    fn a_smooth_valley_is_found_in_a_few_steps() {
        let candidates = row(10);
        let height = |choice: &Choice| {
            let place = SearchPoint::of(choice).octaves;
            0.05 * ((place[0] - 6.0).powi(2) + (place[1] - 2.0).powi(2))
        };
        let mut explorer = Explorer::new(&candidates, vec![0]);
        let mut best = f64::INFINITY;
        for _ in 0..15 {
            let Some(index) = explorer.next() else { break };
            best = best.min(height(&candidates[index]));
            explorer.observe(index, height(&candidates[index]));
        }
        assert!(best < 0.03, "{best} of {} candidates", candidates.len());
    }

    #[test]
    fn nothing_is_proposed_twice_and_the_end_comes() {
        let candidates = row(4);
        let mut explorer = Explorer::new(&candidates, vec![3, 3, 1]);
        let mut seen = Vec::new();
        while let Some(index) = explorer.next() {
            assert!(!seen.contains(&index), "{index}");
            seen.push(index);
            explorer.observe(index, 0.1 * index as f64);
        }
        assert_eq!(seen[..2], [3, 1]);
        assert!(seen.len() <= candidates.len());
    }

    #[test]
    fn the_distribution_function_is_the_normal_one() {
        for (z, p) in [(0.0, 0.5), (1.0, 0.841_344_75), (-1.96, 0.024_997_9), (3.0, 0.998_650_1)] {
            assert!((below(z) - p).abs() < 2e-7, "{z}");
        }
    }
}
