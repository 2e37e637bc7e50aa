//! How many threads share the runs of a network while other programs want the processors too.
//!
//! A helper that loses its processor within a part keeps its caller waiting until it has one again: some milliseconds,
//! where a step takes ten microseconds. A part cannot be taken back, for the helper writes its results. And a helper that
//! waits actively takes time that its caller would have had. So where runs take much longer than they did, fewer threads
//! are tried, half as many each time, and kept if runs are faster with them; after a pause more are tried again. All is
//! judged by the time of whole runs. On a machine that does nothing else runs take equally long, and nothing is tried.

use std::time::Duration;

/// Runs of so long in all are compared, which is several time slices of the system, and so many at least.
const WINDOW: (Duration, u32) = (Duration::from_millis(40), 3);

/// For how many times as long runs go on before another number of threads is tried: at first, and at most.
const PAUSES: (u32, u32) = (2, 64);

/// Runs are slow if they take more than so many hundredths of what the fastest one took.
const SLOW: u32 = 140;

/// More threads are kept if a run takes so many hundredths as long without them; fewer if it takes longer without them.
const FASTER: u32 = 105;

/// More threads with which runs are slow are kept only if a run takes so many hundredths as long without them.
const MUCH_FASTER: u32 = 125;

/// Whether `time` is more than so many hundredths of `other`.
fn exceeds(time: Duration, hundredths: u32, other: Duration) -> bool {
    time.saturating_mul(100) > other.saturating_mul(hundredths)
}

/// The number of threads that is being tried, or that runs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    None,
    Fewer(usize),
    More(usize),
}

/// How many threads share a network's runs, by what its runs have taken.
#[derive(Debug)]
pub struct Load {
    /// How many the runs want.
    wanted: usize,
    /// How many they have, if none are tried.
    threads: usize,
    trial: Trial,
    /// Runs of the window under way, and what they took.
    runs: u32,
    took: Duration,
    /// What a run takes with `threads`.
    usual: Duration,
    /// What the fastest run took.
    best: Duration,
    /// How much longer runs go on before others are tried, and how many times as long as a trial the next time.
    rest: Duration,
    pause: u32,
}

impl Default for Load {
    fn default() -> Self {
        Load::of(1)
    }
}

impl Load {
    fn of(wanted: usize) -> Self {
        Load {
            wanted,
            threads: wanted,
            trial: Trial::None,
            runs: 0,
            took: Duration::ZERO,
            usual: Duration::ZERO,
            best: Duration::MAX,
            rest: Duration::ZERO,
            pause: PAUSES.0,
        }
    }

    /// How many threads share the steps of a run that begins now, of so many that it wants.
    pub(super) fn begin(&mut self, wanted: usize) -> usize {
        if wanted != self.wanted {
            *self = Load::of(wanted);
        }
        self.shared()
    }

    fn shared(&self) -> usize {
        match self.trial {
            Trial::None => self.threads,
            Trial::Fewer(tried) | Trial::More(tried) => tried,
        }
    }

    /// Notes what a run took on so many threads.
    pub(super) fn end(&mut self, threads: usize, took: Duration) {
        // Another run of the same network has changed the number meanwhile.
        if threads != self.shared() {
            return;
        }
        self.best = self.best.min(took);
        self.runs += 1;
        self.took += took;
        self.rest = self.rest.saturating_sub(took);
        if self.took < WINDOW.0 || self.runs < WINDOW.1 {
            return;
        }
        let window = std::mem::take(&mut self.took);
        let mean = window / std::mem::take(&mut self.runs);
        match std::mem::replace(&mut self.trial, Trial::None) {
            Trial::None => self.judge(mean),
            trial @ (Trial::Fewer(tried) | Trial::More(tried)) if self.better(trial, mean) => {
                (self.threads, self.usual) = (tried, mean);
                (self.rest, self.pause) = (window.saturating_mul(PAUSES.0), PAUSES.0);
                // What was right once may be right again.
                self.trial = match trial {
                    Trial::Fewer(tried) if tried > 1 => Trial::Fewer(fewer(tried)),
                    Trial::More(tried) if tried < self.wanted => Trial::More(self.more()),
                    _ => Trial::None,
                };
            }
            _ => {
                self.rest = window.saturating_mul(self.pause);
                self.pause = (self.pause * 2).min(PAUSES.1);
            }
        }
    }

    /// Takes up what a run has taken on the usual number of threads, and begins to try another number if that may pay.
    fn judge(&mut self, mean: Duration) {
        if self.threads < self.wanted {
            self.usual = (self.usual + mean) / 2;
            if self.rest.is_zero() {
                self.trial = Trial::More(self.more());
            }
            return;
        }
        self.usual = mean;
        if self.rest.is_zero() && self.threads > 1 && exceeds(mean, SLOW, self.best) {
            self.trial = Trial::Fewer(fewer(self.threads));
        }
    }

    /// Whether the number that was tried is the better one. Times are uneven where other programs run: more threads must
    /// be faster by more than chance, or as fast as where none run.
    fn better(&self, trial: Trial, mean: Duration) -> bool {
        let faster = match trial {
            Trial::Fewer(_) => 100,
            _ if exceeds(mean, SLOW, self.best) => MUCH_FASTER,
            _ => FASTER,
        };
        exceeds(self.usual, faster, mean)
    }

