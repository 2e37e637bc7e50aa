//! A tuning run: a state machine that does one short thing at a time.
//!
//! 1. **Screen.** A candidate is compiled, checked against the expected output, run once for an
//!    estimate, and sampled once. One that is wrong, refused or too slow goes no further.
//! 2. **Race.** The survivors are sampled in shuffled rounds. After each, those whose interval lies
//!    wholly above the best one's are dropped, and from the second sample on the slower half.
//! 3. **Duel.** The finalists are compared with the default in fresh rounds: see [`super::verdict`].
//! 4. **Confirm.** The winner's output and the default's are looked at again, in at least 64 runs each
//!    ([`super::repeat`]): one that is wrong in one run of ten passes its first check nine times of ten. In place of a
//!    winner that is flaky the next finalist is looked at, in place of a flaky default another candidate: see `confirm`.
//!
//! Where the bench can take turns within one submission ([`Bench::interleaves`]) and the kernels are
//! short, every sample is a pair: anchor and candidate alternate for some rounds, and the score is
//! the median of `ln(t / t_anchor)`. A clock that steps between two samples, as that of a GPU does
//! which idles while a kernel is compiled, is then in both times. The duel is held in such
//! submissions too, all finalists and the default taking turns. Before the first time that counts,
//! and before the duel, the bench may warm its device up ([`Bench::warm_up`]).
//!
//! Elsewhere, in the first two phases the default is sampled again after every eight candidates, as an
//! anchor: a score is `ln(t) - ln(median of the last three anchors)`, so that a clock that drifts
//! does not favour early candidates. Where the default itself cannot be used, the first candidate
//! that can takes its place.
//!
//! Outliers are slow, never fast. So an anchor 15 % above the last ones is taken again, up to
//! twice; so is a candidate's first sample 20 % above its estimate; and of a race's two samples the
//! faster one counts.

mod action;
mod budget;
mod confirm;
mod duel;
#[cfg(test)]
mod fake;
mod rounds;
mod screen;
#[cfg(test)]
mod tests;

use super::bench::{Bench, Check};
use super::entry::{Entry, State};
use super::explore::Explorer;
use super::repeat::Repeats;
use super::search::{Search, WorkGroups, boxes, candidates, handful};
use super::statistics::{median, race_half_width, spread};
use super::verdict::{Call, Outcome, Rule, Trial, Verdict};
use crate::error::Result;
use crate::ops::Choice;
use crate::random::Random;
use std::collections::VecDeque;
use std::time::Duration;

/// A candidate that an earlier run found this many times slower than the best one is not timed again.
const KNOWN_LOSER: f64 = 1.5;
/// Samples of candidates from one anchor to the next.
const ANCHOR_PERIOD: usize = 8;
/// Standard errors on each side of a race's interval.
const RACE_Z: f64 = 3.0;
/// The least relative noise of a sample that is believed.
const MIN_NOISE: f64 = 0.005;
/// What is assumed of a sample's noise until there are enough samples.
const ASSUMED_NOISE: f64 = 0.05;
/// What is assumed of the noise of a pair until there are enough pairs.
const ASSUMED_PAIR_NOISE: f64 = 0.015;
/// Candidates that a budgeted search takes into the race.
const MAX_BUDGET_RACERS: usize = 6;
/// A kernel this short is timed in pairs: a longer one keeps the clock up by itself.
const MAX_PAIRED_TIME: Duration = Duration::from_millis(2);
/// How long a pair's rounds take together, and how many there are.
const PAIR_TIME: Duration = Duration::from_micros(800);
const PAIR_ROUNDS: [usize; 2] = [5, 25];
/// Rounds of a candidate's first pair: the median of three tolerates one outlier.
const ESTIMATE_ROUNDS: usize = 3;
/// A candidate this many times slower than the best in a pair's first rounds is not raced.
const MAX_RACED_SLOWDOWN: f64 = 1.5;
/// How often an output that was wrong is looked at again: one that is right then is flaky.
const WRONG_CHECKS: u32 = 3;
/// Rounds of a duel in one submission, and how long each is made to last.
const DUEL_ROUNDS_PER_SUBMISSION: usize = 5;
const DUEL_ROUND_TIME: Duration = Duration::from_micros(400);

