//! Which problem is next, and what time it gets.
//!
//! Without a budget each problem is searched to its end, in the nodes' order. With one there are passes over all
//! problems whose search is not at its end:
//!
//! | pass | time | order |
//! |---|---|---|
//! | 0 | what it takes to time each default | the nodes' |
//! | 1, 2 | a sixth, then a third of what is left | by share of the network's time, the largest first |
//! | 3 and later | all that is left | the same |
//!
//! Within a pass a problem gets the part of its time that the problem's default takes of the network's.

use super::jobs::Job;
use super::work::Work;
use crate::tune::db::NEAR;
use std::cmp::Ordering;
use std::time::Duration;

/// What part of the time left the passes get, the first of them the pass that times defaults; the last counts for all
/// that follow.
const PARTS: [f64; 4] = [0.0, 1.0 / 6.0, 1.0 / 3.0, 1.0];
/// In less time than this a search finds nothing: it compiles and times one more candidate.
const MIN_TIME: Duration = Duration::from_millis(20);
/// How many times the part of others the first problem of its kind has: it begins without hints, and gives them to
/// those that follow.
const FIRST_OF_ITS_KIND: f64 = 2.0;

impl Work {
    /// Takes the next problem; those for which there is no time any more are left open.
    pub(super) fn next_job(&mut self) -> Option<Job> {
        let Some(budget) = self.budget else { return self.jobs.pop_front() };
        loop {
            let left = budget.saturating_sub(self.report.spent);
            if left.is_zero() {
                while let Some(job) = self.jobs.pop_front() {
                    self.leave(job);
                }
            }
            let pass = self.jobs.iter().map(|job| job.pass).min()?;
            if pass > self.pass {
                self.pass = pass;
                let part = PARTS.get(pass).or(PARTS.last()).copied().unwrap_or(1.0);
                self.pass_ends = self.report.spent + left.mul_f64(part);
            }
            let place = self.largest(pass)?;
            let mut job = self.jobs.remove(place)?;
            if pass == 0 {
                return Some(job);
            }
            job.slice = self.slice(&job, left);
            if job.slice >= MIN_TIME {
                return Some(job);
            }
            if pass + 1 < PARTS.len() {
                job.pass += 1;
                self.jobs.push_back(job);
            } else {
                self.leave(job);
            }
        }
    }

    /// The place of the problem with the largest share, the first of equal ones; in the first pass the shares are not
    /// known, and all are equal.
    fn largest(&self, pass: usize) -> Option<usize> {
        let waiting = self.jobs.iter().enumerate().filter(|(_, job)| job.pass == pass);
        let shares = waiting.map(|(place, job)| (place, if pass == 0 { 0.0 } else { self.weight(job) }));
        let larger = |a: &(usize, f64), b: &(usize, f64)| match a.1.total_cmp(&b.1) {
            Ordering::Equal => b.0.cmp(&a.0),
            unequal => unequal,
        };
        shares.max_by(larger).map(|(place, _)| place)
    }

    /// What the pass has left for `job` beside those that wait; all there is, if none waits.
    fn slice(&self, job: &Job, all: Duration) -> Duration {
        if self.jobs.is_empty() {
            return all;
        }
        let left = self.pass_ends.saturating_sub(self.report.spent);
        let own = self.weight(job);
        let others: f64 =
            self.jobs.iter().filter(|other| other.pass == job.pass).map(|other| self.weight(other)).sum();
        left.mul_f64((own / (own + others)).clamp(0.0, 1.0))
    }

    /// The share of a problem.
    fn weight(&self, job: &Job) -> f64 {
        let similar = |other: &Job| job.key.distance(&other.key).is_some_and(|distance| distance <= NEAR);
        let first = job.pass <= 1 && !self.jobs.iter().any(|other| other.pass > job.pass && similar(other));
        job.share() * if first { FIRST_OF_ITS_KIND } else { 1.0 }
    }
}
