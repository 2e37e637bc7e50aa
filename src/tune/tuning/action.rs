//! One action of a tuning run, and what follows from its outcome.

use super::*;

impl TuningRun {
    pub(super) async fn act(&mut self, bench: &mut dyn Bench, action: Action) -> Result<()> {
        let start = bench.now();
        let outcome = match action {
            Action::Prepare(index) => self.prepare(bench, index).await,
            Action::Check(index) => self.check(bench, index).await,
            Action::Estimate(index) => self.estimate(bench, index).await,
            Action::Sample(index) => self.sample(bench, index).await,
            Action::Warm(index) => {
                let more = bench.warm_up_async(&self.entries[index].choice).await;
                more.map(|more| self.cold = more)
            }
            Action::Bout => {
                self.hold_bout(bench).await;
                Ok(())
            }
            Action::Confirm(index) => self.confirm(bench, index).await,
        };
        match action {
            Action::Prepare(index)
            | Action::Check(index)
            | Action::Estimate(index)
            | Action::Sample(index)
            | Action::Warm(index)
            | Action::Confirm(index) => {
                if let Err(error) = outcome {
                    self.entries[index].better = None;
                    self.refuse(index, &error);
                }
                match self.phase {
                    Phase::Confirm => self.found_out(bench, index),
                    _ => self.settle(bench, index),
                }
            }
            Action::Bout => {}
        }
        let cost = bench.now().saturating_sub(start);
        self.spent += cost;
        self.cost(action).add(cost);
        self.end_if_hung(bench)
    }

    /// Lets go of a candidate that is out.
    pub(super) fn settle(&mut self, bench: &mut dyn Bench, index: usize) {
        if matches!(self.entries[index].state, State::Settled(_) | State::Out) {
            bench.release(&self.entries[index].choice);
            if self.baseline == Some(index) {
                self.replace_baseline();
            }
        }
    }

    async fn prepare(&mut self, bench: &mut dyn Bench, index: usize) -> Result<()> {
        bench.prepare_async(&self.entries[index].choice).await?;
        self.entries[index].state = State::Prepared;
        Ok(())
    }

    async fn check(&mut self, bench: &mut dyn Bench, index: usize) -> Result<()> {
        let start = bench.now();
        self.entries[index].state = match bench.check_async(&self.entries[index].choice).await? {
            Check::Correct => State::Checked,
            Check::Wrong { detail } => {
                if let Some(explorer) = &mut self.explorer {
                    explorer.fail(index);
                }
                State::Settled(self.wrong_again(bench, index, detail).await?)
            }
        };
        self.entries[index].checked_in = bench.now().saturating_sub(start);
        self.repeat_cost = bench.repeat_cost();
        Ok(())
    }

    /// Whether a candidate whose first output was wrong is always so.
    async fn wrong_again(&mut self, bench: &mut dyn Bench, index: usize, detail: String) -> Result<Outcome> {
        let choice = self.entries[index].choice;
        let mut repeats = Repeats { differed: 1, runs: 1 };
        for _ in 0..WRONG_CHECKS {
            repeats.runs += 1;
            repeats.differed += u32::from(bench.check_async(&choice).await? != Check::Correct);
        }
        if repeats.differed == repeats.runs {
            return Ok(Outcome::Wrong { detail });
        }
        self.entries[index].repeated = repeats;
        Ok(Outcome::Flaky { repeats, detail })
    }

    /// The anchors' present log-time, as a score of 0.
    fn zero(&self) -> Option<f64> {
        let last = self.anchors.get(self.anchors.len().saturating_sub(3)..).unwrap_or_default();
        median(last).map(|anchor| anchor - self.level)
    }

    /// The anchor that `index` is timed beside, if it is timed in pairs: the bench can, and neither
    /// takes long.
    fn partner(&self, bench: &dyn Bench, index: usize) -> Option<usize> {
        let short = |entry: &Entry| match entry.times.first() {
            Some(&seconds) => seconds <= MAX_PAIRED_TIME.as_secs_f64(),
            // Its first run was the check's.
            None => entry.checked_in <= 25 * MAX_PAIRED_TIME,
        };
        let anchor = self.baseline.filter(|&anchor| anchor != index && bench.interleaves())?;
        (short(&self.entries[anchor]) && short(&self.entries[index])).then_some(anchor)
    }

