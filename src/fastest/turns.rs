//! Times several candidates, one after the other in turns, so that all meet the same load and clocks.

use crate::clock::Instant;
use crate::error::Result;
use crate::host::HostTensor;
use crate::session::Session;
use crate::tune::statistics::median;
use std::time::Duration;

/// How long each candidate runs before its times count, unless one run takes longer: clocks rise, and helpers start.
const WARM_UP: Duration = Duration::from_millis(10);

/// Runs by which a slow candidate is given up.
const FIRST_RUNS: usize = 5;

/// A candidate so many times slower than another in its first runs is given up.
const TOO_SLOW: f64 = 3.0;

/// How long a turn takes, unless one run takes longer.
const TURN: Duration = Duration::from_millis(5);

/// Turns of each candidate at most.
const TURNS: usize = 20;

/// What came of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Timed {
    /// The median, in nanoseconds.
    pub(super) median: Option<u64>,
    pub(super) runs: u32,
    /// Why it was not measured to the end.
    pub(super) reason: String,
}

/// A candidate: each call is a run, and gives its time.
pub(super) type Run<'a> = Box<dyn FnMut() -> Result<Duration> + 'a>;

/// A session's runs by the host's clock.
pub(super) fn clocked<'a>(mut session: Session, feeds: &'a [(&'a str, &'a HostTensor)]) -> Run<'a> {
    Box::new(move || {
        let start = Instant::now();
        let outputs = session.run(feeds)?;
        let time = start.elapsed();
        drop(outputs);
        Ok(time)
    })
}

/// A candidate that is timed.
struct Candidate<'r, 'a> {
    run: &'r mut Run<'a>,
    /// Nanoseconds.
    times: Vec<f64>,
    /// Why it runs no more.
    out: Option<String>,
    /// Whether it failed, so that its times do not count.
    failed: bool,
}

impl Candidate<'_, '_> {
    /// Runs once; nothing if that fails.
    fn once(&mut self) -> Option<Duration> {
        match (self.run)() {
            Ok(time) => Some(time),
            Err(error) => {
                (self.out, self.failed) = (Some(error.to_string()), true);
                None
            }
        }
    }

    /// Runs until so much time is over, once at least: the times of the runs, none if one failed.
    fn during(&mut self, span: Duration, most: usize) -> Vec<Duration> {
        let (mut times, mut spent) = (Vec::new(), Duration::ZERO);
        while times.is_empty() || spent < span && times.len() < most {
            let Some(time) = self.once() else { return Vec::new() };
            spent += time;
            times.push(time);
        }
        times
    }

    fn count(&mut self, times: &[Duration]) {
        self.times.extend(times.iter().map(|time| time.as_nanos() as f64));
    }