/// How to tune.
#[derive(Debug, Clone)]
pub struct TuneOptions {
    /// How widely to look.
    pub search: Search,
    /// When the default is left.
    pub rule: Rule,
    /// Decides the order of the samples. The same seed and samples give the same verdict.
    pub seed: u64,
    /// Candidates to begin with: the winners of another API or of a near shape.
    pub warm: Vec<Choice>,
    /// What problems like this one had, for a budgeted search: a choice, `ln` of its time over that
    /// problem's best, and how much it counts (1 for a problem as good as this one).
    pub hints: Vec<(Choice, f64, f64)>,
    /// What an earlier run found: reasons are kept, clear losers are not timed again.
    pub known: Vec<Trial>,
    /// The handful of work-groups of [`Search::Fast`].
    pub fast: WorkGroups,
    /// The work-groups of [`Search::Exhaustive`] and [`Search::Budget`].
    pub exhaustive: WorkGroups,
    /// A candidate whose one run takes longer than this, and longer than the default's, is dropped
    /// as timed out.
    pub limit: Duration,
    /// A candidate whose first run takes this many times the best one's is dropped.
    pub give_up: f64,
    /// Candidates that are compared with the default at the end.
    pub finalists: usize,
}

impl Default for TuneOptions {
    fn default() -> Self {
        TuneOptions {
            search: Search::Fast,
            rule: Rule::default(),
            seed: 0,
            warm: Vec::new(),
            hints: Vec::new(),
            known: Vec::new(),
            fast: handful,
            exhaustive: boxes,
            limit: Duration::from_secs(2),
            give_up: 4.0,
            finalists: 3,
        }
    }
}

/// How far a tuning run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// There is more to do.
    Working {
        /// Candidates looked at so far.
        tried: usize,
        /// Candidates there are.
        candidates: usize,
    },
    /// [`TuningRun::verdict`] has the answer.
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Screen,
    Race,
    Duel,
    Confirm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Prepare(usize),
    Check(usize),
    Estimate(usize),
    Sample(usize),
    /// Keep the device busy with this one.
    Warm(usize),
    /// Some rounds of the duel in one submission.
    Bout,
    /// Run it again and again.
    Confirm(usize),
}

/// What actions of one kind have cost.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    total: Duration,
    most: Duration,
    count: u32,
}

impl Cost {
    fn add(&mut self, cost: Duration) {
        self.total += cost;
        self.most = self.most.max(cost);
        self.count += 1;
    }

    fn mean(&self) -> Duration {
        self.total.checked_div(self.count).unwrap_or_default()
    }

    /// What one more is likely to cost: the mean without the dearest one. The first of a kind brings
    /// what is done once (a clock's calibration, a compiler's start, an upload); while it is the only
    /// one, a quarter of it is believed.
    fn usual(&self) -> Duration {
        match self.count {
            0 => Duration::ZERO,
            1 => self.total / 4,
            count => (self.total - self.most) / (count - 1),
        }
    }
}

/// A resumable tuning run of one problem.
#[derive(Debug)]
pub struct TuningRun {
    options: TuneOptions,
    random: Random,
    entries: Vec<Entry>,
    /// What to screen, in reverse; a budgeted search asks the explorer instead.
    order: Vec<usize>,
    /// What is screened next: named to the bench ahead of need.
    upcoming: VecDeque<usize>,
    explorer: Option<Explorer>,
    phase: Phase,
    current: Option<usize>,
    /// The default, or its substitute.
    baseline: Option<usize>,
    /// The baseline's score: 0 but for a substitute.
    level: f64,
    anchors: Vec<f64>,
    since_anchor: usize,
    /// Whether the device may have to be warmed up before anything is timed.
    cold: bool,
    /// Whether the duel's next rounds are due in one submission.
    bout: bool,
    /// Whether anything was timed in pairs.
    paired: bool,
    /// How often the present anchor was taken again.
    retaken: u32,
    queue: Vec<usize>,
    live: Vec<usize>,
    round: Vec<(usize, f64)>,
    rounds: usize,
    pending: Option<Action>,
    costs: [Cost; 7],
    /// What a round of repeated runs costs, as the bench says.
    repeat_cost: Duration,
    /// What may take the place of a flaky default.
    replacement: Option<usize>,
    spent: Duration,
    cut_short: bool,
    /// The API and the limit of a wait that was given up.
    hung: Option<(&'static str, Duration)>,
    verdict: Option<Verdict>,
}

impl TuningRun {
    /// A run over the candidates of `bench`; nothing is compiled or timed yet.
    ///
    /// # Errors
    /// If the problem has no default.
    pub fn new(bench: &dyn Bench, options: TuneOptions) -> Result<Self> {
        let list = candidates(bench, options.search, &options.warm, options.fast, options.exhaustive)?;
        let mut entries: Vec<Entry> = list.iter().copied().map(Entry::new).collect();
        let best = options.known.iter().filter_map(|trial| trial.relative).fold(1.0, f64::min);
        let budgeted = matches!(options.search, Search::Budget(_));
        for trial in &options.known {
            if let Some(entry) = entries.iter_mut().skip(1).find(|entry| entry.choice == trial.choice) {
                // With a budget, only what the run begins with is timed again.
                let again = !budgeted || options.warm.contains(&trial.choice);
                entry.recall(trial, if again { KNOWN_LOSER * best } else { 0.0 });
            }
            // The default is timed in any case, but not if it is known to be unusable.
            if let Some(entry) = entries.first_mut().filter(|entry| entry.choice == trial.choice) {
                entry.recall(trial, f64::INFINITY);
            }
        }
        let mut random = Random::new(options.seed);
        let warm = 1 + options.warm.len().min(list.len().saturating_sub(1));
        let mut order: Vec<usize> = (0..list.len()).collect();
        if let Some(rest) = order.get_mut(warm..) {
            random.shuffle(rest);
        }
        let explorer = match options.search {
            Search::Budget(_) => Some(action::explorer(bench, &list, &entries, warm, &options.hints)),
            _ => None,
        };
        order.reverse();
        Ok(TuningRun {
            options,
            random,
            entries,
            order,
            upcoming: VecDeque::new(),
            explorer,
            phase: Phase::Screen,
            current: None,
            baseline: None,
            level: 0.0,
            anchors: Vec::new(),
            since_anchor: 0,
            cold: true,
            bout: false,
            paired: false,
            retaken: 0,
            queue: Vec::new(),
            live: Vec::new(),
            round: Vec::new(),
            rounds: 0,
            pending: None,
            costs: [Cost::default(); 7],
            repeat_cost: Duration::ZERO,
            replacement: None,
            spent: Duration::ZERO,
            cut_short: false,
            hung: None,
            verdict: None,
        })
    }