    /// Times `index` beside its partner: its time and its score.
    async fn pair(
        &mut self,
        bench: &mut dyn Bench,
        anchor: usize,
        index: usize,
        rounds: usize,
    ) -> Result<(Duration, f64)> {
        let choices = [anchor, index].map(|index| (self.entries[index].choice, 1));
        let times = match bench.together_async(&choices, rounds).await {
            Ok(times) => times,
            Err(error) => {
                // Is it the anchor that no longer runs?
                if !matches!(error.without_node(), crate::Error::TimedOut { .. })
                    && let Err(its_own) = bench.sample_async(&choices[0].0, 1).await
                {
                    self.refuse(anchor, &its_own);
                    self.settle(bench, anchor);
                    return self.unpaired(bench, index).await;
                }
                return Err(error);
            }
        };
        let logs = |index: usize| times.get(index).into_iter().flatten().map(|time| log(*time));
        let ratios: Vec<f64> = logs(1).zip(logs(0)).map(|(candidate, anchor)| candidate - anchor).collect();
        let (ratio, middle) = (median(&ratios), median(&logs(1).collect::<Vec<_>>()));
        let Some(((ratio, middle), anchor)) = ratio.zip(middle).zip(median(&logs(0).collect::<Vec<_>>()))
        else {
            return Err(crate::Error::Internal("a pair without times".to_owned()));
        };
        self.paired = true;
        self.entries[index].paired = true;
        self.anchors.push(anchor);
        (self.since_anchor, self.retaken) = (0, 0);
        Ok((Duration::from_secs_f64(middle.exp()), ratio + self.level))
    }

    /// The time of one run by itself, where the anchor was lost.
    async fn unpaired(&self, bench: &mut dyn Bench, index: usize) -> Result<(Duration, f64)> {
        let time = bench.sample_async(&self.entries[index].choice, 1).await?;
        Ok((time, self.zero().map_or(self.level, |zero| log(time) - zero)))
    }

    fn best_score(&self) -> f64 {
        self.entries.iter().filter_map(Entry::score).fold(f64::INFINITY, f64::min)
    }

    /// Whether one run took longer than the limit, and longer than the default's.
    fn takes_too_long(&self, time: Duration) -> bool {
        let anchor = self.zero().map(|zero| Duration::from_secs_f64(zero.exp()));
        anchor.is_some_and(|anchor| time > self.options.limit.max(anchor))
    }

    /// Runs a candidate once: one that is hopeless is not run again.
    async fn estimate(&mut self, bench: &mut dyn Bench, index: usize) -> Result<()> {
        if let Some(anchor) = self.partner(bench, index) {
            let (time, score) = self.pair(bench, anchor, index, ESTIMATE_ROUNDS).await?;
            if self.takes_too_long(time) {
                self.entries[index].state = State::Settled(Outcome::TimedOut { after: time });
            } else if score - self.best_score() > MAX_RACED_SLOWDOWN.min(self.options.give_up.max(1.0)).ln() {
                self.record_score(index, time, score);
                self.entries[index].state = State::Out;
            } else {
                self.entries[index].times.push(time.as_secs_f64());
            }
            return Ok(());
        }
        let choice = self.entries[index].choice;
        let mut time = bench.sample_async(&choice, 1).await?;
        if let Some(zero) = self.zero() {
            if self.takes_too_long(time) {
                self.entries[index].state = State::Settled(Outcome::TimedOut { after: time });
                return Ok(());
            }
            let behind = |time: Duration| log(time) - zero - self.best_score();
            let limit = self.options.give_up.max(1.0).ln();
            // One slow run may be an outlier; one many times slower is not.
            if behind(time) > limit && behind(time) < 2.0 * limit {
                time = time.min(bench.sample_async(&choice, 1).await?);
            }
            if behind(time) > limit {
                self.record(index, time);
                self.entries[index].state = State::Out;
                return Ok(());
            }
        }
        self.entries[index].repeats = bench.repeats(time).max(1);
        // The estimate is no sample, but says that there was one.
        self.entries[index].times.push(time.as_secs_f64());
        Ok(())
    }

    fn record(&mut self, index: usize, time: Duration) {
        let Some(zero) = self.zero() else { return };
        self.record_score(index, time, log(time) - zero);
    }

    fn record_score(&mut self, index: usize, time: Duration, score: f64) {
        self.entries[index].times.push(time.as_secs_f64());
        self.entries[index].scores.push(score);
        if let Some(explorer) = self.explorer.as_mut().filter(|_| self.phase == Phase::Screen) {
            explorer.observe(index, score);
        }
    }

    /// A sample in pairs, of a candidate that is screened or raced.
    async fn sample_beside(&mut self, bench: &mut dyn Bench, anchor: usize, index: usize) -> Result<()> {
        let seconds = |index: usize| self.entries[index].times.last().copied().unwrap_or_default();
        let round = (seconds(anchor) + seconds(index)).max(1e-9);
        let [least, most] = PAIR_ROUNDS;
        let rounds = ((PAIR_TIME.as_secs_f64() / round) as usize).clamp(least, most);
        let (time, score) = self.pair(bench, anchor, index, rounds).await?;
        if self.entries[index].state == State::Checked {
            self.entries[index].times.clear();
            self.entries[index].state = State::Live;
        }
        self.record_score(index, time, score);
        Ok(())
    }