    fn more(&self) -> usize {
        self.threads.saturating_mul(2).min(self.wanted)
    }
}

/// The next power of two below.
fn fewer(threads: usize) -> usize {
    threads.saturating_sub(1).checked_ilog2().map_or(1, |log| 1 << log)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Runs for so long. `took` says what a run takes on so many threads, the how many-th of these runs it is.
    fn runs(
        load: &mut Load,
        wanted: usize,
        time: Duration,
        took: impl Fn(usize, u32) -> Duration,
    ) -> Vec<usize> {
        let (mut ran, mut threads) = (Duration::ZERO, Vec::new());
        for run in 0.. {
            if ran >= time {
                break;
            }
            let shared = load.begin(wanted);
            assert!((1..=wanted).contains(&shared), "{shared} of {wanted}");
            load.end(shared, took(shared, run));
            ran += took(shared, run);
            threads.push(shared);
        }
        threads
    }

    /// The share of the runs that so many threads had.
    fn share(runs: &[usize], threads: usize) -> f64 {
        runs.iter().filter(|&&of| of == threads).count() as f64 / runs.len() as f64
    }

    /// Runs on a machine that does nothing else, but for something short now and then.
    fn idle(threads: usize, run: u32) -> Duration {
        let disturbed = if run % 400 == 57 { MS(4) } else { Duration::ZERO };
        Duration::from_micros(1000) / u32::try_from(threads).expect("few") + disturbed
    }

    /// A helper of two loses its processor in each other run; the caller alone has it for half of the time.
    fn loaded(threads: usize, run: u32) -> Duration {
        match (threads, run % 2) {
            (1, 0) => MS(1),
            (1, _) => MS(2),
            (_, 0) => Duration::from_micros(600),
            _ => MS(8),
        }
    }

    #[test]
    fn nothing_is_tried_on_an_idle_machine() {
        for wanted in [1, 2, 3, 8] {
            let mut load = Load::default();
            assert_eq!(share(&runs(&mut load, wanted, MS(5000), idle), wanted), 1.0, "{wanted}");
        }
    }

    #[test]
    fn a_loaded_machine_gets_the_caller_alone_until_it_is_idle() {
        let mut load = Load::default();
        runs(&mut load, 2, MS(200), idle);
        // The first windows show it.
        runs(&mut load, 2, MS(200), loaded);
        let busy = runs(&mut load, 2, MS(20_000), loaded);
        assert!(share(&busy, 1) > 0.97, "{}", share(&busy, 1));
        runs(&mut load, 2, WINDOW.0 * (PAUSES.1 + 10), idle);
        assert_eq!(share(&runs(&mut load, 2, MS(1000), idle), 2), 1.0);
    }

    #[test]
    fn a_session_that_begins_on_a_loaded_machine_finds_out() {
        let mut load = Load::default();
        runs(&mut load, 2, MS(200), loaded);
        assert!(share(&runs(&mut load, 2, MS(20_000), loaded), 1) > 0.97);
    }

    #[test]
    fn threads_that_pay_in_spite_of_others_are_kept() {
        // Slow now and then, but slower alone.
        let uneven = |threads, run| match (threads, run % 3) {
            (1, _) => MS(4),
            (_, 0) => MS(3),
            _ => MS(1),
        };
        let mut load = Load::default();
        let kept = runs(&mut load, 2, MS(20_000), uneven);
        assert!(share(&kept, 2) > 0.95, "{}", share(&kept, 2));
    }

    #[test]
    fn as_many_threads_as_have_processors_are_found() {
        // Five of sixteen processors are free; a thread without one waits.
        let taken = |threads: usize, run| match threads {
            ..=5 => MS(8) / u32::try_from(threads).expect("few"),
            _ if run % 4 == 0 => MS(8) / u32::try_from(threads).expect("few"),
            _ => MS(6),
        };
        let mut load = Load::default();
        runs(&mut load, 16, MS(500), taken);
        let busy = runs(&mut load, 16, MS(10_000), taken);
        assert!(share(&busy, 4) > 0.9, "{}", share(&busy, 4));
        let all = |threads, _| MS(8) / u32::try_from(threads).expect("few");
        runs(&mut load, 16, MS(3000), all);
        assert_eq!(share(&runs(&mut load, 16, MS(500), all), 16), 1.0);
        // One of another size begins anew.
        assert_eq!(load.begin(12), 12);
        assert_eq!([2, 3, 4, 5, 12, 16, 17].map(fewer), [1, 2, 2, 4, 8, 8, 16]);
    }

    #[test]
    fn runs_of_seconds_are_judged_one_by_one() {
        let slow = |threads, run| if threads == 2 && run % 2 == 1 { MS(4000) } else { MS(1500) };
        let mut load = Load::default();
        let busy = runs(&mut load, 2, MS(600_000), slow);
        assert!(share(&busy, 1) > 0.8, "{busy:?}");
    }

    #[test]
    fn a_run_on_another_number_of_threads_says_nothing() {
        let mut load = Load::default();
        load.begin(2);
        for _ in 0..100 {
            load.end(1, MS(30));
        }
        assert_eq!((load.runs, load.begin(2)), (0, 2));
    }
}