    /// The answer, once [`Progress::Finished`].
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Works for about `budget`: another action is begun only while the time used and the usual
    /// cost of that action fit. A step does at least one action, so it overruns by at most one.
    ///
    /// # Errors
    /// If the bench cannot be closed, or the device does not come to an end; what candidates do wrong is in the verdict.
    #[cfg(not(target_family = "wasm"))]
    pub fn step(&mut self, bench: &mut dyn Bench, budget: Duration) -> Result<Progress> {
        crate::task::block_on(self.step_async(bench, budget))
    }

    /// [`TuningRun::step`], awaited. If it is dropped midway, the next one does the action that was under way again.
    ///
    /// # Errors
    /// As of [`TuningRun::step`].
    pub async fn step_async(&mut self, bench: &mut dyn Bench, budget: Duration) -> Result<Progress> {
        let start = bench.now();
        let mut acted = false;
        while self.verdict.is_none() {
            let action = match self.pending.take() {
                Some(action) => action,
                None => match self.next_action(bench) {
                    Some(action) => action,
                    None => {
                        self.conclude(bench)?;
                        break;
                    }
                },
            };
            let used = bench.now().saturating_sub(start);
            self.pending = Some(action);
            if acted && used + self.cost(action).mean() > budget {
                let waiting = self.entries.iter().filter(|entry| entry.state == State::Waiting).count();
                let candidates = self.entries.len();
                return Ok(Progress::Working { tried: candidates - waiting, candidates });
            }
            self.act(bench, action).await?;
            self.pending = None;
            acted = true;
        }
        Ok(Progress::Finished)
    }

    /// Works until the end.
    ///
    /// # Errors
    /// Those of [`TuningRun::step`].
    #[cfg(not(target_family = "wasm"))]
    pub fn run(&mut self, bench: &mut dyn Bench) -> Result<Verdict> {
        self.step(bench, Duration::MAX)?;
        self.verdict.clone().ok_or_else(|| crate::Error::Internal("a tuning run without an end".to_owned()))
    }

    /// Ends the run now. The default stays, unless a better one was already found and confirmed. The
    /// verdict's trials, given to another run as [`TuneOptions::known`], let that one go on.
    ///
    /// # Errors
    /// If the bench cannot be closed.
    pub fn cancel(&mut self, bench: &mut dyn Bench) -> Result<()> {
        if self.verdict.is_none() {
            self.cut_short = true;
            self.conclude(bench)?;
        }
        Ok(())
    }

    fn cost(&mut self, action: Action) -> &mut Cost {
        let [prepare, check, estimate, sample, warm, bout, confirm] = &mut self.costs;
        match action {
            Action::Prepare(_) => prepare,
            Action::Check(_) => check,
            Action::Estimate(_) => estimate,
            Action::Sample(_) => sample,
            Action::Warm(_) => warm,
            Action::Bout => bout,
            Action::Confirm(_) => confirm,
        }
    }

    fn next_action(&mut self, bench: &mut dyn Bench) -> Option<Action> {
        loop {
            let action = match self.phase {
                Phase::Screen => self.screen(bench),
                Phase::Race | Phase::Duel => self.queued(),
                Phase::Confirm => self.unconfirmed(bench),
            };
            if action.is_some() || !self.next_phase(bench) {
                return action;
            }
        }
    }
}