    fn least(&self) -> f64 {
        self.times.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Times each of these within `budget` for all. Every one runs twice at least.
pub(super) fn time(runs: &mut [Run<'_>], budget: Duration) -> Vec<Timed> {
    let mut candidates: Vec<Candidate<'_, '_>> =
        runs.iter_mut().map(|run| Candidate { run, times: Vec::new(), out: None, failed: false }).collect();
    let mut spent = Duration::ZERO;
    // The first runs may plan, compile and allocate.
    for candidate in &mut candidates {
        spent += candidate.during(WARM_UP, usize::MAX).iter().sum();
    }
    let share = budget.saturating_sub(spent) / u32::try_from(2 * candidates.len().max(1)).unwrap_or(u32::MAX);
    for candidate in candidates.iter_mut().filter(|candidate| candidate.out.is_none()) {
        let times = candidate.during(share, FIRST_RUNS);
        spent += times.iter().sum();
        candidate.count(&times);
    }
    let least =
        candidates.iter().filter(|one| !one.failed).map(Candidate::least).fold(f64::INFINITY, f64::min);
    for candidate in candidates.iter_mut().filter(|candidate| candidate.out.is_none()) {
        if candidate.least() > TOO_SLOW * least {
            candidate.out = Some(format!(
                "given up after {} runs, because another is faster by far",
                candidate.times.len()
            ));
        }
    }
    'turns: for turn in 0..TURNS {
        let count = candidates.len();
        if candidates.iter().filter(|candidate| candidate.out.is_none()).count() < 2 {
            break;
        }
        // Another one begins each time, so that nobody always follows the same one.
        for place in (0..count).map(|place| (place + turn) % count) {
            let Some(candidate) = candidates.get_mut(place).filter(|candidate| candidate.out.is_none())
            else {
                continue;
            };
            if spent >= budget {
                break 'turns;
            }
            let times = candidate.during(TURN, usize::MAX);
            spent += times.iter().sum();
            // The first run of a turn finds the caches as another candidate left them.
            candidate.count(if times.len() > 1 { times.get(1..).unwrap_or_default() } else { &times });
        }
    }
    candidates.into_iter().map(Candidate::timed).collect()
}

impl Candidate<'_, '_> {
    fn timed(self) -> Timed {
        let times = if self.failed { Vec::new() } else { self.times };
        Timed {
            median: median(&times).map(|median| median.round() as u64),
            runs: u32::try_from(times.len()).unwrap_or(u32::MAX),
            reason: self.out.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::cell::RefCell;

    /// Runs that take these microseconds, the last one again and again; each notes its candidate's number.
    fn simulated<'a>(number: usize, micros: &'a [u64], order: &'a RefCell<Vec<usize>>) -> Run<'a> {
        let mut times = micros.iter();
        Box::new(move || {
            order.borrow_mut().push(number);
            let next = times.next().or(micros.last());
            Ok(Duration::from_micros(*next.expect("a time")))
        })
    }

    #[test]
    fn medians_count_and_not_first_runs() {
        let order = RefCell::default();
        // The first run compiles, some are disturbed.
        let slow = [9_000_000, 200];
        let mut fast = vec![50_000];
        fast.extend([100, 100, 100, 5_000].repeat(500));
        let mut runs = vec![simulated(0, &slow, &order), simulated(1, &fast, &order)];
        let timed = time(&mut runs, Duration::from_secs(20));
        assert_eq!([timed[0].median, timed[1].median], [Some(200_000), Some(100_000)]);
        assert!(timed.iter().all(|timed| timed.reason.is_empty() && timed.runs > 30), "{timed:?}");
        drop(runs);
        // In turns: each is met again after the other.
        let order = order.into_inner();
        let changes = order.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes >= TURNS, "{changes}");
    }

    #[test]
    fn one_that_is_slower_by_far_is_given_up() {
        let order = RefCell::default();
        let mut runs = vec![simulated(0, &[1000], &order), simulated(1, &[3100], &order)];
        let timed = time(&mut runs, Duration::from_secs(1));
        assert_eq!((timed[1].median, timed[1].runs), (Some(3_100_000), FIRST_RUNS as u32));
        assert!(timed[1].reason.contains("given up after 5 runs"), "{timed:?}");
        assert!(timed[0].reason.is_empty());
    }

    #[test]
    fn the_budget_holds_but_for_two_runs_of_each() {
        let order = RefCell::default();
        let mut runs = vec![simulated(0, &[100_000], &order), simulated(1, &[100_000], &order)];
        let timed = time(&mut runs, Duration::from_secs(1));
        let count = order.borrow().len();
        assert!((8..=11).contains(&count), "{count} runs of 100 ms in a second");
        assert!(timed.iter().all(|timed| timed.median == Some(100_000_000)));
        order.borrow_mut().clear();
        time(&mut runs, Duration::ZERO);
        assert_eq!(*order.borrow(), [0, 1, 0, 1]);
    }

    #[test]
    fn one_that_fails_has_its_reason_and_no_time() {
        let order = RefCell::default();
        for good in [0, 1, 3, 20] {
            let mut left = good;
            let failing: Run<'_> = Box::new(move || {
                if left == 0 {
                    return Err(Error::unsupported("this", "it cannot run"));
                }
                left -= 1;
                Ok(Duration::from_millis(1))
            });
            let timed = time(&mut [simulated(0, &[2000], &order), failing], Duration::from_secs(1));
            assert_eq!((timed[1].median, timed[1].runs), (None, 0), "{good}");
            assert!(timed[1].reason.contains("it cannot run"), "{timed:?}");
            assert_eq!(timed[0].median, Some(2_000_000));
        }
        assert!(time(&mut [], Duration::from_secs(1)).is_empty());
    }
}