    async fn sample(&mut self, bench: &mut dyn Bench, index: usize) -> Result<()> {
        if self.phase != Phase::Duel
            && let Some(anchor) = self.partner(bench, index)
        {
            return self.sample_beside(bench, anchor, index).await;
        }
        let Entry { choice, repeats, .. } = self.entries[index];
        let time = bench.sample_async(&choice, repeats).await? / repeats.max(1);
        let screened = self.entries[index].state == State::Checked;
        if screened {
            let wanted = bench.repeats(time);
            if wanted > 2 * repeats && self.entries[index].raised < 3 {
                // The estimate was mostly the clock's own: this sample is a better one.
                self.entries[index].repeats = wanted;
                self.entries[index].raised += 1;
                return Ok(());
            }
            let estimate = self.entries[index].times.first().copied().unwrap_or_default();
            if time.as_secs_f64() > 1.2 * estimate && self.entries[index].retaken < 1 {
                self.entries[index].retaken += 1;
                return Ok(());
            }
        }
        if self.baseline == Some(index)
            && self.phase != Phase::Duel
            && self.retaken < 2
            && self.zero().is_some_and(|zero| log(time) > zero + self.level + 0.15)
        {
            // The anchor is still due.
            self.retaken += 1;
            self.since_anchor = ANCHOR_PERIOD;
            return Ok(());
        }
        if screened {
            self.entries[index].times.clear();
            self.entries[index].state = State::Live;
        }
        if self.phase == Phase::Duel {
            self.entries[index].times.push(time.as_secs_f64());
            self.round.push((index, log(time)));
            return Ok(());
        }
        if self.baseline.is_none() {
            self.baseline = Some(index);
        }
        if self.baseline == Some(index) {
            self.anchors.push(log(time));
            (self.since_anchor, self.retaken) = (0, 0);
            self.entries[index].times.push(time.as_secs_f64());
            if screened {
                self.entries[index].scores = vec![self.level];
                if let Some(explorer) = &mut self.explorer {
                    explorer.observe(index, self.level);
                }
            }
        } else {
            self.since_anchor += 1;
            self.record(index, time);
        }
        Ok(())
    }

    /// The anchor failed: the best live candidate takes its place, and the duel begins anew.
    fn replace_baseline(&mut self) {
        let live = (0..self.entries.len()).filter(|&index| self.entries[index].state == State::Live);
        self.baseline = live.min_by(|&a, &b| {
            let score = |index: usize| self.entries[index].score().unwrap_or(f64::INFINITY);
            score(a).total_cmp(&score(b))
        });
        self.level = self.baseline.and_then(|index| self.entries[index].score()).unwrap_or(0.0);
        self.anchors.clear();
        // With no anchor left, one is sampled before any candidate.
        self.since_anchor = ANCHOR_PERIOD;
        self.queue.clear();
        self.round.clear();
        self.rounds = 0;
        self.bout = false;
        let baseline = self.baseline;
        self.live.retain(|index| Some(*index) != baseline);
        for entry in &mut self.entries {
            entry.duel.clear();
            entry.better = None;
        }
    }
}

/// `ln` of a time in seconds; one too short for the clock counts as a nanosecond.
pub(super) fn log(time: Duration) -> f64 {
    time.as_secs_f64().max(1e-9).ln()
}

/// The explorer of a budgeted search: default and warm candidates, then each (variant, tile) with
/// the table's work-group, then what it thinks best.
pub(super) fn explorer(
    bench: &dyn Bench,
    list: &[Choice],
    entries: &[Entry],
    warm: usize,
    hints: &[(Choice, f64, f64)],
) -> Explorer {
    let mut first: Vec<usize> = (0..warm.min(list.len())).collect();
    // What problems like this one had says more than one work-group of each tile.
    let space = if hints.is_empty() { bench.space() } else { Vec::new() };
    for (variant, tile) in space {
        let choice = Choice::new(variant, tile, bench.table(variant, tile)).with_layout(bench.layout());
        first.extend(list.iter().position(|listed| *listed == choice));
    }
    let mut explorer = Explorer::new(list, first);
    explorer.expect(hints);
    for (index, entry) in entries.iter().enumerate() {
        match (&entry.state, entry.score()) {
            (State::Waiting, _) => {}
            (_, Some(score)) => explorer.observe(index, score),
            (_, None) => explorer.fail(index),
        }
    }
    explorer
}
